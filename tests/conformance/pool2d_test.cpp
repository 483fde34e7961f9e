// pool2d: every solver against the definition, written out once more here, to the bit; the operation's bad input.
#include "omniconv/pool2d.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/aligned_allocator.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "../error_testing.h"
#include "../list_testing.h"
#include "conformance.h"
#include "core/convert.h"
#include "matrix_testing.h"
#include "operations/pool2d/pool2d.h"
#include "solver_testing.h"

namespace omniconv {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Pool2dProblem pool(const std::string& text) {
  return get<Pool2dProblem>(parse_problem("pool2d " + text));
}

struct Array {
  Array(DataType the_type, std::int64_t count)
      : type(the_type), elements(count), bytes(static_cast<std::size_t>(count * size_of(the_type))) {}
  double operator[](std::int64_t i) const { return load_element(type, at(i)); }
  void set(std::int64_t i, double value) { store_element(type, value, at(i)); }
  std::byte* at(std::int64_t i) { return bytes.data() + i * size_of(type); }
  const std::byte* at(std::int64_t i) const { return bytes.data() + i * size_of(type); }

  DataType type;
  std::int64_t elements;
  std::vector<std::byte> bytes;
};

// All arrays of a problem, whichever way it goes.
struct Arrays {
  explicit Arrays(const Pool2dProblem& problem)
      : p(problem),
        rows(P(problem)),
        columns(Q(problem)),
        x(p.type, p.n * p.c * p.h * p.w),
        y(p.type, p.n * p.c * rows * columns),
        indices(DataType::s32, p.pooling == Pooling::maximum ? y.elements : 0) {}

  std::int64_t place(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t height,
                     std::int64_t width) const {
    return p.layout == Layout::nhwc ? ((n * height + h) * width + w) * p.c + c
                                    : ((n * p.c + c) * height + h) * width + w;
  }
  // Calls body(at in y, n, c, p, q) for every window.
  template <typename Body>
  void each_window(const Body& body) const {
    for (std::int64_t n = 0; n < p.n; ++n)
      for (std::int64_t c = 0; c < p.c; ++c)
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) body(place(n, c, i, j, rows, columns), n, c, i, j);
  }
  // Calls body(at in x, r * S + s) for the elements of a window that are inside the image, in row-major order.
  template <typename Body>
  void each_element(std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j, const Body& body) const {
    for (std::int64_t r = 0; r < p.r; ++r)
      for (std::int64_t s = 0; s < p.s; ++s) {
        const std::int64_t h = i * p.stride_h - p.pad_top + r, w = j * p.stride_w - p.pad_left + s;
        if (h >= 0 && h < p.h && w >= 0 && w < p.w)
          body(place(n, c, h, w, p.h, p.w), static_cast<std::int32_t>(r * p.s + s));
      }
  }
  double divisor(std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) const {
    double inside = 0;
    each_element(n, c, i, j, [&](std::int64_t, std::int32_t) { ++inside; });
    return p.pooling == Pooling::average ? static_cast<double>(p.r * p.s) : inside;
  }

  Pool2dProblem p;
  std::int64_t rows, columns;
  Array x, y, indices;
};

// The definition. Sums of what the tests have are exact in double precision.
void compute(Arrays& a) {
  const bool maximum = a.p.pooling == Pooling::maximum;
  std::vector<double> gradient(static_cast<std::size_t>(a.x.elements), 0.0);
  a.each_window([&](std::int64_t at, std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const double divisor = maximum ? 1 : a.divisor(n, c, i, j);
    double sum = 0, best = 0;
    std::int64_t winner = -1;
    std::int32_t index = 0;
    a.each_element(n, c, i, j, [&](std::int64_t from, std::int32_t number) {
      const double value = a.x[from];
      sum += value;
      const bool is_greater = value > best, is_first_nan = std::isnan(value) && !std::isnan(best);
      if (winner < 0 || is_greater || is_first_nan) best = value, winner = from, index = number;
      if (!a.p.backward) return;
      if (!maximum) gradient[static_cast<std::size_t>(from)] += a.y[at] / divisor;
      if (maximum && a.indices[at] == number) gradient[static_cast<std::size_t>(from)] += a.y[at];
    });
    if (a.p.backward) return;
    if (!maximum) return a.y.set(at, sum / divisor);
    std::memcpy(a.y.at(at), a.x.at(winner), static_cast<std::size_t>(size_of(a.p.type)));
    a.indices.set(at, index);
  });
  if (!a.p.backward) return;
  for (std::int64_t i = 0; i < a.x.elements; ++i) a.x.set(i, gradient[static_cast<std::size_t>(i)]);
}

// Small whole numbers with many ties, zeros of both signs, infinities, and NaN of several bits; and stretches that hold
// nothing but minus infinity. Gradients of averages are multiples of their divisors.
void fill_inputs(Arrays& a, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto value = [&](std::int64_t i) {
    const auto kind = static_cast<int>(random() % 64);
    if (a.p.pooling == Pooling::maximum && !a.p.backward && i / 50 % 7 == 3) return -infinity;
    if (kind == 0) return nan;
    if (kind < 3) return kind == 1 ? infinity : -infinity;
    if (kind < 12) return kind % 2 == 0 ? 0.0 : -0.0;
    return static_cast<double>(random() % 4) - 2;
  };
  if (!a.p.backward) {
    for (std::int64_t i = 0; i < a.x.elements; ++i) {
      a.x.set(i, value(i));
      // A signalling NaN of either sign, whose bits are to be kept.
      if (std::isnan(a.x[i]) && a.p.pooling == Pooling::maximum) {
        const std::size_t last = static_cast<std::size_t>(size_of(a.p.type)) - 1;
        std::byte* const bytes = a.x.at(i);
        if (random() % 2 == 0) bytes[last] |= std::byte{0x80};
        bytes[0] = std::byte{static_cast<unsigned char>(random() % 256)} | std::byte{1};
        if (a.p.type == DataType::f32 || a.p.type == DataType::bf16) bytes[last - 1] &= std::byte{0xBF};
        if (a.p.type == DataType::f64) bytes[last - 1] &= std::byte{0xF7};
        if (a.p.type == DataType::f16) bytes[last] &= std::byte{0xFD};
      }
    }
    return;
  }
  a.each_window([&](std::int64_t at, std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const double share = value(at), dy = share * (a.p.pooling == Pooling::maximum ? 1 : a.divisor(n, c, i, j));
    a.y.set(at, dy);
    if (std::isfinite(dy) && a.y[at] != dy) a.y.set(at, 0);  // whose share would be no whole number
    if (a.p.pooling != Pooling::maximum) return;
    std::vector<std::int32_t> inside;
    a.each_element(n, c, i, j, [&](std::int64_t, std::int32_t index) { inside.push_back(index); });
    a.indices.set(at, inside[random() % inside.size()]);
  });
}

// The outputs of a run of a solver on copies of the inputs, which begin on cache lines or behind.
Arrays result_of(const Context& context, const Arrays& inputs, const std::string& solver, std::int64_t limit = -1,
                 bool is_aligned = false) {
  Arrays a = inputs;
  Array& first = a.p.backward ? a.x : a.y;
  std::fill(first.bytes.begin(), first.bytes.end(), std::byte{0x5A});
  if (!a.p.backward) std::fill(a.indices.bytes.begin(), a.indices.bytes.end(), std::byte{0x5A});
  const Pool2dPlan plan(context, a.p, {.solver = solver, .max_workspace_bytes = limit});
  Queue queue = context.make_queue();
  std::vector<std::pair<Array*, hwy::AlignedFreeUniquePtr<std::byte[]>>> copies;
  constexpr std::int64_t size = 8;  // of an element, at most
  const std::int64_t offset = is_aligned ? 0 : size;
  const auto copied = [&](Array& array) {
    copies.emplace_back(&array, hwy::AllocateAligned<std::byte>(array.bytes.size() + size));
    std::byte* const copy = copies.back().second.get() + offset;
    std::memcpy(copy, array.bytes.data(), array.bytes.size());
    return Operand{context.borrow(copy, static_cast<std::int64_t>(array.bytes.size()))};
  };
  plan.run(queue, {.x = copied(a.x),
                   .y = copied(a.y),
                   .indices = a.indices.elements > 0 ? copied(a.indices) : Operand{},
                   .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))})
      .wait();
  for (const auto& [array, copy] : copies) std::memcpy(array->bytes.data(), copy.get() + offset, array->bytes.size());
  return a;
}

bool same_bits(const Array& a, const Array& b) {
  if (a.bytes.size() != b.bytes.size()) return false;
  return a.bytes.empty() || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}
// Which NaN a sum is, is not promised.
::testing::AssertionResult equal(const char* name, const Array& found, const Array& expected) {
  for (std::int64_t i = 0; i < found.elements; ++i)
    if (std::memcmp(found.at(i), expected.at(i), static_cast<std::size_t>(size_of(found.type))) != 0 &&
        !(std::isnan(found[i]) && std::isnan(expected[i])))
      return ::testing::AssertionFailure()
             << fmt::format("{}[{}] is {} and must be {}", name, i, found[i], expected[i]);
  return ::testing::AssertionSuccess();
}

const std::vector<std::string> solvers = {"pool2d/direct/cpu.1", "pool2d/double/cpu.1"};

void expect_defined(const Context& context, const Pool2dProblem& problem, std::uint64_t seed) {
  Arrays inputs(problem);
  fill_inputs(inputs, seed);
  Arrays expected = inputs;
  compute(expected);
  for (const std::string& solver : solvers) {
    const Arrays found = result_of(context, inputs, solver);
    const bool bits = problem.pooling == Pooling::maximum && !problem.backward;
    EXPECT_TRUE(equal("x", found.x, expected.x)) << solver << ": " << to_text(problem);
    EXPECT_TRUE(equal("y", found.y, expected.y)) << solver << ": " << to_text(problem);
    EXPECT_TRUE(!bits || same_bits(found.y, expected.y)) << solver << ": " << to_text(problem);
    EXPECT_TRUE(same_bits(found.indices, expected.indices)) << solver << ": " << to_text(problem);
  }
}

// Every pooling, pass and layout, with the types in turn.
int turn = 0;
void expect_defined_both_ways(const Context& context, const std::string& geometry) {
  for (const Pooling pooling : {Pooling::maximum, Pooling::average, Pooling::average_inside})
    for (const bool backward : {false, true})
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        Pool2dProblem problem = pool(geometry);
        problem.pooling = pooling;
        problem.backward = backward;
        problem.layout = layout;
        problem.type = std::array{DataType::f32, DataType::f16, DataType::bf16, DataType::f64}[turn++ % 4];
        expect_defined(context, problem, static_cast<std::uint64_t>(turn));
      }
}

TEST(Pool2d, EveryWindowAndStride) {
  const Context context({.device = "cpu", .threads = 2});
  turn = 0;
  for (int window = 1; window <= 7; ++window)
    for (int stride = 1; stride <= 9; stride += instrumented ? 4 : 1) {
      const int pad = std::min(window - 1, stride % 4);
      expect_defined_both_ways(
          context, fmt::format("n2c3h{}w{}r{}s{}p{}u{}", 9 + stride, 11 + window, window, window, pad, stride));
      ++turn;  // so that each type meets each pooling
    }
}

// One pixel, one window, windows of a row or a column, asymmetric padding, rows and pixels longer than what is made at
// a time, more taps than are read at a time, more planes than are turned at a time.
TEST(Pool2d, Extremes) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* geometry : {"n1c1h1w1r1s1",
                               "n3c2h1w1r3s3p1",
                               "n2c19h7w7r7s7",
                               "n1c35h6w7r4s7u2",
                               "n1c17h5w9r5s9pt2pb1",
                               "n2c3h8w13r2s5pt1pl4pr2",
                               "n1c5h9w8r3s4pb2pl3pt1pr1uh2uw3",
                               "n1c2h4w40r4s1uw3",
                               "n1c2h60w3r9s3uh5",
                               "n2c3h5w4r5s4u9223372036854775807",
                               "n1c1h2w700r2s3p1u2",
                               "n1c1h3w1300r3s5p2",
                               "n1c2h2w1200r1s90pl40u7",
                               "n1c600h3w4r2s2",
                               "n1c530h2w9r2s3p1u2",
                               "n1c1h1w5000r1s4700",
                               "n1c1h1w5000r1s300u1000",
                               "n1c2h1w9000r1s2u4100",
                               "n1c18h40w30r40s30",
                               "n1c40h9w15r2s15p1u3"})
    for (int type = 0; type < (instrumented ? 1 : 2); ++type) {
      ++turn;
      expect_defined_both_ways(context, geometry);
    }
}

// Of ones, with few values among them that decide: planes of one window, which are made in pieces.
TEST(Pool2d, LargePlanesHaveOneWinner) {
  const Context context({.device = "cpu", .threads = 2});
  using Values = std::vector<std::pair<std::int64_t, double>>;
  const Values cases[] = {{},
                          {{100, 2}, {3000, 2}},
                          {{3000, 2}, {3001, 3}, {6499, 3}},
                          {{10, infinity}, {5000, nan}},
                          {{2048, nan}, {4096, nan}, {5000, infinity}},
                          {{6499, 2}}};
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16, DataType::f64})
    for (const Values& values : cases) {
      Pool2dProblem problem = pool("n2c1h65w100r65s100");
      problem.type = type;
      Arrays inputs(problem);
      for (std::int64_t i = 0; i < inputs.x.elements; ++i) inputs.x.set(i, 1);
      for (const auto& [at, value] : values) inputs.x.set(6500 + at, value);
      Arrays expected = inputs;
      compute(expected);
      for (const std::string& solver : solvers) {
        const Arrays found = result_of(context, inputs, solver);
        EXPECT_TRUE(same_bits(found.y, expected.y)) << solver << name(type) << values.size();
        EXPECT_TRUE(same_bits(found.indices, expected.indices)) << solver << name(type) << values.size();
      }
    }
}

// Windows that f32 reads where they lie: vectors of channels with and without a rest, of columns with odd extents and
// every border, whole planes of all numbers of vectors; on any instruction set.
TEST(Pool2d, WindowsWhereTheyLieAtAnyInstructionSet) {
  const Context context({.device = "cpu", .threads = 2});
  const auto expect = [&](const std::string& geometry, Layout layout) {
    std::uint64_t seed = 1;
    for (const Pooling pooling : {Pooling::maximum, Pooling::average, Pooling::average_inside})
      for (const bool backward : {false, true}) {
        Pool2dProblem problem = pool(geometry);
        problem.pooling = pooling;
        problem.backward = backward;
        problem.layout = layout;
        expect_defined(context, problem, ++seed);
      }
  };
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    const std::int64_t step = instrumented ? 7 : 1;
    // Rows of less than a vector, of one and of two.
    std::vector<std::int64_t> widths = {4, 5, 7, 9, 14, 15, 28};
    for (std::int64_t w = 30; w < 36; w += step) widths.push_back(w);
    for (const std::int64_t w : widths)
      for (const char* window : {"r2s2", "r2s2pt1pb1", "r3s2ph2", "r3s3", "r3s3p1", "r2s3pl1", "r3s3pr2", "r3s3pl1pr2",
                                 "r2s2pl1", "r3s3pl2"})
        expect(fmt::format("n1c2h9w{}{}u2", w, window), Layout::nchw);
    expect("n1c2h7w67r1s3pl1uh3uw2", Layout::nchw);
    expect("n2c1h8w70r5s2uh1uw2", Layout::nchw);
    for (std::int64_t c = 15; c < 34; c += 3 * step)
      for (const char* window :
           {"h6w7r2s2u2", "h7w6r3s3p1u2", "h5w6r3s3p1u1", "h7w7r7s7", "h4w9r1s2uw3", "h8w8r8s8p3u5"})
        expect(fmt::format("n2c{}{}", c, window), Layout::nhwc);
    for (std::int64_t w = 1; w < 68; w += 11 * step) expect(fmt::format("n2c5h1w{0}r1s{0}", w), Layout::nchw);
    expect("n1c3h7w7r7s7", Layout::nchw);
    expect("n1c3h8w8r8s8", Layout::nchw);
    expect("n1c2h50w90r50s90", Layout::nchw);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Pool2d, AnyProblemAtAnyInstructionSet) {
  int sets = 0;
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    ++sets;
    std::mt19937_64 random(static_cast<std::uint64_t>(target));
    const auto from = [&](std::int64_t least, std::int64_t most) {
      return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
    };
    const Context context({.device = "cpu", .threads = 2});
    for (int i = 0; i < (instrumented ? 4 : 20); ++i) {
      Pool2dProblem p;
      p.n = from(1, 2), p.c = from(1, 20), p.h = from(1, 20), p.w = from(1, 60);
      p.r = from(1, std::min<std::int64_t>(p.h, 7)), p.s = from(1, std::min<std::int64_t>(p.w, 9));
      p.pad_top = from(0, p.r - 1), p.pad_bottom = from(0, p.r - 1);
      p.pad_left = from(0, p.s - 1), p.pad_right = from(0, p.s - 1);
      p.stride_h = from(1, 4), p.stride_w = from(1, 4);
      expect_defined_both_ways(context, to_text(p).substr(std::strlen("pool2d ")));
      ++turn;
    }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  EXPECT_GE(sets, (hwy::SupportedTargets() & HWY_AVX2) != 0 ? 2 : 1);
}

// Random numbers, whose sums are rounded: the bits depend neither on threads nor on the workspace, with which large
// results are made first.
TEST(Pool2d, BitsDependNeitherOnThreadsNorOnTheWorkspace) {
  const Context one({.device = "cpu", .threads = 1}), three({.device = "cpu", .threads = 3});
  for (const std::string shape :
       {"n2c5h40w60r3s3p1u2", "n3c20h7w7r7s7", "n6c50h15w13r3s3p1u2", "n6c70h14w14r2s2u2", "n16c8h128w130r3s2p1u1",
        "n8c48h131w131r3s3p1u2", "n10c48h95w96r3s3p1", "n40c2048h7w7r7s7"}) {
    if (instrumented && !shape.starts_with("n2") && !shape.starts_with("n3") && !shape.starts_with("n6")) continue;
    for (const std::string words : {"", "avg_inside ", "bwd ", "avg bwd "})
      for (const std::string layout : {"", "nhwc "}) {
        const Pool2dProblem problem = pool(words + (shape.starts_with("n16") ? "f64 " : "") + layout + shape);
        Arrays inputs(problem);
        std::mt19937_64 random(7);
        for (Array* const array : {&inputs.x, &inputs.y})
          for (std::int64_t i = 0; i < array->elements; ++i)
            array->set(i, static_cast<double>(random() >> 40) * 0x1p-23 - 1);
        for (std::int64_t i = 0; i < inputs.indices.elements; ++i)
          inputs.indices.set(i, static_cast<double>(random() % 6));
        const Arrays expected = result_of(one, inputs, solvers[0], 0);
        for (const auto& [limit, is_aligned] : {std::pair(-1, true), std::pair(-1, false), std::pair(0, true)}) {
          const Arrays found = result_of(three, inputs, solvers[0], limit, is_aligned);
          EXPECT_TRUE(same_bits(found.x, expected.x) && same_bits(found.y, expected.y) &&
                      same_bits(found.indices, expected.indices))
              << to_text(problem) << ", limit " << limit << (is_aligned ? ", aligned" : "");
        }
      }
  }
}

// The list, smaller, by every solver, with guards.
TEST(Pool2d, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  int number = 0;
  for (Pool2dProblem problem : listed_problems<Pool2dProblem>("pooling.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 2);
    problem.c = std::min<std::int64_t>(problem.c, instrumented ? 3 : 18);
    problem.h = std::min(problem.h, problem.r + 20);
    problem.w = std::min(problem.w, problem.s + 40);
    problem.backward = number % 2 == 1;
    problem.layout = Layout(number / 2 % 2);
    ++number;
    EXPECT_EQ(expect_exact_and_bounded(context, problem,
                                       {.solver = {.solver = "all"}, .sampled = instrumented, .samples = 256}),
              2)
        << to_text(problem);
  }
}

TEST(Pool2d, RefusesWhatIsNoPooling) {
  const auto refusal = [](const std::string& text) { return error_of([&] { pool(text); }); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"n1c1h4w4r6s3p0",
       "column 16: found 'r6'; the window's r is 6: must be at most h 4 + pad_top 0 + pad_bottom 0 = 4"},
      {"n1c1h4w4r3s9p1", "the window's s is 9: must be at most w 4 + pad_left 1 + pad_right 1 = 6"},
      {"n1c1h4w4r3s3p3", "column 20: found 'p3'; pad_top is 3: must be smaller than the window's r, which is 3"},
      {"n1c1h9w9r3s2pr2", "found 'pr2'; pad_right is 2: must be smaller than the window's s, which is 2"},
      {"n1c1h4w4r3s3p-1", "column 21: found '-1'; expected a number behind p"},
      {"s16 n1c1h4w4r3s3", "expected one s, and 's16' was given before"},
      {"tf32 n1c1h4w4r3s3", "column 8: found 'tf32'"},
      {"median n1c1h4w4r3s3", "column 8: found 'median'"},
      {"avgs n1c1h4w4r3s3", "did you mean avg?"},
      {"max avg n1c1h4w4r3s3", "expected one pooling, and 'max' was given before"},
      {"n1c1h4w4r3s3d2", "expected letters of n c h w r s p ph pw pt pb pl pr u uh uw"},
      {"n1c1h4w4r3s3p1ph1", "expected padding to be said in one way"},
      {"n1c1h4w4r3", "expected s (window columns)"},
      {"n1c1h4w4r3s3u0", "stride_h is 0: must be at least 1"},
      {"n1c1h65536w32768r65536s32768", "the window holds r 65536 * s 32768 elements: must be at most 2147483647"},
      {"n1c1h65536w65536r65536s65536", "the window holds r 65536 * s 65536 elements: must be at most 2147483647"},
      {"n9223372036854775807c9h4w4r2s2", "the input holds n*c*h*w"},
  };
  for (const auto& [text, part] : refused)
    EXPECT_NE(refusal(text).find(part), std::string::npos) << text << "\n  " << refusal(text);

  Pool2dProblem problem = pool("n1c1h4w4r3s3");
  problem.pad_left = -1;
  EXPECT_EQ(error_of([&] { validate(problem); }), "pool2d problem: pad_left is -1: must be at least 0");
  problem = pool("n1c1h4w4r3s3");
  for (const DataType type : {DataType::s32, DataType::u8, DataType::tf32}) {
    problem.type = type;
    EXPECT_EQ(error_of([&] { validate(problem); }),
              fmt::format("pool2d problem: type is {}: must be one of f32, f64, f16, bf16", name(type)));
  }
  problem.type = DataType::f32;
  problem.pooling = static_cast<Pooling>(7);
  EXPECT_EQ(error_of([&] { validate(problem); }),
            "pool2d problem: pooling is number 7: must be maximum, average or average_inside");
}

TEST(Pool2d, MeansAndPrints) {
  EXPECT_EQ(to_text(pool("u2 max fwd f32 nchw n1c2h9w8 s3r2 p1 \"a\"")), "pool2d n1c2h9w8r2s3p1u2 \"a\"");
  EXPECT_EQ(to_text(pool("bwd nhwc avg_inside bf16 n1c2h9w8r2s3ph1uw4")),
            "pool2d avg_inside bwd bf16 nhwc n1c2h9w8r2s3ph1uw4");
  const Pool2dProblem p = pool("avg n1c2h9w8r2s3pt1uh2");
  EXPECT_EQ(p.pooling, Pooling::average);
  EXPECT_EQ(P(p), 5);
  EXPECT_EQ(Q(p), 6);
  std::mt19937_64 random(5);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  for (int i = 0; i < 5000; ++i) {
    Pool2dProblem q;
    q.pooling = static_cast<Pooling>(from(0, 2)), q.backward = from(0, 1) == 1;
    q.type = std::array{DataType::f32, DataType::f16, DataType::bf16, DataType::f64}[random() % 4];
    q.layout = static_cast<Layout>(from(0, 1));
    q.n = from(1, 1 << 20), q.c = from(1, 99), q.h = from(7, 99), q.w = from(7, 99), q.r = from(1, 7), q.s = from(1, 7);
    q.pad_top = from(0, q.r - 1), q.pad_bottom = from(0, q.r - 1);
    q.pad_left = from(0, q.s - 1), q.pad_right = from(0, q.s - 1);
    q.stride_h = from(1, 3), q.stride_w = from(1, 3);
    const std::string text = to_text(q);
    ASSERT_EQ(get<Pool2dProblem>(parse_problem(text)), q) << text;
    ASSERT_EQ(to_text(parse_problem(text)), text);
  }
}

TEST(Pool2d, RefusesWrongArraysAndPlansThatAreGone) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  Pool2dPlan plan(context, pool("n1c1h4w4r2s2u2"));
  const Operand x{context.allocate(64)}, y{context.allocate(16)}, indices{context.allocate(16)};
  const auto message = [&](const Pool2dRun& run) { return error_of([&] { plan.run(queue, run).wait(); }); };
  EXPECT_EQ(message({.x = x, .y = y}), "the buffer of indices is missing");
  EXPECT_NE(message({.x = y, .y = y, .indices = indices}).find("the buffer of x has 16 bytes"), std::string::npos);
  EXPECT_NE(message({.x = x, .y = y, .indices = y}).find("overlap"), std::string::npos);
  EXPECT_NE(message({.x = x, .y = {y.buffer, 2}, .indices = indices}).find("y begins at byte 2"), std::string::npos);
  const Pool2dPlan kept = std::move(plan);
  EXPECT_NE(message({.x = x, .y = y, .indices = indices}), "nothing was thrown");
  EXPECT_NE(error_of([&] { (void)plan.problem(); }), "nothing was thrown");
  kept.run(queue, {.x = x, .y = y, .indices = indices}).wait();
}

// Work at the end of a sequence is the run's.
TEST(Pool2d, AppendsToSequences) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const Pool2dPlan plan(context, pool("avg n1c1h2w4r2s2u2"));
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[2] = {};
  Sequence sequence = context.make_sequence();
  plan.append(sequence, {.x = {context.borrow(x, sizeof x)},
                         .y = {context.borrow(y, sizeof y)},
                         .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))});
  queue.submit(std::move(sequence)).wait();
  EXPECT_EQ(y[0], 3.5F);
  EXPECT_EQ(y[1], 5.5F);
}

}  // namespace
}  // namespace omniconv
