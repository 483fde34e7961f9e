#include "train/feed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <utility>

#include "core/checked.h"
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

DeviceExamples::DeviceExamples(const Context& context, Queue& queue, const Dataset& of, const Examples& examples,
                               std::int64_t chunk_images)
    : dataset(of), host(examples), chunk(chunk_images) {
  const std::vector<float> values = pixel_table(standard_of(dataset));
  const auto put = [&](const void* from, std::int64_t bytes) {
    const Buffer buffer = context.allocate(bytes);
    queue.upload(buffer, 0, from, bytes).wait();
    return buffer;
  };
  table = put(values.data(), static_cast<std::int64_t>(values.size() * sizeof(float)));
  if (chunk > 0) return;
  images = put(host.pixels.data(), static_cast<std::int64_t>(host.pixels.size()));
  labels = put(host.labels.data(), static_cast<std::int64_t>(host.labels.size()));
}

Feed::Feed(Network::State& network, const DeviceExamples& examples, std::int64_t most_images,
           const Augmentation& augmentation, std::uint64_t seed, bool trains)
    : network_(network) {
  const std::int64_t batch = network.options.batch;
  BatchProblem problem;
  problem.type = network.type, problem.flip = augmentation.flip, problem.shift = augmentation.shift;
  problem.n = batch, problem.m = examples.host.count;
  problem.c = examples.dataset.channels, problem.h = examples.dataset.height, problem.w = examples.dataset.width;
  std::vector<NamedScalar> scalars = {{"first", first_}};
  if (problem.flip || problem.shift > 0) {
    const std::array<double, 3> seeds = seed_scalars(seed);
    scalars.insert(scalars.end(), {{"epoch", epoch_}, {"seed0", seeds[0]}, {"seed1", seeds[1]}, {"seed2", seeds[2]}});
  }
  Steps sum;
  if (trains) {
    sums_ = network.sums_losses() ? network.losses : network.context.allocate(batch * 4);
    network.zero(sums_);
  }
  if (trains && !network.sums_losses()) {
    AddProblem adding;
    adding.n = 1, adding.c = adding.k = batch, adding.h = adding.w = 1;
    sum.add({0, "losses", adding, {{"x", lasting(sums_)}, {"s", lasting(network.losses)}, {"y", lasting(sums_)}}});
  }
  std::vector<Chunks::Place> places;
  if (examples.chunk > 0) {
    problem.gathered = true, problem.m = std::min(examples.chunk, round_up(most_images, batch));
    chunks_.emplace(network.context, examples.dataset, examples.host, problem.m);
    for (std::size_t i = 0; i < Chunks::places; ++i) places.push_back(chunks_->place(i));
  } else {
    order_ = network.context.allocate(problem.m * 4);
    places.push_back({examples.images, examples.labels, order_});
  }
  std::int64_t workspace_bytes = 1;
  const SolverOptions options{.deterministic = network.options.deterministic};
  workspace_bytes = std::max(workspace_bytes, sum.plan(network.context, options, {}));
  for (const Chunks::Place& place : places) {
    Steps& own = sources_.emplace_back().steps;
    own.add({0,
             "data",
             problem,
             {{"images", lasting(place.images)},
              {"labels", lasting(place.labels)},
              {"order", lasting(place.order)},
              {"table", lasting(examples.table)},
              {"y", lasting(network.images)},
              {"classes", lasting(network.labels)}},
             scalars});
    workspace_bytes = std::max(workspace_bytes, own.plan(network.context, options, {}));
  }
  workspace_ = network.context.allocate(workspace_bytes);
  for (Source& source : sources_) {
    Sequence sequence = network.context.make_sequence();
    source.steps.append(sequence, {}, workspace_);
    (trains ? network.training : network.evaluating.steps).append(sequence, network.passing, network.workspace);
    sum.append(sequence, {}, workspace_);
    source.recording = network.context.record(std::move(sequence));
  }
}

void Feed::set_order(std::span<const std::int32_t> order) {
  if (chunks_) return chunks_->set_order(order);
  network_.queue.upload(order_, 0, order.data(), static_cast<std::int64_t>(order.size_bytes()));
}

std::size_t Feed::bring(std::int64_t first, std::int64_t epoch) {
  epoch_.set(static_cast<double>(epoch));
  if (!chunks_) return first_.set(static_cast<double>(first)), 0;
  const std::int64_t chunk = first / chunks_->images();
  const std::size_t place = chunks_->bring(chunk);
  first_.set(static_cast<double>(first - chunk * chunks_->images()));
  return place;
}

void Feed::run(std::int64_t first, std::int64_t epoch) {
  const std::size_t place = bring(first, epoch);
  network_.follow_parameters();
  Event event = sources_[place].recording.replay(network_.queue);
  if (chunks_) chunks_->read_until(place, std::move(event));
}

Event Feed::read_losses(std::vector<float>& to) {
  to.resize(static_cast<std::size_t>(network_.options.batch));
  return network_.queue.download(to.data(), sums_, 0, sums_.bytes());
}

void Feed::set_losses(const std::vector<float>& sums) {
  network_.queue.upload(sums_, 0, sums.data(), sums_.bytes()).wait();
}

NotFinite Feed::first_not_finite(std::int64_t first, std::int64_t epoch) {
  network_.zero(sums_);  // an earlier or a later step's may be in them
  const Context& context = network_.context;
  const auto submit = [&](const Steps& steps, std::size_t i, const Buffer& workspace) {
    Sequence sequence = context.make_sequence();
    steps.append_one(sequence, i, network_.passing, workspace);
    network_.queue.submit(std::move(sequence)).wait();
  };
  submit(sources_[bring(first, epoch)].steps, 0, workspace_);
  const Steps& steps = network_.training;
  for (std::size_t i = 0; i < steps.operations().size(); ++i) {
    const StepOperation& operation = steps.operations()[i];
    if (operation.problem.get_if<UpdateProblem>() != nullptr) continue;
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
  return {network_.model.layers.size(), "gradient, which is finite when the step is made again"};
}

Event Feed::read_outputs(std::byte* to, std::int64_t images) {
  const Operand from = network_.evaluating.steps.at(network_.evaluating.outputs, network_.passing);
  return network_.queue.download(to, from.buffer, from.offset_bytes,
                                 images * network_.model.classes() * size_of(network_.type));
}

}  // namespace omniconv::training
