// What a run of gemm/split launches, and of conv2d/few_channels and of split_gemm with prepared operands, by a device
// that runs nothing: which kernels, with the arguments that they take, and copies that stay within their buffers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../conformance/solver_testing.h"
#include "../list_testing.h"
#include "devices/sequence.h"
#include "omniconv/problem.h"
#include "operations/conv2d/conv2d.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/split/matrices.h"
#include "recording_device.h"
#include "row_blocks.h"

namespace omniconv {
namespace {

using devices::Sequence;

// "task", "map", "pointer", "8", "4": of each parameter of a kernel, by the text, which may have those of boxes.
std::vector<std::string> parameters_of(const std::string& text, const std::string& kernel, bool is_boxed = false) {
  const std::size_t name = text.find("void " + kernel + "("), first = text.find('(', name) + 1;
  std::vector<std::string> all;
  std::string declared = text.substr(first, text.find(") {", first) - first) + ",";
  // What some texts alone have, in lines of their own.
  for (std::size_t line; (line = declared.find("#if")) != std::string::npos;) {
    const bool are_there = is_boxed && declared.compare(line, 9, "#if BOXED") == 0;
    const std::size_t end = declared.find("#endif", line);
    if (are_there) declared.erase(end, 6);
    declared.erase(line, are_there ? 9 : end + 6 - line);
  }
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
                                    const std::string& tuning = {}, bool is_relative = false) const {
    operations::GemmTask task = operations::task_for(get<GemmProblem>(parse_problem("gemm " + problem)));
    const GemmProblem& p = task.problem;
    task.lda += pad, task.ldb += pad;
    task.batch_a = task.lda * (p.transpose_a ? p.k : p.m), task.batch_b = task.ldb * (p.transpose_b ? p.n : p.k);
    const operations::Answer answer =
        operations::gemm_split_gpu().offer(task, device, {.relative_error = is_relative, .tuning = tuning});
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
    return kernels_of(sequence, problem);
  }
  // The same of a convolution by products of parts: that each kernel is given what it takes, and each copy what lies in
  // its buffer. Planes follow each other as the copies of low ones expect.
  std::vector<std::string> launches_of_convolution(const std::string& problem, const SolverOptions& options) const {
    const auto conv2d = get<Conv2dProblem>(parse_problem(problem));
    const operations::Answer answer = operations::conv2d_split_gemm_gpu().offer(conv2d, device, options);
    EXPECT_NE(answer.offer(), nullptr) << answer.refusal();
    const auto plan = answer.offer()->plan();
    const Conv2dElements all = elements_of(conv2d);
    const auto array = [&](std::int64_t elements) { return Operand{Buffer(device->allocate(elements * 4))}; };
    Conv2dRun run{.x = array(all.x), .w = array(all.w), .y = array(all.y)};
    run.workspace = Buffer(device->allocate(answer.offer()->workspace_bytes));
    Sequence sequence;
    static_cast<const operations::Conv2dPlanBody&>(*plan).append(sequence, run);
    std::vector<std::string> kernels;
    for (const Sequence::Step& step : sequence.steps()) {
      const auto& launch = std::get<Sequence::Launch>(step);
      kernels.push_back(launch.kernel);
      EXPECT_EQ(arguments_of(sequence, launch), parameters_of(text_with(launch.kernel), launch.kernel));
      std::vector<devices::TensorMap> maps;
      for (const Sequence::Argument& argument : sequence.arguments_of(launch))
        if (const auto* const map = std::get_if<Sequence::Map>(&argument.value)) {
          maps.push_back(sequence.map_of(*map));
          EXPECT_NO_THROW(devices::check(maps.back())) << problem;
        }
      for (std::size_t i = 0; i + 1 < maps.size(); i += 2) {
        const devices::TensorMap &high = maps[i], &low = maps[i + 1];
        const auto last = static_cast<std::size_t>(high.rank - 1);
        EXPECT_EQ(low.offset_bytes - high.offset_bytes, high.extents[last] * high.strides_bytes[last - 1]) << problem;
        EXPECT_EQ(low.extents[last], (options.relative_error ? 2 : 1) * high.extents[last]) << problem;
      }
    }
    return kernels;
  }
  // The same of few channels, and the bytes of local memory that its tiles ask for.
  std::vector<std::string> launches_of_few(const std::string& problem, const std::string& tuning = {}) const {
    const auto conv2d = get<Conv2dProblem>(parse_problem(problem));
    const auto& solver = conv2d.pass != Pass::backward_filter ? operations::conv2d_few_channels_gpu()
                         : tuning.starts_with("rows=")        ? operations::conv2d_few_channels_warps_gpu()
                                                              : operations::conv2d_few_channels_filter_gpu();
    const operations::Answer answer = solver.offer(conv2d, device, {.tuning = tuning});
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
      const std::vector<std::string> arguments = arguments_of(sequence, launch);
      EXPECT_EQ(arguments, parameters_of(text_with(launch.kernel), launch.kernel, arguments.front() == "map"));
    }
    return kernels;
  }
  // Kernels and their groups of a run of split_gemm whose arrays of these names are prepared; or, where there is one
  // more name, of its preparation. Copies stay within their buffers.
  std::vector<std::string> launches_of_conv2d(const std::string& problem, const std::vector<std::string>& prepared,
                                              const std::string& made = {}, const std::string& tuning = {},
                                              const std::vector<std::string>& measured = {}) const {
    const auto conv2d = get<Conv2dProblem>(parse_problem(problem));
    const operations::Answer answer = operations::conv2d_split_gemm_gpu().offer(
        conv2d, device, {.tuning = tuning, .prepared = prepared, .measured = measured});
    EXPECT_NE(answer.offer(), nullptr) << answer.refusal();
    const operations::Offer& offer = *answer.offer();
    const auto plan = offer.plan();
    const std::vector<ArraySpec> arrays = arrays_of(Problem(conv2d));
    std::vector<Operand> plain, given;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      plain.push_back({Buffer(device->allocate(arrays[i].bytes()))});
      const auto format = offer.prepared.find(i);
      given.push_back(format == offer.prepared.end() ? plain.back()
                                                     : Operand{Buffer(device->allocate(format->second.bytes))});
      const auto is_among = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), arrays[i].name) != names.end();
      };
      EXPECT_EQ(format != offer.prepared.end(), is_among(prepared) || is_among(measured));
    }
    const auto& body = static_cast<const operations::Conv2dPlanBody&>(*plan);
    Sequence sequence;
    if (made.empty()) {
      Conv2dRun run{.x = given[0], .w = given[1], .y = given[2]};
      if (conv2d.bias) run.bias = given[3];
      run.workspace = Buffer(device->allocate(offer.workspace_bytes));
      body.append(sequence, run);
    }
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (arrays[i].name == made) body.append_prepare(sequence, i, plain[i], given[i]);
    return kernels_of(sequence, problem);
  }
  std::vector<std::string> kernels_of(const Sequence& sequence, const std::string& problem) const {
    std::vector<std::string> kernels;
    for (const Sequence::Step& step : sequence.steps()) {
      if (const auto* const fill = std::get_if<Sequence::Fill>(&step)) {
        kernels.push_back(fmt::format("fill {}", fill->bytes));
        continue;
      }
      const auto& launch = std::get<Sequence::Launch>(step);
      kernels.push_back(fmt::format("{} {}", launch.kernel, launch.grid.global.x / launch.grid.local.x));
      EXPECT_EQ(arguments_of(sequence, launch), parameters_of(text_with(launch.kernel), launch.kernel)) << problem;
      for (const Sequence::Argument& argument : sequence.arguments_of(launch))
        if (const auto* const map = std::get_if<Sequence::Map>(&argument.value)) {
          EXPECT_NO_THROW(devices::check(sequence.map_of(*map))) << problem;
        }
    }
    return kernels;
  }
  operations::Answer offer_of(const std::string& problem, const std::vector<std::string>& prepared) const {
    return operations::conv2d_split_gemm_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device,
                                                     {.prepared = prepared});
  }
  // The format of an array, of which the pass has the place.
  PreparedFormat format_of(const std::string& problem, const char* array) const {
    const operations::Answer answer = offer_of(problem, {array});
    EXPECT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    return answer.offer() == nullptr ? PreparedFormat{} : answer.offer()->prepared.begin()->second;
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
  // 64 terms of 32 rows of a, and 64 columns of 32 terms of b.
  EXPECT_EQ(launches("f32 nn m256n256k128", 0, 0, whole),
            (Kernels{"find_largest 528", "make_parts 32", "tile_products 4"}));
  EXPECT_EQ(launches("tf32 tt m256n256k128batch2", 3, 4, whole),
            (Kernels{"find_largest_of_lines 528", "make_parts 64", "tile_products 8"}));
  EXPECT_EQ(launches("f32 nt m4096n4096k64", 0, 0, whole).back(), "tile_products 132");
}

// Of packed operands alone: the sample is of one run of elements.
TEST_F(SplitLaunches, LargeArraysAreSampledAndMended) {
  EXPECT_EQ(launches("f32 nn m4096n4096k2048", 0, 0, whole),
            (Kernels{"find_largest 528", "make_parts 8192", "make_parts 132", "tile_products 132"}));
  EXPECT_EQ(launches("f32 nn m4096n4096k2048", 4, 0, whole),
            (Kernels{"find_largest_of_lines 528", "make_parts 8192", "tile_products 132"}));
  EXPECT_EQ(launches("f32 nn m1024n1024k1024", 0, 0, whole),
            (Kernels{"find_largest 528", "make_parts 1024", "tile_products 64"}));
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
  EXPECT_EQ(made, (Kernels{"find_largest 528", "make_parts 254", "tile_products 8", "add_parts 9"}));
}

// Nothing is sampled where the smallest number counts too.
TEST_F(SplitLaunches, ThreePlanesFollowEachOther) {
  for (const char* const pass : {"", "bwd_data", "bwd_filter"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const geometry : {"n2c64h20w20k128r3s3p1", "n3c40h20w20k60r5s5p2g4", "n1c3h1024w1032k16r3s3p1"})
        for (const bool is_relative : {false, true}) {
          const std::string problem = fmt::format("{} {} {}", pass, layout, geometry);
          const SolverOptions tiles{.relative_error = is_relative,
                                    .tuning = "tile_n=64 resident=1 parts=1 shared=0 raw=0"};
          const std::vector<std::string> made = launches_of_convolution(problem, tiles);
          if (is_relative) {
            EXPECT_EQ(std::count(made.begin(), made.end(), "make_parts"), 1) << problem;
          }
        }
  const SolverOptions relative{.relative_error = true}, others;
  constexpr const char* large = "n4c64h256w256k64r3s3p1";
  EXPECT_EQ(launches_of_convolution(large, relative), (Kernels{"find_largest", "make_parts", "tile_products"}));
  EXPECT_EQ(launches_of_convolution(large, others),
            (Kernels{"find_largest", "make_parts", "make_parts", "tile_products"}));
  const std::string product = "f32 nn m4096n4096k2048";
  EXPECT_EQ(launches(product, 0, 0, whole, true),
            (Kernels{"find_largest 528", "make_parts 8192", "tile_products 132"}));
  EXPECT_EQ(launches("f32 tt m256n256k128batch2", 3, 4, whole, true),
            (Kernels{"find_largest_of_lines 528", "make_parts 64", "tile_products 8"}));
}

// What is built for them says so.
TEST_F(SplitLaunches, BlocksOfRows) {
  for (const auto& [tuning, problem] : blocks_of_rows) {
    const auto one = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    one->be_of_capability_90();
    one->set_compute_units(1);
    const operations::Answer answer =
        operations::conv2d_split_gemm_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), one, {.tuning = tuning});
    ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    answer.offer()->plan();
    bool are_blocks = false;
    for (const devices::Definition& each : one->built.front().definitions)
      are_blocks = are_blocks || (each.name == "BLOCK_H" && (each.value == "2" || each.value == "4"));
    EXPECT_TRUE(are_blocks) << problem;
  }
}

// Their tiles have as many rows as let them fill a round, of 264 groups or of 132 pairs of tiles.
TEST_F(SplitLaunches, BlocksOfRowsFillRounds) {
  for (const auto& [problem, rows] : std::initializer_list<std::pair<const char*, const char*>>{
           {"bwd_data n64c32h28w28k96r5s5p2", "104"},  // 26880 positions
           {"bwd_data nhwc n60c32h28w28k96r5s5p2", "96"},
           {"bwd_data nhwc n70c32h28w28k96r5s5p2", "112"},
           {"bwd_data n76c32h28w28k96r5s5p2", "128"}})
    for (const char* const tuning :
         {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "tile_n=64 resident=1 parts=1 shared=3 raw=0"}) {
      const auto asked = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      asked->be_of_capability_90(), asked->set_compute_units(132);
      const operations::Answer answer = operations::conv2d_split_gemm_gpu().offer(
          get<Conv2dProblem>(parse_problem(problem)), asked, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      std::string made;
      for (const devices::Definition& each : asked->built.front().definitions)
        if (each.name == "TILE_M") made = each.value;
      EXPECT_EQ(made, rows) << problem << ' ' << tuning;
    }
}

// As many groups as share the device, at least one for each set of filters; 53,248 bytes of filters, 23,680 of x and
// 34,816 of sums.
TEST_F(SplitLaunches, FewChannelsAreTwoLaunches) {
  constexpr const char* first_layer = "columns=64 held=1 blocks=2 width=16 side=1 workers=2 resident=2";
  EXPECT_EQ(launches_of_few("n64c3h224w224k64r7s7p3u2", first_layer),
            (Kernels{"find_largest 528", "few_channels 264 112992"}));
  EXPECT_EQ(launches_of_few("bias n1c3h32w32k64r7s7p3u2", first_layer),
            (Kernels{"find_largest 528", "few_channels 1 112992"}));
  EXPECT_EQ(launches_of_few("n64c3h224w224k1024r7s7p3u2", first_layer)[1], "few_channels 256 112992");
  EXPECT_EQ(launches_of_few("n1c3h32w32k32000r7s7p3u2", first_layer)[1], "few_channels 500 112992");
}

// Four parts of a set's sum in a group of work items; of large arrays samples are looked at, and mended. Each
// has 16,384 bytes of patches for 32 columns, 32,768 of rows, 512 of columns.
TEST_F(SplitLaunches, FiltersOfFewChannelsAreThreeLaunches) {
  constexpr const char* small = "columns=32 held=1 stages=2 workers=4 rows_of_x=0";
  EXPECT_EQ(launches_of_few("bwd_filter n32c3h224w224k64r3s3p1", small),
            (Kernels{"find_largest 528", "few_channels_filter 132 198912", "few_channels_filter 132 198912",
                     "add_parts 64"}));
  EXPECT_EQ(launches_of_few("bwd_filter n2c3h24w24k64r3s3p1", small),
            (Kernels{"find_largest 528", "few_channels_filter 5 198912", "add_parts 64"}));
  EXPECT_EQ(launches_of_few("bwd_filter n8c64h180w180k1r3s3p1", "columns=16 held=1 stages=2 workers=4 rows_of_x=1"),
            (Kernels{"find_largest 528", "few_channels_filter 132 165120", "few_channels_filter 132 165120",
                     "add_parts 32"}));
}

// By warps: 130 tiles of nine rows and all columns, whose x lies in 24 rows of three channels, two copies of 576 bytes,
// and twice for both parts; y's 72 sixteens in 1,088 bytes each.
TEST_F(SplitLaunches, FiltersByWarpsAreThreeLaunches) {
  EXPECT_EQ(launches_of_few("bwd_filter n10c3h128w128k10r16s16",
                            "rows=16 blocks=8 warps=12 resident=1 width=128 height=9 sixteens=4"),
            (Kernels{"find_largest 528", "few_channels_warps 130 170496", "add_parts 384"}));
}

// To the data: by 256 units, of which a launch makes all; 8192 bytes of filters, 28,080 of products and 6,144 of dx.
TEST_F(SplitLaunches, FewChannelsToTheDataAreTwoLaunches) {
  constexpr const char* tuning = "columns=32 held=3 blocks=2 width=128 side=1 workers=2 resident=2";
  EXPECT_EQ(launches_of_few("bwd_data n32c3h224w224k64r3s3p1", tuning),
            (Kernels{"find_largest 528", "few_channels_data 256 42672"}));
  EXPECT_EQ(launches_of_few("bwd_data acc nhwc n1c3h32w32k64r3s3p1", tuning)[1].substr(0, 17), "few_channels_data");
}

// 104 groups split x and 19 the filters, one tile has 128 pixels and all filters.
TEST_F(SplitLaunches, OfPreparedOperandsTheProductsAlone) {
  constexpr const char* problem = "n8c64h28w28k128r3s3p1";
  const auto run = [&](const std::vector<std::string>& prepared) {
    return launches_of_conv2d(problem, prepared, "", whole);
  };
  EXPECT_EQ(run({}), (Kernels{"make_parts 123", "tile_products 49"}));  // whose groups meet
  EXPECT_EQ(run({"w"}), (Kernels{"find_largest 528", "make_parts 104", "tile_products 49"}));
  EXPECT_EQ(run({"x"}), (Kernels{"find_largest 528", "make_parts 19", "tile_products 49"}));
  EXPECT_EQ(run({"w", "x"}), (Kernels{"tile_products 49"}));
  EXPECT_EQ(launches_of_conv2d(problem, {"x", "w"}, "x", whole), (Kernels{"keep_array 264", "make_parts 104"}));
  EXPECT_EQ(launches_of_conv2d(problem, {"x", "w"}, "w", whole), (Kernels{"keep_array 264", "make_parts 19"}));
  // Numbers that are their own parts, turned.
  EXPECT_EQ(launches_of_conv2d(fmt::format("bf16 {}", problem), {"x", "w"}, "", whole), (Kernels{"tile_products 49"}));
  EXPECT_EQ(launches_of_conv2d(fmt::format("bf16 {}", problem), {"x"}, "x", whole),
            (Kernels{"keep_array 264", "make_parts 104"}));
  // The filters beside an array whose parts are made in registers.
  EXPECT_EQ(
      launches_of_conv2d(fmt::format("nhwc {}", problem), {"w"}, "", "tile_n=128 resident=1 parts=1 shared=0 raw=1"),
      (Kernels{"find_largest 528", "make_parts 1", "tile_products 49"}));
  const Kernels of_filter = launches_of_conv2d(fmt::format("bwd_filter {}", problem), {"x", "dy"});
  EXPECT_EQ(of_filter.size(), 2U);
  EXPECT_EQ(of_filter.front().substr(0, 13), "tile_products");
}

// Groups that make parts of small arrays look for the largest magnitude themselves: 4 of each of 132 compute units. Not
// of larger arrays, of raw rows, of three parts, of taps among the channels, of strides that leave pixels out, nor
// where a device cannot have all groups at once.
TEST_F(SplitLaunches, GroupsOfSmallArraysMeet) {
  const auto do_meet = [&](const char* problem) {
    return launches_of_conv2d(problem, {}).front().starts_with("make_parts");
  };
  for (const char* const problem :
       {"n1c256h56w56k256r3s3p1", "tf32 nhwc n1c256h56w56k256r3s3p1", "n64c32h32w32k32r3s3p1",
        "bwd_data n8c64h28w28k128r3s3p1", "bwd_filter n8c64h14w14k64r3s3p1"})
    EXPECT_TRUE(do_meet(problem)) << problem;
  for (const char* const problem : {"n64c128h14w14k128r3s3p1", "nhwc n8c64h28w28k128r3s3p1", "n1c64h28w28k64r1s1u2",
                                    "n8c16h32w32k64r3s3p1u9", "bwd_filter n64c64h28w28k64r3s3p1"})
    EXPECT_FALSE(do_meet(problem)) << problem;
  EXPECT_EQ(launches_of_convolution("n8c64h28w28k128r3s3p1", {.relative_error = true}).front(), "find_largest");
  device->has_meetings = false;
  EXPECT_FALSE(do_meet("n1c256h56w56k256r3s3p1"));
}

// The scale of a prepared array is by all of it; the other's by a sample, which is mended.
TEST_F(SplitLaunches, PreparedOperandsAreNotSampled) {
  const auto run = [&](const std::vector<std::string>& prepared) {
    Kernels kernels = launches_of_conv2d("n1c64h1024w1032k64r3s3p1", prepared, "", whole);
    for (std::string& kernel : kernels) kernel = kernel.substr(0, kernel.find(' '));
    return kernels;
  };
  EXPECT_EQ(run({}), (Kernels{"find_largest", "make_parts", "make_parts", "tile_products"}));
  EXPECT_EQ(run({"w"}), (Kernels{"find_largest", "make_parts", "make_parts", "tile_products"}));
  EXPECT_EQ(run({"x"}), (Kernels{"find_largest", "make_parts", "tile_products"}));
  EXPECT_EQ(launches_of_conv2d("n1c64h1024w1032k64r3s3p1", {"x"}, "x", whole).size(), 2U);
}

// Of an array behind its largest magnitude that alone is looked at, beside the filters.
TEST_F(SplitLaunches, MeasuredArraysAreNotSampled) {
  const auto run = [&](const std::string& problem, const std::vector<std::string>& prepared,
                       const std::vector<std::string>& measured, const char* tuning = whole) {
    Kernels kernels = launches_of_conv2d(problem, prepared, "", tuning, measured);
    for (std::string& kernel : kernels) kernel = kernel.substr(0, kernel.find(' '));
    return kernels;
  };
  constexpr const char *large = "n1c64h1024w1032k64r3s3p1", *raw = "tile_n=128 resident=1 parts=1 shared=0 raw=1";
  EXPECT_EQ(run(large, {}, {"x"}), (Kernels{"find_largest", "make_parts", "tile_products"}));
  EXPECT_EQ(run(large, {}, {"y"}), (Kernels{"fill", "find_largest", "make_parts", "make_parts", "tile_products"}));
  EXPECT_EQ(run(large, {"w", "x"}, {"y"}), (Kernels{"fill", "tile_products"}));
  EXPECT_EQ(run(fmt::format("nhwc {}", large), {}, {"x"}, raw),
            (Kernels{"find_largest", "make_parts", "tile_products"}));
  EXPECT_EQ(run(fmt::format("nhwc {}", large), {}, {"y"}, raw),
            (Kernels{"fill", "find_largest", "make_parts", "tile_products"}));
  EXPECT_EQ(run("bwd_data n1c64h1024w1032k64r3s3p1", {"w"}, {"dy", "dx"}),
            (Kernels{"fill", "find_largest", "make_parts", "tile_products"}));
  EXPECT_EQ(run("bwd_filter n1c64h1024w1032k64r3s3p1", {}, {"x", "dy"}),
            (Kernels{"find_largest", "make_parts", "tile_products", "add_parts"}));
  const auto offer = [&](const char* problem, std::vector<std::string> measured) {
    return operations::conv2d_split_gemm_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device,
                                                     {.measured = std::move(measured)});
  };
  // What a layer writes is what the next one reads, in other layouts and types too.
  EXPECT_EQ(offer("n8c64h28w28k128r3s3p1", {"y"}).offer()->prepared.at(2).text,
            offer("tf32 n8c128h28w28k32r3s3", {"x"}).offer()->prepared.at(0).text);
  EXPECT_EQ(offer("f16 n8c64h28w28k128r3s3p1", {"x"}).refusal(),
            "takes no largest magnitudes of f16, which has no scale");
  EXPECT_EQ(offer("bias n8c64h28w28k128r3s3p1", {"bias"}).refusal(),
            "takes largest magnitudes of x and w alone, and leaves that of y");
  EXPECT_EQ(offer("bwd_filter n8c64h28w28k128r3s3p1", {"dw"}).refusal(),
            "takes largest magnitudes of x and dy alone, and leaves that of nothing");
}

TEST_F(SplitLaunches, PreparedArraysServeSeveralPasses) {
  int of_x = 0, of_dy = 0;
  for (const Conv2dProblem& listed : listed_problems<Conv2dProblem>("tiles.txt"))
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      Conv2dProblem problem = listed;
      problem.layout = layout, problem.type = DataType::f32;
      problem.bias = problem.relu = false;
      const auto text = [&](Pass pass) { return to_text(Problem(with_pass(problem, pass))); };
      const auto serves = [&](Pass pass, const char* array) {
        const operations::Answer answer = offer_of(text(pass), {array});
        if (answer.offer() == nullptr) return false;
        const std::int64_t plain = offer_of(text(pass), {}).offer()->workspace_bytes;
        // To the filter taps may stand among the channels of an x that is not prepared, which makes fewer sums.
        if (pass != Pass::backward_filter) {
          EXPECT_LT(answer.offer()->workspace_bytes, plain) << text(pass);
        }
        return true;
      };
      const auto expect_alike = [&](Pass first, const char* array, int& count) {
        if (!serves(first, array) || !serves(Pass::backward_filter, array)) return;
        ++count;
        const PreparedFormat one = format_of(text(first), array), other = format_of(text(Pass::backward_filter), array);
        EXPECT_EQ(one.text, other.text) << text(first);
        EXPECT_EQ(one.bytes, other.bytes) << text(first);
      };
      expect_alike(Pass::forward, "x", of_x);
      expect_alike(Pass::backward_data, "dy", of_dy);
    }
  EXPECT_GT(of_x, 40);
  EXPECT_GT(of_dy, 40);
}

TEST_F(SplitLaunches, PreparedFormatsSayWhatTheyAreOf) {
  std::set<std::string> texts;
  const std::pair<const char*, const char*> unlike[] = {{"n8c64h28w28k128r3s3p1", "x"},
                                                        {"nhwc n8c64h28w28k128r3s3p1", "x"},
                                                        {"tf32 n8c64h28w28k128r3s3p1", "x"},
                                                        {"f16 n8c64h28w28k128r3s3p1", "x"},
                                                        {"bf16 n8c64h28w28k128r3s3p1", "x"},
                                                        {"n8c64h28w28k128r3s3p1g2", "x"},
                                                        {"n8c3h28w28k128r3s3p1", "x"},
                                                        {"n8c3h28w28k128r3s3p1u2", "x"},
                                                        {"n8c3h28w28k128r3s3", "x"},
                                                        {"n8c3h28w28k128r3s3p1d2", "x"},
                                                        {"n8c3h28w28k128r3s5p1", "x"},
                                                        {"n8c64h28w28k128r1s1u2", "x"},
                                                        {"n8c64h28w29k128r1s1u2", "x"},
                                                        {"n8c64h28w28k128r3s3p1", "w"},
                                                        {"nhwc n8c64h28w28k128r3s3p1", "w"},
                                                        {"flip n8c64h28w28k128r3s3p1", "w"},
                                                        {"tf32 n8c64h28w28k128r3s3p1", "w"},
                                                        {"n8c64h28w28k128r3s3p1g2", "w"},
                                                        {"n8c3h28w28k128r3s3p1", "w"},
                                                        {"bwd_data n8c64h28w28k128r3s3p1", "w"},
                                                        {"bwd_data n8c64h28w28k128r3s3p1u2", "w"},
                                                        {"bwd_data n8c64h28w28k128r3s3u2", "w"},
                                                        {"bwd_data n8c64h28w28k128r3s3p1u2", "dy"}};
  for (const auto& [problem, array] : unlike)
    EXPECT_TRUE(texts.insert(format_of(problem, array).text).second) << problem;
  EXPECT_EQ(texts.size(), std::size(unlike));
  // What does not matter to it: the padding of windows, other filters; other images.
  EXPECT_EQ(format_of("n8c64h28w28k128r3s3p1", "x").text, format_of("n8c64h28w28k72r5s1", "x").text);
  EXPECT_EQ(format_of("n8c64h28w28k128r1s1", "w").text, format_of("bias relu n2c64h30w31k128r1s1", "w").text);
}

TEST_F(SplitLaunches, WhatHasNoPreparedFormIsRefused) {
  const auto refusal = [&](const char* problem, std::vector<std::string> prepared) {
    const operations::Answer answer = offer_of(problem, prepared);
    EXPECT_EQ(answer.offer(), nullptr) << problem;
    return answer.refusal();
  };
  EXPECT_EQ(refusal("n8c64h28w28k128r3s3p1", {"y"}), "has prepared forms of x and w alone");
  EXPECT_EQ(refusal("bias n8c64h28w28k128r3s3p1", {"x", "bias"}), "has prepared forms of x and w alone");
  EXPECT_EQ(refusal("bwd_data n8c64h28w28k128r3s3p1", {"x"}), "has prepared forms of dy and w alone");
  EXPECT_EQ(refusal("bwd_filter n8c64h28w28k128r3s3p1", {"w"}), "has prepared forms of x and dy alone");
  EXPECT_EQ(refusal("bf16 nhwc n8c64h28w28k128r3s3p1", {"x"}),
            "has no prepared form of x, which copies read as it lies");
  EXPECT_EQ(refusal("bf16 nhwc n8c64h28w28k128r3s3p1", {"w"}),
            "has no prepared form of w, which copies read as it lies");
  EXPECT_EQ(refusal("f16 nhwc bwd_filter n8c64h28w28k128r3s3p1", {"dy"}),
            "has no prepared form of dy, which copies read as it lies");
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
