// What a run of gemm/split launches, and of conv2d/few_channels, by a device that runs nothing: which kernels, with the
// arguments that they take, and copies that stay within their buffers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../conformance/solver_testing.h"
#include "devices/sequence.h"
#include "omniconv/problem.h"
#include "operations/conv2d/conv2d.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/split/matrices.h"
#include "recording_device.h"

namespace omniconv {
namespace {

using devices::Sequence;

// "task", "map", "pointer", "8", "4": of each parameter of a kernel, by the text.
std::vector<std::string> parameters_of(const std::string& text, const std::string& kernel) {
  const std::size_t name = text.find("void " + kernel + "("), first = text.find('(', name) + 1;
  std::vector<std::string> all;
  std::string declared = text.substr(first, text.find(") {", first) - first) + ",";
  for (std::size_t comma; (comma = declared.find(',')) != std::string::npos; declared.erase(0, comma + 1)) {
    const std::string one = declared.substr(0, comma);
    const auto has = [&](const char* part) { return one.find(part) != std::string::npos; };
    all.push_back(has("TENSOR_MAP") ? "map"
                  : has("task_t")   ? "task"
                  : has("GLOBAL")   ? "pointer"
                  : has("long")     ? "8"
                  : has("int ")     ? "4"
                  : has("float")    ? "scalar"
                                    : one);
  }
  return all;
}
std::vector<std::string> arguments_of(const Sequence& sequence, const Sequence::Launch& launch) {
  std::vector<std::string> all;
  for (const Sequence::Argument& argument : sequence.arguments_of(launch)) {
    if (std::holds_alternative<Sequence::Map>(argument.value))
      all.push_back("map");
    else if (std::holds_alternative<std::shared_ptr<const devices::Buffer>>(argument.value))
      all.push_back("pointer");
    else if (std::holds_alternative<Scalar>(argument.value))
      all.push_back("scalar");
    else
      all.push_back(argument.bytes > 8 ? "task" : std::to_string(argument.bytes));
  }
  return all;
}

class SplitLaunches : public testing::Test {
 protected:
  SplitLaunches() {
    device->be_of_capability_90();
    device->set_compute_units(132);
  }
  // Kernels of a run and their groups, as "make_parts 12"; elements between rows, bytes ahead of the arrays.
  std::vector<std::string> launches(const std::string& problem, std::int64_t pad = 0, std::int64_t ahead = 0,
                                    const std::string& tuning = {}) const {
    operations::GemmTask task = operations::task_for(get<GemmProblem>(parse_problem("gemm " + problem)));
    const GemmProblem& p = task.problem;
    task.lda += pad, task.ldb += pad;
    task.batch_a = task.lda * (p.transpose_a ? p.k : p.m), task.batch_b = task.ldb * (p.transpose_b ? p.n : p.k);
    const operations::Answer answer = operations::gemm_split_gpu().offer(task, device, {.tuning = tuning});
    EXPECT_NE(answer.offer(), nullptr) << answer.refusal();
    const auto plan = operations::plan_of(*answer.offer());
    const std::int64_t size = size_of(p.type);
    const auto array = [&](std::int64_t elements) {
      return Operand{Buffer(device->allocate(elements * size + ahead)), ahead};
    };
    const operations::GemmArrays arrays{
        .a = array(p.batch * task.batch_a),
        .b = array(p.batch * task.batch_b),
        .c = array(p.batch * task.batch_c),
        .bias = {},
        .workspace = {Buffer(device->allocate(answer.offer()->workspace_bytes + 64)), 64}};
    Sequence sequence;
    plan->append(sequence, arrays);
    std::vector<std::string> kernels;
    for (const Sequence::Step& step : sequence.steps()) {
      const auto& launch = std::get<Sequence::Launch>(step);
      kernels.push_back(fmt::format("{} {}", launch.kernel, launch.grid.global.x / launch.grid.local.x));
      EXPECT_EQ(arguments_of(sequence, launch), parameters_of(text_with(launch.kernel), launch.kernel));
      for (const Sequence::Argument& argument : sequence.arguments_of(launch))
        if (const auto* const map = std::get_if<Sequence::Map>(&argument.value)) {
          EXPECT_NO_THROW(devices::check(sequence.map_of(*map))) << problem;
        }
    }
    return kernels;
  }
  // The same of few channels, and the bytes of local memory that its tiles ask for.
  std::vector<std::string> launches_of_few(const std::string& problem, const std::string& tuning = {}) const {
    const auto conv2d = get<Conv2dProblem>(parse_problem(problem));
    const operations::Answer answer = operations::conv2d_few_channels_gpu().offer(conv2d, device, {.tuning = tuning});
    EXPECT_NE(answer.offer(), nullptr) << answer.refusal();
    const auto plan = answer.offer()->plan();
    const Conv2dElements all = elements_of(conv2d);
    const auto array = [&](std::int64_t elements) { return Operand{Buffer(device->allocate(elements * 4))}; };
    Conv2dRun run{.x = array(all.x), .w = array(all.w), .y = array(all.y)};
    if (conv2d.bias) run.bias = array(conv2d.k);
    run.workspace = Buffer(device->allocate(answer.offer()->workspace_bytes));
    Sequence sequence;
    static_cast<const operations::Conv2dPlanBody&>(*plan).append(sequence, run);
    std::vector<std::string> kernels;
    for (const Sequence::Step& step : sequence.steps()) {
      const auto& launch = std::get<Sequence::Launch>(step);
      kernels.push_back(fmt::format("{} {}", launch.kernel, launch.grid.global.x / launch.grid.local.x));
      if (launch.options.local_memory_bytes > 0)
        kernels.back() += fmt::format(" {}", launch.options.local_memory_bytes);
      EXPECT_EQ(arguments_of(sequence, launch), parameters_of(text_with(launch.kernel), launch.kernel));
    }
    return kernels;
  }
  // The last text that has the kernel.
  std::string text_with(const std::string& kernel) const {
    std::string found;
    for (const auto& built : device->built)
      if (built.text.find("void " + kernel + "(") != std::string::npos) found = built.text;
    return found;
  }
  std::shared_ptr<devices::RecordingDevice> device =
      std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
};

using Kernels = std::vector<std::string>;
constexpr const char* whole = "tile_n=128 resident=1 parts=1 shared=0 raw=0";

TEST_F(SplitLaunches, ScaledNumbersAreLookedAtFirst) {
  // 64 terms of 32 rows of a, and of 64 columns of b.
  EXPECT_EQ(launches("f32 nn m256n256k128", 0, 0, whole),
            (Kernels{"find_largest 528", "make_parts 24", "tile_products 4"}));
  EXPECT_EQ(launches("tf32 tt m256n256k128batch2", 3, 4, whole),
            (Kernels{"find_largest_of_lines 528", "make_parts 48", "tile_products 8"}));
  EXPECT_EQ(launches("f32 nt m4096n4096k64", 0, 0, whole).back(), "tile_products 132");
}

// Of packed operands alone: the sample is of one run of elements.
TEST_F(SplitLaunches, LargeArraysAreSampledAndMended) {
  EXPECT_EQ(launches("f32 nn m4096n4096k2048", 0, 0, whole),
            (Kernels{"find_largest 528", "make_parts 6144", "make_parts 528", "tile_products 132"}));
  EXPECT_EQ(launches("f32 nn m4096n4096k2048", 4, 0, whole),
            (Kernels{"find_largest_of_lines 528", "make_parts 6144", "tile_products 132"}));
  EXPECT_EQ(launches("f32 nn m2048n2048k2048", 0, 0, whole),
            (Kernels{"find_largest 528", "make_parts 3072", "tile_products 132"}));
}

TEST_F(SplitLaunches, OthersAreCopiedAsTheyAreStoredWhereTheyCanBe) {
  for (const char* const transposition : {"nn", "nt", "tn", "tt"}) {
    const std::string problem = fmt::format("bf16 {} m256n256k128", transposition);
    EXPECT_EQ(launches(problem, 0, 0, whole), (Kernels{"make_parts 1", "tile_products 4"}));
    EXPECT_EQ(launches(problem, 8, 16, whole), (Kernels{"make_parts 1", "tile_products 4"}));
    for (const auto& [pad, ahead] : {std::pair(0, 8), std::pair(4, 0)}) {
      const Kernels made = launches(problem, pad, ahead, whole);
      ASSERT_EQ(made.size(), 2U);
      EXPECT_EQ(made[0], "make_parts 32") << problem;
    }
  }
  EXPECT_EQ(launches("f16 nt m256n100k60", 0, 0, whole).front(), "make_parts 12");
}

TEST_F(SplitLaunches, PartsOfSumsAreAdded) {
  const Kernels made = launches("f32 nn m100n90k2000", 0, 0, "tile_n=64 resident=2 parts=4 shared=0 raw=0");
  EXPECT_EQ(made, (Kernels{"find_largest 528", "make_parts 192", "tile_products 8", "add_parts 9"}));
}

// As many groups as share the device, at least one for each set of filters; 53,248 bytes of filters and 23,680 of x.
TEST_F(SplitLaunches, FewChannelsAreTwoLaunches) {
  constexpr const char* first_layer = "columns=64 held=1 blocks=2 resident=2";
  EXPECT_EQ(launches_of_few("n64c3h224w224k64r7s7p3u2", first_layer),
            (Kernels{"find_largest 528", "few_channels 264 77440"}));
  EXPECT_EQ(launches_of_few("bias n1c3h32w32k64r7s7p3u2", first_layer),
            (Kernels{"find_largest 528", "few_channels 1 77440"}));
  EXPECT_EQ(launches_of_few("n64c3h224w224k1000r7s7p3u2", first_layer)[1], "few_channels 256 77440");
  EXPECT_EQ(launches_of_few("n1c3h32w32k32000r7s7p3u2", first_layer)[1], "few_channels 500 77440");
}

TEST_F(SplitLaunches, AnySizes) {
  for (const char* const type : {"f32", "tf32", "f16", "bf16"})
    for (const char* const transposition : {"nn", "nt", "tn", "tt"})
      for (const char* const extents : {"m1n1k1", "m17n129k257", "m129n17k1", "m257n1k65batch3", "m1n257k20000"})
        for (const std::int64_t pad : {0, 1, 8})
          EXPECT_GE(launches(fmt::format("{} {} {}", type, transposition, extents), pad).size(), 2U);
}

}  // namespace
}  // namespace omniconv
