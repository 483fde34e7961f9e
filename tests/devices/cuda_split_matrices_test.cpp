// Matrix products on the matrix units of a device: every form of their tiles, and numbers of any range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../list_testing.h"
#include "checking/verify.h"
#include "float_arrays.h"
#include "gpu_testing.h"
#include "omniconv/gemm.h"
#include "omniconv/plan.h"
#include "operations/random.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* product_solver = "gemm/split/gpu.1";

GemmProblem gemm_problem(const std::string& text) {
  return get<GemmProblem>(parse_problem("gemm " + text));
}

class SplitProducts : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (device == nullptr) return;
    const int capability = device->facts().compute_capability;
    if (capability != 90) GTEST_SKIP() << "the solver is for compute capability 9.0, and the device has " << capability;
  }

  void expect_right(const Problem& problem, const std::string& tuning = {}, bool is_relative = false) const {
    const Context context(device);
    for (const checking::VerifyResult& result :
         checking::verify(context, problem,
                          {.solver = {.solver = product_solver, .relative_error = is_relative, .tuning = tuning},
                          .sampled = true,
                          .samples = 2000}))
      EXPECT_EQ(result.status, checking::Status::ok) << to_text(problem) << ' ' << tuning << ": " << result.reason;
  }
};

TEST_F(SplitProducts, EveryForm) {
  int number = 0;
  constexpr const char* types[] = {"f32", "bf16", "tf32", "f16"};  // each meets every extent
  for (const char* const transposition : {"nn", "nt", "tn", "tt"})
    for (const int m : {1, 17, 129, 257})
      for (const int n : {1, 17, 129, 257})
        for (const int k : {1, 17, 129, 257}) {
          const char* const type = types[(number + number / 4 + number / 16) % 4];
          ++number;
          expect_right(parse_problem(fmt::format("gemm {} {} m{}n{}k{}", type, transposition, m, n, k)));
        }
}

TEST_F(SplitProducts, ListedProblems) {
  for (const char* const list : {"gemm.txt", "gpu-gemm.txt"})
    for (GemmProblem problem : listed_problems<GemmProblem>(list)) {
      if (problem.type == DataType::f64) continue;
      for (const DataType type : {DataType::f32, DataType::tf32, DataType::f16, DataType::bf16}) {
        problem.type = type;
        expect_right(problem);
      }
    }
}

TEST_F(SplitProducts, EveryTuning) {
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "tile_n=128 resident=1 parts=3 shared=0 raw=0",
        "tile_n=64 resident=1 parts=2 shared=0 raw=0", "tile_n=64 resident=2 parts=1 shared=0 raw=0",
        "tile_n=32 resident=1 parts=4 shared=0 raw=0", "tile_n=32 resident=2 parts=3 shared=0 raw=0"}) {
    // Columns that lie side by side come by sixty-fours, where they are more than 32.
    const bool are_few = std::string_view(tuning).starts_with("tile_n=32");
    for (const char* problem : {are_few ? "gemm f32 nn m700n30k900" : "gemm f32 nn m700n500k900",
                                "gemm f32 tt m300n257k1025batch3", "gemm bf16 nt m700n500k904"})
      expect_right(parse_problem(problem), tuning);
  }
}

// Of one product tiles have 256 columns, too.
TEST_F(SplitProducts, WideTiles) {
  for (const char* tuning :
       {"tile_n=256 resident=1 parts=1 shared=0 raw=0", "tile_n=256 resident=1 parts=3 shared=0 raw=0"})
    for (const char* problem : {"gemm bf16 nn m700n504k904", "gemm f16 nt m300n257k1025batch3",
                                "gemm tf32 tn m300n600k900", "gemm bf16 tt m1000n1000k1000"})
      expect_right(parse_problem(problem), tuning);
}

// Tiles of several rounds, in bands that are not whole, of many steps.
TEST_F(SplitProducts, LargeProducts) {
  for (const char* problem :
       {"gemm f32 nn m4000n3000k2048", "gemm f32 tn m2500n4100k1000", "gemm bf16 nt m4096n4096k4096",
        "gemm f16 tt m3000n4000k2000", "gemm f16 nn m3000n4000k2000", "gemm bf16 tn m2000n2008k1000",
        "gemm bf16 nn m513n515k517batch2", "gemm f32 nt m200n100k200000"})
    expect_right(parse_problem(problem));
}

// c by a solver.
std::vector<float> made_by(const Context& context, const GemmProblem& problem, const char* id,
                           const std::vector<float>& a, const std::vector<float>& b, double alpha,
                           bool is_relative = false) {
  Queue queue = context.make_queue();
  const auto put = [&](const std::vector<float>& values) { return uploaded(context, queue, values, problem.type); };
  const GemmPlan plan(context, problem, {.solver = id, .relative_error = is_relative});
  const std::vector<float> c(static_cast<std::size_t>(problem.batch * problem.m * problem.n));
  GemmRun run{.a = put(a), .b = put(b), .c = put(c), .alpha = alpha};
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  plan.run(queue, run).wait();
  return downloaded(queue, run.c.buffer, problem.type);
}

class SplitProductRanges : public SplitProducts {
 protected:
  // Of the result NaN and infinities are those of the definition, the rest lies within the bound.
  void expect_as_defined(const GemmProblem& problem, const std::vector<float>& a, const std::vector<float>& b,
                         double alpha = 1, bool is_relative = false) const {
    const Context context(device), cpu({.device = "cpu"});
    const char* const reference = "gemm/double/cpu.1";
    const std::vector<float> found = made_by(context, problem, product_solver, a, b, alpha, is_relative),
                             wanted = made_by(cpu, problem, reference, a, b, alpha);
    const auto magnitudes = [](std::vector<float> values) {
      for (float& value : values) value = std::isfinite(value) ? std::fabs(value) : 0;
      return values;
    };
    const std::vector<float> of_a = magnitudes(a), of_b = magnitudes(b),
                             sums = made_by(cpu, problem, reference, of_a, of_b, std::fabs(alpha));
    // Products of 16-bit numbers stay in the units to the end, which cut off up to five units of 16 of them; the result
    // and the definition's are both rounded to the type.
    const bool is_f32 = size_of(problem.type) == 4;
    const double terms = static_cast<double>(problem.k),
                 units = is_relative ? units_of(context, problem, {product_solver, true})
                         : is_f32    ? 64
                                     : 64 + 5 * terms / 16,
                 of_type = is_f32 ? 0 : 0x1p-7,
                 absolute = is_f32 && !is_relative
                                ? std::fabs(alpha) * terms * 0x1p-38 * static_cast<double>(largest(of_a)) *
                                      static_cast<double>(largest(of_b))
                                : 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!std::isfinite(wanted[i])) {
        if (std::isnan(wanted[i]))
          ASSERT_TRUE(std::isnan(found[i])) << to_text(problem) << " at " << i << ": " << found[i];
        else
          ASSERT_EQ(found[i], wanted[i]) << to_text(problem) << " at " << i;
        continue;
      }
      ASSERT_TRUE(std::isfinite(found[i])) << to_text(problem) << " at " << i << ": " << found[i];
      const double allowed = units * 0x1p-23 * static_cast<double>(sums[i]) + absolute +
                             of_type * std::fabs(static_cast<double>(wanted[i])) + 0x1p-133;
      ASSERT_NEAR(found[i], wanted[i], allowed) << to_text(problem) << " at " << i;
    }
  }
  static std::int64_t elements_of_a(const GemmProblem& p) { return p.batch * p.m * p.k; }
  static std::int64_t elements_of_b(const GemmProblem& p) { return p.batch * p.k * p.n; }
};

TEST_F(SplitProductRanges, LargeAndSmall) {
  constexpr std::pair<float, float> scales[] = {
      {0x1p100f, 0x1p-110f}, {0x1p-70f, 0x1p-60f},  // results below the normal range
      {0x1p-140f, 0x1p120f},                        // numbers below it
      {0x1p-149f, 1.0f},     {0x1p70f, 0x1p70f},    // results beyond it
      {0.0f, 1.0f},          {0.0f, 0.0f}};
  for (const char* const text : {"f32 nn m40n36k80", "f32 tt m130n20k129batch2", "f32 nt m33n17k2000"})
    for (const auto& [of_a, of_b] : scales) {
      const GemmProblem problem = gemm_problem(text);
      expect_as_defined(problem, randoms(elements_of_a(problem), 1, of_a), randoms(elements_of_b(problem), 2, of_b));
    }
}

TEST_F(SplitProductRanges, LargestBesideSmallest) {
  for (const char* const text : {"f32 nn m40n36k80", "f32 tn m40n36k80", "f32 nt m70n50k300batch2"}) {
    const GemmProblem problem = gemm_problem(text);
    std::vector<float> a = randoms(elements_of_a(problem), 1, 1), b = randoms(elements_of_b(problem), 2, 0x1p-20f);
    a[7] = 0x1p127f, a[100] = 0x1p-126f, b[5] = 0x1p-126f;
    expect_as_defined(problem, a, b);
  }
}

TEST_F(SplitProductRanges, InfinitiesAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const char* const text : {"f32 nn m40n36k80", "f32 tt m130n20k129batch2", "f32 nt m20n30k5000"})
    for (const float odd : {infinity, -infinity, none}) {
      const GemmProblem problem = gemm_problem(text);
      std::vector<float> a = randoms(elements_of_a(problem), 1, 1), b = randoms(elements_of_b(problem), 2, 1);
      a[a.size() / 2] = odd;
      expect_as_defined(problem, a, b);
      b[b.size() / 3] = -odd;
      expect_as_defined(problem, a, b, -0.75);
      a[a.size() / 2] = 0;
      expect_as_defined(problem, a, b);
    }
}

// bf16 has sums beyond fp32's range, and such that leave it on their way: of whole tiles, and of parts.
TEST_F(SplitProductRanges, NumbersOfSixteenBits) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const char* const text : {"bf16 nn m140n136k80", "bf16 tt m130n20k129batch2", "bf16 nt m20n30k5000"}) {
    const GemmProblem problem = gemm_problem(text);
    const std::vector<float> a = randoms(elements_of_a(problem), 1, 1), b = randoms(elements_of_b(problem), 2, 1);
    for (const float odd : {infinity, -infinity, none}) {
      std::vector<float> with_odd = a;
      with_odd[a.size() / 2] = odd;
      expect_as_defined(problem, with_odd, b, -0.75);
    }
    for (const auto& [of_a, of_b] : {std::pair{0x1p70f, 0x1p70f}, {0x1p66f, 0x1p61f}})
      expect_as_defined(problem, randoms(elements_of_a(problem), 1, of_a), randoms(elements_of_b(problem), 2, of_b));
  }
}

// Of large arrays a sample is looked at: wherever the largest number is, and whatever it is.
TEST_F(SplitProductRanges, NumbersThatNoSampleHas) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const char* const text : {"f32 nn m8192n16k2048", "f32 tt m8192n16k2048", "f32 nt m16n8192k2048"}) {
    const GemmProblem problem = gemm_problem(text);
    for (const float large : {3.0f, 0x1p20f, 0x1p120f, infinity, none}) {
      std::vector<float> a = randoms(elements_of_a(problem), 1, 1), b = randoms(elements_of_b(problem), 2, 1);
      std::vector<float>& sampled = a.size() > b.size() ? a : b;
      for (const std::size_t at : {std::size_t{230}, std::size_t{1234567}}) sampled[at] = large;
      expect_as_defined(problem, a, b);
    }
  }
}

TEST_F(SplitProductRanges, Alpha) {
  for (const char* const text : {"f32 nn m140n136k80", "f32 tt m30n20k5000"})
    for (const double alpha : {0.0, -1.0, 0.3, 1e6, 0x1p-100}) {
      const GemmProblem problem = gemm_problem(text);
      expect_as_defined(problem, randoms(elements_of_a(problem), 1, 1), randoms(elements_of_b(problem), 2, 1), alpha);
    }
}

// Six products of three parts of bf16, where errors are to be relative.
TEST_F(SplitProducts, OfThreeParts) {
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "tile_n=128 resident=1 parts=3 shared=0 raw=0",
        "tile_n=64 resident=1 parts=2 shared=0 raw=0", "tile_n=32 resident=1 parts=4 shared=0 raw=0"}) {
    const bool are_few = std::string_view(tuning).starts_with("tile_n=32");
    for (const char* problem :
         {are_few ? "gemm f32 nn m700n30k900" : "gemm f32 nn m700n500k900", "gemm f32 tt m300n257k1025batch3",
          are_few ? "gemm f32 tn m130n32k700" : "gemm f32 tn m130n140k700", "gemm tf32 nt m257n129k600batch2"})
      expect_right(parse_problem(problem), tuning, true);
  }
  for (const char* problem : {"gemm f32 nn m1n1k1", "gemm f32 nn m4000n3000k2048", "gemm f32 nt m200n100k200000"})
    expect_right(parse_problem(problem), {}, true);
}

// Rows of a and columns of b from 2^-(span / 2) to 2^(span / 2): by parts up to 2^96, by multiply-adds beyond.
TEST_F(SplitProductRanges, RelativeErrors) {
  for (const int span : {0, 40, 70, 90, 100, 120}) {
    const GemmProblem problem = gemm_problem("f32 nt m40n36k300");
    std::vector<float> a = randoms(40 * 300, 1, 0.5f), b = randoms(36 * 300, 2, 0.5f);
    for (auto& [values, rows] : {std::pair(&a, 40), std::pair(&b, 36)})
      for (std::size_t i = 0; i < values->size(); ++i) {
        float& value = (*values)[i];
        value += value < 0 ? -0.5f : 0.5f;
        value = std::ldexp(value, static_cast<int>(i / 300) * span / (rows - 1) - span / 2);
      }
    a[7] = b[8] = 0;
    expect_as_defined(problem, a, b, 1, true);
    expect_as_defined(problem, a, b, -0.75, true);
  }
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [of_a, of_b] : {std::pair(0x1p100f, 0x1p-110f), std::pair(0x1p-70f, 0x1p-60f),
                                   std::pair(0x1p-149f, 1.0f), std::pair(0x1p70f, 0x1p70f), std::pair(0.0f, 1.0f)})
    for (const char* const text : {"f32 nn m40n36k80", "f32 tt m130n20k129batch2"}) {
      const GemmProblem problem = gemm_problem(text);
      std::vector<float> a = randoms(elements_of_a(problem), 1, of_a), b = randoms(elements_of_b(problem), 2, of_b);
      expect_as_defined(problem, a, b, 1, true);
      for (const float odd : {infinity, none}) {
        a[a.size() / 2] = odd;
        expect_as_defined(problem, a, b, 1, true);
      }
    }
}

// Nothing is read back and nothing allocated, so that a recording gives what a run gives: with other numbers in the
// arrays, and another alpha.
TEST_F(SplitProducts, IsReplayed) {
  const Context context(device);
  Queue queue = context.make_queue();
  for (const char* const text : {"f32 nn m200n150k300", "f32 tt m64n64k20000", "tf32 tn m100n90k80batch2",
                                 "bf16 nt m200n136k304", "f16 nn m130n70k90"}) {
    const GemmProblem problem = gemm_problem(text);
    const std::int64_t size = size_of(problem.type);
    const GemmPlan plan(context, problem, {.solver = product_solver});
    Scalar alpha = Scalar::changing(1);
    GemmRun run{.a = {context.allocate(problem.batch * problem.m * problem.k * size)},
                .b = {context.allocate(problem.batch * problem.k * problem.n * size)},
                .c = {context.allocate(problem.batch * problem.m * problem.n * size)},
                .alpha = alpha};
    run.workspace = context.allocate(plan.workspace_bytes());
    const auto fill = [&](std::uint64_t seed) {
      for (const Operand* const each : {&run.a, &run.b, &run.c}) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(each->buffer.bytes()));
        operations::fill_random(problem.type, 0, ++seed, bytes);
        queue.upload(each->buffer, 0, bytes.data(), each->buffer.bytes()).wait();
      }
    };
    const auto result = [&] {
      std::vector<std::byte> bytes(static_cast<std::size_t>(run.c.buffer.bytes()));
      queue.download(bytes.data(), run.c.buffer, 0, run.c.buffer.bytes()).wait();
      return bytes;
    };
    Sequence sequence = context.make_sequence();
    plan.append(sequence, run);
    const Recording recording = context.record(std::move(sequence));
    std::vector<std::byte> before;
    for (const double value : {1.0, -2.0, 0.3}) {
      alpha.set(value);
      fill(5);
      plan.run(queue, run).wait();
      const std::vector<std::byte> wanted = result();
      fill(5);
      recording.replay(queue).wait();
      EXPECT_EQ(result(), wanted) << text;
      EXPECT_NE(wanted, before) << text;
      before = wanted;
    }
  }
}

}  // namespace
}  // namespace omniconv
