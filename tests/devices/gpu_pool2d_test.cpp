// pool2d on GPU devices: every form of its kernels, every type and layout, values that are no ordinary numbers, and
// arrays that begin anywhere.
#include <cmath>
#include <cstring>
#include <limits>

#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"
#include "omniconv/pool2d.h"

namespace omniconv {
namespace {

using GpuPool2d = Gpu;

// Each costs a compilation, so that types, poolings, passes and layouts take turns; in all each meets each.
constexpr const char* geometries[] = {
    "n2c8h8w16r2s2u2",                        // vectors both ways
    "n2c12h9w16r3s3p1u2",                     // rows that windows share, windows cut by each border
    "n2c6h9w17r3s3p1u2",                      // single elements in NCHW, pairs in NHWC
    "n2c5h6w12r3s3p1",                        // windows beside windows
    "n3c50h7w7r7s7",                          // planes of odd size, whole groups of them and a rest
    "n2c65h8w8r8s8",                          // of even size
    "n2c3h1w2r1s2",                           // smaller than a vector
    "n1c3h11w20r13s13p6",                     // rows of windows in a loop
    "n2c5h10w32r2s3uh3uw4pl1",                // gaps between windows
    "n1c4h12w16r4s4pt3pb1pr2uw3",             // padding of four sizes
    "n1c2h40w50r30s40pt3pl2",                 // windows that work items share
    "n1c3h90w100r90s100",                     // the same, more of them
    "n2c4h5w6r2s2u7",                         // one window, which leaves elements out
    "n1c2h2w2500r2s1100",                     // one element after the other
    "n1c1h40000w2r20000s1uh20000pt1pb19999",  // long strides
};

void check(const Context& context, const std::string& text) {
  EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(text),
                                     {.solver = {.solver = "pool2d/direct/gpu.1"}, .sampled = true, .samples = 20000}),
            1);
}

TEST_F(GpuPool2d, EveryFormIsExactOrBounded) {
  const Context context(device);
  int number = 0, turn = 0;
  for (const char* const pooling : {"max", "avg", "avg_inside"})
    for (const char* const pass : {"fwd", "bwd"})
      for (const char* const layout : {"nchw", "nhwc"}) {
        int of_geometry = 0;
        ++turn;
        for (const char* const geometry : geometries) {
          if ((of_geometry++ + turn) % 3 != 0) continue;
          constexpr const char* types[] = {"f32", "f16", "bf16"};
          check(context, fmt::format("pool2d {} {} {} {} {}", pooling, pass, types[++number % 3], layout, geometry));
        }
      }
}

TEST_F(GpuPool2d, RefusesF64) {
  const Context context(device);
  const std::string error =
      error_of([&] { Pool2dPlan(context, get<Pool2dProblem>(parse_problem("pool2d f64 n1c1h4w4r2s2u2"))); },
               ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is pooled on the CPU, since not every GPU has double precision");
}

struct Pooled {
  std::vector<std::uint32_t> y;
  std::vector<std::int32_t> indices;
};

template <typename T>
Operand placed(const Context& context, const std::vector<T>& values, std::int64_t before) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  const std::int64_t offset = before * static_cast<std::int64_t>(sizeof(T));
  const Buffer buffer = context.allocate(bytes + offset);
  context.make_queue().upload(buffer, offset, values.data(), bytes).wait();
  return {buffer, offset};
}

template <typename T>
std::vector<T> taken(const Context& context, const Operand& from, std::size_t count) {
  std::vector<T> values(count);
  context.make_queue()
      .download(values.data(), from.buffer, from.offset_bytes, static_cast<std::int64_t>(count * sizeof(T)))
      .wait();
  return values;
}

// Of f32, whose bits are given and returned. The arrays begin so many elements behind their buffers' beginnings.
Pooled maxima(const Context& context, const std::string& text, const std::vector<std::uint32_t>& x,
              std::int64_t before = 0) {
  const auto problem = get<Pool2dProblem>(parse_problem(text));
  const auto outputs = static_cast<std::size_t>(problem.n * problem.c * P(problem) * Q(problem));
  const Pool2dPlan plan(context, problem);
  const Pool2dRun run{.x = placed(context, x, before),
                      .y = placed(context, std::vector<std::uint32_t>(outputs, 0xAAAAAAAA), before),
                      .indices = placed(context, std::vector<std::int32_t>(outputs, -7), before)};
  Queue queue = context.make_queue();
  plan.run(queue, run).wait();
  return {taken<std::uint32_t>(context, run.y, outputs), taken<std::int32_t>(context, run.indices, outputs)};
}

// In planes (NCHW) or pixels (NHWC): four windows of 2 x 2, in each form that has such windows.
TEST_F(GpuPool2d, WinnersAreTheFirstAndKeepTheirBits) {
  const Context context(device);
  constexpr std::uint32_t one = 0x3f800000, two = 0x40000000, none = 0xff800000, minus_zero = 0x80000000,
                          nan = 0x7fc12345, quiet = 0xffc00001, most = 0x7f800000;
  const std::vector<std::uint32_t> windows[] = {
      {one, two, two, one},     {none, none, none, none}, {0, minus_zero, 0, 0},          {minus_zero, 0, 0, 0},
      {most, nan, quiet, most}, {quiet, most, nan, two},  {none, none, minus_zero, none}, {two, one, one, nan},
  };
  constexpr std::int32_t winners[] = {1, 0, 0, 0, 1, 0, 2, 3};
  for (const char* const text : {"pool2d n{}c1h2w2r2s2", "pool2d nhwc n{}c1h2w2r2s2"}) {
    std::vector<std::uint32_t> x, y;
    std::vector<std::int32_t> indices;
    constexpr int windows_there = 200;  // a whole group and a rest
    for (int i = 0; i < windows_there; ++i) {
      const auto& window = windows[i % 8];
      x.insert(x.end(), window.begin(), window.end());
      y.push_back(window[static_cast<std::size_t>(winners[i % 8])]);
      indices.push_back(winners[i % 8]);
    }
    const Pooled pooled = maxima(context, fmt::format(fmt::runtime(text), windows_there), x);
    EXPECT_EQ(pooled.y, y) << text;
    EXPECT_EQ(pooled.indices, indices) << text;
  }
}

// A border of padding is no maximum, even where nothing inside is greater than minus infinity.
TEST_F(GpuPool2d, TheFirstElementInsideWinsAmongTheLowest) {
  const Context context(device);
  const std::vector<std::uint32_t> x(2 * 4 * 4, 0xff800000);
  const std::vector<std::int32_t> of_channel = {4, 3, 1, 0};
  for (const char* const text : {"pool2d n1c2h4w4r3s3p1u2", "pool2d nhwc n1c2h4w4r3s3p1u2"}) {
    const Pooled pooled = maxima(context, text, x);
    std::vector<std::int32_t> indices;
    for (const std::int32_t index : of_channel)
      if (std::string_view(text).find("nhwc") != std::string_view::npos) indices.insert(indices.end(), 2, index);
    if (indices.empty())
      for (int c = 0; c < 2; ++c) indices.insert(indices.end(), of_channel.begin(), of_channel.end());
    EXPECT_EQ(pooled.y, std::vector<std::uint32_t>(8, 0xff800000)) << text;
    EXPECT_EQ(pooled.indices, indices) << text;
  }
}

// In planes and in pixels, where the divisor is no power of two: quotients are worked out by steps that infinity would
// make NaN.
TEST_F(GpuPool2d, MeansOfInfinityAreInfinite) {
  const Context context(device);
  const float most = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> windows[] = {{1, most, 2},     {-most, 0, 0}, {most, most, -3},
                                        {most, 1, -most}, {nan, 1, 2},   {1, 2, 6}};
  const std::vector<float> means = {most, -most, most, nan, nan, 3};
  for (const char* const text :
       {"pool2d avg n{}c1h1w3r1s3", "pool2d avg nhwc n{}c1h1w3r1s3", "pool2d avg_inside n{}c1h3w1r3s1"}) {
    constexpr std::size_t windows_there = 200;  // a whole group and a rest
    std::vector<float> x;
    for (std::size_t i = 0; i < windows_there; ++i) x.insert(x.end(), windows[i % 6].begin(), windows[i % 6].end());
    const Pool2dPlan plan(context, get<Pool2dProblem>(parse_problem(fmt::format(fmt::runtime(text), windows_there))));
    const Pool2dRun run{.x = placed(context, x, 0), .y = placed(context, std::vector<float>(windows_there, -7), 0)};
    Queue queue = context.make_queue();
    plan.run(queue, run).wait();
    const std::vector<float> y = taken<float>(context, run.y, windows_there);
    for (std::size_t i = 0; i < windows_there; ++i)
      if (const float mean = means[i % 6]; std::isnan(mean))
        EXPECT_TRUE(std::isnan(y[i])) << text << ' ' << i;
      else
        EXPECT_EQ(y[i], mean) << text << ' ' << i;
  }
}

// Arrays that begin on no vector give the same bits as those that do.
TEST_F(GpuPool2d, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* const text : {"n2c4h8w16r3s3p1u2", "nhwc n2c4h8w16r3s3p1u2", "n40c5h3w3r3s3"}) {
    const auto problem = get<Pool2dProblem>(parse_problem(fmt::format("pool2d {}", text)));
    const auto elements = static_cast<std::size_t>(problem.n * problem.c * problem.h * problem.w);
    std::vector<std::uint32_t> x(elements);
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i * 7919 % 64);
    std::memcpy(x.data(), values.data(), elements * 4);
    const std::string forward = fmt::format("pool2d {}", text);
    const Pooled whole = maxima(context, forward, x), moved = maxima(context, forward, x, 3);
    EXPECT_EQ(whole.y, moved.y) << text;
    EXPECT_EQ(whole.indices, moved.indices) << text;
    Pool2dProblem backward = problem;
    backward.backward = true;
    const Pool2dPlan plan(context, backward);
    const auto gradient = [&](std::int64_t before) {
      const Pool2dRun run{.x = placed(context, std::vector<std::uint32_t>(elements, 0xAAAAAAAA), before),
                          .y = placed(context, whole.y, before),
                          .indices = placed(context, whole.indices, before)};
      Queue queue = context.make_queue();
      plan.run(queue, run).wait();
      return taken<std::uint32_t>(context, run.x, elements);
    };
    EXPECT_EQ(gradient(0), gradient(1)) << text;
  }
}

}  // namespace
}  // namespace omniconv
