// Networks: steps against the same written out in double precision, what training does with a seed, and that it learns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "../error_testing.h"
#include "core/philox.h"
#include "devices_testing.h"
#include "omniconv/training.h"
#include "operations/gpu_limits.h"
#include "train/network_state.h"

namespace omniconv::network_tests {
namespace {

// The known answers of the reference implementation (Random123's kat_vectors).
TEST(Philox, KnownAnswers) {
  using Words = PhiloxWords;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The same network in double, element by element, from its definition: loss and gradients of a batch.
class Oracle {
 public:
  Oracle(const Model& model, std::int64_t batch) : model_(model), batch_(batch) {}
  std::vector<std::vector<double>> parameters;  // of each layer: weights, then biases
  std::uint64_t seed = 1;                       // of dropout, in the first step
  bool drops = true;

  double loss(const std::vector<float>& images, const std::vector<std::int32_t>& labels) {
    values_.assign(1, std::vector<double>(images.begin(), images.end()));
    for (std::size_t i = 0; i < model_.layers.size(); ++i) values_.push_back(forward(i, values_.back()));
    double sum = 0;
    const std::int64_t classes = model_.classes();
    for (std::int64_t n = 0; n < batch_; ++n) {
      const double* const row = values_.back().data() + n * classes;
      const double most = *std::max_element(row, row + classes);
      double all = 0;
      for (std::int64_t c = 0; c < classes; ++c) all += std::exp(row[c] - most);
      sum += std::log(all) + most - row[labels[static_cast<std::size_t>(n)]];
    }
    return sum / static_cast<double>(batch_);
  }
  // By central differences of one parameter.
  double slope(std::size_t layer, std::size_t at, const std::vector<float>& images,
               const std::vector<std::int32_t>& labels) {
    constexpr double step = 1e-5;
    double& one = parameters[layer][at];
    const double before = one;
    one = before + step;
    const double above = loss(images, labels);
    one = before - step;
    const double below = loss(images, labels);
    one = before;
    return (above - below) / (2 * step);
  }

 private:
  using Kind = ModelLayer::Kind;
  std::vector<double> forward(std::size_t i, const std::vector<double>& x) const {
    const ModelLayer& l = model_.layers[i];
    std::vector<double> y(static_cast<std::size_t>(batch_ * l.out.elements()));
    const auto at = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      return x[static_cast<std::size_t>(((n * l.in.channels + c) * l.in.height + h) * l.in.width + w)];
    };
    std::size_t to = 0;
    for (std::int64_t n = 0; n < batch_; ++n)
      for (std::int64_t k = 0; k < l.out.channels; ++k)
        for (std::int64_t p = 0; p < l.out.height; ++p)
          for (std::int64_t q = 0; q < l.out.width; ++q, ++to) {
            if (l.has_filters()) {
              double sum = l.has_bias ? parameters[i][static_cast<std::size_t>(l.weights() + k)] : 0;
              for (std::int64_t c = 0; c < l.in.channels; ++c)
                for (std::int64_t r = 0; r < l.rows; ++r)
                  for (std::int64_t s = 0; s < l.columns; ++s) {
                    const std::int64_t h = p * l.stride_h + r - l.pad, w = q * l.stride_w + s - l.pad;
                    if (h < 0 || w < 0 || h >= l.in.height || w >= l.in.width) continue;
                    sum +=
                        at(n, c, h, w) *
                        parameters[i][static_cast<std::size_t>(((k * l.in.channels + c) * l.rows + r) * l.columns + s)];
                  }
              y[to] = sum;
            } else if (l.kind == Kind::batch_norm) {
              y[to] = normalised(i, x, k, x[to]);
            } else if (l.kind == Kind::dropout) {
              const bool is_kept = !drops || kept(i, to);
              y[to] = is_kept ? x[to] / (drops ? 1 - l.rate : 1) : 0;
            } else if (l.kind == Kind::add) {
              y[to] = x[to] + shortcut(l, n, k, p, q);
            } else if (l.kind == Kind::max_pool || l.kind == Kind::average_pool) {
              double most = -std::numeric_limits<double>::infinity(), sum = 0;
              for (std::int64_t r = 0; r < l.rows; ++r)
                for (std::int64_t s = 0; s < l.columns; ++s) {
                  const double one = at(n, k, p * l.stride_h + r, q * l.stride_w + s);
                  most = std::max(most, one), sum += one;
                }
              y[to] = l.kind == Kind::max_pool ? most : sum / static_cast<double>(l.rows * l.columns);
            } else {
              const double one = x[to];
              y[to] = l.kind == Kind::relu   ? std::max(one, 0.0)
                      : l.kind == Kind::tanh ? std::tanh(one)
                                             : 1 / (1 + std::exp(-one));
            }
          }
    return y;
  }

  // One number of a channel, by the mean and the deviation of the batch.
  double normalised(std::size_t i, const std::vector<double>& x, std::int64_t channel, double one) const {
    const ModelLayer& l = model_.layers[i];
    const std::int64_t plane = l.in.height * l.in.width;
    double sum = 0, squares = 0;
    const auto each = [&](const auto& call) {
      for (std::int64_t n = 0; n < batch_; ++n)
        for (std::int64_t k = 0; k < plane; ++k)
          call(x[static_cast<std::size_t>((n * l.in.channels + channel) * plane + k)]);
    };
    const auto count = static_cast<double>(batch_ * plane);
    each([&](double other) { sum += other; });
    each([&](double other) { squares += (other - sum / count) * (other - sum / count); });
    const auto k = static_cast<std::size_t>(channel), channels = static_cast<std::size_t>(l.in.channels);
    return (one - sum / count) / std::sqrt(squares / count + l.epsilon) * parameters[i][k] +
           parameters[i][channels + k];
  }
  bool kept(std::size_t i, std::size_t element) const {
    PhiloxStream stream(seed, PhiloxUse::dropout, static_cast<std::uint32_t>(i), 1);
    return static_cast<double>(stream.word(element)) >= std::ceil(model_.layers[i].rate * 0x1p32);
  }
  double shortcut(const ModelLayer& l, std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) const {
    const ModelShape& s = model_.layers[l.from].out;
    const std::int64_t c = k - (l.out.channels - s.channels) / 2;
    if (c < 0 || c >= s.channels) return 0;
    return values_[l.from + 1][static_cast<std::size_t>(((n * s.channels + c) * s.height + p * l.stride_h) * s.width +
                                                        q * l.stride_w)];
  }

  Model model_;
  std::int64_t batch_;
  std::vector<std::vector<double>> values_;
};

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};
Batch batch_for(const Model& model, std::int64_t batch) {
  Batch made;
  PhiloxStream stream(5, PhiloxUse::order, 1);
  for (std::int64_t i = 0; i < batch * model.input.elements(); ++i)
    made.images.push_back(static_cast<float>(stream.word(static_cast<std::uint64_t>(i)) >> 8) * 0x1p-23f - 1);
  for (std::int64_t i = 0; i < batch; ++i) made.labels.push_back(static_cast<std::int32_t>(i % model.classes()));
  return made;
}

constexpr const char* small_model =
    "input 2 9 8\nconv 5 3x3 pad 1\nrelu\nmaxpool 2x2\nconv 4 3x2 stride 2\ntanh\navgpool 1x2\nsigmoid\ndense "
    "6\nrelu\ndense 3\n";

// With sums of what is strided and has fewer channels, of what a relu is computed with, and of one output twice.
constexpr const char* residual_model =
    "input 2 9 8\nconv 3 3x3 pad 1 nobias\nbatchnorm\nrelu\nmark a\nconv 3 3x3 pad 1 nobias\nbatchnorm epsilon "
    "0.125\nadd a\nrelu\nmark b\nconv 6 3x3 pad 1 stride 2\ntanh\ndropout 0.25\nadd b\nmark c\nadd "
    "c\nbatchnorm\navgpool "
    "2x2\nsigmoid\nadd a\ndense 3 nobias\n";

// Of a model from the seed's parameters, worked out once.
struct Slopes {
  std::vector<std::vector<float>> parameters;
  double loss = 0;
  std::vector<std::vector<double>> of;  // by layer
};
const Slopes& slopes_of(const char* text, const Model& model, const Batch& data, const Network& network) {
  static std::map<std::string, Slopes> known;
  Slopes& made = known[text];
  if (!made.of.empty()) return made;
  const auto batch = static_cast<std::int64_t>(data.labels.size());
  Oracle oracle(model, batch);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::vector<float>& values = made.parameters.emplace_back(network.parameters(i));
    oracle.parameters.emplace_back(values.begin(), values.end());
  }
  made.loss = oracle.loss(data.images, data.labels);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    std::vector<double>& own = made.of.emplace_back();
    for (std::size_t k = 0; k < made.parameters[i].size(); ++k)
      own.push_back(oracle.slope(i, k, data.images, data.labels));
  }
  return made;
}

TEST(Networks, SolversForWhatNoStepIsAreRefused) {
  const Model model = parse_model("input 1 4 4\ndense 2\n", "one");
  const auto refusal = [&](const std::string& name, bool trains) {
    return error_of(
        [&] {
          Network(Context({.device = "cpu", .threads = 1}), model,
                  {.batch = 2, .trains = trains, .solvers = {{name, "conv2d/im2col_gemm"}}});
        },
        ErrorKind::bad_input);
  };
  EXPECT_EQ(refusal("conv3d", true),
            "solver conv2d/im2col_gemm is named for 'conv3d', which one does not compute: name one of its operations "
            "(bias_add, conv2d, loss, update) or of their problems");
  EXPECT_NE(refusal("update", false).find("its operations (conv2d)"), std::string::npos);
  EXPECT_NE(refusal("bias n2c1h4w4k3r4s4", false).find("which one does not compute"), std::string::npos);
  const Network named(Context({.device = "cpu", .threads = 1}), model,
                      {.batch = 2, .trains = false, .solvers = {{"bias n2c1h4w4k2r4s4", "conv2d/direct"}}});
  EXPECT_EQ(named.steps().at(0).solver, "conv2d/direct/cpu.1");
}

// Rungs are kernels of GPUs, and their tiles are refused by devices that are not trusted with barriers in loops.
bool has_rungs(const std::string& id) {
  return id != "cpu" && operations::local_memory_refusal(*Context({.device = id}).impl(), 0).empty();
}

void expect_slopes(const char* text, const RungOptions& rungs = {}) {
  const Model model = parse_model(text, "small");
  const std::int64_t batch = 4;
  const Batch data = batch_for(model, batch);
  for (const std::string& id : devices_here()) {
    if (rungs.rung < Rung::own && !has_rungs(id)) continue;
    Network network(Context({.device = id, .threads = 2}), model, {.batch = batch, .rungs = rungs});
    network.initialise(3);
    const Slopes& slopes = slopes_of(text, model, data, network);
    std::vector<float> losses(static_cast<std::size_t>(batch));
    std::int32_t stop = -1;
    network.step(data.images.data(), data.labels.data(), {.rate = 0}, losses.data(), &stop).wait();
    EXPECT_EQ(stop, 0) << id;
    double mean = 0;
    for (const float one : losses) mean += static_cast<double>(one) / static_cast<double>(batch);
    // The longest way from a pixel to the loss and back passes fewer than 600 roundings: 18, 30, 8 and 6 products of
    // the layers, twice, 288 of a bias's sum, and some of functions; each moves a number by 2^-24 of its magnitude.
    // What is normalised may be smaller than its channel's terms: all gradients stay within the largest one's.
    constexpr double roundings = 600 * 0x1p-24;
    EXPECT_NEAR(mean, slopes.loss, roundings * mean) << id;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const std::vector<float> gradients = network.gradients(i);
      ASSERT_EQ(static_cast<std::int64_t>(gradients.size()), model.layers[i].parameters());
      ASSERT_EQ(network.parameters(i), slopes.parameters[i]) << id;
      double largest = 0;
      for (const float one : gradients) largest = std::max(largest, std::fabs(static_cast<double>(one)));
      for (std::size_t k = 0; k < gradients.size(); ++k)
        EXPECT_NEAR(gradients[k], slopes.of[i][k], roundings * largest)
            << id << ": " << model.layers[i].text() << ", parameter " << k;
    }
  }
}

TEST(Networks, GradientsAreTheSlopesOfTheLoss) {
  expect_slopes(small_model);
}
TEST(Networks, GradientsOfResidualNetworksAreTheSlopesOfTheLoss) {
  expect_slopes(residual_model);
}
TEST(Networks, GradientsOnEachRungAreTheSlopesOfTheLoss) {
  for (const char* const model : {small_model, residual_model})
    for (const RungOptions& rungs :
         {RungOptions{.rung = Rung::naive}, RungOptions{.rung = Rung::tiled, .tile_rows = 8, .tile_columns = 4},
          RungOptions{.rung = Rung::work_per_thread}})
      expect_slopes(model, rungs);
}

// Of a step on a rung: each function is an operation of its own, by the study's solver where it has one.
TEST(Networks, RungsTakeTheirOperations) {
  const Model model = parse_model(residual_model, "residual");
  for (const std::string& id : devices_here()) {
    if (!has_rungs(id)) continue;
    const Context context({.device = id});
    const Network network(context, model, {.batch = 2, .rungs = {.rung = Rung::tiled}});
    int by_rungs = 0, by_others = 0;
    for (const NetworkStep& step : network.steps()) {
      const Problem problem = parse_problem(step.problem);
      const std::string rungs = std::string(problem.operation_name()) + "/rungs/gpu.1";
      bool has_rungs = false;
      for (const Candidate& candidate : explain(context, problem)) has_rungs |= candidate.solver == rungs;
      EXPECT_EQ(step.solver == rungs, has_rungs) << step.problem << ": " << step.solver;
      ++(has_rungs ? by_rungs : by_others);
    }
    EXPECT_GT(by_rungs, 20);
    EXPECT_GT(by_others, 5);  // of batch_norm, pool2d and dropout
    const Network named(context, model,
                        {.batch = 2, .solvers = {{"conv2d", "conv2d/direct"}}, .rungs = {.rung = Rung::naive}});
    for (const NetworkStep& step : named.steps()) {
      if (parse_problem(step.problem).operation_name() == "conv2d") {
        EXPECT_EQ(step.solver, "conv2d/direct/gpu.1");
      }
      EXPECT_EQ(step.problem.find("bias "), std::string::npos) << step.problem;
    }
  }
}

TEST(Networks, RungsThatADeviceHasNotAreRefused) {
  const Model model = parse_model("input 1 4 4\ndense 2\n", "one");
  const auto refusal = [&](const std::string& id, const NetworkOptions& options) {
    return error_of([&] { Network(Context({.device = id}), model, options); }, ErrorKind::bad_input);
  };
  EXPECT_NE(
      refusal("cpu", {.rungs = {.rung = Rung::naive}})
          .find("the rung naive is kernels of OpenCL and CUDA devices, and cpu is neither: choose the device opencl"),
      std::string::npos);
  EXPECT_NE(refusal("cpu", {.rungs = {.rung = Rung::vendor}}).find("conv2d/cudnn/gpu.1"), std::string::npos);
  for (const std::string& id : devices_here()) {
    if (id == "cpu") continue;
    EXPECT_NE(refusal(id, {.precision = Precision::bf16, .rungs = {.rung = Rung::tiled}})
                  .find("the rung tiled is kernels of f32: choose the precision f32"),
              std::string::npos);
    EXPECT_NE(refusal(id, {.rungs = {.rung = Rung::tiled, .tile_rows = 5}}).find("tile_m=5: must be one of 4, 8, 16"),
              std::string::npos);
  }
}

// Means and variances of training become those of inference, in whose outputs nothing is dropped.
TEST(Networks, InferenceUsesTheMomentsOfTheTraining) {
  const Model model =
      parse_model("input 2 4 4\nbatchnorm momentum 0.5\ndropout 0.5\nconv 2 1x1\nrelu\nbatchnorm\ndense 2\n", "norm");
  const std::int64_t batch = 4;
  const Batch data = batch_for(model, batch);
  for (const std::string& id : devices_here()) {
    Network network(Context({.device = id, .threads = 2}), model, {.batch = batch});
    network.initialise(3);
    std::vector<float> losses(static_cast<std::size_t>(batch));
    std::int32_t stop = 0;
    network.step(data.images.data(), data.labels.data(), {.rate = 0}, losses.data(), &stop).wait();
    std::vector<NamedTensor> tensors;
    network.read_tensors(tensors).wait();
    const auto values = [&](const std::string& name) {
      const auto found =
          std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& one) { return one.name == name; });
      return found == tensors.end() ? std::vector<float>() : found->values;
    };
    const std::vector<float> mean = values("layers.0.running_mean"), variance = values("layers.0.running_var"),
                             w = values("layers.2.weight"), dense = values("layers.5.weight");
    ASSERT_EQ(mean.size(), 2u) << id;
    for (std::int64_t c = 0; c < 2; ++c) {
      double sum = 0, squares = 0;
      const auto at = [&](std::int64_t i) {
        return static_cast<double>(data.images[static_cast<std::size_t>((i / 16 * 2 + c) * 16 + i % 16)]);
      };
      for (std::int64_t i = 0; i < 64; ++i) sum += at(i);
      for (std::int64_t i = 0; i < 64; ++i) squares += (at(i) - sum / 64) * (at(i) - sum / 64);
      // 64 terms of at most 1, their square and a mix with the first moments: fewer than 80 roundings.
      EXPECT_NEAR(mean[static_cast<std::size_t>(c)], sum / 128, 80 * 0x1p-24) << id;
      EXPECT_NEAR(variance[static_cast<std::size_t>(c)], 0.5 + squares / 63 / 2, 80 * 0x1p-24) << id;
    }
    const std::vector<float> found = network.outputs(data.images.data());
    const std::vector<float> mean2 = values("layers.4.running_mean"), variance2 = values("layers.4.running_var");
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::size_t k = 0; k < 2; ++k) {
        double sum = 0, magnitude = 0;
        for (std::size_t c = 0; c < 2; ++c)
          for (std::size_t i = 0; i < 16; ++i) {
            double one = 0, of_one = 0;
            for (std::size_t b = 0; b < 2; ++b) {
              const double x = data.images[(static_cast<std::size_t>(n) * 2 + b) * 16 + i];
              const double made = (x - mean[b]) / std::sqrt(variance[b] + 1e-5) * w[c * 2 + b];
              one += made, of_one += std::fabs(made);
            }
            const double weight = dense[(k * 2 + c) * 16 + i] / std::sqrt(variance2[c] + 1e-5);
            sum += (std::max(one, 0.0) - mean2[c]) * weight;
            magnitude += (of_one + std::fabs(mean2[c])) * std::fabs(weight);
          }
        // Two layers of normalisation, two products and 32 terms.
        EXPECT_NEAR(found[static_cast<std::size_t>(n) * 2 + k], sum, 60 * 0x1p-24 * magnitude) << id;
      }
  }
}

// Whole numbers for a network's tensors, few of them not 0, of which all that layers make are whole, too, and below
// 2^24: variances with which a batch_norm divides by 1, and biases behind it so large that what is lost of a 1 is lost
// again.
void set_whole_numbers(std::vector<NamedTensor>& tensors, std::uint64_t seed) {
  PhiloxStream stream(seed, PhiloxUse::weights, 7);
  std::uint64_t at = 0;
  const auto below = [&](std::uint32_t limit) { return static_cast<int>(stream.word(at++) % limit); };
  const float variance = 1 - 1e-5F;
  ASSERT_EQ(1 / std::sqrt(variance + 1e-5F), 1.0F);
  std::erase_if(tensors, [](const NamedTensor& one) { return !one.name.starts_with("layers."); });
  for (NamedTensor& one : tensors) {
    const std::int64_t inputs = static_cast<std::int64_t>(one.values.size()) / one.extents[0];
    for (std::size_t i = 0; i < one.values.size(); ++i)
      one.values[i] = one.name.ends_with("running_var")               ? variance
                      : one.name.ends_with("running_mean")            ? static_cast<float>(below(5) - 2)
                      : one.name.ends_with("bias")                    ? static_cast<float>(below(8) + 40)
                      : inputs == 1                                   ? static_cast<float>(below(2) + 1)
                      : below(static_cast<std::uint32_t>(inputs)) < 3 ? static_cast<float>(2 * below(2) - 1)
                                                                      : 0.0F;
  }
}

// A network that does not train has its batch_norms in filters and biases, adds shortcuts where they lie, and has
// filters in a solver's own form: it finds what one that trains finds, and follows its parameters.
TEST(Networks, InferenceFoldsAndFollowsItsParameters) {
  const Model model = parse_model(
      "input 3 12 12\nconv 8 3x3 pad 1 nobias\nbatchnorm\nrelu\nmark a\nconv 8 3x3 pad 1 nobias\nbatchnorm\nrelu\n"
      "conv 8 3x3 pad 1\nbatchnorm\nadd a\nrelu\nmark b\nconv 8 3x3 pad 1\nadd b\nmark c\nconv 16 3x3 pad 1 stride 2\n"
      "batchnorm\nadd c\nbatchnorm\nmark d\ndropout 0.5\nconv 16 1x1\nadd d\ndense 12\nbatchnorm\nrelu\ndense 4\n",
      "folded");
  const std::int64_t batch = 2;
  Batch data = batch_for(model, batch);
  for (float& pixel : data.images) pixel = std::round(4 * pixel);
  for (const std::string& id : devices_here()) {
    const Context context({.device = id, .threads = 2});
    // Sums of whole numbers are exact there, whatever their order.
    const std::map<std::string, std::string> solvers = {{"conv2d", "conv2d/im2col_gemm"}};
    Network trained(context, model, {.batch = batch, .solvers = solvers}),
        infers(context, model, {.batch = batch, .trains = false, .solvers = solvers});
    const auto operations = [&](std::string_view kind) {
      return std::count_if(infers.steps().begin(), infers.steps().end(),
                           [&](const NetworkStep& step) { return step.problem.find(kind) != std::string::npos; });
    };
    // One batch_norm stands behind an add. Of the adds one changes the extents, and two have the shortcut for what the
    // convolution before them reads, one of them through a dropout.
    EXPECT_EQ(operations("batch_norm "), 1) << id;
    EXPECT_EQ(operations("add "), 3) << id;
    std::vector<NamedTensor> tensors;
    std::vector<float> before;
    for (const std::uint64_t seed : {1, 2, 3}) {
      trained.read_tensors(tensors).wait();
      set_whole_numbers(tensors, seed);
      trained.set_tensors(tensors), infers.set_tensors(tensors);
      const std::vector<float> expected = trained.outputs(data.images.data());
      for (const float value : expected) ASSERT_LT(std::fabs(value), 0x1p24F) << id;
      EXPECT_NE(expected, before) << id;
      EXPECT_EQ(infers.outputs(data.images.data()), expected) << id;
      before = expected;
    }
    const std::vector<float> zeros(static_cast<std::size_t>(model.layers[0].parameters()));
    trained.set_parameters(0, zeros), infers.set_parameters(0, zeros);
    const std::vector<float> expected = trained.outputs(data.images.data());
    EXPECT_NE(expected, before) << id;
    EXPECT_EQ(infers.outputs(data.images.data()), expected) << id;
  }
}

// w = w - rate * gradient of the first step, from momenta of 0, to the rounding of a multiply-add.
TEST(Networks, AStepFollowsTheGradient) {
  const Model model = parse_model(small_model, "small");
  const Batch data = batch_for(model, 4);
  Network network(Context({.device = "cpu", .threads = 1}), model, {.batch = 4});
  network.initialise(3);
  const std::vector<float> before = network.parameters(0);
  std::vector<float> losses(4);
  std::int32_t stop = -1;
  network.step(data.images.data(), data.labels.data(), {.rate = 0.25}, losses.data(), &stop).wait();
  const std::vector<float> gradients = network.gradients(0), after = network.parameters(0);
  for (std::size_t k = 0; k < before.size(); ++k) EXPECT_EQ(after[k], std::fma(-0.25f, gradients[k], before[k])) << k;
}

// Three steps, each rounded as update's definition says: m = momentum * m + (g + l2 * w), w = w - rate * m.
TEST(Networks, StepsKeepMomentaAndDecay) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  const Batch data = batch_for(model, 4);
  Network network(Context({.device = "cpu", .threads = 1}), model, {.batch = 4});
  network.initialise(3);
  std::vector<float> w = network.parameters(0), m(w.size(), 0), losses(4);
  const Network::Rates rates{.rate = 0.25, .momentum = 0.5, .l2 = 0.125};
  std::int32_t stop = -1;
  for (int step = 0; step < 3; ++step) {
    network.step(data.images.data(), data.labels.data(), rates, losses.data(), &stop).wait();
    const std::vector<float> g = network.gradients(0);
    for (std::size_t k = 0; k < w.size(); ++k) {
      m[k] = std::fma(0.5f, m[k], std::fma(0.125f, w[k], g[k]));
      w[k] = std::fma(-0.25f, m[k], w[k]);
    }
    EXPECT_EQ(network.parameters(0), w) << step;
  }
  network.reset_optimiser();
  network.step(data.images.data(), data.labels.data(), {.rate = 0.25, .momentum = 0.5}, losses.data(), &stop).wait();
  const std::vector<float> g = network.gradients(0), after = network.parameters(0);
  for (std::size_t k = 0; k < w.size(); ++k) EXPECT_EQ(after[k], std::fma(-0.25f, g[k], w[k])) << k;
}

// Of that step alone, whatever steps were before.
TEST(Networks, LossesAreThoseOfAStep) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  const Batch data = batch_for(model, 4);
  for (const std::string& id : devices_here()) {
    Network network(Context({.device = id, .threads = 1}), model, {.batch = 4});
    network.initialise(3);
    std::vector<float> first(4), losses(4);
    std::int32_t stop = -1;
    const auto step = [&](std::vector<float>& to, double rate) {
      network.step(data.images.data(), data.labels.data(), {.rate = rate, .momentum = 0}, to.data(), &stop).wait();
    };
    step(first, 0);
    for (const float one : first) EXPECT_GT(one, 0) << id;
    step(losses, 0);
    EXPECT_EQ(losses, first) << id;
    step(losses, 0.25);
    EXPECT_EQ(losses, first) << id;
    step(losses, 0);
    EXPECT_NE(losses, first) << id;
  }
}

// Parameters that are set and not drawn: nothing else is left to chance.
TEST(Networks, BeginsWithZeros) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  const Batch data = batch_for(model, 4);
  Network network(Context({.device = "cpu", .threads = 1}), model, {.batch = 4});
  for (const float one : network.parameters(0)) EXPECT_EQ(one, 0);
  std::vector<float> losses(4);
  std::int32_t stop = -1;
  network.step(data.images.data(), data.labels.data(), {}, losses.data(), &stop).wait();
  EXPECT_EQ(stop, 0);
  for (const float one : losses) EXPECT_NEAR(one, std::log(3.0), 1e-6);
}

TEST(Networks, WhatPassesTheMemoryIsRefused) {
  const std::string error = error_of(
      [] {
        Network(Context({.device = "cpu", .threads = 1}), load_model("mnist-large"), {.batch = std::int64_t{1} << 40});
      },
      ErrorKind::out_of_memory);
  EXPECT_NE(error.find("mnist-large in batches of 1099511627776 images takes "), std::string::npos) << error;
  EXPECT_NE(error.find(" images fits"), std::string::npos) << error;
}

TEST(Networks, ASeedGivesTheSameWeightsEverywhere) {
  const Model model = load_model("mnist-medium");
  std::vector<float> first;
  for (const std::string& id : devices_here()) {
    Network network(Context({.device = id, .threads = 2}), model, {.batch = 2, .trains = false});
    network.initialise(7);
    const std::vector<float> weights = network.parameters(0);
    if (first.empty()) first = weights;
    EXPECT_EQ(weights, first) << id;
    network.initialise(8);
    EXPECT_NE(network.parameters(0), first);
  }
  const float bound = std::sqrt(6.0f / 784);
  const auto [least, most] = std::minmax_element(first.begin(), first.end());
  EXPECT_LE(*most, bound);
  EXPECT_GE(*least, -bound);
  EXPECT_GT(*most, 0.99f * bound);
  EXPECT_LT(*least, -0.99f * bound);
  for (std::size_t k = 784 * 784; k < first.size(); ++k) EXPECT_EQ(first[k], 0) << k;
}

// Stripes across and down, and their sum: what a filter tells apart.
Dataset stripes(std::int64_t train, std::int64_t test) {
  Dataset set{.name = "stripes", .channels = 1, .height = 12, .width = 12, .classes = {"across", "down", "both"}};
  PhiloxStream stream(11, PhiloxUse::order, 3);
  std::uint64_t word = 0;
  for (Examples* const part : {&set.train, &set.test}) {
    part->count = part == &set.train ? train : test;
    for (std::int64_t n = 0; n < part->count; ++n) {
      const auto label = static_cast<std::uint8_t>(n % 3);
      part->labels.push_back(label);
      const std::uint32_t shift = stream.word(word++) % 4;
      for (std::uint32_t h = 0; h < 12; ++h)
        for (std::uint32_t w = 0; w < 12; ++w) {
          const bool on = (label != 1 && (h + shift) % 4 < 2) || (label != 0 && (w + shift) % 4 < 2);
          part->pixels.push_back(static_cast<std::uint8_t>((on ? 160 : 60) + stream.word(word++) % 60));
        }
    }
  }
  return set;
}

// What passes between layers in 16 bits, parameters in 32: still learnt, and what is kept is the parameters in full.
TEST(Training, LearnsIn16Bits) {
  const Dataset set = stripes(300, 90);
  const Model model =
      parse_model("input 1 12 12\nconv 4 3x3 pad 1 nobias\nbatchnorm\nrelu\nmaxpool 2x2\ndense 3\n", "stripes");
  for (const auto& [precision, type, digits] :
       {std::tuple{Precision::bf16, "bf16", 0xFFFFu}, std::tuple{Precision::f16, "f16", 0x1FFFu}}) {
    Network network(Context({.device = "cpu", .threads = 2}), model, {.batch = 16, .precision = precision});
    network.initialise(1);
    const std::vector<float> first = network.parameters(0);
    train(network, set, {.epochs = 6, .seed = 2}, {});
    EXPECT_GE(evaluate(network, set, set.test).right, 85) << type;
    bool has_more_digits = false;
    for (const float one : network.parameters(0)) has_more_digits |= (std::bit_cast<std::uint32_t>(one) & digits) != 0;
    EXPECT_TRUE(has_more_digits) << type;
    for (const NetworkStep& step : network.steps())
      EXPECT_TRUE(step.what == "update" || step.problem.find(type) != std::string::npos) << step.problem;
    network.set_parameters(0, first);
    EXPECT_EQ(network.parameters(0), first);
  }
}

// Gradients of 2^-26, which f16 has not, from logits of 0 and images of 2^-20: all of it exact.
TEST(Training, SmallGradientsOfF16) {
  constexpr std::int64_t batch = 16, classes = 4, pixels = 9;
  const Model model = parse_model("input 1 3 3\ndense 4 nobias\n", "small");
  std::vector<float> images(batch * pixels), weights(classes * pixels, 0), losses(batch);
  std::vector<std::int32_t> labels(batch);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * 5 % 7) * 0x1p-20f;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i * 3 % classes);
  for (const std::string& id : devices_here()) {
    std::vector<float> gradients[2], changed[2];
    for (const bool is_f16 : {false, true}) {
      Network network(Context({.device = id, .threads = 2}), model,
                      {.batch = batch, .precision = is_f16 ? Precision::f16 : Precision::f32});
      network.set_parameters(0, weights);
      std::int32_t stop = 0;
      network.step(images.data(), labels.data(), {.rate = 1}, losses.data(), &stop).wait();
      EXPECT_EQ(stop, 0);
      gradients[is_f16] = network.gradients(0), changed[is_f16] = network.parameters(0);
    }
    EXPECT_EQ(gradients[1], gradients[0]) << id;
    EXPECT_EQ(changed[1], changed[0]) << id;
    EXPECT_TRUE(std::any_of(gradients[1].begin(), gradients[1].end(), [](float g) {
      return g != 0 && std::fabs(g) < 0x1p-24f;
    })) << id;
  }
}

// As a damaged checkpoint may have it: none of it reaches the device.
TEST(Training, ProgressThatIsNoneIsRefused) {
  const Dataset set = stripes(64, 10);
  Network network(Context({.device = "cpu", .threads = 1}), parse_model("input 1 12 12\ndense 3\n", "stripes"),
                  {.batch = 16});
  network.initialise(1);
  for (const TrainingProgress& begin : {TrainingProgress{.losses = std::vector<float>(15)}, TrainingProgress{.step = 5},
                                        TrainingProgress{.step = -1}, TrainingProgress{.epoch = 0}}) {
    const std::string error = error_of([&] { train(network, set, {.epochs = 2}, {}, begin); }, ErrorKind::bad_input);
    EXPECT_NE(error.find("in batches of 16"), std::string::npos) << error;
  }
}

TEST(Training, Learns) {
  const Dataset set = stripes(300, 90);
  const Model model = parse_model("input 1 12 12\nconv 4 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 3\n", "stripes");
  for (const std::string& id : devices_here())
    for (const UpdateProblem::Rule rule :
         {UpdateProblem::Rule::sgd, UpdateProblem::Rule::nesterov, UpdateProblem::Rule::adam}) {
      Network network(Context({.device = id, .threads = 2}), model, {.batch = 16, .rule = rule});
      network.initialise(1);
      TrainingOptions options{.epochs = 6, .seed = 2};
      options.rates.rate = rule == UpdateProblem::Rule::adam ? 0.003 : 0.01;
      std::vector<EpochReport> reports;
      train(network, set, options,
            {.epoch = [&](const EpochReport& report) { return reports.push_back(report), true; }});
      ASSERT_EQ(reports.size(), 6u);
      EXPECT_EQ(reports[0].steps, 18);  // 300 / 16
      EXPECT_LT(reports.back().loss, reports.front().loss / 2) << id;
      const Evaluation result = evaluate(network, set, set.test);
      EXPECT_EQ(result.images, 90);
      EXPECT_GE(result.right, 85) << id << ' ' << static_cast<int>(rule);
      std::int64_t all = 0;
      for (const std::int64_t count : result.confusion) all += count;
      EXPECT_EQ(all, 90);
    }
}

TEST(Training, ASeedGivesTheSameBitsOnTheCpu) {
  const Dataset set = stripes(100, 9);
  const Model model = parse_model("input 1 12 12\nconv 4 3x3 pad 1\nrelu\ndense 3\n", "stripes");
  std::vector<std::vector<float>> weights;
  for (const std::uint64_t seed : {5u, 5u, 6u}) {
    Network network(Context({.device = "cpu", .threads = 2}), model, {.batch = 16, .deterministic = true});
    network.initialise(1);
    train(network, set, {.epochs = 2, .seed = seed}, {});
    weights.push_back(network.parameters(0));
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_NE(weights[0], weights[2]);
}

TEST(Training, StopsAtWhatIsNotFinite) {
  const Dataset set = stripes(100, 9);
  const Model model = parse_model("input 1 12 12\nconv 4 3x3 pad 1\nrelu\ndense 3\n", "stripes");
  Network network(Context({.device = "cpu", .threads = 1}), model, {.batch = 16});
  network.initialise(1);
  TrainingOptions options{.epochs = 50};
  options.rates.rate = 1e30;
  const std::string error = error_of([&] { train(network, set, options, {}); }, ErrorKind::environment);
  EXPECT_NE(error.find(": a number is not finite, first in layer "), std::string::npos) << error;
  for (const float one : network.parameters(0)) EXPECT_TRUE(std::isfinite(one));
  // It goes on with parameters that are drawn anew, or set.
  network.initialise(1);
  options.epochs = 1, options.rates.rate = 0.01;
  train(network, set, options, {});
  // The last step's parameters are too large for outputs that are finite.
  network.set_parameters(2, std::vector<float>(static_cast<std::size_t>(model.layers[2].parameters()), 3e38f));
  const std::string found = error_of([&] { evaluate(network, set, set.test); }, ErrorKind::environment);
  EXPECT_NE(found.find("image 0: an output is not finite"), std::string::npos) << found;
}

// The step's own losses are looked at, and not the sums over the epoch: f16 gradients of 128 times the loss, by weights
// of 30000, leave the range behind a loss that is finite.
TEST(Training, SumsThatAreNotFiniteHideNoLayer) {
  const Dataset set = stripes(100, 9);
  const Model model = parse_model("input 1 12 12\nconv 1 3x3 pad 1\ntanh\ndense 3\n", "stripes");
  for (const std::string& id : devices_here()) {
    Network network(Context({.device = id, .threads = 1}), model, {.batch = 4, .precision = Precision::f16});
    std::vector<float> weights(static_cast<std::size_t>(model.layers[2].parameters()), 30000);
    std::fill(weights.begin() + 144, weights.begin() + 288, -30000.0f);
    network.set_parameters(2, weights);
    const std::vector<float> endless(4, std::numeric_limits<float>::infinity());
    const auto spoil = [&](std::int64_t, std::int64_t) {
      network.state().queue.upload(network.state().losses, 0, endless.data(), 16).wait();
      return true;
    };
    const std::string error =
        error_of([&] { train(network, set, {.epochs = 9}, {.progress = spoil}); }, ErrorKind::environment);
    EXPECT_NE(error.find("epoch 1, step 1: a number is not finite, first in layer 3 (dense 3), backward-data"),
              std::string::npos)
        << id << ": " << error;
  }
}

// Gradients of the dense layer are finite, and leave nothing of its weights: made again, the step stays in range.
TEST(Training, AStepThatIsFiniteWhenMadeAgainIsSaid) {
  const Dataset set = stripes(100, 9);
  const Model model = parse_model("input 1 12 12\nconv 1 3x3 pad 1\ntanh\ndense 3\n", "stripes");
  for (const std::string& id : devices_here()) {
    Network network(Context({.device = id, .threads = 1}), model, {.batch = 4, .precision = Precision::f16});
    std::vector<float> weights(static_cast<std::size_t>(model.layers[2].parameters()), 1500);
    std::fill(weights.begin() + 144, weights.begin() + 288, -1500.0f);
    network.set_parameters(2, weights);
    TrainingOptions options{.epochs = 1};
    options.rates = {.rate = 1, .momentum = 0, .l2 = 1};
    const std::string error = error_of([&] { train(network, set, options, {}); }, ErrorKind::environment);
    EXPECT_NE(error.find("epoch 1, step 1: a number is not finite, first in the gradient, which is finite when the "
                         "step is made again; no later step changed a parameter"),
              std::string::npos)
        << id << ": " << error;
  }
}

TEST(Training, HooksStopIt) {
  const Dataset set = stripes(100, 9);
  const Model model = parse_model("input 1 12 12\ndense 3\n", "stripes");
  Network network(Context({.device = "cpu", .threads = 1}), model, {.batch = 16});
  network.initialise(1);
  int epochs = 0;
  train(network, set, {.epochs = 9}, {.epoch = [&](const EpochReport&) { return ++epochs < 2; }});
  EXPECT_EQ(epochs, 2);
  std::int64_t last = -1;
  train(network, set, {.epochs = 9}, {.progress = [&](std::int64_t done, std::int64_t all) {
          EXPECT_EQ(all, 6);
          return (last = done) < 3;
        }});
  EXPECT_EQ(last, 3);
  EXPECT_THROW(train(network, set, {},
                     {.progress = [](std::int64_t, std::int64_t) -> bool { throw std::runtime_error("a hook"); }}),
               std::runtime_error);
  EXPECT_EQ(evaluate(network, set, set.test).images, 9);
}

TEST(Training, SetsThatLieAreRefused) {
  Dataset set = stripes(100, 9);
  Network network(Context({.device = "cpu", .threads = 1}), parse_model("input 1 12 12\ndense 3\n", "net"),
                  {.batch = 16});
  network.initialise(1);
  const auto refusal = [&](const auto& call) { return error_of(call, ErrorKind::bad_input); };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  set.test.labels[4] = 3;
  expect(refusal([&] { evaluate(network, set, set.test); }), "label 3 of image 4: its 3 classes are counted from 0");
  set.train.labels[7] = 200;
  expect(refusal([&] { train(network, set, {}, {}); }), "label 200 of image 7");
  set.train.labels[7] = 0;
  set.train.pixels.pop_back();
  expect(refusal([&] { train(network, set, {}, {}); }),
         "100 images of 144 bytes are said to be there, with 14399 bytes");
}

TEST(Training, PixelsAreStandardised) {
  Dataset set{.name = "two", .channels = 2, .height = 1, .width = 2, .classes = {"a"}};
  set.train.count = 2;
  set.train.pixels = {0, 100, 7, 7, 200, 100, 7, 7};
  set.train.labels = {0, 0};
  const Standard standard = standard_of(set);
  EXPECT_DOUBLE_EQ(standard.mean[0], 100.0 / 255);
  EXPECT_DOUBLE_EQ(standard.deviation[0], std::sqrt(5000.0) / 255);
  EXPECT_DOUBLE_EQ(standard.mean[1], 7.0 / 255);
  EXPECT_EQ(standard.deviation[1], 0);
}

TEST(Training, WhatDoesNotFitIsSaid) {
  const Dataset set = stripes(100, 9);
  const Context context({.device = "cpu", .threads = 1});
  const auto refusal = [&](const char* text, std::int64_t batch) {
    return error_of(
        [&] {
          Network network(context, parse_model(text, "net"), {.batch = batch});
          network.initialise(1);
          train(network, set, {}, {});
        },
        ErrorKind::bad_input);
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refusal("input 1 12 11\ndense 3\n", 4),
         "stripes has images of 1 x 12 x 12, and the model net takes 1 x 12 x 11");
  expect(refusal("input 1 12 12\ndense 2\n", 4), "stripes has 3 classes, and the model net has 2 outputs");
  expect(refusal("input 1 12 12\ndense 3\n", 101),
         "a batch of 101 images, and stripes has 100 for training: make it smaller");
  expect(refusal("input 1 12 12\ndense 3\n", 0), "a batch of 0 images");
  expect(refusal("input 1 12 12\nrelu\n", 1), "no layer has parameters");
  Network network(context, parse_model("input 1 12 12\ndense 3\n", "net"), {.batch = 2});
  expect(error_of(
             [&] {
               network.set_parameters(0, {1, 2});
             },
             ErrorKind::bad_input),
         "has 435 parameters, and 2 are given");
}

}  // namespace
}  // namespace omniconv::network_tests
