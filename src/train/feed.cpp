#include "train/feed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>

#include "core/convert.h"
#include "omniconv/add.h"
#include "omniconv/batch.h"

namespace omniconv::training {

void settle(Queue& queue) {
  try {
    queue.finish();
  } catch (const std::exception&) {  // the first error is on its way
  }
}

namespace {

Place lasting(const Buffer& buffer) {
  return {.lasting = {buffer}};
}

}  // namespace

DeviceExamples::DeviceExamples(const Context& context, Queue& queue, const Dataset& dataset, const Examples& examples)
    : count(examples.count), channels(dataset.channels), height(dataset.height), width(dataset.width) {
  const std::vector<float> values = pixel_table(standard_of(dataset));
  const auto put = [&](const void* from, std::int64_t bytes) {
    const Buffer buffer = context.allocate(bytes);
    queue.upload(buffer, 0, from, bytes).wait();
    return buffer;
  };
  images = put(examples.pixels.data(), static_cast<std::int64_t>(examples.pixels.size()));
  labels = put(examples.labels.data(), static_cast<std::int64_t>(examples.labels.size()));
  table = put(values.data(), static_cast<std::int64_t>(values.size() * sizeof(float)));
}

Feed::Feed(Network::State& network, const DeviceExamples& examples, const Augmentation& augmentation,
           std::uint64_t seed, bool trains)
    : network_(network), order_(network.context.allocate(examples.count * 4)) {
  const std::int64_t batch = network.options.batch;
  BatchProblem problem;
  problem.type = network.type, problem.flip = augmentation.flip, problem.shift = augmentation.shift;
  problem.n = batch, problem.m = examples.count;
  problem.c = examples.channels, problem.h = examples.height, problem.w = examples.width;
  Steps after;
  std::vector<NamedScalar> scalars = {{"first", first_}};
  if (problem.flip || problem.shift > 0) {
    const std::array<double, 3> seeds = seed_scalars(seed);
    scalars.insert(scalars.end(), {{"epoch", epoch_}, {"seed0", seeds[0]}, {"seed1", seeds[1]}, {"seed2", seeds[2]}});
  }
  source_.add({0,
               "data",
               problem,
               {{"images", lasting(examples.images)},
                {"labels", lasting(examples.labels)},
                {"order", lasting(order_)},
                {"table", lasting(examples.table)},
                {"y", lasting(network.images)},
                {"classes", lasting(network.labels)}},
               scalars});
  if (trains) {
    sums_ = network.context.allocate(batch * 4);
    network.zero(sums_);
    AddProblem sum;
    sum.n = 1, sum.c = sum.k = batch, sum.h = sum.w = 1;
    after.add({0, "losses", sum, {{"x", lasting(sums_)}, {"s", lasting(network.losses)}, {"y", lasting(sums_)}}});
  }
  const SolverOptions options{.deterministic = network.options.deterministic};
  workspace_ = network.context.allocate(
      std::max({source_.plan(network.context, options), after.plan(network.context, options), std::int64_t{1}}));
  Sequence sequence = network.context.make_sequence();
  source_.append(sequence, {}, workspace_);
  (trains ? network.training : network.evaluating.steps).append(sequence, network.passing, network.workspace);
  after.append(sequence, {}, workspace_);
  recording_ = network.context.record(std::move(sequence));
}

void Feed::set_order(std::span<const std::int32_t> order) {
  network_.queue.upload(order_, 0, order.data(), static_cast<std::int64_t>(order.size_bytes()));
}

void Feed::run(std::int64_t first, std::int64_t epoch) {
  first_.set(static_cast<double>(first)), epoch_.set(static_cast<double>(epoch));
  recording_.replay(network_.queue);
}

Event Feed::read_losses(std::vector<float>& to) {
  to.resize(static_cast<std::size_t>(network_.options.batch));
  return network_.queue.download(to.data(), sums_, 0, sums_.bytes());
}

void Feed::set_losses(const std::vector<float>& sums) {
  network_.queue.upload(sums_, 0, sums.data(), sums_.bytes()).wait();
}

NotFinite Feed::first_not_finite(std::int64_t first, std::int64_t epoch) {
  const Context& context = network_.context;
  const auto submit = [&](const Steps& steps, std::size_t i, const Buffer& workspace) {
    Sequence sequence = context.make_sequence();
    steps.append_one(sequence, i, network_.passing, workspace);
    network_.queue.submit(std::move(sequence)).wait();
  };
  first_.set(static_cast<double>(first)), epoch_.set(static_cast<double>(epoch));
  submit(source_, 0, workspace_);
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
