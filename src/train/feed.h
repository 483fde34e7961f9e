// Images in a device's memory, and recordings that take their batches from there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "omniconv/training.h"
#include "train/network_state.h"
#include "train/steps.h"

namespace omniconv::training {

// What a pixel of each channel becomes: 256 numbers a channel.
std::vector<float> pixel_table(const Standard& standard);
// Waits for all that is under way, whatever becomes of it.
void settle(Queue& queue);

// Where a number that is not finite came up first.
struct NotFinite {
  std::size_t layer = 0;  // the number of layers: behind them
  std::string what;
};

// A part of a set as bytes, its classes, and what a pixel of each channel becomes.
struct DeviceExamples {
  DeviceExamples(const Context& context, Queue& queue, const Dataset& dataset, const Examples& examples);

  std::int64_t count = 0, channels = 0, height = 0, width = 0;
  Buffer images, labels, table;
};

// A network's steps, each on a batch of such images that it makes itself.
class Feed {
 public:
  // trains: steps of the training, whose losses are added up; else forward alone.
  Feed(Network::State& network, const DeviceExamples& examples, const Augmentation& augmentation, std::uint64_t seed,
       bool trains);

  // The images that batches have, one after the other, by their numbers; as many as the examples at most. `order` stays
  // until the queue has passed this.
  void set_order(std::span<const std::int32_t> order);
  // A batch from this place in the order on.
  void run(std::int64_t first, std::int64_t epoch);
  // Sums of losses by an image's place in its batch, of all steps since they were zero.
  Event read_losses(std::vector<float>& to);
  void set_losses(const std::vector<float>& sums);
  // Makes the step again, an operation at a time, without the updates.
  NotFinite first_not_finite(std::int64_t first, std::int64_t epoch);
  // The last layer's outputs of a batch's first images, in the network's type.
  Event read_outputs(std::byte* to, std::int64_t images);

 private:
  Network::State& network_;
  Buffer order_, sums_, workspace_;
  Scalar first_ = Scalar::changing(0), epoch_ = Scalar::changing(0);
  Steps source_;
  Recording recording_;
};

}  // namespace omniconv::training
