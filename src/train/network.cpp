// A model's parameters and arrays on a device, and its steps as recorded sequences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <set>
#include <string>
#include <utility>

#include "core/checked.h"
#include "core/convert.h"
#include "core/philox.h"
#include "omniconv/error.h"
#include "omniconv/norm.h"
#include "train/network_state.h"
#include "train/rungs.h"

namespace omniconv {
namespace {

DataType type_of(Precision precision) {
  return precision == Precision::bf16 ? DataType::bf16 : precision == Precision::f16 ? DataType::f16 : DataType::f32;
}

// A power of two, by which f16 gradients of up to 500 stay finite, and those from 5e-10 on something.
constexpr float f16_loss_scale = 128;

std::vector<std::byte> stored_as(DataType type, std::span<const float> values) {
  const auto size = static_cast<std::size_t>(size_of(type));
  std::vector<std::byte> stored(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) store_element(type, values[i], stored.data() + i * size);
  return stored;
}

// What is under way reads and writes the caller's arrays: an error that leaves them waits for it.
template <typename Work>
auto settled(Queue& queue, const Work& work) {
  try {
    return work();
  } catch (...) {
    try {
      queue.finish();
    } catch (const std::exception&) {  // the first error is thrown
    }
    throw;
  }
}

}  // namespace

Network::State::State(const Context& of, Model given, const NetworkOptions& asked)
    : context(of),
      model(std::move(given)),
      options(asked),
      type(type_of(asked.precision)),
      loss_scale(asked.precision == Precision::f16 ? f16_loss_scale : 1),
      queue(context.make_queue({.timing = false, .begins_at_wait = !asked.trains})) {
  if (options.batch < 1) throw bad_input(fmt::format("a batch of {} images: must be at least 1", options.batch));
  training::require_rung(context, options);
  const bool folds = !options.trains && type == DataType::f32 && !training::is_unfused(options.rungs);
  place_parameters(folds);
  const training::LayerOptions of_layers{.batch = options.batch,
                                         .type = type,
                                         .products = options.precision == Precision::tf32 ? DataType::tf32 : type,
                                         .loss_scale = loss_scale,
                                         .seed = options.seed,
                                         .step = number,
                                         .is_unfused = training::is_unfused(options.rungs),
                                         .is_folded = folds};
  // Sizes first, with arrays of no memory, so that too much is refused before anything is allocated.
  const auto plan_bytes = [&](const training::NetworkArrays& lasting) {
    evaluating = training::evaluating_steps(model, of_layers, lasting);
    std::int64_t bytes = evaluating.steps.lay_out();
    if (!options.trains) return bytes;
    training = training::training_steps(model, of_layers, lasting);
    if (options.clips_norm) add_norms();
    add_updates();
    return std::max(bytes, training.lay_out());
  };
  require_memory(plan_bytes({.layers = std::vector<training::LayerArrays>(model.layers.size())}));
  allocate_lasting();
  for (const Group& group : groups)
    for (const Buffer& buffer : {group.w, group.g, group.m, group.v, group.copy}) zero(buffer);
  zero(running), zero(stop), zero(no_losses);
  if (factor) {
    const float of_gradients = 1 / loss_scale;
    queue.upload(factor, 0, &of_gradients, sizeof of_gradients).wait();
  }
  passing = allocate(std::max<std::int64_t>(plan_bytes(arrays()), 1));
  const SolverOptions of_plans{.deterministic = options.deterministic};
  std::int64_t most = evaluating.steps.plan(context, of_plans, options.solvers, options.rungs, !options.trains);
  evaluating.steps.allocate_prepared([this](std::int64_t bytes) { return allocate(bytes); });
  if (options.trains) most = std::max(most, training.plan(context, of_plans, options.solvers, options.rungs));
  workspace = allocate(std::max<std::int64_t>(most, 1));
  evaluate_recording = recorded(evaluating.steps);
  require_solvers_fit();
  if (options.trains) train_recording = recorded(training);
  if (evaluating.steps.has_prepared()) {
    Sequence sequence = context.make_sequence();
    evaluating.steps.append_prepare(sequence);
    prepare_recording = context.record(std::move(sequence));
  }
  const training::Steps& listed = options.trains ? training : evaluating.steps;
  for (std::size_t i = 0; i < listed.operations().size(); ++i) {
    const training::StepOperation& operation = listed.operations()[i];
    steps.push_back({operation.layer, operation.what, to_text(operation.problem), listed.plans()[i].solver()});
  }
}

// A solver that is named for what no step has would be named in vain.
void Network::State::require_solvers_fit() const {
  std::set<std::string> operations, problems;
  for (const training::Steps* const some : {&training, static_cast<const training::Steps*>(&evaluating.steps)})
    for (const training::StepOperation& operation : some->operations()) {
      operations.insert(std::string(operation.problem.operation_name()));
      problems.insert(to_text(operation.problem));
    }
  for (const auto& [name, solver] : options.solvers)
    if (!operations.contains(name) && !problems.contains(name))
      throw bad_input(
          fmt::format("solver {} is named for '{}', which {} does not compute: name one of its operations ({}) or of "
                      "their problems",
                      solver, name, model.name, fmt::join(operations, ", ")));
}

Buffer Network::State::allocate(std::int64_t bytes) {
  memory_bytes = checked_add(memory_bytes, bytes, "the network's memory");
  return context.allocate(bytes);
}

std::int64_t Network::State::image_bytes() const {
  return checked_multiply(checked_multiply(options.batch, model.input.elements(), "a batch of images"), size_of(type),
                          "a batch of images");
}

void Network::State::place_parameters(bool folds) {
  groups[0].type = type;
  std::int64_t all = 0;
  for (const ModelLayer& layer : model.layers) {
    const bool is_norm = layer.kind == ModelLayer::Kind::batch_norm;
    Parts own{.group = is_norm && type != DataType::f32 ? 1u : 0u};
    std::int64_t& end = groups[own.group].elements;
    own.weights = end, own.biases = end + round_up(layer.weights(), parameter_alignment);
    if (layer.has_parameters())
      end = checked_add(own.biases, round_up(layer.biases(), parameter_alignment), "the model's parameters");
    if (is_norm) {
      own.running = running_elements;
      running_elements += 2 * round_up(layer.outputs, parameter_alignment);
    }
    all = checked_add(all, layer.parameters(), "the model's parameters");
    if (folds && training::can_fold(model, parts.size() + 1)) {
      own.folded = folded_elements;
      folded_elements += round_up(layer.weights(), parameter_alignment) + round_up(layer.outputs, parameter_alignment);
    }
    parts.push_back(own);
  }
  if (all == 0) throw bad_input(fmt::format("{}: no layer has parameters", model.name));
}

// Before anything is allocated: what parameters and a batch take, but for the workspace, beside the device's memory.
void Network::State::require_memory(std::int64_t passing_bytes) const {
  const char* const what = "the network's memory";
  const std::int64_t states = !options.trains ? 1 : options.rule == UpdateProblem::Rule::adam ? 3 : 2;
  std::int64_t fixed = (running_elements + folded_elements) * 4;
  for (const Group& group : groups) {
    const std::int64_t size = size_of(group.type),
                       of_element = 4 * states + (options.trains ? size : 0) + (group.type == DataType::f32 ? 0 : size);
    fixed = checked_add(fixed, checked_multiply(group.elements, of_element, what), what);
  }
  const std::int64_t batch_bytes = checked_add(passing_bytes, image_bytes() + 12 * options.batch, what),
                     needed = checked_add(fixed, batch_bytes, what), has = context.device().memory_bytes;
  if (needed <= has) return;
  const auto of_image = static_cast<double>(batch_bytes) / static_cast<double>(options.batch);
  const auto fits = static_cast<std::int64_t>(static_cast<double>(has - fixed) / of_image);
  throw out_of_memory(fmt::format(
      "{} in batches of {} images takes {} bytes and a workspace{}, and {} has {}: {}", model.name, options.batch,
      needed, options.trains ? "" : " and its filters in their solvers' forms", context.device().id, has,
      fits < 1 ? "not even one image fits" : fmt::format("a batch of {} images fits", fits)));
}

void Network::State::allocate_lasting() {
  images = allocate(image_bytes());
  if (running_elements > 0) running = allocate(running_elements * 4);
  if (folded_elements > 0) folded = allocate(folded_elements * 4);
  for (Group& group : groups) {
    if (group.elements == 0) continue;
    group.w = allocate(group.elements * 4);
    if (group.type != DataType::f32) group.copy = allocate(group.elements * size_of(group.type));
    if (!options.trains) continue;
    group.g = allocate(group.elements * size_of(group.type)), group.m = allocate(group.elements * 4);
    if (options.rule == UpdateProblem::Rule::adam) group.v = allocate(group.elements * 4);
  }
  labels = allocate(options.batch * 4);
  if (options.trains) losses = allocate(options.batch * 4), stop = allocate(4);
  if (options.trains && sums_losses()) no_losses = allocate(options.batch * 4);
  if (options.trains && is_scaled()) factor = allocate(4);
  if (options.trains && options.clips_norm) squares = allocate(4);
}

bool Network::State::sums_losses() const {
  return !training::is_unfused(options.rungs);
}

training::NetworkArrays Network::State::arrays() const {
  training::NetworkArrays made{.images = {images}, .labels = {labels}, .losses = {losses}};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    training::LayerArrays& own = made.layers.emplace_back();
    const ModelLayer& layer = model.layers[i];
    if (!layer.has_parameters()) continue;
    const Parts& at = parts[i];
    const Group& group = groups[at.group];
    own.weights = group.read(at.weights), own.biases = group.read(at.biases);
    if (at.folded >= 0) {
      own.weights = {folded, at.folded * 4};
      own.biases = {folded, (at.folded + round_up(layer.weights(), parameter_alignment)) * 4};
    }
    own.weight_gradients = group.gradient(at.weights), own.bias_gradients = group.gradient(at.biases);
    if (at.running < 0) continue;
    own.running_mean = {running, at.running * 4};
    own.running_variance = {running, (at.running + round_up(layer.outputs, parameter_alignment)) * 4};
  }
  return made;
}

// Of one group after the other; the factor that the last one leaves is that of all.
void Network::State::add_norms() {
  const auto lasting = [](const Buffer& buffer) { return training::Place{.lasting = {buffer}}; };
  bool is_first = true;
  for (const Group& group : groups) {
    if (group.elements == 0) continue;
    const NormProblem problem{.accumulate = !is_first, .type = group.type, .n = group.elements};
    training.add({model.layers.size(),
                  "norm",
                  problem,
                  {{"g", lasting(group.g)}, {"factor", lasting(factor)}, {"sum", lasting(squares)}},
                  {{"most", clip_norm}, {"scale", 1 / loss_scale}}});
    is_first = false;
  }
}

void Network::State::add_updates() {
  const auto lasting = [](const Buffer& buffer) { return training::Place{.lasting = {buffer}}; };
  for (const Group& group : groups) {
    if (group.elements == 0) continue;
    UpdateProblem problem;
    problem.rule = options.rule, problem.guarded = true, problem.type = group.type, problem.n = group.elements;
    problem.scaled = is_scaled();
    training::StepOperation update{
        model.layers.size(),
        "update",
        problem,
        {{"g", lasting(group.g)}, {"w", lasting(group.w)}, {"m", lasting(group.m)}, {"stop", lasting(stop)}},
        {{"rate", rate}, {"l1", l1}, {"l2", l2}, {"clip", clip}, {"number", number}}};
    if (group.type != DataType::f32) update.arrays.push_back({"copy", lasting(group.copy)});
    if (problem.scaled) update.arrays.push_back({"factor", lasting(factor)});
    if (options.rule == UpdateProblem::Rule::adam) {
      update.arrays.push_back({"v", lasting(group.v)});
      update.scalars.push_back({"correction1", correction1}), update.scalars.push_back({"correction2", correction2});
    } else {
      update.scalars.push_back({"momentum", momentum});
    }
    training.add(std::move(update));
  }
}

Recording Network::State::recorded(const training::Steps& of) const {
  Sequence sequence = context.make_sequence();
  of.append(sequence, passing, workspace);
  return context.record(std::move(sequence));
}

void Network::State::zero(const Buffer& buffer) {
  if (!buffer) return;
  constexpr std::int64_t at_once = 1 << 22;
  const std::vector<std::byte> zeros(static_cast<std::size_t>(std::min(buffer.bytes(), at_once)));
  for (std::int64_t at = 0; at < buffer.bytes(); at += at_once)
    queue.upload(buffer, at, zeros.data(), std::min(buffer.bytes() - at, at_once)).wait();
}

void Network::State::set_rates(const Rates& rates) {
  if (!(rates.clip_norm >= 0))
    throw bad_input(fmt::format("gradients are clipped to a norm of {}: must be at least 0", rates.clip_norm));
  if (!options.clips_norm && rates.clip_norm < std::numeric_limits<double>::infinity())
    throw bad_input("gradients are clipped by their norm in networks that are made with clips_norm alone");
  ++updates;
  number.set(static_cast<double>(updates)), rate.set(rates.rate), momentum.set(rates.momentum), l1.set(rates.l1),
      l2.set(rates.l2), clip.set(rates.clip), clip_norm.set(rates.clip_norm);
  if (options.rule != UpdateProblem::Rule::adam) return;
  const AdamCorrections corrections = adam_corrections(updates);
  correction1.set(corrections.first), correction2.set(corrections.second);
}

const ModelLayer& Network::State::layer_at(std::size_t layer) const {
  if (layer >= model.layers.size())
    throw bad_input(fmt::format("layer {}: {} has layers 0 to {}", layer, model.name, model.layers.size() - 1));
  return model.layers[layer];
}

std::vector<float> Network::State::part_of(std::size_t layer, Buffer Group::*which) {
  const ModelLayer& own = layer_at(layer);
  const Parts& at = parts[layer];
  const Group& group = groups[at.group];
  const DataType stored = which == &Group::g ? group.type : DataType::f32;
  std::vector<float> values(static_cast<std::size_t>(own.parameters()));
  const auto read = [&](std::int64_t begin, std::int64_t count, float* to) {
    if (count == 0) return;
    const std::int64_t size = size_of(stored);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
    queue.download(bytes.data(), group.*which, begin * size, count * size).wait();
    const double scale = which == &Group::g ? loss_scale : 1;
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(load_element(stored, bytes.data() + i * size) / scale);
  };
  read(at.weights, own.weights(), values.data());
  read(at.biases, own.biases(), values.data() + own.weights());
  return values;
}

void Network::State::write_part(std::size_t layer, Buffer Group::*which, std::span<const float> values) {
  const ModelLayer& own = layer_at(layer);
  const Parts& at = parts[layer];
  const Group& group = groups[at.group];
  is_stale = true;
  const auto write = [&](std::int64_t begin, std::span<const float> part) {
    if (part.empty()) return;
    queue.upload(group.*which, begin * 4, part.data(), static_cast<std::int64_t>(part.size_bytes())).wait();
    if (which == &Group::w && group.copy) write_copy(group, begin, part);
  };
  const auto weights = static_cast<std::size_t>(own.weights());
  write(at.weights, values.first(weights)), write(at.biases, values.subspan(weights));
}

void Network::State::write_copy(const Group& group, std::int64_t begin, std::span<const float> values) {
  const std::vector<std::byte> rounded = stored_as(group.type, values);
  queue.upload(group.copy, begin * size_of(group.type), rounded.data(), std::ssize(rounded)).wait();
}

void Network::State::write_running(std::size_t layer, std::span<const float> means, std::span<const float> variances) {
  is_stale = true;
  const std::int64_t at = parts[layer].running, bytes = layer_at(layer).outputs * 4;
  queue.upload(running, at * 4, means.data(), bytes).wait();
  queue.upload(running, (at + round_up(layer_at(layer).outputs, parameter_alignment)) * 4, variances.data(), bytes)
      .wait();
}

void Network::State::upload_images(const float* from) {
  if (type == DataType::f32) {
    queue.upload(images, 0, from, images.bytes());
    return;
  }
  const std::vector<std::byte> stored =
      stored_as(type, {from, static_cast<std::size_t>(options.batch * model.input.elements())});
  queue.upload(images, 0, stored.data(), images.bytes()).wait();
}

Network::Network(const Context& context, Model model, const NetworkOptions& options)
    : state_(std::make_unique<State>(context, std::move(model), options)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const Context& Network::context() const {
  return state_->context;
}
const Model& Network::model() const {
  return state_->model;
}
const NetworkOptions& Network::options() const {
  return state_->options;
}
std::int64_t Network::memory_bytes() const {
  return state_->memory_bytes;
}
const std::vector<NetworkStep>& Network::steps() const {
  return state_->steps;
}

void Network::initialise(std::uint64_t seed) {
  State& s = *state_;
  reset_optimiser();
  for (std::size_t i = 0; i < s.model.layers.size(); ++i) {
    const ModelLayer& layer = s.model.layers[i];
    if (!layer.has_parameters()) continue;
    std::vector<float> values(static_cast<std::size_t>(layer.parameters()), 0);
    if (layer.kind == ModelLayer::Kind::batch_norm) {
      std::fill_n(values.begin(), layer.weights(), 1.0f);
      s.write_running(i, std::vector<float>(static_cast<std::size_t>(layer.outputs), 0),
                      std::vector<float>(static_cast<std::size_t>(layer.outputs), 1));
      set_parameters(i, values);
      continue;
    }
    const std::int64_t inputs = layer.in.channels * layer.rows * layer.columns;
    const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
    PhiloxStream stream(seed, PhiloxUse::weights, static_cast<std::uint32_t>(i));
    for (std::int64_t k = 0; k < layer.weights(); ++k) {
      const double unit = static_cast<double>(stream.word(static_cast<std::uint64_t>(k)) >> 8) * 0x1p-23 - 1;
      values[static_cast<std::size_t>(k)] = static_cast<float>(unit * bound);
    }
    set_parameters(i, values);
  }
}

void Network::reset_optimiser() {
  State& s = *state_;
  for (const State::Group& group : s.groups) s.zero(group.m), s.zero(group.v);
  s.zero(s.stop);
  s.updates = 0;
}

std::vector<float> Network::parameters(std::size_t layer) const {
  return state_->part_of(layer, &State::Group::w);
}
std::vector<float> Network::gradients(std::size_t layer) const {
  if (!state_->options.trains) throw bad_input("a network that does not train has no gradients");
  return state_->part_of(layer, &State::Group::g);
}
void Network::set_parameters(std::size_t layer, const std::vector<float>& values) {
  State& s = *state_;
  const ModelLayer& own = s.layer_at(layer);
  if (static_cast<std::int64_t>(values.size()) != own.parameters())
    throw bad_input(fmt::format("layer {} ({}) has {} parameters, and {} are given", layer, own.text(),
                                own.parameters(), values.size()));
  s.write_part(layer, &State::Group::w, values);
}

std::int64_t Network::updates() const {
  return state_->updates;
}
void Network::set_updates(std::int64_t updates) {
  if (updates < 0) throw bad_input(fmt::format("{} updates: must be at least 0", updates));
  state_->updates = updates;
}

// Each tensor's name and extents, and where it is.
std::vector<Network::State::Tensor> Network::State::tensors() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const ModelLayer& layer = model.layers[i];
    if (!layer.has_parameters()) continue;
    const Parts& at = parts[i];
    const Group& group = groups[at.group];
    const bool is_norm = layer.kind == ModelLayer::Kind::batch_norm;
    const std::vector<std::int64_t> of_weights =
        is_norm ? std::vector{layer.outputs} : std::vector{layer.outputs, layer.in.channels, layer.rows, layer.columns};
    const auto add = [&](const std::string& name, const std::vector<std::int64_t>& extents, const Buffer& buffer,
                         std::int64_t begin, bool is_copied) {
      if (buffer) all.push_back({{name, extents, {}}, {buffer, begin * 4}, is_copied ? &group : nullptr, begin});
    };
    const std::string own = fmt::format("layers.{}.", i);
    for (const auto& [before, buffer] :
         {std::pair<const char*, Buffer>{"", group.w}, {"momentum.", group.m}, {"second_moment.", group.v}}) {
      const bool is_copied = *before == 0 && group.copy;
      add(before + own + "weight", of_weights, buffer, at.weights, is_copied);
      if (layer.biases() > 0) add(before + own + "bias", {layer.outputs}, buffer, at.biases, is_copied);
    }
    if (!is_norm) continue;
    add(own + "running_mean", {layer.outputs}, running, at.running, false);
    add(own + "running_var", {layer.outputs}, running, at.running + round_up(layer.outputs, parameter_alignment),
        false);
  }
  return all;
}

Event Network::read_tensors(std::vector<NamedTensor>& to) const {
  State& s = *state_;
  to.clear();
  const std::vector<State::Tensor> all = s.tensors();
  for (const State::Tensor& one : all) {
    NamedTensor& own = to.emplace_back(one.named);
    own.values.resize(static_cast<std::size_t>(one.elements()));
  }
  return settled(s.queue, [&] {
    Event last;
    for (std::size_t i = 0; i < all.size(); ++i)
      last =
          s.queue.download(to[i].values.data(), all[i].place.buffer, all[i].place.offset_bytes, 4 * all[i].elements());
    return last;
  });
}

void Network::set_tensors(const std::vector<NamedTensor>& tensors) {
  State& s = *state_;
  const std::vector<State::Tensor> all = s.tensors();
  std::vector<const State::Tensor*> places;
  for (const NamedTensor& given : tensors) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const State::Tensor& one) { return one.named.name == given.name; });
    if (found == all.end()) throw bad_input(fmt::format("{} has no numbers of the name {}", s.model.name, given.name));
    if (found->named.extents != given.extents || found->elements() != std::ssize(given.values))
      throw bad_input(fmt::format("{} of {} has extents {}, and {} with {} numbers are given", given.name, s.model.name,
                                  fmt::join(found->named.extents, " x "), fmt::join(given.extents, " x "),
                                  given.values.size()));
    places.push_back(&*found);
  }
  s.is_stale = true;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const State::Tensor& own = *places[i];
    const std::span<const float> values = tensors[i].values;
    s.queue.upload(own.place.buffer, own.place.offset_bytes, values.data(), std::ssize(values) * 4).wait();
    if (own.copied != nullptr) s.write_copy(*own.copied, own.begin, values);
  }
}

std::vector<double> Network::measure(int at_once) {
  State& s = *state_;
  const training::Steps& steps = s.options.trains ? s.training : s.evaluating.steps;
  s.follow_parameters();
  s.queue.finish();
  Queue timed = s.context.make_queue({.begins_at_wait = true});
  // Classes that the model has: where an image has none, its gradients are NaN, which some solvers take long for.
  std::vector<std::int32_t> labels(static_cast<std::size_t>(s.options.batch));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % s.model.classes());
  s.queue.upload(s.labels, 0, labels.data(), s.labels.bytes()).wait();
  std::vector<double> seconds;
  // In their order: arrays that share memory hold what the operation before has left there.
  for (std::size_t i = 0; i < steps.operations().size(); ++i) {
    Sequence sequence = s.context.make_sequence();
    for (int k = 0; k < at_once; ++k) steps.append_one(sequence, i, s.passing, s.workspace);
    const Recording recording = s.context.record(std::move(sequence));
    std::vector<double> samples;
    double all = 0;
    constexpr int least = 5, most = 50;
    constexpr double enough = 0.05;
    for (int k = 0; k < least || (k < most && all < enough); ++k) {
      Event event = recording.replay(timed);
      event.wait();
      all += samples.emplace_back(event.seconds());
    }
    std::sort(samples.begin(), samples.end());
    seconds.push_back(samples[samples.size() / 2] / at_once);
  }
  return seconds;
}

Event Network::step(const float* images, const std::int32_t* labels, const Rates& rates, float* losses,
                    std::int32_t* stop) {
  State& s = *state_;
  if (!s.options.trains) throw bad_input("a network that does not train takes no steps");
  s.set_rates(rates);
  return settled(s.queue, [&] {
    s.upload_images(images);
    s.queue.upload(s.labels, 0, labels, s.labels.bytes());
    if (s.sums_losses()) s.queue.copy(s.losses, 0, s.no_losses, 0, s.losses.bytes());
    s.train_recording.replay(s.queue);
    s.queue.download(losses, s.losses, 0, s.losses.bytes());
    return s.queue.download(stop, s.stop, 0, 4);
  });
}

std::vector<float> Network::outputs(const float* images) {
  State& s = *state_;
  const std::int64_t count = s.options.batch * s.model.classes(), size = size_of(s.type);
  const Operand from = s.evaluating.steps.at(s.evaluating.outputs, s.passing);
  std::vector<std::byte> stored(static_cast<std::size_t>(count * size));
  settled(s.queue, [&] {
    s.upload_images(images);
    s.follow_parameters();
    s.evaluate_recording.replay(s.queue);
    s.queue.download(stored.data(), from.buffer, from.offset_bytes, count * size).wait();
  });
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(load_element(s.type, stored.data() + i * size));
  return values;
}

}  // namespace omniconv
