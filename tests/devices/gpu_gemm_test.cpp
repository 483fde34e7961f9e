// gemm on GPUs: integers to the bit, whatever the tiles, types, strides and parts; random data within the bound; and
// not a byte outside the matrices.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "../conformance/solver_testing.h"
#include "core/convert.h"
#include "gpu_testing.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/plain/plain.h"
#include "operations/gemm/tiled/tiles.h"

namespace omniconv {
namespace {

using operations::BiasAlong;
using operations::GemmTask;

constexpr std::byte poison{0xFF};  // NaN in every type

// A matrix, or a batch of them, in a buffer: what lies around and between its rows is poison.
struct Matrices {
  std::int64_t rows, columns, ld, batch, stride;
  DataType type;
  std::int64_t size() const { return size_of(type); }
  std::int64_t at(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return matrix * stride + row * ld + column;
  }
  std::int64_t elements() const { return at(batch - 1, rows - 1, columns - 1) + 1; }
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t matrix = 0; matrix < batch; ++matrix)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) visit(matrix, row, column);
  }
};

using Bytes = std::vector<std::byte>;

struct Data {
  Bytes a, b, c, bias;
};

struct Sum {
  double value = 0, magnitude = 0;
};

class Trial {
 public:
  // Integers of at most 3 where `random` is not asked for.
  Trial(const GemmTask& the_task, bool random, unsigned seed) : task(the_task), random_(random), generator_(seed) {
    const GemmProblem& p = task.problem;
    const auto stored = [&](bool transposed, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                            std::int64_t stride) {
      return Matrices{
          transposed ? columns : rows, transposed ? rows : columns, ld, stride ? p.batch : 1, stride, p.type};
    };
    a = stored(p.transpose_a, p.m, p.k, task.lda, task.batch_a);
    b = stored(p.transpose_b, p.k, p.n, task.ldb, task.batch_b);
    c = {p.m, p.n, task.ldc, p.batch, task.batch_c, task.output};
    bias = {1, task.bias == BiasAlong::rows ? p.m : p.n, p.m + p.n, 1, 0, p.type};
    data = {filled(a), filled(b), filled(c), filled(bias)};
  }

  Sum sum_at(std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    const GemmProblem& p = task.problem;
    Sum sum;
    const auto add = [&](double term) { sum.value += term, sum.magnitude += std::fabs(term); };
    for (std::int64_t t = 0; t < p.k; ++t)
      add(load(data.a, a, matrix, p.transpose_a ? t : i, p.transpose_a ? i : t) *
          load(data.b, b, matrix, p.transpose_b ? j : t, p.transpose_b ? t : j));
    if (task.bias != BiasAlong::none) add(load(data.bias, bias, 0, 0, task.bias == BiasAlong::rows ? i : j));
    if (task.accumulate) add(load(data.c, c, matrix, i, j));
    return sum;
  }
  double stored(double value) const {
    std::byte bytes[8];
    store_element(task.output, task.relu && value < 0 ? 0.0 : value, bytes);
    return load_element(task.output, bytes);
  }
  double result(const Bytes& found, std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    return load(found, c, matrix, i, j);
  }

  GemmTask task;
  Matrices a, b, c, bias;
  Data data;

 private:
  static double load(const Bytes& from, const Matrices& of, std::int64_t matrix, std::int64_t row,
                     std::int64_t column) {
    return load_element(of.type, from.data() + of.at(of.stride ? matrix : 0, row, column) * of.size());
  }
  Bytes filled(const Matrices& of) {
    Bytes bytes(static_cast<std::size_t>(of.elements() * of.size()), poison);
    of.for_each([&](std::int64_t matrix, std::int64_t row, std::int64_t column) {
      const auto draw = static_cast<double>(generator_() % 0x10001) / 0x8000 - 1;
      store_element(of.type, random_ ? draw : std::floor(3 * draw + 0.5),
                    bytes.data() + of.at(matrix, row, column) * of.size());
    });
    return bytes;
  }

  bool random_;
  std::mt19937 generator_;
};

// What differs from the packed product of one matrix.
struct Case {
  const char* problem;
  int tile = -1;  // of gemm_tiles(); -1: as chosen
  std::int64_t parts = 1;
  std::int64_t pad = 0;  // elements behind each row
  BiasAlong bias = BiasAlong::none;
  bool accumulate = false, relu = false, f32_output = false, share_a = false, share_b = false;
};

GemmTask task_of(const Case& from) {
  const auto problem = get<GemmProblem>(parse_problem(from.problem));
  GemmTask task = operations::task_for(problem);
  task.lda += from.pad, task.ldb += from.pad, task.ldc += from.pad;
  task.batch_a = from.share_a ? 0 : task.lda * (problem.transpose_a ? problem.k : problem.m) + from.pad;
  task.batch_b = from.share_b ? 0 : task.ldb * (problem.transpose_b ? problem.n : problem.k) + from.pad;
  task.batch_c = task.ldc * problem.m + from.pad;
  task.bias = from.bias, task.accumulate = from.accumulate, task.relu = from.relu;
  if (from.f32_output) task.output = DataType::f32;
  return task;
}

class GpuGemm : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (!IsSkipped()) queue = device->make_queue();
  }

  Operand put(const Bytes& bytes, std::int64_t guard) {
    Bytes whole(bytes.size() + 2 * static_cast<std::size_t>(guard), poison);
    std::copy(bytes.begin(), bytes.end(), whole.begin() + guard);
    auto buffer = device->allocate(static_cast<std::int64_t>(whole.size()));
    queue->upload(buffer, 0, whole.data(), buffer->bytes()).wait();
    return {Buffer(buffer), guard};
  }

  // c as it is after a run. Its guards and what lies between its rows must be as they were.
  Bytes run(const operations::GemmPlanBody& plan, std::int64_t workspace_bytes, const Trial& trial, std::int64_t guard,
            const std::string& what = {}) {
    const Bytes workspace(static_cast<std::size_t>(workspace_bytes), poison);
    const operations::GemmArrays arrays{.a = put(trial.data.a, guard),
                                        .b = put(trial.data.b, guard),
                                        .c = put(trial.data.c, guard),
                                        .bias = put(trial.data.bias, guard),
                                        .workspace = put(workspace, 64)};
    submit_run(*queue, plan, arrays).wait();
    const auto get = [&](const Operand& operand) {
      Bytes whole(static_cast<std::size_t>(operand.buffer.bytes()));
      queue->download(whole.data(), operand.buffer.impl(), 0, operand.buffer.bytes()).wait();
      return whole;
    };
    Bytes c = get(arrays.c), around = c;
    trial.c.for_each([&](std::int64_t matrix, std::int64_t row, std::int64_t column) {
      std::fill_n(around.begin() + guard + trial.c.at(matrix, row, column) * trial.c.size(), trial.c.size(), poison);
    });
    const auto beside = std::find_if(around.begin(), around.end(), [](std::byte byte) { return byte != poison; });
    EXPECT_EQ(beside, around.end()) << what << ": written beside c, "
                                    << std::count_if(around.begin(), around.end(),
                                                     [](std::byte byte) { return byte != poison; })
                                    << " bytes, the first " << beside - around.begin() - guard << " behind its begin";
    const Bytes parts = get(arrays.workspace);
    EXPECT_TRUE(std::all_of(parts.begin(), parts.begin() + 64, [](std::byte byte) { return byte == poison; }));
    EXPECT_TRUE(std::all_of(parts.end() - 64, parts.end(), [](std::byte byte) { return byte == poison; }));
    return {c.begin() + guard, c.end() - guard};
  }

  void expect_exact(const operations::GemmPlanBody& plan, std::int64_t workspace_bytes, const GemmTask& task,
                    std::int64_t guard, const std::string& what) {
    const Trial trial(task, false, 1);
    const Bytes found = run(plan, workspace_bytes, trial, guard, what);
    int wrong = 0;
    trial.c.for_each([&](std::int64_t matrix, std::int64_t i, std::int64_t j) {
      const double value = trial.result(found, matrix, i, j);
      const double expected = trial.stored(trial.sum_at(matrix, i, j).value);
      if (value != expected && wrong++ == 0)
        ADD_FAILURE() << what << ", guard " << guard << ": c[" << matrix << ", " << i << ", " << j << "] is " << value
                      << " and must be " << expected;
    });
    EXPECT_EQ(wrong, 0) << what;
  }

  std::string refusal(const operations::GemmSolver& solver) {
    return refusal_of(solver, task_of({.problem = "gemm f32 nn m8n8k8"}), device);
  }

  void expect_exact(const operations::GemmSolver& solver, const Case& one) {
    const GemmTask task = task_of(one);
    ASSERT_EQ(refusal_of(solver, task, device), "") << one.problem;
    std::shared_ptr<const operations::GemmPlanBody> plan;
    std::int64_t workspace_bytes = 0;
    if (one.tile < 0) {
      const operations::Offer offer = offer_by(solver, task, device);
      plan = operations::plan_of(offer);
      workspace_bytes = offer.workspace_bytes;
    } else {
      const auto choice =
          operations::choice_of(operations::gemm_tiles()[static_cast<std::size_t>(one.tile)], one.parts, task, *device);
      ASSERT_TRUE(choice && choice->parts == one.parts) << one.problem;
      plan = operations::plan_of_tiles(task, *device, *choice);
      workspace_bytes = choice->workspace_bytes;
    }
    const std::string what = fmt::format("{} by {}, tile {}, parts {}", one.problem, solver.id(), one.tile, one.parts);
    const std::int64_t aligned = 256, element = size_of(task.problem.type),
                       odd = aligned + std::max<std::int64_t>(element, 4);
    expect_exact(*plan, workspace_bytes, task, aligned, what);
    expect_exact(*plan, workspace_bytes, task, odd, what);
  }

  std::shared_ptr<devices::Queue> queue;
};

constexpr auto rows = BiasAlong::rows, columns = BiasAlong::columns;

// Every tile, with what it must cut off at the edges and without; every transposition and type; every ending.
constexpr Case tiled_cases[] = {
    {.problem = "gemm f32 nt m131n133k19", .tile = 0, .bias = columns, .relu = true},
    {.problem = "gemm f32 tn m132n68k10", .tile = 1, .pad = 4, .bias = rows},
    {.problem = "gemm f32 tt m60n140k20", .tile = 2, .accumulate = true},
    {.problem = "gemm f32 nn m65n63k33 batch2", .tile = 3, .pad = 3, .bias = columns, .accumulate = true, .relu = true},
    {.problem = "gemm tf32 tn m60n20k12 batch3", .tile = 4, .share_a = true},
    {.problem = "gemm f32 nt m36n68k8 batch3", .tile = 5, .pad = 1, .relu = true, .share_b = true},
    {.problem = "gemm f32 tt m33n31k17", .tile = 6, .pad = 1},
    {.problem = "gemm f32 nn m64n32k32", .tile = 6},
    {.problem = "gemm f16 nn m40n36k20", .tile = 6, .bias = rows, .accumulate = true},
    {.problem = "gemm f16 tt m35n33k21 batch2", .tile = 6, .bias = columns, .relu = true, .f32_output = true},
    {.problem = "gemm bf16 nt m36n40k28", .tile = 6, .bias = columns, .accumulate = true, .relu = true},
    {.problem = "gemm bf16 tn m33n35k9 batch2", .tile = 6, .pad = 2, .bias = rows, .f32_output = true},
    {.problem = "gemm f32 nn m34n33k200 batch2",
     .tile = 6,
     .parts = 3,
     .bias = columns,
     .accumulate = true,
     .relu = true},
    {.problem = "gemm f16 tn m12n40k512", .tile = 6, .parts = 8, .bias = rows, .f32_output = true},
    {.problem = "gemm bf16 nn m1n5k130", .tile = 6, .parts = 2, .pad = 3},
    {.problem = "gemm f32 nn m1n1k1"},
    {.problem = "gemm f32 nn m1n70k300"},
};

TEST_F(GpuGemm, TilesAreExactOnIntegers) {
  if (const std::string reason = refusal(operations::gemm_tiled_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  for (const Case& one : tiled_cases) expect_exact(operations::gemm_tiled_gpu(), one);
}

// Operands that are copied as they lie, that become planes, packed and with others' elements between their rows; sums
// in parts; every type, transposition and ending.
constexpr Case split_cases[] = {
    {.problem = "gemm f32 nn m129n257k17", .pad = 3, .bias = columns, .relu = true},
    {.problem = "gemm f32 nt m257n129k129 batch2", .pad = 4, .bias = rows, .accumulate = true},
    {.problem = "gemm f32 tn m17n130k257 batch3", .pad = 1, .share_a = true},
    {.problem = "gemm f32 tt m300n65k1000", .accumulate = true, .relu = true},
    {.problem = "gemm f32 nn m64n64k20000", .bias = columns},
    {.problem = "gemm f32 tt m1n1k1"},
    {.problem = "gemm f32 nt m1n700k64 batch2", .share_b = true},
    {.problem = "gemm tf32 nn m129n70k65", .pad = 5, .bias = rows},
    {.problem = "gemm tf32 tt m64n1k300", .accumulate = true},
    {.problem = "gemm f16 nt m257n129k120 batch2", .pad = 8, .bias = columns},
    {.problem = "gemm f16 nn m128n128k64", .accumulate = true, .relu = true},
    {.problem = "gemm f16 tn m100n100k5000", .bias = rows, .f32_output = true},
    {.problem = "gemm f16 tt m130n66k72 batch2", .pad = 4, .f32_output = true},
    {.problem = "gemm bf16 nt m130n140k200", .bias = columns, .accumulate = true, .relu = true},
    {.problem = "gemm bf16 nt m200n130k72 batch3", .f32_output = true, .share_b = true},
    {.problem = "gemm bf16 nt m65n130k1001", .pad = 7},
    {.problem = "gemm bf16 nn m129n257k64 batch2", .pad = 3, .bias = rows, .share_a = true},
    {.problem = "gemm bf16 tn m70n33k129", .accumulate = true, .f32_output = true},
};

TEST_F(GpuGemm, SplitIsExactOnIntegers) {
  if (const std::string reason = refusal(operations::gemm_split_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  for (const Case& one : split_cases) expect_exact(operations::gemm_split_gpu(), one);
}

constexpr Case plain_cases[] = {
    {.problem = "gemm f32 nn m5n70k19", .bias = columns, .relu = true},
    {.problem = "gemm f32 tn m9n3k7 batch3", .pad = 1, .bias = rows, .accumulate = true, .share_a = true},
    {.problem = "gemm f16 nt m7n300k13 batch2", .accumulate = true, .relu = true, .share_b = true},
    {.problem = "gemm bf16 tn m3n30k40", .bias = columns, .f32_output = true},
    {.problem = "gemm f32 nn m1n1k1"},
};

TEST_F(GpuGemm, PlainIsExactOnIntegers) {
  for (const Case& one : plain_cases) expect_exact(operations::gemm_plain_gpu(), one);
}

// Few terms: tiles with rows and columns that are not there, vectors and single elements, a turned and b in its
// columns, sums whose matrices are more than one fetch of a work item; what is fused.
TEST_F(GpuGemm, ShortIsExactOnIntegers) {
  if (const std::string reason = refusal(operations::gemm_short_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  for (const Case& one : {Case{.problem = "gemm f32 tn m37n300k16", .bias = rows, .relu = true},
                          Case{.problem = "gemm f32 tn m40n129k1", .pad = 4, .bias = columns},
                          Case{.problem = "gemm f32 nn m9n68k7 batch3", .pad = 1, .accumulate = true, .share_a = true},
                          Case{.problem = "gemm f16 nt m70n36k12 batch2", .accumulate = true, .share_b = true},
                          Case{.problem = "gemm bf16 tt m66n35k5", .bias = columns, .f32_output = true},
                          Case{.problem = "gemm bf16 tn m5n64k32", .pad = 4, .relu = true},
                          Case{.problem = "gemm f32 nt m3n7k128"}, Case{.problem = "gemm f32 nn m1n1k1"}})
    expect_exact(operations::gemm_short_gpu(), one);
}

TEST_F(GpuGemm, ShortIsExactWithAnyTiles) {
  if (const std::string reason = refusal(operations::gemm_short_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  for (const auto& [problem, tuning] :
       {std::pair("gemm f32 tn m300n140k17", "items=32 columns=4 tile_m=256 resident=2"),
        std::pair("gemm f32 nn m70n140k33", "items=64 columns=1 tile_m=64 resident=4"),
        std::pair("gemm f16 tn m9n600k32", "items=128 columns=4 tile_m=4 resident=3"),
        std::pair("gemm f32 tt m130n300k9", "items=256 columns=1 tile_m=128 resident=1")}) {
    const GemmTask task = task_of({.problem = problem, .bias = columns});
    const operations::Answer answer = operations::gemm_short_gpu().offer(task, device, {.tuning = tuning});
    ASSERT_NE(answer.offer(), nullptr) << answer.refusal();
    EXPECT_EQ(answer.offer()->tuning.to_text(), tuning);
    expect_exact(*operations::plan_of(*answer.offer()), 0, task, 0, fmt::format("{}, {}", problem, tuning));
  }
}

TEST_F(GpuGemm, ShortRefusesByName) {
  const auto refused = [&](const char* problem, const char* tuning) {
    return operations::gemm_short_gpu().offer(task_of({.problem = problem}), device, {.tuning = tuning}).refusal();
  };
  EXPECT_HAS(refused("gemm f32 nn m8n8k129", ""), "sums have 128 terms at most, which work items keep, not 129");
  EXPECT_HAS(refused("gemm f64 nn m8n8k8", ""), "f64 matrices are multiplied on the CPU");
  EXPECT_HAS(refused("gemm f32 nn m8n8k33", "items=64 columns=4 tile_m=8 resident=1"),
             "tuning columns=4: a work item keeps 128 terms at most, and these have 33 each");
  EXPECT_HAS(refused("gemm f32 nn m8n8k8", "items=256 columns=4 tile_m=8 resident=16"),
             "tuning resident=16: at most 8 groups of 256 work items");
}

// As GPUs and as processors have it, whichever this device is.
TEST_F(GpuGemm, PlainIsExactInBothShapes) {
  for (const Case& one : {Case{.problem = "gemm f32 nn m18n5k7", .pad = 1, .accumulate = true},
                          Case{.problem = "gemm bf16 nt m5n270k11", .bias = columns}})
    for (const bool as_gpu : {false, true}) {
      const GemmTask task = task_of(one);
      const auto plan = operations::plan_of_shape(task, *device, operations::plain_shape_for(task.problem, as_gpu));
      expect_exact(*plan, 0, task, 0, fmt::format("{}, {}", one.problem, as_gpu ? "GPU" : "CPU"));
    }
}

// Rows, columns and products that end in a tile, chunks of four and single words, every transposition and ending; and
// tiles whose warps and slices are others.
constexpr Case mma_cases[] = {
    {.problem = "gemm f32 nn m37n70k33", .pad = 3, .bias = columns, .relu = true},
    {.problem = "gemm f32 nt m70n40k64 batch2", .pad = 4, .bias = rows, .accumulate = true},
    {.problem = "gemm f32 tn m33n68k97", .pad = 1, .share_a = true},
    {.problem = "gemm f32 tt m68n36k100", .accumulate = true, .relu = true},
    {.problem = "gemm tf32 tn m40n36k36", .bias = columns},
    {.problem = "gemm f32 nn m1n1k1"},
};

// Tests of it, and of planes, are left out where a device refuses all such products: CUDA devices before 8.0, and PoCL
// newer than 3.1, which cannot be trusted with barriers in loops. OpenCL devices without the units run them by loops.
TEST_F(GpuGemm, MmaIsExactOnIntegers) {
  if (const std::string reason = refusal(operations::gemm_mma_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  for (const Case& one : mma_cases) expect_exact(operations::gemm_mma_gpu(), one);
}

TEST_F(GpuGemm, MmaIsExactWithAnyTiles) {
  if (const std::string reason = refusal(operations::gemm_mma_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  int number = 0;
  for (const char* const tuning : {"tile_m=64 tile_n=64 tile_k=32 warp_m=32 warp_n=32 slices=2 stages=2 resident=1",
                                   "tile_m=32 tile_n=64 tile_k=16 warp_m=16 warp_n=16 slices=1 stages=4 resident=2",
                                   "tile_m=32 tile_n=32 tile_k=32 warp_m=32 warp_n=8 slices=4 stages=4 resident=1",
                                   "tile_m=64 tile_n=32 tile_k=16 warp_m=64 warp_n=32 slices=2 stages=3 resident=1"})
    for (const char* const transposition : {"nn", "tt"}) {
      const std::string problem = fmt::format("gemm f32 {} m{}n70k83", transposition, 35 + number++);
      const GemmTask task = task_of({.problem = problem.c_str(), .bias = columns});
      const operations::Answer answer = operations::gemm_mma_gpu().offer(task, device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << answer.refusal();
      EXPECT_EQ(answer.offer()->tuning.to_text(), tuning);
      expect_exact(*operations::plan_of(*answer.offer()), 0, task, 0, fmt::format("{}, {}", problem, tuning));
    }
}

// Lines of whole chunks and of a rest, every transposition and ending, matrices of a batch and shared ones.
TEST_F(GpuGemm, PlanesAreExactOnIntegers) {
  if (const std::string reason = refusal(operations::gemm_planes_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  for (const Case& one :
       {Case{.problem = "gemm f32 nn m37n70k33", .bias = columns, .relu = true},
        Case{.problem = "gemm f32 nt m70n40k64 batch2", .bias = rows, .accumulate = true},
        Case{.problem = "gemm f32 tn m33n68k97 batch3", .share_a = true}, Case{.problem = "gemm f32 nn m1n1k1"},
        Case{.problem = "gemm f32 tt m130n36k100", .accumulate = true, .relu = true}})
    expect_exact(operations::gemm_planes_gpu(), one);
  EXPECT_HAS(refusal_of(operations::gemm_planes_gpu(), task_of({.problem = "gemm f32 nn m8n8k8", .pad = 1}), device),
             "takes matrices without others' elements between their lines");
  EXPECT_HAS(refusal_of(operations::gemm_planes_gpu(), task_of({.problem = "gemm tf32 nn m8n8k8"}), device),
             "multiplies f32, not tf32");
}

TEST_F(GpuGemm, MmaRefusesByName) {
  const auto refused = [&](const char* problem, const char* tuning) {
    return operations::gemm_mma_gpu().offer(task_of({.problem = problem}), device, {.tuning = tuning}).refusal();
  };
  if (const std::string reason = refusal(operations::gemm_mma_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_HAS(refused("gemm bf16 nn m8n8k8", ""), "multiplies f32 and tf32, not bf16");
  EXPECT_HAS(
      refused("gemm f32 nn m8n8k8", "tile_m=64 tile_n=64 tile_k=16 warp_m=32 warp_n=32 slices=4 stages=2 resident=1"),
      "tuning slices=4: at most 2 of 16 products, 8 at least each");
  EXPECT_HAS(
      refused("gemm f32 nn m8n8k8", "tile_m=64 tile_n=64 tile_k=32 warp_m=32 warp_n=32 slices=4 stages=2 resident=1"),
      "tuning slices=4: their sums must find room in the 32768 bytes of the stages");
  EXPECT_HAS(
      refused("gemm f32 nn m8n8k8", "tile_m=32 tile_n=64 tile_k=16 warp_m=64 warp_n=32 slices=1 stages=2 resident=1"),
      "tuning tile_m=32: must be a multiple of warp_m, 64");
}

// What the parts of a number would lose is summed up by the definition: numbers so small that low parts vanish, sums
// that leave fp32's range on their way, infinities and NaN; and zeros beside them stay zeros.
TEST_F(GpuGemm, PartsKeepNumbersOfAnySize) {
  if (const std::string reason = refusal(operations::gemm_mma_gpu()); !reason.empty()) GTEST_SKIP() << reason;
  const GemmTask task = task_of({.problem = "gemm f32 nn m40n40k70"});
  const operations::GemmSolver* solver = nullptr;
  const auto result_of = [&](float in_a, float in_b) {
    Trial trial(task, false, 3);
    for (const auto& [data, value] : {std::pair{&trial.data.a, in_a}, std::pair{&trial.data.b, in_b}})
      for (std::size_t at = 0; at < data->size(); at += 4) store_element(DataType::f32, value, data->data() + at);
    const operations::Offer offer = offer_by(*solver, task, device);
    const Bytes found = run(*operations::plan_of(offer), offer.workspace_bytes, trial, 256);
    const double first = trial.result(found, 0, 0, 0);
    trial.c.for_each([&](std::int64_t matrix, std::int64_t i, std::int64_t j) {
      const double other = trial.result(found, matrix, i, j);
      ASSERT_TRUE(other == first || (std::isnan(other) && std::isnan(first))) << i << " " << j;
    });
    return first;
  };
  const float odd = 1.0f + 0x1p-20f;  // 21 bits, which parts of both kinds hold
  for (const operations::GemmSolver* const each : {&operations::gemm_mma_gpu(), &operations::gemm_planes_gpu()}) {
    solver = each;
    EXPECT_EQ(result_of(odd * 0x1p-110f, 0x1p100f), static_cast<double>(70 * odd) * 0x1p-10);
    EXPECT_EQ(result_of(0x1p100f, odd * 0x1p-110f), static_cast<double>(70 * odd) * 0x1p-10);
    EXPECT_EQ(result_of(0, 0x1p-120f), 0);
    EXPECT_EQ(result_of(0x1p-120f, 0), 0);
    EXPECT_EQ(result_of(0x1.fffffep127f, 0x1p-20f), static_cast<double>(0x1.fffffep127f * 0x1p-20f * 70));
    EXPECT_EQ(result_of(INFINITY, 2), INFINITY);
    EXPECT_TRUE(std::isnan(result_of(INFINITY, 0)));
    EXPECT_TRUE(std::isnan(result_of(NAN, 1)));
    EXPECT_EQ(result_of(0x1p100f, 0x1p100f), INFINITY);
  }
}

// Buffers that end with the matrices, for checkers of memory: one byte beside them is outside.
TEST_F(GpuGemm, StaysInsideBuffersThatFit) {
  for (const Case& one : {Case{.problem = "gemm f32 nt m33n34k9", .pad = 1},
                          Case{.problem = "gemm f16 nn m36n36k12 batch2", .accumulate = true}}) {
    const GemmTask task = task_of(one);
    for (const operations::GemmSolver* const solver :
         {&operations::gemm_split_gpu(), &operations::gemm_planes_gpu(), &operations::gemm_mma_gpu(),
          &operations::gemm_tiled_gpu(), &operations::gemm_short_gpu(), &operations::gemm_plain_gpu()})
      if (refusal_of(*solver, task, device).empty()) {
        const operations::Offer offer = offer_by(*solver, task, device);
        expect_exact(*operations::plan_of(offer), offer.workspace_bytes, task, 0, one.problem);
      }
  }
  const GemmTask task = task_of({.problem = "gemm f32 nn m3n5k150", .bias = rows});
  const auto choice = operations::choice_of(operations::gemm_tiles().back(), 2, task, *device);
  ASSERT_TRUE(choice);
  if (!refusal(operations::gemm_tiled_gpu()).empty()) return;
  expect_exact(*operations::plan_of_tiles(task, *device, *choice), choice->workspace_bytes, task, 0, "split sums");
}

TEST_F(GpuGemm, RandomDataKeepsTheBound) {
  const GemmTask task = task_of({.problem = "gemm f32 nt m70n90k333", .bias = columns, .accumulate = true});
  for (const operations::GemmSolver* const solver :
       {&operations::gemm_split_gpu(), &operations::gemm_planes_gpu(), &operations::gemm_mma_gpu(),
        &operations::gemm_tiled_gpu(), &operations::gemm_plain_gpu()}) {
    if (!refusal_of(*solver, task, device).empty()) continue;
    const operations::Offer offer = offer_by(*solver, task, device);
    const Trial trial(task, true, 7);
    const Bytes found = run(*operations::plan_of(offer), offer.workspace_bytes, trial, 256);
    const operations::ErrorBound& bound = offer.bound;
    double largest = 0;
    trial.c.for_each([&](std::int64_t matrix, std::int64_t i, std::int64_t j) {
      const Sum sum = trial.sum_at(matrix, i, j);
      largest = std::max(largest, std::fabs(trial.result(found, matrix, i, j) - sum.value) /
                                      (0x1p-23 * sum.magnitude * (bound.chain / 2 + bound.constant) + bound.absolute));
    });
    EXPECT_LE(largest, 1) << solver->id();
    EXPECT_GT(largest, 0) << solver->id();
    RecordProperty(std::string(solver->id().substr(5, 5)), fmt::format("{:.3f}", largest));
  }
}

// A product of zero and infinity is no number: what lies beyond k must not be multiplied, whatever stands in for it.
TEST_F(GpuGemm, InfinitiesStayWhereTheyAre) {
  const GemmTask task = task_of({.problem = "gemm f32 nt m33n34k9", .pad = 1});
  for (const operations::GemmSolver* const solver :
       {&operations::gemm_split_gpu(), &operations::gemm_planes_gpu(), &operations::gemm_mma_gpu(),
        &operations::gemm_tiled_gpu(), &operations::gemm_short_gpu(), &operations::gemm_plain_gpu()}) {
    if (!refusal_of(*solver, task, device).empty()) continue;
    const operations::Offer offer = offer_by(*solver, task, device);
    Trial trial(task, false, 3);
    for (Bytes* const data : {&trial.data.a, &trial.data.b})
      for (std::size_t at = 0; at < data->size(); at += 4) store_element(DataType::f32, INFINITY, data->data() + at);
    const Bytes found = run(*operations::plan_of(offer), offer.workspace_bytes, trial, 256);
    trial.c.for_each([&](std::int64_t matrix, std::int64_t i, std::int64_t j) {
      ASSERT_EQ(trial.result(found, matrix, i, j), INFINITY) << solver->id() << " " << i << " " << j;
    });
  }
}

TEST_F(GpuGemm, RefusesDoublePrecisionByName) {
  for (const operations::GemmSolver* const solver : {&operations::gemm_tiled_gpu(), &operations::gemm_plain_gpu()})
    EXPECT_HAS(refusal_of(*solver, task_of({.problem = "gemm f64 nn m8n8k8"}), device),
               "f64 matrices are multiplied on the CPU");
}

}  // namespace
}  // namespace omniconv
