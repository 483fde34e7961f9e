#include "train/feed.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/convert.h"

namespace omniconv::training {

void settle(Queue& queue) {
  try {
    queue.finish();
  } catch (const std::exception&) {  // the first error is on its way
  }
}

DeviceExamples::DeviceExamples(const Context&, Queue&, const Dataset& dataset, const Examples& examples)
    : count(examples.count),
      channels(dataset.channels),
      height(dataset.height),
      width(dataset.width),
      host(&examples),
      values(pixel_table(standard_of(dataset))) {}

Feed::Feed(Network::State& network, const DeviceExamples& examples, const Augmentation&, std::uint64_t, bool trains)
    : network_(network), examples_(examples), trains_(trains), sum(static_cast<std::size_t>(network.options.batch)) {
  recording_ = trains ? network.train_recording : network.evaluate_recording;
}
void Feed::set_order(std::span<const std::int32_t> order) {
  order__.assign(order.begin(), order.end());
}
void Feed::run(std::int64_t first, std::int64_t) {
  const std::int64_t batch = network_.options.batch, image = examples_.channels * examples_.height * examples_.width,
                     plane = examples_.height * examples_.width;
  std::vector<float> x(static_cast<std::size_t>(batch * image));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), -1);
  for (std::int64_t i = 0; i < batch && first + i < static_cast<std::int64_t>(order__.size()); ++i) {
    const std::int64_t n = order__[static_cast<std::size_t>(first + i)];
    labels[static_cast<std::size_t>(i)] = examples_.host->labels[static_cast<std::size_t>(n)];
    for (std::int64_t k = 0; k < image; ++k)
      x[static_cast<std::size_t>(i * image + k)] = examples_.values[static_cast<std::size_t>(
          k / plane * 256 + examples_.host->pixels[static_cast<std::size_t>(n * image + k)])];
  }
  network_.upload_images(x.data());
  network_.queue.upload(network_.labels, 0, labels.data(), network_.labels.bytes()).wait();
  recording_.replay(network_.queue);
  if (trains_) {
    std::vector<float> losses(sum.size());
    network_.queue.download(losses.data(), network_.losses, 0, network_.losses.bytes()).wait();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += losses[i];
  } else
    network_.queue.finish();
}
Event Feed::read_losses(std::vector<float>& to) {
  to = sum;
  return {};
}
void Feed::set_losses(const std::vector<float>& sums) {
  sum = sums;
}

NotFinite Feed::first_not_finite(std::int64_t first, std::int64_t epoch) {
  const Context& context = network_.context;
  const auto submit = [&](const Steps& steps, std::size_t i, const Buffer& workspace) {
    Sequence sequence = context.make_sequence();
    steps.append_one(sequence, i, network_.passing, workspace);
    network_.queue.submit(std::move(sequence)).wait();
  };
  first_.set(static_cast<double>(first)), epoch_.set(static_cast<double>(epoch));
  run(first, epoch);
  network_.queue.finish();
  const Steps& steps = network_.training;
  for (std::size_t i = 0; i < steps.operations().size(); ++i) {
    const StepOperation& operation = steps.operations()[i];
    submit(steps, i, network_.workspace);
    for (const ArraySpec& spec : steps.plans()[i].arrays()) {
      if (spec.role == ArrayRole::in || spec.type == DataType::s32) continue;
      const auto place = std::find_if(operation.arrays.begin(), operation.arrays.end(),
                                      [&](const NamedPlace& one) { return one.name == spec.name; });
      const Operand from = steps.at(place->place, network_.passing);
      std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
      network_.queue.download(bytes.data(), from.buffer, from.offset_bytes, spec.bytes()).wait();
      const std::int64_t size = size_of(spec.type);
      for (std::int64_t at = 0; at < spec.bytes(); at += size)
        if (!std::isfinite(load_element(spec.type, bytes.data() + at))) return {operation.layer, operation.what};
    }
  }
  return {network_.model.layers.size(), "nothing that could be found again"};
}

Event Feed::read_outputs(std::byte* to, std::int64_t images) {
  const Operand from = network_.evaluating.steps.at(network_.evaluating.outputs, network_.passing);
  return network_.queue.download(to, from.buffer, from.offset_bytes,
                                 images * network_.model.classes() * size_of(network_.type));
}

}  // namespace omniconv::training
