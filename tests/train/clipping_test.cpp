// Networks whose gradients are clipped by their norm: steps against the same written out in double precision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "core/philox.h"
#include "devices_testing.h"
#include "omniconv/training.h"

namespace omniconv::clipping_tests {
namespace {

// In 16 bits gamma and beta have an array of their own.
constexpr const char* model_text =
    "input 2 9 8\nconv 5 3x3 pad 1 nobias\nbatchnorm\nrelu\nmaxpool 2x2\nconv 4 3x2 stride 2\ntanh\ndense 3\n";
constexpr std::int64_t batch = 4;

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  explicit Batch(const Model& model) {
    PhiloxStream stream(5, PhiloxUse::order, 1);
    for (std::int64_t i = 0; i < batch * model.input.elements(); ++i)
      images.push_back(static_cast<float>(stream.word(static_cast<std::uint64_t>(i)) >> 8) * 0x1p-23f - 1);
    for (std::int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::int32_t>(i % model.classes()));
  }
};

std::int32_t step(Network& network, const Batch& data, const Network::Rates& rates) {
  std::vector<float> losses(batch);
  std::int32_t stop = -1;
  network.step(data.images.data(), data.labels.data(), rates, losses.data(), &stop).wait();
  return stop;
}

// Of all tensors whose names begin so, one after the other.
std::vector<float> numbers_of(Network& network, const std::string& begin) {
  std::vector<NamedTensor> tensors;
  network.read_tensors(tensors).wait();
  std::vector<float> all;
  for (const NamedTensor& one : tensors)
    if (one.name.starts_with(begin) && one.name.find(".running_") == std::string::npos)
      all.insert(all.end(), one.values.begin(), one.values.end());
  return all;
}

std::vector<float> gradient_of(const Network& network) {
  std::vector<float> all;
  for (std::size_t i = 0; i < network.model().layers.size(); ++i) {
    const std::vector<float> own = network.gradients(i);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

double norm_of(const std::vector<float>& g) {
  double sum = 0;
  for (const double one : g) sum += one * one;
  return std::sqrt(sum);
}

// torch.nn.utils.clip_grad_norm_
double coefficient(double norm, double most) {
  return std::min(most / (norm + 1e-6), 1.0);
}

// From momenta of 0 the first step's momentum is the gradient that it takes: clipped by the norm of all, then number by
// number, then with l2. The factor is off by the bound that norm states of 36 additions, 21 epsilon, the product and
// its sum with l2 * w by one more each.
TEST(ClippedNetworks, StepsTakeTheClippedGradient) {
  const Model model = parse_model(model_text, "small");
  const Batch data(model);
  for (const std::string& id : devices_here())
    for (const Precision precision : {Precision::f32, Precision::f16, Precision::bf16}) {
      Network network(Context({.device = id, .threads = 2}), model,
                      {.batch = batch, .clips_norm = true, .precision = precision});
      network.initialise(3);
      ASSERT_EQ(step(network, data, {.rate = 0}), 0) << id;
      const std::vector<float> g = gradient_of(network), w = numbers_of(network, "layers.");
      const double norm = norm_of(g);
      ASSERT_GT(norm, 0.1) << id;
      ASSERT_EQ(w.size(), g.size());
      for (const double share : {0.5, 1.5, 1e-3})
        for (const bool with_all : {false, true}) {
          const std::string what = fmt::format("{}, precision {}, {}", id, static_cast<int>(precision), share);
          const double most = share * norm;
          Network::Rates rates{.rate = 0, .clip_norm = most};
          if (with_all) rates.l2 = 0.125, rates.clip = 0.1 * std::min(most, norm);
          network.reset_optimiser();
          ASSERT_EQ(step(network, data, rates), 0) << what;
          ASSERT_EQ(gradient_of(network), g) << what;  // as it was found
          const std::vector<float> m = numbers_of(network, "momentum.");
          ASSERT_EQ(m.size(), g.size()) << what;
          bool is_clipped = false;
          for (std::size_t i = 0; i < g.size(); ++i) {
            const double clipped = g[i] * coefficient(norm, most),
                         expected = std::clamp(clipped, -rates.clip, rates.clip) + rates.l2 * w[i];
            is_clipped = is_clipped || std::fabs(clipped) > rates.clip;
            ASSERT_NEAR(m[i], expected, 23 * 0x1p-23 * (std::fabs(clipped) + std::fabs(rates.l2 * w[i])))
                << what << ", " << i;
          }
          EXPECT_EQ(is_clipped, with_all) << what;
        }
    }
}

// Three steps in double precision, of the gradients that the network finds. With these of magnitude up to 2, as the
// parameters, and momenta up to 4, a momentum is off by half of what it was, 22 epsilon of the gradient and a rounding:
// less than 92 epsilon, of which a quarter reaches the parameter, that is rounded once more.
TEST(ClippedNetworks, StepsAfterStep) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  const Batch data(model);
  for (const std::string& id : devices_here()) {
    Network network(Context({.device = id, .threads = 2}), model, {.batch = batch, .clips_norm = true});
    network.initialise(3);
    std::vector<float> w = network.parameters(0);
    std::vector<double> expected(w.begin(), w.end()), m(w.size(), 0);
    double allowed = 0;
    bool is_clipped = false, is_not = false;
    for (const double most : {0.25, 100.0, 0.5}) {
      ASSERT_EQ(step(network, data, {.rate = 0.25, .momentum = 0.5, .clip_norm = most}), 0) << id;
      const std::vector<float> g = network.gradients(0);
      const double factor = coefficient(norm_of(g), most);
      (factor < 1 ? is_clipped : is_not) = true;
      allowed += (23 + 2) * 0x1p-23;
      const std::vector<float> after = network.parameters(0);
      for (std::size_t i = 0; i < g.size(); ++i) {
        ASSERT_LE(std::fabs(g[i]), 2) << id;
        ASSERT_LE(std::fabs(after[i]), 2) << id;
        m[i] = 0.5 * m[i] + g[i] * factor, expected[i] -= 0.25 * m[i];
        EXPECT_NEAR(after[i], expected[i], allowed) << id << ", most " << most << ", " << i;
      }
    }
    EXPECT_TRUE(is_clipped && is_not) << id;
  }
}

std::vector<std::string> problems_of(const Network& network) {
  std::vector<std::string> problems;
  for (const NetworkStep& one : network.steps()) problems.push_back(one.problem);
  return problems;
}

// All norms before all updates; without the option none, and the updates as ever.
TEST(ClippedNetworks, HaveTheirNormsBeforeTheUpdates) {
  const Model model = parse_model(model_text, "small");
  for (const auto& [precision, norms, updates, plain] :
       {std::tuple{Precision::f32, std::vector<std::string>{"norm n"},
                   std::vector<std::string>{"update scaled guarded n"}, std::vector<std::string>{"update guarded n"}},
        {Precision::f16,
         {"norm f16 n", "norm acc n"},
         {"update scaled guarded f16 n", "update scaled guarded n"},
         {"update scaled guarded f16 n", "update scaled guarded n"}},
        {Precision::bf16,
         {"norm bf16 n", "norm acc n"},
         {"update scaled guarded bf16 n", "update scaled guarded n"},
         {"update guarded bf16 n", "update guarded n"}}}) {
    const Context context({.device = "cpu", .threads = 1});
    const Network clips(context, model, {.batch = batch, .clips_norm = true, .precision = precision}),
        does_not(context, model, {.batch = batch, .precision = precision});
    const std::vector<std::string> with = problems_of(clips), without = problems_of(does_not);
    ASSERT_EQ(with.size(), without.size() + norms.size());
    const std::size_t before = without.size() - updates.size();
    for (std::size_t i = 0; i < before; ++i) EXPECT_EQ(with[i], without[i]);
    for (std::size_t i = 0; i < norms.size(); ++i) {
      EXPECT_TRUE(with[before + i].starts_with(norms[i])) << with[before + i];
      EXPECT_EQ(clips.steps()[before + i].what, "norm");
      EXPECT_EQ(clips.steps()[before + i].layer, model.layers.size());
    }
    for (std::size_t i = 0; i < updates.size(); ++i) {
      EXPECT_TRUE(with[before + norms.size() + i].starts_with(updates[i])) << with[before + norms.size() + i];
      EXPECT_TRUE(without[before + i].starts_with(plain[i])) << without[before + i];
    }
    EXPECT_GT(clips.memory_bytes(), does_not.memory_bytes());
  }
}

// A network on a rung of the classic study has no rung of norm: our own serves, and the update's takes its factor.
TEST(ClippedNetworks, OnARung) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  const Batch data(model);
  for (const std::string& id : devices_here()) {
    if (id == "cpu") continue;
    std::vector<float> parameters[2];
    for (const Rung rung : {Rung::naive, Rung::own}) {
      Network network(Context({.device = id}), model, {.batch = batch, .clips_norm = true, .rungs = {.rung = rung}});
      network.initialise(3);
      EXPECT_EQ(network.steps()[network.steps().size() - 2].solver, "norm/direct/gpu.1");
      ASSERT_EQ(step(network, data, {.rate = 0.25, .clip_norm = 0.25}), 0);
      parameters[rung == Rung::own] = network.parameters(0);
    }
    // Gradients of 8 terms of at most 1, and the norm's bound.
    for (std::size_t i = 0; i < parameters[0].size(); ++i)
      EXPECT_NEAR(parameters[0][i], parameters[1][i], 64 * 0x1p-23) << id;
  }
}

// A gradient that is not finite changes no parameters of either array.
TEST(ClippedNetworks, StopAsAWhole) {
  const Model model = parse_model(model_text, "small");
  Batch data(model);
  for (const std::string& id : devices_here())
    for (const Precision precision : {Precision::f32, Precision::f16, Precision::bf16}) {
      Network network(Context({.device = id, .threads = 2}), model,
                      {.batch = batch, .clips_norm = true, .precision = precision});
      network.initialise(3);
      data.labels[0] = 0;
      ASSERT_EQ(step(network, data, {.rate = 0.25, .clip_norm = 0.5}), 0) << id;
      const std::vector<float> before = numbers_of(network, ""), w = numbers_of(network, "layers.");
      data.labels[0] = 99;
      for (const double most : {0.5, std::numeric_limits<double>::infinity()})
        EXPECT_EQ(step(network, data, {.rate = 0.25, .clip_norm = most}), 2) << id;
      EXPECT_EQ(numbers_of(network, "layers."), w) << id;
      EXPECT_EQ(numbers_of(network, ""), before) << id;
    }
}

// Of logits of 0 and images of 2^80 all numbers are finite, and the squares of gradients not.
TEST(ClippedNetworks, StopWhereTheNormLeavesTheRange) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  Batch data(model);
  std::fill(data.images.begin(), data.images.end(), 0x1p80f);
  for (const std::string& id : devices_here())
    for (const bool clips : {false, true}) {
      Network network(Context({.device = id, .threads = 2}), model, {.batch = batch, .clips_norm = clips});
      EXPECT_EQ(step(network, data, {.rate = 1, .momentum = 0}), clips ? 1 : 0) << id;
      for (const float g : network.gradients(0)) EXPECT_TRUE(std::isfinite(g)) << id;
      for (const float w : network.parameters(0)) EXPECT_TRUE(clips ? w == 0 : std::isfinite(w)) << id;
    }
}

TEST(ClippedNetworks, RefuseWhatIsNoNorm) {
  const Model model = parse_model("input 2 3 3\ndense 3\n", "flat");
  const Batch data(model);
  const Context context({.device = "cpu", .threads = 1});
  Network clips(context, model, {.batch = batch, .clips_norm = true}), does_not(context, model, {.batch = batch});
  for (const double most : {-1.0, std::nan("")})
    EXPECT_NE(error_of([&] { step(clips, data, {.clip_norm = most}); }, ErrorKind::bad_input)
                  .find(fmt::format("gradients are clipped to a norm of {}: must be at least 0", most)),
              std::string::npos);
  EXPECT_NE(error_of([&] { step(does_not, data, {.clip_norm = 1}); }, ErrorKind::bad_input).find("clips_norm"),
            std::string::npos);
  EXPECT_EQ(clips.updates(), 0);
  EXPECT_EQ(step(clips, data, {.clip_norm = 0}), 0);
}

}  // namespace
}  // namespace omniconv::clipping_tests
