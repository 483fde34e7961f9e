// The loop over a data set, and what a trained network finds in one.
#include "omniconv/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include "core/philox.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using Clock = std::chrono::steady_clock;

// What a pixel of each channel becomes.
class PixelTable {
 public:
  PixelTable(const Dataset& dataset) : plane_(dataset.height * dataset.width) {
    const Standard standard = standard_of(dataset);
    for (std::size_t c = 0; c < standard.mean.size(); ++c)
      for (int p = 0; p < 256; ++p)
        values_.push_back(standard.deviation[c] > 0
                              ? static_cast<float>((p / 255.0 - standard.mean[c]) / standard.deviation[c])
                              : 0.0f);
  }
  void standardise(const std::uint8_t* image, float* to) const {
    for (std::size_t c = 0; c < values_.size() / 256; ++c)
      for (std::int64_t i = 0; i < plane_; ++i) *to++ = values_[256 * c + *image++];
  }

 private:
  std::int64_t plane_;
  std::vector<float> values_;
};

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

void check_fits(const Model& model, const Dataset& dataset) {
  const ModelShape shape{dataset.channels, dataset.height, dataset.width};
  if (!(shape == model.input))
    throw bad_input(fmt::format("{} has images of {} x {} x {}, and the model {} takes {} x {} x {}", dataset.name,
                                shape.channels, shape.height, shape.width, model.name, model.input.channels,
                                model.input.height, model.input.width));
  if (const auto classes = static_cast<std::int64_t>(dataset.classes.size()); model.classes() < classes)
    throw bad_input(fmt::format("{} has {} classes, and the model {} has {} outputs: its last layer needs as many",
                                dataset.name, classes, model.name, model.classes()));
  if (dataset.train.count < 1) throw bad_input(fmt::format("{} has no images for training", dataset.name));
  check_examples(dataset, dataset.train);
}

// The images of an epoch in its order.
std::vector<std::int64_t> order_of(std::int64_t images, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(images));
  std::iota(order.begin(), order.end(), 0);
  PhiloxStream stream(seed, PhiloxUse::order, static_cast<std::uint32_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(static_cast<std::uint64_t>(stream.word(i)) * i >> 32);
    std::swap(order[i - 1], order[other]);
  }
  return order;
}

}  // namespace

Standard standard_of(const Dataset& dataset) {
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

void require_fit(const Model& model, const Dataset& dataset, std::int64_t batch) {
  check_fits(model, dataset);
  if (dataset.train.count < batch)
    throw bad_input(fmt::format("a batch of {} images, and {} has {} for training: make it smaller", batch,
                                dataset.name, dataset.train.count));
}

void train(Network& network, const Dataset& dataset, const TrainingOptions& options, const TrainingHooks& hooks) {
  require_fit(network.model(), dataset, network.options().batch);
  const std::int64_t batch = network.options().batch, steps = dataset.train.count / batch,
                     image = dataset.image_bytes();
  const PixelTable table(dataset);
  std::vector<float> losses(static_cast<std::size_t>(steps * batch));
  std::vector<std::int32_t> stops(static_cast<std::size_t>(steps));
  // A step's images are made while those before it are on their way. Work that is left when an error ends the loop is
  // waited for, since it reads and writes these arrays.
  struct Slot {
    std::vector<float> images;
    std::vector<std::int32_t> labels;
    Event event;
    std::int64_t step = -1;

    ~Slot() {
      try {
        if (step >= 0) event.wait();
      } catch (const std::exception&) {  // the first error is on its way
      }
    }
  };
  std::array<Slot, 2> slots;
  for (Slot& slot : slots) {
    slot.images.resize(static_cast<std::size_t>(batch * image));
    slot.labels.resize(static_cast<std::size_t>(batch));
  }
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const Clock::time_point begin = Clock::now();
    const std::vector<std::int64_t> order = order_of(dataset.train.count, options.seed, epoch);
    const auto settle = [&](Slot& slot) {
      if (slot.step < 0) return;
      slot.event.wait();
      const std::int64_t step = std::exchange(slot.step, -1);
      if (stops[static_cast<std::size_t>(step)] != 0)
        throw environment_error(fmt::format(
            "epoch {}, step {}: a gradient is not finite, and no parameter was changed any more: try a smaller rate, "
            "momentum or l2",
            epoch, step + 1));
    };
    bool goes_on = true;
    for (std::int64_t step = 0; step < steps && goes_on; ++step) {
      Slot& slot = slots[static_cast<std::size_t>(step % 2)];
      settle(slot);
      for (std::int64_t i = 0; i < batch; ++i) {
        const std::int64_t at = order[static_cast<std::size_t>(step * batch + i)];
        table.standardise(dataset.train.pixels.data() + at * image, slot.images.data() + i * image);
        slot.labels[static_cast<std::size_t>(i)] = dataset.train.labels[static_cast<std::size_t>(at)];
      }
      slot.event = network.step(slot.images.data(), slot.labels.data(), options.rates, losses.data() + step * batch,
                                stops.data() + step);
      slot.step = step;
      if (hooks.progress) goes_on = hooks.progress(step, steps);
    }
    for (std::int64_t i = 0; i < 2; ++i) settle(slots[static_cast<std::size_t>((steps + i) % 2)]);
    if (!goes_on) return;
    double loss = 0;
    for (const float one : losses) loss += static_cast<double>(one);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto images = static_cast<double>(steps * batch);
    if (hooks.epoch && !hooks.epoch({.epoch = epoch,
                                     .steps = steps,
                                     .loss = loss / images,
                                     .seconds = seconds,
                                     .images_a_second = images / seconds}))
      return;
  }
}

Evaluation evaluate(Network& network, const Dataset& dataset, const Examples& examples) {
  check_fits(network.model(), dataset);
  check_examples(dataset, examples);
  const PixelTable table(dataset);
  const std::int64_t batch = network.options().batch, image = dataset.image_bytes(),
                     outputs = network.model().classes();
  const auto classes = static_cast<std::int64_t>(dataset.classes.size());
  Evaluation result{.images = examples.count,
                    .confusion = std::vector<std::int64_t>(static_cast<std::size_t>(classes * classes))};
  std::vector<float> images(static_cast<std::size_t>(batch * image));
  for (std::int64_t first = 0; first < examples.count; first += batch) {
    const std::int64_t count = std::min(batch, examples.count - first);
    for (std::int64_t i = 0; i < count; ++i)
      table.standardise(examples.pixels.data() + (first + i) * image, images.data() + i * image);
    const std::vector<float> found = network.outputs(images.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = found.begin() + i * outputs;
      if (!std::all_of(row, row + outputs, [](float one) { return std::isfinite(one); }))
        throw environment_error(fmt::format(
            "image {}: an output is not finite: the training left every bound: try a smaller rate, momentum or l2",
            first + i));
      const std::int64_t best = std::max_element(row, row + classes) - row,
                         label = examples.labels[static_cast<std::size_t>(first + i)];
      result.right += best == label;
      ++result.confusion[static_cast<std::size_t>(label * classes + best)];
    }
  }
  return result;
}

}  // namespace omniconv
