// The loop over a data set, and what a trained network finds in one.
#include "omniconv/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/convert.h"
#include "core/philox.h"
#include "omniconv/error.h"
#include "train/feed.h"
#include "train/shuffle.h"

namespace omniconv {
namespace {

// Sizes and classes of a part of a set, which its maker may have got wrong.
void check_examples(const Dataset& dataset, const Examples& examples) {
  const auto count = static_cast<std::size_t>(examples.count);
  if (examples.count < 0 || examples.pixels.size() != count * static_cast<std::size_t>(dataset.image_bytes()) ||
      examples.labels.size() != count)
    throw bad_input(fmt::format("{}: {} images of {} bytes are said to be there, with {} bytes of pixels and {} labels",
                                dataset.name, examples.count, dataset.image_bytes(), examples.pixels.size(),
                                examples.labels.size()));
  const std::size_t classes = dataset.classes.size();
  const auto wrong = std::find_if(examples.labels.begin(), examples.labels.end(),
                                  [&](std::uint8_t label) { return label >= classes; });
  if (wrong != examples.labels.end())
    throw bad_input(fmt::format("{}: label {} of image {}: its {} classes are counted from 0", dataset.name, *wrong,
                                wrong - examples.labels.begin(), classes));
}

void check_shapes(const Model& model, const Dataset& dataset) {
  const ModelShape shape{dataset.channels, dataset.height, dataset.width};
  if (!(shape == model.input))
    throw bad_input(fmt::format("{} has images of {} x {} x {}, and the model {} takes {} x {} x {}", dataset.name,
                                shape.channels, shape.height, shape.width, model.name, model.input.channels,
                                model.input.height, model.input.width));
  if (const auto classes = static_cast<std::int64_t>(dataset.classes.size()); model.classes() < classes)
    throw bad_input(fmt::format("{} has {} classes, and the model {} has {} outputs: its last layer needs as many",
                                dataset.name, classes, model.name, model.classes()));
  if (const Standard& own = dataset.standard;
      !own.mean.empty() && (std::ssize(own.mean) != dataset.channels || std::ssize(own.deviation) != dataset.channels))
    throw bad_input(fmt::format("{} has {} channels, and its standard {} means and {} deviations", dataset.name,
                                dataset.channels, own.mean.size(), own.deviation.size()));
  if (dataset.train.count < 1 && dataset.standard.mean.empty())
    throw bad_input(fmt::format("{} has no images for training, and no means and deviations", dataset.name));
}

void check_fits(const Model& model, const Dataset& dataset) {
  check_shapes(model, dataset);
  if (dataset.train.count < 1) throw bad_input(fmt::format("{} has no images for training", dataset.name));
  check_examples(dataset, dataset.train);
}

// The images for training and for validation: by the seed, where there are any of these; else all, as they are.
struct Split {
  std::vector<std::int32_t> train, validation;

  Split(std::int64_t images, std::int64_t validation_images, std::uint64_t seed) {
    train.resize(static_cast<std::size_t>(images));
    std::iota(train.begin(), train.end(), 0);
    if (validation_images == 0) return;
    training::shuffle(train, PhiloxStream(seed, PhiloxUse::split, 0));
    validation.assign(train.end() - validation_images, train.end());
    train.resize(train.size() - static_cast<std::size_t>(validation_images));
    std::sort(train.begin(), train.end()), std::sort(validation.begin(), validation.end());
  }
};

}  // namespace

Standard standard_of(const Dataset& dataset) {
  if (!dataset.standard.mean.empty()) return dataset.standard;
  Standard standard;
  const std::int64_t plane = dataset.height * dataset.width, pixels = plane * dataset.train.count;
  for (std::int64_t c = 0; c < dataset.channels; ++c) {
    std::uint64_t sum = 0, squares = 0;
    for (std::int64_t n = 0; n < dataset.train.count; ++n) {
      const std::uint8_t* const from = dataset.train.pixels.data() + (n * dataset.channels + c) * plane;
      for (std::int64_t i = 0; i < plane; ++i) sum += from[i], squares += static_cast<std::uint64_t>(from[i]) * from[i];
    }
    const auto count = static_cast<double>(pixels);
    const double mean = static_cast<double>(sum) / count, variance = static_cast<double>(squares) / count - mean * mean;
    standard.mean.push_back(mean / 255);
    standard.deviation.push_back(std::sqrt(std::max(variance, 0.0)) / 255);
  }
  return standard;
}

void require_fit(const Model& model, const Dataset& dataset, std::int64_t batch, std::int64_t validation) {
  check_fits(model, dataset);
  if (dataset.train.count < batch)
    throw bad_input(fmt::format("a batch of {} images, and {} has {} for training: make it smaller", batch,
                                dataset.name, dataset.train.count));
  if (validation < 0 || dataset.train.count - validation < batch)
    throw bad_input(
        fmt::format("{} images for validation, of {} of {} for training: at most {}, so that a batch of {} is "
                    "left",
                    validation, dataset.train.count, dataset.name, dataset.train.count - batch, batch));
}

std::vector<float> training::pixel_table(const Standard& standard) {
  std::vector<float> table;
  for (std::size_t c = 0; c < standard.mean.size(); ++c)
    for (int p = 0; p < 256; ++p)
      table.push_back(standard.deviation[c] > 0
                          ? static_cast<float>((p / 255.0 - standard.mean[c]) / standard.deviation[c])
                          : 0.0f);
  return table;
}

namespace {

// Of rows of outputs with their labels: what is found, and the losses.
void judge(Evaluation& result, std::span<const float> outputs, std::span<const std::int32_t> labels,
           std::int64_t classes, std::int64_t first) {
  const std::size_t width = outputs.size() / labels.size();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = outputs.subspan(i * width, width);
    if (!std::all_of(row.begin(), row.end(), [](float one) { return std::isfinite(one); }))
      throw environment_error(
          fmt::format("image {}: an output is not finite: the training left every bound: try a smaller rate, momentum "
                      "or l2",
                      first + static_cast<std::int64_t>(i)));
    const std::int64_t best = std::max_element(row.begin(), row.begin() + classes) - row.begin(), label = labels[i];
    const double most = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float one : row) sum += std::exp(static_cast<double>(one) - most);
    result.loss += std::log(sum) + most - static_cast<double>(row[static_cast<std::size_t>(label)]);
    result.right += best == label;
    ++result.confusion[static_cast<std::size_t>(label * classes + best)];
  }
}

// What is found in some images of a set that lies on the device.
Evaluation evaluate_on(training::Feed& feed, const Network& network, const Dataset& dataset, const Examples& examples,
                       const std::vector<std::int32_t>& order) {
  const std::int64_t batch = network.options().batch, outputs = network.model().classes(),
                     count = static_cast<std::int64_t>(order.size()),
                     classes = static_cast<std::int64_t>(dataset.classes.size());
  Network::State& state = network.state();
  const std::int64_t size = size_of(state.type);
  Evaluation result{.images = count,
                    .confusion = std::vector<std::int64_t>(static_cast<std::size_t>(classes * classes))};
  std::vector<std::byte> stored(static_cast<std::size_t>(count * outputs * size));
  try {
    feed.set_order(order);
    for (std::int64_t first = 0; first < count; first += batch) {
      feed.run(first, 0);
      feed.read_outputs(stored.data() + first * outputs * size, std::min(batch, count - first));
    }
    state.queue.finish();
  } catch (...) {
    training::settle(state.queue);
    throw;
  }
  std::vector<float> rows(static_cast<std::size_t>(batch * outputs));
  std::vector<std::int32_t> labels;
  for (std::int64_t first = 0; first < count; first += batch) {
    const std::int64_t here = std::min(batch, count - first);
    for (std::int64_t i = 0; i < here * outputs; ++i)
      rows[static_cast<std::size_t>(i)] =
          static_cast<float>(load_element(state.type, stored.data() + (first * outputs + i) * size));
    labels.clear();
    for (std::int64_t i = first; i < first + here; ++i)
      labels.push_back(examples.labels[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
    judge(result, std::span(rows).first(static_cast<std::size_t>(here * outputs)), labels, classes, first);
  }
  if (count > 0) result.loss /= static_cast<double>(count);
  return result;
}

// The loop over epochs and steps.
class Training {
 public:
  Training(Network& network, const Dataset& dataset, const TrainingOptions& options, const TrainingHooks& hooks)
      : network_(network),
        dataset_(dataset),
        options_(options),
        hooks_(hooks),
        state_(network.state()),
        split_(dataset.train.count, options.validation, options.seed),
        steps_(static_cast<std::int64_t>(split_.train.size()) / network.options().batch),
        examples_(network.context(), state_.queue, dataset, dataset.train,
                  chunk_images(network, dataset.train, options.chunk)),
        feed_(state_, examples_, dataset.train.count, options.augmentation, options.seed, true) {
    if (options.validation > 0) validating_.emplace(state_, examples_, options.validation, Augmentation{}, 0, false);
  }
  ~Training() { training::settle(state_.queue); }

  void run(const TrainingProgress& begin) {
    const std::int64_t batch = network_.options().batch;
    if (begin.step < 0 || begin.step > steps_ || begin.epoch < 1 ||
        (!begin.losses.empty() && std::ssize(begin.losses) != batch))
      throw bad_input(fmt::format(
          "the progress to go on from is none of {} steps an epoch in batches of {}: epoch {}, step {}, {} losses",
          steps_, batch, begin.epoch, begin.step, begin.losses.size()));
    progress_ = begin;
    if (!begin.losses.empty()) feed_.set_losses(begin.losses);
    while (progress_.epoch <= options_.epochs) {
      if (!run_epoch()) {
        require_finite();
        return checkpoint();
      }
      const EpochReport report = end_epoch();
      // Kept before it is told: who is told may fail.
      const bool is_last = progress_.epoch > options_.epochs || is_over();
      if (options_.checkpoint_every == 0 || is_last) checkpoint();
      const bool goes_on = !hooks_.epoch || hooks_.epoch(report);
      if (!goes_on && options_.checkpoint_every != 0 && !is_last) checkpoint();
      if (!goes_on || is_last) return;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  // The steps of an epoch that are left; false: it was stopped among them.
  bool run_epoch() {
    begin_ = Clock::now(), first_step_ = progress_.step;
    std::vector<std::int32_t>& order = orders_[static_cast<std::size_t>(progress_.epoch % 2)];
    order = order_of(progress_.epoch);
    feed_.set_order(order);
    // The host runs ahead of the device by two polls at most, each of as many steps as take long enough.
    constexpr double seconds_of_poll = 0.02;
    std::int64_t of_poll = 1, until = progress_.step + 1;
    Clock::time_point since = begin_;
    while (progress_.step < steps_) {
      step();
      const bool saves = options_.checkpoint_every > 0 && network_.updates() % options_.checkpoint_every == 0;
      if (saves) checkpoint();
      if (progress_.step < until && progress_.step < steps_) continue;
      poll();
      const Clock::time_point now = Clock::now();
      if (std::chrono::duration<double>(now - since).count() < seconds_of_poll)
        of_poll = std::min<std::int64_t>(2 * of_poll, 256);
      since = now, until = progress_.step + of_poll;
      if (hooks_.progress && !hooks_.progress(progress_.step, steps_)) return false;
    }
    return true;
  }

  void step() {
    Network::Rates rates = options_.rates;
    rates.rate = rate_ = rate_at(options_.schedule, options_.rates.rate,
                                 (progress_.epoch - 1) * steps_ + progress_.step, steps_, options_.epochs);
    state_.set_rates(rates);
    feed_.run(progress_.step * network_.options().batch, progress_.epoch);
    progress_.updates = network_.updates();
    ++progress_.step;
  }

  // Asks for the flag that says whether a gradient was not finite, and looks at it as it was two polls ago.
  void poll() {
    Poll& next = polls_[polled_++ % polls_.size()];
    next.settle(*this);
    next.event = state_.queue.download(&next.stop, state_.stop, 0, 4), next.is_open = true;
  }

  EpochReport end_epoch() {
    for (std::size_t i = 0; i < polls_.size(); ++i) polls_[(polled_ + i) % polls_.size()].settle(*this);
    std::vector<float> losses;
    feed_.read_losses(losses);
    require_finite();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const auto images = static_cast<double>(steps_ * network_.options().batch);
    EpochReport report{.epoch = progress_.epoch, .steps = steps_, .rate = rate_, .seconds = seconds};
    for (const float one : losses) report.loss += static_cast<double>(one) / images;
    report.images_a_second = static_cast<double>((steps_ - first_step_) * network_.options().batch) / seconds;
    if (validating_) {
      const Evaluation found = evaluate_on(*validating_, network_, dataset_, dataset_.train, split_.validation);
      report.validation_images = found.images, report.validation_loss = found.loss;
      report.validation_accuracy = found.accuracy();
    }
    feed_.set_losses(std::vector<float>(losses.size(), 0));
    ++progress_.epoch, progress_.step = 0;
    progress_.epochs.push_back(report);
    return report;
  }

  // Of every step so far. What one that is not finite leaves of the parameters is of no use: nobody is to see them.
  void require_finite() {
    std::int32_t stop = 0;
    state_.queue.download(&stop, state_.stop, 0, 4).wait();
    if (stop != 0) refuse(stop);
  }

  // Whether the validation has not become better for long enough.
  bool is_over() const {
    if (options_.early_stop == 0) return false;
    const auto best = std::max_element(
        progress_.epochs.begin(), progress_.epochs.end(),
        [](const EpochReport& a, const EpochReport& b) { return a.validation_accuracy < b.validation_accuracy; });
    return progress_.epochs.end() - best > options_.early_stop;
  }

  void checkpoint() {
    if (!hooks_.checkpoint) return;
    TrainingProgress progress = progress_;
    std::vector<NamedTensor> tensors;
    std::int32_t stop = 0;
    feed_.read_losses(progress.losses);
    state_.queue.download(&stop, state_.stop, 0, 4);
    network_.read_tensors(tensors).wait();
    if (stop != 0) refuse(stop);
    hooks_.checkpoint(progress, std::move(tensors));
  }

  // The step that was the first with a gradient that is not finite changed parameters whose own was, and those behind
  // it none: it is made once more, an operation at a time.
  [[noreturn]] void refuse(std::int32_t update) {
    state_.queue.finish();
    const std::int64_t done = update - 1 - (network_.updates() - progress_.updates), epoch = done / steps_,
                       step = done % steps_;
    std::vector<std::int32_t> order = order_of(epoch + 1);
    feed_.set_order(order);
    state_.number.set(update);
    const training::NotFinite found = feed_.first_not_finite(step * network_.options().batch, epoch + 1);
    const std::string where =
        found.layer < network_.model().layers.size()
            ? fmt::format("layer {} ({}), {}", found.layer + 1, network_.model().layers[found.layer].text(), found.what)
            : "the " + found.what;
    throw environment_error(fmt::format(
        "epoch {}, step {}: a number is not finite, first in {}; no later step changed a parameter, and nothing is "
        "kept of this one: try a smaller rate, momentum or l2{}",
        epoch + 1, step + 1, where,
        state_.type == DataType::f16 ? ", or bf16: f16 ends at 65504, and gradients are of 128 times the loss" : ""));
  }

  std::vector<std::int32_t> order_of(std::int64_t epoch) const {
    std::vector<std::int32_t> order = split_.train;
    training::shuffle(order, PhiloxStream(options_.seed, PhiloxUse::order, static_cast<std::uint32_t>(epoch)));
    return order;
  }

  struct Poll {
    Event event;
    std::int32_t stop = 0;
    bool is_open = false;

    void settle(Training& training) {
      if (!std::exchange(is_open, false)) return;
      event.wait();
      if (stop != 0) training.refuse(stop);
    }
  };

  Network& network_;
  const Dataset& dataset_;
  const TrainingOptions& options_;
  const TrainingHooks& hooks_;
  Network::State& state_;
  Split split_;
  std::int64_t steps_, first_step_ = 0;  // of an epoch; done already where it began
  training::DeviceExamples examples_;
  training::Feed feed_;
  std::optional<training::Feed> validating_;
  std::array<std::vector<std::int32_t>, 2> orders_;  // an epoch's, and that of the one before, which may be on its way
  std::array<Poll, 2> polls_;
  std::size_t polled_ = 0;
  TrainingProgress progress_;
  double rate_ = 0;
  Clock::time_point begin_;
};

}  // namespace

void train(Network& network, const Dataset& dataset, const TrainingOptions& options, const TrainingHooks& hooks,
           const TrainingProgress& begin) {
  if (!network.options().trains) throw bad_input("a network that does not train cannot be trained");
  if (options.early_stop > 0 && options.validation == 0)
    throw bad_input("an early stop needs images for validation: name how many");
  require_fit(network.model(), dataset, network.options().batch, options.validation);
  Training(network, dataset, options, hooks).run(begin);
}

Evaluation evaluate(Network& network, const Dataset& dataset, const Examples& examples, std::int64_t chunk) {
  check_shapes(network.model(), dataset);
  check_examples(dataset, examples);
  std::vector<std::int32_t> order(static_cast<std::size_t>(examples.count));
  std::iota(order.begin(), order.end(), 0);
  Network::State& state = network.state();
  if (examples.count == 0) {
    const std::size_t classes = dataset.classes.size();
    return {.confusion = std::vector<std::int64_t>(classes * classes)};
  }
  const training::DeviceExamples on_device(network.context(), state.queue, dataset, examples,
                                           chunk_images(network, examples, chunk));
  training::Feed feed(state, on_device, examples.count, {}, 0, false);
  return evaluate_on(feed, network, dataset, examples, order);
}

}  // namespace omniconv
