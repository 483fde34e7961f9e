// The same bits whatever the threads, the strips and the instruction set.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <cstring>
#include <new>

#include "conformance.h"

namespace omniconv {
namespace {

// The output of a problem, run at once or in strips as a reader would deliver them.
std::vector<std::byte> run(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                           std::int64_t strip) {
  const Filter2dPlan plan(context, problem, filter);
  const std::int64_t row_in = problem.w * problem.c * size_of(problem.input);
  const std::int64_t row_out = Q(problem) * problem.c * size_of(problem.output);
  std::vector<std::byte> image(static_cast<std::size_t>(problem.h * row_in)),
      result(static_cast<std::size_t>(P(problem) * row_out));
  fill_random(task_for(problem, filter), 7, image);
  Queue queue = context.make_queue();
  const Buffer workspace = context.allocate(plan.workspace_bytes());
  const Buffer output = context.borrow(result.data(), static_cast<std::int64_t>(result.size()));
  for (std::int64_t first = 0; first < P(problem); first += strip) {
    const std::int64_t rows = std::min(strip, P(problem) - first);
    const RowSpan span = input_rows_for(problem, filter, first, rows);
    std::vector<std::byte> part(static_cast<std::size_t>((span.last - span.first) * row_in));
    for (std::int64_t row = span.first; row < span.last; ++row)
      std::memcpy(part.data() + (row - span.first) * row_in,
                  image.data() + ((row % problem.h + problem.h) % problem.h) * row_in,
                  static_cast<std::size_t>(row_in));
    Filter2dRun strip_run{.input = context.borrow(part.data(), static_cast<std::int64_t>(part.size())),
                          .output = output,
                          .workspace = workspace};
    strip_run.output_offset_bytes = first * row_out;
    strip_run.input_first = span.first;
    strip_run.input_rows = span.last - span.first;
    strip_run.output_first = first;
    strip_run.output_rows = rows;
    plan.run(queue, strip_run).wait();
  }
  return result;
}

// Floating images too: a solver's chains do not depend on how the work is cut.
const char* const problems[] = {
    "filter2d u8 h150w211c3r5s5",
    "filter2d u8 h150w211c3r7s7 reflect kernel:gaussian:7",
    "filter2d u16 h150w211c1r3s4 wrap",
    "filter2d f32 h150w211c3r5s5 reflect101",
    "filter2d f32 h150w900c3r3s3",
    "filter2d f16 h150w211c3r5s5 constant:1 kernel:rank1",
    "filter2d u8 h150w211c3r31s31 valid",
    "filter2d f64 h150w211c1r3s3 wrap",
    "filter2d u8 h150w211c4r9s9 kernel:equal",
    "filter2d u8 h150w211c4r5s5 alpha:3",
    "filter2d f32 h150w211c2r5s5 alpha:0 kernel:rank1",
    "filter2d u16 h150w211c3r7s5 wrap alpha:1 kernel:equal",
    "filter2d f64 h150w211c4r3s3 valid alpha:3",
    "filter2d u8 h150w211c4r3s3 alpha:3 kernel:sobel-x",
    "filter2d u8 h150w1211c3r3s3 kernel:sobel",
    "filter2d u8>f32 h150w211c1r3s3 wrap kernel:scharr",
    "filter2d u16 h150w211c3r3s3 reflect kernel:prewitt",
    "filter2d f32 h150w2211c3r3s3 constant:1 kernel:sobel",
    "filter2d f64>u8 h50w211c3r3s3 valid kernel:scharr",
    "filter2d u8 h150w211c3r31s41 reflect kernel:equal",
    "filter2d u8 h150w211c1r3s3 kernel:equal",
    "filter2d u16 h150w211c3r17s16 wrap kernel:equal",
    "filter2d s32 h150w211c2r5s7 constant:3 kernel:equal",
    "filter2d f32 h150w1500c3r25s27 wrap kernel:equal",
    "filter2d f16>f32 h150w211c1r63s3 kernel:equal",
    "filter2d f64 h150w211c3r27s31 reflect101 kernel:equal",
    "filter2d f32 h150w900c3r15s15 kernel:unsharp:15,3,1.5",
    "filter2d f16>u8 h150w211c3r9s9 wrap kernel:unsharp:9,2,1",
    "filter2d f64 h150w211c1r15s15 reflect kernel:unsharp:15,3,1.5",
};

TEST(SameBits, ThreadsAndStrips) {
  int number = 0;
  for (const char* text : problems) {
    if (instrumented && number++ % 3 != 0) continue;  // twenty times as slow there
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    const Filter filter = filter_for(problem);
    const auto expected = run(Context({.device = "cpu", .threads = 1}), problem, filter, P(problem));
    for (const int threads : {1, 2, 3, 4}) {
      const Context context({.device = "cpu", .threads = threads});
      for (const std::int64_t strip : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, P(problem)})
        EXPECT_EQ(run(context, problem, filter, strip), expected)
            << text << ": " << threads << " threads, strips of " << strip;
    }
  }
}

// Whether the instruction set is this processor's, and was built.
bool is_there(std::int64_t target) {
  return target == HWY_SCALAR || (hwy::SupportedTargets() & HWY_TARGETS & target) != 0;
}

// Each instruction set, the ones without a fused multiply-add among them.
TEST(SameBits, InstructionSets) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* text : problems) {
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    const Filter filter = filter_for(problem);
    const auto expected = run(context, problem, filter, P(problem));
    int sets = 0;
    for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if (!is_there(target)) continue;
      hwy::GetChosenTarget().Update(target);
      ++sets;
      EXPECT_EQ(run(context, problem, filter, P(problem)), expected) << text << " on " << hwy::TargetName(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
    EXPECT_GE(sets, 1);
  }
}

TEST(SameBits, InstructionSetsConform) {
  const Context context({.device = "cpu", .threads = 1});
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4}) {
    if (!is_there(target)) continue;
    hwy::GetChosenTarget().Update(target);
    for (const char* kernel : {"random", "integer", "rank1", "equal"})
      for (const char* type : {"u8", "s16", "f16", "f32", "f32>u8"})
        for (const char* channels : {"c3", "c4", "c4 alpha:3", "c3 alpha:0"})
          expect_conformance(context, fmt::format("filter2d {} r3s4h13w61{} kernel:{}", type, channels, kernel));
    for (const char* kernel : {"sobel", "prewitt", "scharr"})
      for (const char* type : {"u8", "u8>s16", "u8>f32", "u16", "s32", "f16", "f32", "f32>u8", "f64"})
        expect_conformance(context, fmt::format("filter2d {} h13w61c3r3s3 kernel:{}", type, kernel));
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

}  // namespace
}  // namespace omniconv
