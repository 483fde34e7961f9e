// A set on its way to a device that has no room for all of it: part by part, in the order in which it is needed, while
// the part before is worked on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <span>
#include <vector>

#include "omniconv/training.h"

namespace omniconv::training {

// Waits for all that is under way, whatever becomes of it.
void settle(Queue& queue);

class Chunks {
 public:
  // Of so many images each. The examples stay until this is gone.
  Chunks(const Context& context, const Dataset& dataset, const Examples& examples, std::int64_t images);
  // Waits for what is on its way.
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  // Where a chunk lies on the device: every second one in the same place. The order has the images' numbers; behind the
  // last one's end they are -1.
  struct Place {
    Buffer images, labels, order;
  };
  static constexpr std::size_t places = 2;
  const Place& place(std::size_t index) const { return slots_[index].place; }
  std::int64_t images() const { return images_; }

  // The images that chunks have, one after the other, by their numbers. `order` stays until chunks of another one, or
  // none, are asked for.
  void set_order(std::span<const std::int32_t> order);
  // Returns the place of this chunk of the order when it is there, and begins to bring the one behind it.
  std::size_t bring(std::int64_t chunk);
  // What was last submitted that reads the place: until it is over, nothing else is brought there.
  void read_until(std::size_t place, Event event) { slots_[place].read = std::move(event); }

 private:
  struct Slot {
    Place place;
    std::int64_t chunk = -1;            // of the order; -1: none
    std::vector<std::int32_t> numbers;  // as they are brought
    std::vector<std::uint8_t> pixels, labels;
    Event read;
    std::future<void> on_its_way;
  };

  void begin_to_bring(std::int64_t chunk);
  void fill(Slot& slot);

  const Examples& examples_;
  std::int64_t images_, image_bytes_;
  Queue queue_;  // of its own, so that copies pass by what is computed
  std::span<const std::int32_t> order_;
  std::array<Slot, places> slots_;
};

// How many images, in whole batches, are brought at a time where the device has so many bytes left; 0: all fit.
std::int64_t chunk_for(std::int64_t images, std::int64_t image_bytes, std::int64_t batch, std::int64_t left_bytes);

}  // namespace omniconv::training
