// Images in a device's memory, or on their way there, and recordings that take their batches from there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "omniconv/training.h"
#include "train/chunks.h"
#include "train/network_state.h"
#include "train/steps.h"

namespace omniconv::training {

// What a pixel of each channel becomes: 256 numbers a channel.
std::vector<float> pixel_table(const Standard& standard);
// Where a number that is not finite came up first.
struct NotFinite {
  std::size_t layer = 0;  // the number of layers: behind them
  std::string what;
};

// A part of a set as bytes, its classes, and what a pixel of each channel becomes. With a chunk the images stay with
// the host, as long as this, and so many of them at a time are brought by each feed.
struct DeviceExamples {
  DeviceExamples(const Context& context, Queue& queue, const Dataset& of, const Examples& examples,
                 std::int64_t chunk_images);

  const Dataset& dataset;
  const Examples& host;
  std::int64_t chunk = 0;  // 0: all images are on the device
  Buffer images, labels, table;
};

// A network's steps, each on a batch of such images that it makes itself.
class Feed {
 public:
  // trains: steps of the training, whose losses are added up; else forward alone. Orders have so many images at most.
  Feed(Network::State& network, const DeviceExamples& examples, std::int64_t most_images,
       const Augmentation& augmentation, std::uint64_t seed, bool trains);

  // The images that batches have, one after the other, by their numbers. `order` stays until the queue has passed this,
  // and those of chunks as long as batches of it are run.
  void set_order(std::span<const std::int32_t> order);
  // A batch from this place in the order on.
  void run(std::int64_t first, std::int64_t epoch);
  // Sums of losses by an image's place in its batch, of all steps since they were zero.
  Event read_losses(std::vector<float>& to);
  void set_losses(const std::vector<float>& sums);
  // Makes the step again, an operation at a time, without the updates. Sums of losses are those of that step then. Of a
  // step that was updated it has the parameters as they are now: all whose gradient was finite are others.
  NotFinite first_not_finite(std::int64_t first, std::int64_t epoch);
  // The last layer's outputs of a batch's first images, in the network's type.
  Event read_outputs(std::byte* to, std::int64_t images);

 private:
  // A batch out of arrays on the device, and the steps behind it.
  struct Source {
    Steps steps;
    Recording recording;
  };

  // The source that has the batch from this place in the order on, where it is set to.
  std::size_t bring(std::int64_t first, std::int64_t epoch);

  Network::State& network_;
  Buffer order_, sums_, workspace_;
  Scalar first_ = Scalar::changing(0), epoch_ = Scalar::changing(0);
  std::vector<Source> sources_;   // of all images, or of each place of the chunks
  std::optional<Chunks> chunks_;  // goes first: what is on its way waits for what is read
};

}  // namespace omniconv::training
