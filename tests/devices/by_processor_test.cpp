// Kernel text for compute capability 9.0, run by the processor (cuda_by_processor/): what the processor finds wrong
// with a text, and solvers on matrix units, of which every form of text has a problem here. The lists of devices are
// longer.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../conformance/conv2d_testing.h"
#include "../list_testing.h"
#include "checking/verify.h"
#include "gpu_testing.h"
#include "range_testing.h"
#include "row_blocks.h"

namespace omniconv {
namespace {

class ByProcessor : public Gpu {
 protected:
  // What a kernel of one group leaves of these numbers; what it asks of local memory.
  std::vector<float> run(const std::string& text, int items, std::vector<float> numbers, std::int64_t local_bytes = 0) {
    const auto program = device->build(text, {});
    const auto buffer = filled(numbers);
    const auto queue = device->make_queue();
    const devices::KernelArgument arguments[] = {buffer.get()};
    const auto sequence = queue->take_sequence();
    sequence->launch(program, "run", {{items, 1}, {items, 1}}, arguments, {.local_memory_bytes = local_bytes});
    queue->submit(sequence).wait();
    queue->download(numbers.data(), buffer, 0, static_cast<std::int64_t>(numbers.size() * sizeof(float))).wait();
    return numbers;
  }
};

TEST_F(ByProcessor, WorkItemsMeet) {
  EXPECT_EQ(run(R"(KERNEL_OF(4, 1) void run(GLOBAL float* numbers) {
                     LOCAL float shared[4];
                     shared[LOCAL_ID_X] = numbers[LOCAL_ID_X];
                     BARRIER;
                     numbers[LOCAL_ID_X] = shared[3 - LOCAL_ID_X];
                   })",
                4, {1, 2, 3, 4}),
            (std::vector<float>{4, 3, 2, 1}));
  EXPECT_EQ(run(R"(KERNEL_OF(64, 1) void run(GLOBAL float* numbers) {
                     const uint largest = __reduce_max_sync(0xffffffff, (uint)LOCAL_ID_X);
                     if (LOCAL_ID_X % 32 == 0) numbers[LOCAL_ID_X / 32] = largest;
                   })",
                64, {0, 0}),
            (std::vector<float>{31, 63}));
}

// What was not written is no number, and stays none where a barrier is missing.
TEST_F(ByProcessor, LocalMemoryBeginsWithoutNumbers) {
  const std::vector<float> numbers = run(R"(KERNEL_OF(4, 1) void run(GLOBAL float* numbers) {
                                              LOCAL float shared[4];
                                              shared[LOCAL_ID_X] = 1;
                                              numbers[LOCAL_ID_X] = shared[3 - LOCAL_ID_X];
                                            })",
                                         4, {0, 0, 0, 0});
  EXPECT_TRUE(std::isnan(numbers[0]));
}

// Products are those of the units that are modelled, by either kind of instructions.
TEST_F(ByProcessor, MatrixUnitsAddUpAsIsKnown) {
  device->probe_matrix_units();
  EXPECT_EQ(device->matrix_units_refusal(), "");
}

using ByProcessorDeathTest = ByProcessor;

TEST_F(ByProcessorDeathTest, WhatIsWrongEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run(R"(KERNEL_OF(4, 1) void run(GLOBAL float* numbers) {
                        LAUNCH_LOCAL(float, shared);
                        shared[LOCAL_ID_X] = numbers[LOCAL_ID_X];
                      })",
                   4, {1, 2, 3, 4}, 12),
               "byte 12 of local memory is written, and the launch asks for 12");
  EXPECT_DEATH(run(R"(KERNEL_OF(64, 1) void run(GLOBAL float* numbers) {
                        if (LOCAL_ID_X < 32) BARRIER; else __syncwarp();
                        if (LOCAL_ID_X >= 32) omniconv_engine->meet(1, 128);
                        numbers[0] = 1;
                      })",
                   64, {0}),
               "all work items of a group wait, and none will go on");
  EXPECT_DEATH(run(R"(KERNEL_OF(1, 1) void run(GLOBAL float* numbers) { numbers[4096] = 1; })", 1, {0}), "");
}

// Solvers, a compilation or two each.
class SolversByProcessor : public ByProcessor {
 protected:
  void expect_right(const std::string& solver, const std::string& problem, const std::string& tuning = {},
                    bool is_relative = false) const {
    for (const checking::VerifyResult& result :
         checking::verify(Context(device), parse_problem(problem),
                          {.solver = {.solver = solver, .relative_error = is_relative, .tuning = tuning},
                          .sampled = true,
                          .samples = 1000}))
      EXPECT_EQ(result.status, checking::Status::ok) << problem << ' ' << tuning << ": " << result.reason;
  }
  // Of tunings and problems.
  void expect_each(const std::string& solver, std::initializer_list<std::pair<const char*, const char*>> cases) const {
    for (const auto& [tuning, problem] : cases) expect_right(solver, problem, tuning);
  }
};

constexpr const char *split_gemm = "conv2d/split_gemm/gpu.1", *split = "gemm/split/gpu.1",
                     *few_channels = "conv2d/few_channels/gpu.1",
                     *few_channels_filter = "conv2d/few_channels/gpu-filter.1",
                     *few_channels_warps = "conv2d/few_channels/gpu-filter-warps.1";

using SplitGemmByProcessor = SolversByProcessor;

// Boxes of 16, 32 and 64 channels, taps among the channels or not, classes and blocks of pixels, few pixels.
TEST_F(SplitGemmByProcessor, EveryForm) {
  for (const char* problem :
       {"n2c64h9w8k72r3s3p1", "nhwc n2c16h9w9k40r3s3p1g2", "n2c3h19w17k64r7s7p3u2",
        "nhwc bias relu acc n1c40h9w11k24r3s3p1u2", "flip n1c32h20w19k24r3s3p9d9", "n1c16h140w140k16r3s3p130d130",
        "n1c256h5w5k64r3s3p1", "n2c96h9w9k192r1s1g3", "bwd_data n2c64h9w8k72r3s3p1",
        "bwd_data acc nhwc n2c48h13w11k32r5s5p2u2", "bwd_data nhwc n2c20h12w13k64r1s1u2",
        "bwd_data n2c3h16w16k24r4s4u4", "bwd_data flip n2c12h15w16k24r3s2p1u3g2", "bwd_filter n2c64h9w8k72r3s3p1",
        "bwd_filter acc nhwc n2c40h9w8k130r3s3p1u2", "bwd_filter n4c20h11w9k24r5s5p2",
        "bwd_filter flip n2c24h9w8k48r3s1g2", "bwd_filter n8c48h4w4k40r1s1", "bwd_filter nhwc n4c40h5w7k208r1s1g4"})
    expect_right(split_gemm, problem);
}

TEST_F(SplitGemmByProcessor, EveryType) {
  for (const char* problem : {"tf32 n2c24h9w8k40r3s3p1", "bf16 nhwc n2c64h9w8k40r3s3p1", "f16 n2c24h9w8k40r3s3p1u2",
                              "bwd_data f16 nhwc n2c64h9w8k24r3s3p1", "bwd_data tf32 n2c24h9w8k40r3s3p1",
                              "bwd_filter bf16 nhwc n4c64h8w8k64r3s3p1", "bwd_filter tf32 n2c24h9w8k40r3s3p1"})
    expect_right(split_gemm, problem);
}

// Parts of four neighbouring pixels at a time: of blocks of pixels and of channels that are full and not, of groups, of
// one part and of two.
TEST_F(SplitGemmByProcessor, QuadsOfPixels) {
  for (const char* problem : {"n3c104h10w10k40r3s3p1", "tf32 n2c48h16w17k24r3s3p1", "flip n2c200h6w6k64r3s3p1g2",
                              "bwd_data tf32 n2c24h8w9k56r3s3p1", "bwd_filter n2c40h8w8k104r3s3p1"})
    expect_right(split_gemm, problem);
}

TEST_F(SplitGemmByProcessor, EveryTile) {
  expect_each(split_gemm,
              {{"tile_n=128 resident=1 parts=1 shared=0 raw=0", "n2c64h9w9k136r3s3p1"},
               {"tile_n=128 resident=1 parts=1 shared=1 raw=0", "bwd_data nhwc n1c128h9w20k48r3s3p1"},
               {"tile_n=64 resident=1 parts=2 shared=0 raw=0", "n1c64h9w9k64r3s3p1"},
               {"tile_n=64 resident=2 parts=2 shared=1 raw=0", "nhwc n1c80h9w20k64r3s5p2"},
               {"tile_n=32 resident=2 parts=3 shared=0 raw=0", "nhwc n1c64h9w9k30r3s3p1"},
               {"tile_n=32 resident=2 parts=1 shared=1 raw=0", "bwd_data n1c24h9w20k40r3s3p1"},
               {"tile_n=32 resident=2 parts=1 shared=1 raw=0", "bwd_data n2c24h19w18k96r5s5p2"},
               {"tile_n=32 resident=1 parts=2 shared=0 raw=0", "nhwc bias relu n2c48h9w38k40r3s3p1"},
               {"tile_n=256 resident=1 parts=1 shared=0 raw=0", "bf16 nhwc n2c64h9w9k250r3s3p1"},
               {"tile_n=256 resident=1 parts=2 shared=0 raw=0", "bwd_filter bf16 nhwc n4c64h14w14k256r3s3p1"},
               {"tile_n=128 resident=1 parts=2 shared=0 raw=0", "bwd_filter n4c64h9w9k130r3s3p1"},
               {"tile_n=64 resident=1 parts=3 shared=0 raw=0", "bwd_filter nhwc n4c24h9w9k60r3s3p1"},
               {"tile_n=64 resident=2 parts=3 shared=0 raw=0", "bwd_filter n2c70h19w9k60r3s3p1"}});
}

TEST_F(SplitGemmByProcessor, TilesOf96Columns) {
  expect_each(split_gemm,
              {{"tile_n=96 resident=1 parts=1 shared=0 raw=0", "bias relu n2c64h9w9k96r3s3p1"},
               {"tile_n=96 resident=1 parts=2 shared=0 raw=0", "nhwc acc n2c32h9w9k90r5s5p2"},
               {"tile_n=96 resident=1 parts=1 shared=1 raw=0", "nhwc n1c32h9w20k96r5s5p2"},
               {"tile_n=96 resident=1 parts=1 shared=0 raw=0", "nhwc bias bf16 n2c64h9w9k96r3s3p1"},
               {"tile_n=96 resident=1 parts=1 shared=1 raw=0", "bwd_data tf32 n1c184h9w20k64r3s3p1"},
               {"tile_n=96 resident=1 parts=1 shared=0 raw=0", "bwd_data bf16 nhwc n2c96h9w9k72r3s3p1"},
               {"tile_n=96 resident=1 parts=2 shared=0 raw=0", "bwd_filter n4c64h9w9k96r3s3p1"},
               {"tile_n=96 resident=1 parts=2 shared=0 raw=0", "bwd_filter bf16 nhwc n4c136h9w9k184r3s3p1"}});
}

// Boxes of 32 channels, of rows or of columns.
TEST_F(SplitGemmByProcessor, NarrowBoxesToTheFilter) {
  expect_each(split_gemm, {{"tile_n=96 resident=1 parts=3 shared=0 raw=0", "bwd_filter n4c32h9w9k96r5s5p2"},
                           {"tile_n=128 resident=1 parts=2 shared=0 raw=0", "bwd_filter nhwc n4c96h9w9k130r3s3p1"},
                           {"tile_n=64 resident=2 parts=2 shared=0 raw=0", "bwd_filter flip n4c80h9w9k60r3s3p1u2g2"},
                           {"tile_n=64 resident=1 parts=2 shared=0 raw=0", "bwd_filter bf16 nhwc n4c96h9w9k64r3s3p1"},
                           {"tile_n=128 resident=1 parts=2 shared=0 raw=1", "bwd_filter nhwc n2c96h12w12k128r3s3p1"},
                           {"tile_n=64 resident=1 parts=1 shared=0 raw=1", "bwd_filter tf32 n2c32h12w12k96r3s3p1d2"}});
}

// Under nhwc results are stored as boxes, where their lines are multiples of 16 bytes: of whole tiles, of positions
// behind the columns and the last image, of fewer filters than a tile's, of groups.
TEST_F(SplitGemmByProcessor, Boxes) {
  expect_each(split_gemm,
              {{"tile_n=128 resident=1 parts=1 shared=0 raw=0", "nhwc bias relu n2c64h9w9k136r3s3p1"},
               {"tile_n=128 resident=1 parts=1 shared=1 raw=0", "nhwc n2c64h9w9k136r3s3p1"},
               {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "nhwc bias n2c64h19w9k60r3s3p1"},
               {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "nhwc f16 bias n2c64h19w9k136r3s3p1"},
               {"tile_n=64 resident=1 parts=1 shared=1 raw=0", "bwd_data nhwc bf16 n2c128h19w9k64r3s3p1g2"},
               {"tile_n=32 resident=2 parts=1 shared=0 raw=0", "bwd_data nhwc n2c28h19w9k64r3s3p1"},
               {"tile_n=32 resident=2 parts=1 shared=0 raw=0", "nhwc bias f16 n2c32h19w9k72r3s3p1"},
               {"tile_n=256 resident=1 parts=1 shared=0 raw=0", "nhwc bias relu bf16 n3c64h9w9k264r3s3p1u2"},
               {"tile_n=256 resident=1 parts=1 shared=0 raw=0", "nhwc tf32 n1c64h9w19k520r1s1"},
               {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "nhwc bias n2c72h9w19k132r3s3p1"},
               {"tile_n=64 resident=1 parts=1 shared=0 raw=1", "nhwc tf32 n2c72h9w19k60r1s1"}});
}

// The bytes of y, which begins so far behind a buffer's first, of numbers from -3 to 3.
std::vector<std::byte> output_at(const Context& context, const Conv2dPlan& plan, std::int64_t offset_bytes) {
  const Conv2dElements elements = elements_of(plan.problem());
  const std::int64_t size = size_of(plan.problem().type);
  Queue queue = context.make_queue();
  const auto filled_with = [&](std::int64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(i * 5 % 7 - 3);  // whose first half is bf16
      std::memcpy(bytes.data() + i * size, reinterpret_cast<const std::byte*>(&value) + 4 - size,
                  static_cast<std::size_t>(size));
    }
    const Buffer buffer = context.allocate(count * size);
    queue.upload(buffer, 0, bytes.data(), count * size);
    queue.finish();
    return buffer;
  };
  const Buffer y = context.allocate(elements.y * size + offset_bytes);
  plan.run(queue, {.x = {filled_with(elements.x)},
                   .w = {filled_with(elements.w)},
                   .y = {y, offset_bytes},
                   .bias = {},
                   .workspace = context.allocate(plan.workspace_bytes())});
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements.y * size));
  queue.download(bytes.data(), y, offset_bytes, elements.y * size);
  queue.finish();
  return bytes;
}
// Where the output does not begin on 16 bytes copies store nothing, and results are the same.
TEST_F(SplitGemmByProcessor, BoxesBetween16Bytes) {
  const Context context(device);
  for (const auto& [tuning, problem] : std::initializer_list<std::pair<const char*, const char*>>{
           {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "nhwc n2c64h9w9k136r3s3p1"},
           {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "nhwc n2c64h9w9k132r3s3p1"},
           {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "nhwc bf16 n2c64h9w9k72r3s3p1"},
           {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "n2c64h8w8k72r3s3p1"},
           {"tile_n=32 resident=2 parts=1 shared=0 raw=0", "nhwc bf16 n2c32h9w9k40r3s3p1"}}) {
    const Conv2dPlan plan(context, get<Conv2dProblem>(parse_problem(problem)),
                          {.solver = split_gemm, .tuning = tuning});
    EXPECT_EQ(output_at(context, plan, 32), output_at(context, plan, 32 + size_of(plan.problem().type))) << problem;
  }
}

// A device of few compute units, whose groups make several tiles.
template <int UNITS>
class SolversOnUnits : public SolversByProcessor {
 protected:
  void SetUp() override {
    setenv("OMNICONV_BY_PROCESSOR_UNITS", std::to_string(UNITS).c_str(), 1);
    SolversByProcessor::SetUp();
    unsetenv("OMNICONV_BY_PROCESSOR_UNITS");
  }
};
using SplitGemmOnOneUnit = SolversOnUnits<1>;
using SplitGemmOnFewUnits = SolversOnUnits<3>;

// Two warpgroups share windows and filters: whole tiles, those of which the second has no positions, parts, classes.
TEST_F(SplitGemmOnFewUnits, PairsOfTiles) {
  expect_each(split_gemm, {{"tile_n=64 resident=1 parts=1 shared=3 raw=0", "bias relu n2c64h18w20k64r3s3p1"},
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "nhwc bias n1c64h7w36k60r3s3"},
                           {"tile_n=64 resident=1 parts=2 shared=3 raw=0", "n4c128h19w20k64r3s3p1"},
                           {"tile_n=64 resident=1 parts=3 shared=3 raw=0", "bwd_data nhwc acc n4c64h19w20k128r3s3p1"},
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "bwd_data nhwc n2c64h31w33k40r5s5p2u2"},
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "bf16 nhwc n2c64h19w20k72r3s3p1"},
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "f16 n2c64h16w20k64r5s5p2g2"},
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "bwd_data n1c32h20w60k24r5s5p2"},
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "nhwc n1c24h20w64k32r5s5p2"},
                           // Without padding positions are the output's pixels: boxes of whole lines.
                           {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "n3c64h10w18k64r3s3"},
                           {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "n3c64h10w18k64r3s3"}});
}

// Tiles of blocks of rows, of 104, 112 and 96 positions: as many as six groups make at once.
TEST_F(SplitGemmOnFewUnits, RowsFillARound) {
  const char* const tuning = "tile_n=64 resident=2 parts=1 shared=1 raw=0";
  expect_each(split_gemm, {{tuning, "bwd_data n1c32h20w60k24r5s5p2"},
                           {tuning, "nhwc bias f16 n1c24h20w60k32r5s5p2"},
                           {tuning, "bias relu n1c24h20w64k30r5s5p2"},
                           {tuning, "bwd_data nhwc acc n1c32h19w54k24r5s5p2"},
                           {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "bwd_data n1c32h20w62k24r5s5p2"}});
}

// Of 96 columns a tile has three boxes, and the next tile begins where the last one was made.
TEST_F(SplitGemmOnOneUnit, BoxesOf96Columns) {
  expect_each(split_gemm, {{"tile_n=96 resident=1 parts=1 shared=0 raw=0", "nhwc n5c16h12w12k96r1s1"},
                           {"tile_n=96 resident=1 parts=1 shared=0 raw=0", "nhwc bias bf16 n5c16h12w12k96r1s1"},
                           {"tile_n=96 resident=1 parts=1 shared=1 raw=0", "nhwc n5c16h12w12k96r1s3pl1pr1"}});
}

// So many pixels that a work item makes all channels of one, which are no eights.
TEST_F(SplitGemmOnFewUnits, ManyPixelsOfFewChannels) {
  expect_each(split_gemm, {{"tile_n=32 resident=2 parts=1 shared=0 raw=0", "nhwc n2c12h260w256k16r1s1"}});
}

// Of more tiles than are made at once, the last ones have sums in parts: of 7, 10, 14 and 28 tiles one or two.
TEST_F(SplitGemmOnFewUnits, CutsTheLastTiles) {
  expect_each(split_gemm,
              {{"tile_n=64 resident=1 parts=2 shared=0 raw=0", "bias n4c64h13w17k64r3s3p1"},
               {"tile_n=64 resident=1 parts=3 shared=0 raw=0", "nhwc bias relu n4c64h13w17k60r3s3p1"},
               {"tile_n=128 resident=1 parts=2 shared=0 raw=0", "bwd_data bf16 nhwc n4c136h13w17k64r3s3p1"},
               {"tile_n=64 resident=1 parts=2 shared=1 raw=0", "bwd_data nhwc n4c64h10w29k128r3s3p1"},
               {"tile_n=64 resident=1 parts=2 shared=0 raw=1", "acc nhwc n4c72h13w17k64r3s3p1"},
               {"tile_n=64 resident=1 parts=3 shared=0 raw=0", "bwd_filter n4c136h13w12k70r3s3p1"},
               {"tile_n=128 resident=1 parts=2 shared=0 raw=0", "bwd_filter nhwc bf16 n4c136h13w12k136r3s3p1"},
               {"tile_n=128 resident=1 parts=2 shared=0 raw=1", "bwd_filter n4c144h12w12k136r3s3p1"}});
}
// Positions are blocks of two rows, or of four, where filters are few and tiles many (SplitLaunches.BlocksOfRows).
TEST_F(SplitGemmOnOneUnit, BlocksOfRows) {
  expect_each(split_gemm, blocks_of_rows);
}
// To the data, copies read filters of 16 bits as they lie.
TEST_F(SplitGemmByProcessor, TurnedFilters) {
  expect_each(split_gemm,
              {{"tile_n=128 resident=1 parts=1 shared=0 raw=0", "bwd_data bf16 nhwc n2c136h9w9k72r3s3p1"},
               {"tile_n=256 resident=1 parts=2 shared=0 raw=0", "bwd_data flip f16 nhwc n2c264h9w9k64r3s3p1"},
               {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "bwd_data bf16 nhwc n2c64h9w29k24r3s3p1"},
               {"tile_n=64 resident=1 parts=1 shared=2 raw=0", "bwd_data bf16 nhwc n2c40h9w29k64r3s3p1"},
               {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "bwd_data bf16 nhwc n2c48h10w11k64r3s3p1u2g2"},
               {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "bwd_data f16 nhwc n2c64h10w11k16r5s5p2u2"},
               {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "bwd_data bf16 nhwc n2c128h10w11k72r1s1u2"}});
}
// Under nchw they are where images have lines of pixels whole.
TEST_F(SplitGemmOnFewUnits, PlanarBoxes) {
  expect_each(split_gemm, {{"tile_n=128 resident=1 parts=1 shared=0 raw=0", "bias relu n3c64h8w12k136r3s3p1"},
                           {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "bwd_data n3c100h8w10k64r3s3p1"},
                           {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "bf16 bias n3c64h8w16k60r3s3p1"},
                           {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "f16 n3c128h8w12k128r3s3p1g2"},
                           {"tile_n=64 resident=1 parts=1 shared=0 raw=0", "tf32 n3c64h16w16k40r1s1u2"}});
}
// All filters of a tile stay in local memory.
TEST_F(SplitGemmOnFewUnits, KeptFilters) {
  expect_each(split_gemm, {{"tile_n=64 resident=1 parts=1 shared=2 raw=0", "bf16 nhwc bias n3c64h19w29k64r3s3p1"},
                           {"tile_n=64 resident=1 parts=1 shared=2 raw=0", "bwd_data f16 nhwc n2c64h9w9k64r3s3p1"},
                           {"tile_n=64 resident=1 parts=1 shared=2 raw=0", "tf32 n2c24h19w29k40r3s3p1"},
                           {"tile_n=32 resident=1 parts=1 shared=2 raw=0", "tf32 nhwc n2c32h19w29k32r3s3p1"},
                           {"tile_n=32 resident=1 parts=1 shared=2 raw=0", "bwd_data bf16 n1c20h9w29k32r5s5p2"}});
}

TEST_F(SplitGemmByProcessor, RawRows) {
  expect_each(split_gemm,
              {{"tile_n=128 resident=1 parts=1 shared=0 raw=1", "nhwc n2c72h9w8k130r3s3p1"},
               {"tile_n=64 resident=1 parts=2 shared=0 raw=1", "nhwc bias relu n1c264h9w8k60r1s1"},
               {"tile_n=64 resident=1 parts=1 shared=0 raw=1", "tf32 n1c264h9w12k60r1s1"},
               {"tile_n=64 resident=1 parts=1 shared=0 raw=1", "bwd_data acc nhwc n2c40h9w8k64r3s3p1"},
               {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "bwd_filter n3c72h9w8k130r1s1"},
               {"tile_n=64 resident=1 parts=3 shared=0 raw=1", "bwd_filter nhwc n9c72h9w7k31r1s1"},
               {"tile_n=128 resident=2 parts=2 shared=0 raw=1", "bwd_filter n3c40h10w8k72r3s3p1"},
               {"tile_n=128 resident=2 parts=2 shared=0 raw=1", "bwd_filter acc nhwc n2c144h14w12k64r3s2p1u2g2"},
               {"tile_n=128 resident=1 parts=2 shared=0 raw=1", "bwd_filter flip n2c32h12w12k96r5s5p2"},
               {"tile_n=64 resident=1 parts=1 shared=0 raw=1", "bwd_filter tf32 nhwc n2c20h12w12k96r5s5p2d2"},
               {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "bwd_filter n2c80h14w14k64r3s3p1g2"}});
}

TEST_F(SplitGemmByProcessor, RelativeErrors) {
  for (const char* problem :
       {"n2c64h9w8k72r3s3p1", "bwd_data nhwc n2c40h9w8k24r3s3p1u2", "bwd_filter tf32 n2c24h9w8k40r3s3p1"})
    expect_right(split_gemm, problem, {}, true);
  expect_right(split_gemm, "n1c64h9w9k64r3s3p1", "tile_n=64 resident=1 parts=1 shared=1 raw=0", true);
}

TEST_F(SplitGemmByProcessor, NumbersOfAnyRange) {
  expect_of_scales(Context(device), split_gemm, 0x1p100f, 0x1p-110f);
  expect_of_scales(Context(device), split_gemm, 0x1p-149f, 1.0f);
  expect_largest_beside_smallest(Context(device), split_gemm);
}
TEST_F(SplitGemmByProcessor, InfinitiesAndNaN) {
  expect_infinities_as_defined(Context(device), split_gemm, {"n1c20h7w6k12r3s3p1"});
  expect_infinities_as_defined(Context(device), split_gemm, {"bf16 nhwc n1c64h5w6k40r3s3p1"});
}
TEST_F(SplitGemmByProcessor, IsReplayed) {
  expect_replayed(Context(device), split_gemm, {"n1c64h9w8k72r3s3p1", "bwd_filter n1c64h9w8k72r3s3p1"});
}

using SplitProductsByProcessor = SolversByProcessor;

TEST_F(SplitProductsByProcessor, EveryForm) {
  for (const char* problem :
       {"gemm f32 nn m130n70k100", "gemm f32 nt m60n130k129batch2", "gemm f32 tn m100n30k200",
        "gemm f32 tt m129n129k65", "gemm bf16 nt m130n72k104", "gemm tf32 nn m64n64k64", "gemm f16 tn m100n200k72"})
    expect_right(split, problem);
  expect_right(split, "gemm f32 nn m130n70k100", {}, true);
  expect_right(split, "gemm bf16 nt m130n300k200", "tile_n=256 resident=1 parts=1 shared=0 raw=0");
}

using OtherSolversByProcessor = SolversByProcessor;

TEST_F(OtherSolversByProcessor, OnWarpsInstructions) {
  for (const char* problem :
       {"n2c20h9w8k40r3s3p1", "nhwc bias relu acc n2c64h9w8k72r3s3p1u2", "bf16 nhwc n2c64h9w8k40r3s3p1",
        "bwd_data n2c40h9w8k24r3s3p1u2", "bwd_data f16 nhwc n2c64h9w8k24r1s1", "bwd_filter n2c24h9w8k40r3s3p1",
        "bwd_filter nhwc tf32 n2c24h9w8k40r3s3p1"})
    expect_right("conv2d/mma_gemm/gpu.1", problem);
}
TEST_F(OtherSolversByProcessor, OnMultiplyAddUnits) {
  for (const char* solver : {"conv2d/implicit_gemm/gpu.1", "conv2d/im2col_gemm/gpu.1", "conv2d/direct/gpu.1"})
    for (const char* problem :
         {"n2c20h9w8k40r3s3p1", "bwd_data nhwc n2c12h9w8k20r3s3p1u2", "bwd_filter n2c12h9w8k20r3s3p1"})
      expect_right(solver, problem);
  for (const char* problem : {"bias relu acc n2c20h9w8k12r3s3p1", "nhwc n2c12h9w10k20r3s3p1g2",
                              "bwd_data n1c12h9w8k10r5s5p2", "bwd_data flip nhwc n2c8h11w9k12r3s3p1",
                              "bwd_filter acc n2c12h9w8k10r3s3p1", "bwd_filter flip nhwc n2c8h11w9k12r3s3p1g2"})
    expect_right("conv2d/winograd/gpu.1", problem);
  for (const char* problem :
       {"bias relu n1c2h9w20k3r5s3p1", "nhwc bwd_data n1c4h9w8k4r3s3p1g4", "bwd_filter flip n1c2h9w8k3r3s3p1"})
    expect_right("conv2d/fft/gpu.1", problem);
  for (const char* problem :
       {"n2c8h19w12k8r3s3p1g8", "bwd_data nhwc n2c8h9w12k8r3s3p1g8", "bwd_filter n2c8h19w12k8r3s3p1g8",
        "n5c9h14w10k9r3s3p1u2g9", "nhwc flip n3c36h14w14k36r3s3p1u2g36", "bwd_filter nhwc n9c12h29w30k12r3s3p1g12"})
    expect_right("conv2d/depthwise/gpu.1", problem);
  const std::string strips = "rows=14 columns=2 lanes=4 planes=0 resident=3 async=0 ahead=1";
  for (const char* problem : {"bf16 nhwc bias n2c24h29w18k24r3s3p1g24", "f16 nhwc acc n2c12h31w19k12r3s3p1u2g12",
                              "bf16 bwd_data nhwc n1c36h23w21k36r3s3p1g36"})
    expect_right("conv2d/depthwise/gpu.1", problem, strips + " waves=0 alone=1");
  for (const char* problem :
       {"bf16 bwd_filter nhwc n3c24h29w18k24r3s3p1g24", "f16 bwd_filter nhwc n2c12h31w19k12r3s3p1u2g12"})
    expect_right("conv2d/depthwise/gpu.1", problem, strips + " waves=1 alone=0");
}

TEST_F(OtherSolversByProcessor, FewPixelsAndShortSums) {
  for (const char* problem : {"bwd_filter n1c40h7w7k36r3s3p1", "bwd_filter acc nhwc n2c40h7w7k36r3s3p1"})
    expect_right("conv2d/few_pixels/gpu.1", problem);
  for (const char* problem : {"gemm f32 tn m48n200k16", "gemm bf16 nt m37n45k7"})
    expect_right("gemm/short/gpu.1", problem);
}

TEST_F(OtherSolversByProcessor, ProductsOfElevenBits) {
  for (const char* problem : {"gemm f32 nn m70n90k33", "gemm f32 nt m40n36k68", "gemm f32 tn m132n72k96",
                              "gemm f32 tt m33n34k9 batch2", "gemm tf32 nt m40n32k52"})
    expect_right("gemm/mma/gpu.1", problem);
}

TEST_F(OtherSolversByProcessor, ProductsOfPlanes) {
  for (const char* problem :
       {"gemm f32 nn m70n90k33", "gemm f32 nt m40n36k68 batch2", "gemm f32 tn m132n72k96", "gemm f32 tt m33n34k9"})
    expect_right("gemm/planes/gpu.1", problem);
}

// A group's turns of rows come as boxes: of one part of a row and several, of 16 bits, of kernels of many rows. Those
// of 32 bits do not, nor those that lie an odd number of bytes apart.
using FiltersOnOneUnit = SolversOnUnits<1>;
TEST_F(FiltersOnOneUnit, RowsAsBoxes) {
  for (const char* problem :
       {"filter2d u8 h300w112c3r9s9 kernel:gaussian:9", "filter2d u8 h300w400c3r9s7 reflect kernel:rank1",
        "filter2d u8 h300w113c3r9s9 wrap kernel:rank1", "filter2d u16 h200w336r13s13 constant:3 kernel:rank1",
        "filter2d f32 h200w112c3r9s9 kernel:rank1", "filter2d u8 h200w160c3r21s21 replicate kernel:gaussian:21",
        "filter2d u8 h200w176c3r5s5 valid kernel:rank1"})
    expect_right("filter2d/separable/gpu-fused.1", problem);
}

using FewChannelsByProcessor = SolversByProcessor;

TEST_F(FewChannelsByProcessor, Forward) {
  for (const char* problem : {"n2c3h23w25k64r7s7p3u2", "nhwc bias relu n1c3h24w33k40r3s3p1",
                              "tf32 acc n2c1h20w21k24r5s5p2", "flip n1c8h20w24k16r3s3p1g4", "nhwc n1c4h24w24k33r4s4u4",
                              "f16 n1c3h20w21k40r3s3p1", "bf16 nhwc acc flip n2c2h20w21k24r5s5p2u2"})
    expect_right(few_channels, problem);
}
// Boxes in both layouts of lines of 64 and of 128 bytes, of filters that end within a box, of groups; lines that no
// boxes have; pixels side by side; four warpgroups.
constexpr std::pair<const char*, const char*> few_channels_tunings[] = {
    {"columns=64 held=1 blocks=1 width=32 side=1 workers=2 resident=2", "n2c3h14w40k64r3s3p1"},
    {"columns=32 held=2 blocks=1 width=16 side=1 workers=2 resident=2", "bias relu n1c3h14w36k64r3s3p1"},
    {"columns=64 held=1 blocks=2 width=16 side=1 workers=2 resident=2", "nhwc n2c3h20w33k60r3s3u2"},
    {"columns=16 held=2 blocks=1 width=16 side=1 workers=2 resident=2", "bias nhwc n1c6h17w20k64r3s3g2"},
    {"columns=16 held=3 blocks=1 width=64 side=1 workers=2 resident=2", "f16 n1c3h9w80k48r3s3p1"},
    {"columns=64 held=1 blocks=1 width=32 side=1 workers=2 resident=2", "bias bf16 n1c3h9w72k64r3s3p1"},
    {"columns=64 held=1 blocks=1 width=32 side=1 workers=2 resident=2", "relu f16 nhwc n2c3h9w41k56r3s3"},
    {"columns=32 held=1 blocks=2 width=16 side=1 workers=2 resident=2", "bf16 nhwc n1c1h9w41k32r5s5p2"},
    {"columns=24 held=1 blocks=1 width=32 side=2 workers=2 resident=1", "n1c3h21w90k10r8s8p2"},
    {"columns=40 held=1 blocks=1 width=16 side=4 workers=2 resident=1", "acc f16 nhwc n1c3h20w75k10r6s6"},
    {"columns=32 held=2 blocks=1 width=16 side=4 workers=2 resident=2", "tf32 n1c2h20w75k13r3s4u2"},
    {"columns=64 held=1 blocks=1 width=32 side=1 workers=4 resident=1", "n2c3h23w80k64r7s7p3u2"},
    {"columns=16 held=1 blocks=1 width=64 side=1 workers=4 resident=1", "nhwc n1c3h40w150k16r3s3"},
    {"columns=24 held=1 blocks=1 width=32 side=1 workers=2 resident=2", "nhwc n1c3h14w40k24r3s3p1"},
    {"columns=48 held=1 blocks=1 width=16 side=1 workers=2 resident=2", "f16 nhwc n1c3h14w40k48r3s3p1"},
    {"columns=56 held=1 blocks=1 width=16 side=1 workers=2 resident=2", "n1c3h14w40k56r3s3p1"}};
TEST_F(FewChannelsByProcessor, ForwardByEveryTuning) {
  for (const auto& [tuning, problem] : few_channels_tunings) expect_right(few_channels, problem, tuning);
}
// One compute unit, whose groups make one tile after the other: patches and boxes that others were in.
using FewChannelsOnOneUnit = SolversOnUnits<1>;
TEST_F(FewChannelsOnOneUnit, ForwardByEveryTuning) {
  for (const auto& [tuning, problem] : few_channels_tunings) expect_right(few_channels, problem, tuning);
  expect_right(few_channels, "n5c3h34w40k64r3s3p1", "columns=64 held=1 blocks=1 width=32 side=1 workers=2 resident=2");
}
// Results that are none among boxes, and of pixels side by side; y that begins where copies store nothing.
TEST_F(FewChannelsByProcessor, OddNumbersAndPlaces) {
  const std::array forward = {Pass::forward};
  expect_infinities_as_defined(Context(device),
                               {few_channels, false, "columns=64 held=1 blocks=1 width=32 side=1 workers=2 resident=2"},
                               {"f16 n1c3h9w34k64r3s3", "bf16 nhwc n1c3h9w34k64r3s3"}, forward);
  expect_infinities_as_defined(Context(device),
                               {few_channels, false, "columns=24 held=1 blocks=1 width=16 side=2 workers=2 resident=1"},
                               {"f16 n1c3h9w34k10r3s3"}, forward);
  expect_same_wherever_arrays_begin(Context(device), conv2d_problem("n2c3h24w40k64r3s3p1"), few_channels);
}
TEST_F(FewChannelsByProcessor, ToTheData) {
  for (const char* problem : {"bwd_data n2c3h23w25k64r7s7p3u2", "bwd_data acc nhwc n1c3h24w33k40r3s3p1",
                              "bwd_data tf32 n2c1h20w21k70r5s5p2", "bwd_data flip n1c8h20w24k16r3s3p1g4"})
    expect_right(few_channels, problem);
}
TEST_F(FewChannelsByProcessor, ToTheFilter) {
  for (const char* problem : {"bwd_filter n2c3h23w25k64r7s7p3u2", "bwd_filter acc nhwc n1c3h24w33k40r3s3p1",
                              "bwd_filter tf32 n2c8h20w21k24r3s3p1", "bwd_filter n2c32h20w24k3r5s5p2"})
    expect_right(few_channels_filter, problem);
}
// Taps that share pixels and not, strides whose phases are more than taps and fewer, rows that end within a tile,
// groups.
TEST_F(FewChannelsByProcessor, ToTheFilterByWarps) {
  for (const char* problem :
       {"bwd_filter n2c3h33w35k10r16s16", "bwd_filter nhwc flip n2c2h40w41k7r4s16p3d2u2",
        "bwd_filter acc n1c3h47w50k24r11s11u4", "bwd_filter nhwc n2c6h23w25k15r5s7p2u3d2g3",
        "bwd_filter tf32 n2c1h20w37k1r3s9pl4pr2", "bwd_filter n1c3h30w33k16r2s2u7", "bwd_filter n1c1h1w40k3r1s1"})
    expect_right(few_channels_warps, problem);
}
// Fewer sets than warps, as many, more; tiles of several steps a row and of several rows; rows of y of two sets.
TEST_F(FewChannelsByProcessor, ToTheFilterByEveryTuningOfWarps) {
  expect_each(
      few_channels_warps,
      {{"rows=16 blocks=1 warps=4 resident=2 width=16 height=3 sixteens=1", "bwd_filter n2c3h20w21k33r3s3p1"},
       {"rows=16 blocks=2 warps=6 resident=2 width=32 height=2 sixteens=2", "bwd_filter n2c1h22w41k9r3s16p1"},
       {"rows=32 blocks=4 warps=8 resident=1 width=64 height=1 sixteens=4", "bwd_filter n1c3h17w70k40r5s5p2"},
       {"rows=16 blocks=6 warps=12 resident=1 width=48 height=5 sixteens=1", "bwd_filter nhwc n3c2h19w50k20r7s7u2"},
       {"rows=16 blocks=8 warps=16 resident=1 width=96 height=4 sixteens=2", "bwd_filter nhwc n1c3h21w99k5r3s16p1"},
       {"rows=32 blocks=12 warps=4 resident=2 width=32 height=7 sixteens=2", "bwd_filter acc n2c3h16w33k33r5s5p2"}});
}
TEST_F(FewChannelsByProcessor, NumbersOfAnyRangeByWarps) {
  static constexpr Pass passes[] = {Pass::backward_filter};
  const Served served{.passes = passes, .geometry = "n2c3h9w8k12r3s3p1"};
  expect_of_scales(Context(device), few_channels_warps, 0x1p100f, 0x1p-110f, served);
  expect_of_scales(Context(device), few_channels_warps, 0x1p-149f, 1.0f, served);
  expect_of_scales(Context(device), few_channels_warps, 0.0f, 0.0f, served);
  expect_largest_beside_smallest(Context(device), few_channels_warps, served);
  expect_infinities_as_defined(Context(device), few_channels_warps, {"n2c3h9w8k12r3s3p1", "nhwc n1c4h9w12k6r2s3p1u2g2"},
                               passes);
  expect_replayed(Context(device), few_channels_warps, {"bwd_filter n2c3h20w21k10r3s16p1"});
}
TEST_F(FewChannelsByProcessor, InfinitiesAndNaN) {
  expect_infinities_as_defined(Context(device), few_channels,
                               {"n1c3h9w12k12r3s3p1", "f16 n1c3h9w12k12r3s3p1", "bf16 nhwc n1c2h9w12k16r3s2u2"},
                               std::array{Pass::forward});
}

// The classic study's kernels, each of the two rungs that share local memory.
using RungsByProcessor = SolversByProcessor;

TEST_F(RungsByProcessor, EachOperation) {
  for (const char* const tuning : {"rung=2 tile_m=4 tile_n=8 work=1", "rung=3 tile_m=16 tile_n=8 work=4"})
    for (const auto& [operation, problem] :
         std::initializer_list<std::pair<const char*, const char*>>{{"gemm", "gemm f32 tn m9n21k20"},
                                                                    {"conv2d", "n2c3h9w7k5r3s3p1u2"},
                                                                    {"conv2d", "bwd_data n2c3h9w7k5r3s3p1u2"},
                                                                    {"conv2d", "bwd_filter n2c3h9w7k5r3s3p1u2"},
                                                                    {"bias_add", "bias_add bwd n3c7h5w5"},
                                                                    {"loss", "loss softmax bwd n19c10"},
                                                                    {"activation", "activation relu bwd n3c5h5w7"},
                                                                    {"update", "update sgd guarded n203"},
                                                                    {"add", "add n2c5h4w6k5"}})
      expect_right(std::string(operation) + "/rungs/gpu.1", problem, tuning);
}

}  // namespace
}  // namespace omniconv
