#include "train/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "omniconv/batch.h"
#include "omniconv/error.h"

namespace omniconv::training {

Chunks::Chunks(const Context& context, const Dataset& dataset, const Examples& examples, std::int64_t images)
    : examples_(examples),
      images_(images),
      image_bytes_(dataset.image_bytes()),
      queue_(context.make_queue({.timing = false})) {
  for (Slot& slot : slots_) {
    slot.pixels.resize(static_cast<std::size_t>(images_ * image_bytes_));
    slot.labels.resize(static_cast<std::size_t>(images_));
    slot.place = {.images = context.allocate(images_ * image_bytes_),
                  .labels = context.allocate(images_),
                  .order = context.allocate(images_ * 4)};
  }
}

Chunks::~Chunks() {
  set_order({});
  settle(queue_);
}

void Chunks::set_order(std::span<const std::int32_t> order) {
  for (Slot& slot : slots_) {
    if (slot.on_its_way.valid()) slot.on_its_way.wait();  // of an order that nobody asks for any more
    slot.on_its_way = {}, slot.chunk = -1;
  }
  order_ = order;
}

std::size_t Chunks::bring(std::int64_t chunk) {
  const auto place = static_cast<std::size_t>(chunk) % places;
  Slot& slot = slots_[place];
  if (slot.chunk != chunk) begin_to_bring(chunk);
  if (slot.on_its_way.valid()) slot.on_its_way.get();
  const std::int64_t next = chunk + 1;
  if (next * images_ < std::ssize(order_) && slots_[static_cast<std::size_t>(next) % places].chunk != next)
    begin_to_bring(next);
  return place;
}

void Chunks::begin_to_bring(std::int64_t chunk) {
  Slot& slot = slots_[static_cast<std::size_t>(chunk) % places];
  if (slot.on_its_way.valid()) slot.on_its_way.get();
  const std::int64_t first = chunk * images_, here = std::min(images_, std::ssize(order_) - first);
  slot.chunk = chunk;
  slot.numbers.assign(order_.begin() + first, order_.begin() + first + here);
  slot.on_its_way = std::async(std::launch::async, [this, &slot] { fill(slot); });
}

void Chunks::fill(Slot& slot) {
  for (std::size_t i = 0; i < slot.numbers.size(); ++i) {
    const auto from = static_cast<std::size_t>(slot.numbers[i]);
    std::copy_n(examples_.pixels.begin() + static_cast<std::int64_t>(from) * image_bytes_, image_bytes_,
                slot.pixels.begin() + static_cast<std::int64_t>(i) * image_bytes_);
    slot.labels[i] = examples_.labels[from];
  }
  slot.numbers.resize(static_cast<std::size_t>(images_), -1);
  std::exchange(slot.read, {}).wait();
  queue_.upload(slot.place.images, 0, slot.pixels.data(), std::ssize(slot.pixels));
  queue_.upload(slot.place.labels, 0, slot.labels.data(), std::ssize(slot.labels));
  queue_.upload(slot.place.order, 0, slot.numbers.data(), std::ssize(slot.numbers) * 4).wait();
}

std::int64_t chunk_for(std::int64_t images, std::int64_t image_bytes, std::int64_t batch, std::int64_t left_bytes) {
  const std::int64_t of_image = checked_add(image_bytes, 5, "an image's bytes"),  // with its label and its number
      most = BatchProblem::most_images;
  if (images <= most && checked_multiply(images, of_image, "the set's images") <= left_bytes - left_bytes / 10)
    return 0;
  // Two of them, and two for validation, in half of it; more than this takes long to come and gains nothing.
  constexpr std::int64_t enough = std::int64_t{256} << 20;
  const std::int64_t fit = std::min(left_bytes / 8, enough) / of_image;
  return std::max<std::int64_t>(std::min(fit, most) / batch, 1) * batch;
}

namespace {

// Whether others leave so much of the device's memory.
bool has_room(const Context& context, std::int64_t bytes) {
  try {
    context.allocate(bytes);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    return false;
  }
}

}  // namespace
}  // namespace omniconv::training

namespace omniconv {

std::int64_t chunk_images(const Network& network, const Examples& examples, std::int64_t chunk) {
  const std::int64_t batch = network.options().batch;
  if (chunk < 0 || (chunk > 0 && chunk < batch))
    throw bad_input(fmt::format("a chunk of {} images, in batches of {}: it must hold a batch at least", chunk, batch));
  if (chunk > 0 && chunk < examples.count) return std::min(chunk, BatchProblem::most_images) / batch * batch;
  if (examples.count == 0) return 0;
  const auto bytes = std::ssize(examples.pixels);
  const DeviceInfo& device = network.context().device();
  // What is no GPU shares the memory in which the set lies already.
  const std::int64_t left = std::max<std::int64_t>(
                         device.memory_bytes - network.memory_bytes() - (device.is_gpu ? 0 : bytes), 0),
                     image_bytes = bytes / examples.count,
                     found = training::chunk_for(examples.count, image_bytes, batch, left);
  if (found > 0 || (bytes <= device.max_buffer_bytes && training::has_room(network.context(), bytes))) return found;
  return training::chunk_for(BatchProblem::most_images + 1, image_bytes, batch, std::min(left, bytes));
}

}  // namespace omniconv
