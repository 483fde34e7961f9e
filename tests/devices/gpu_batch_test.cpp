// batch on GPU devices: the bits of the definition, whatever the type, layout, draw and place; what names no image;
// recorded batches.
#include "../conformance/batch_testing.h"
#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"

namespace omniconv::gpu_batch_tests {
namespace {

using GpuBatch = Gpu;

constexpr const char* direct = "batch/direct/gpu.1";

TEST_F(GpuBatch, EveryTypeLayoutAndDraw) {
  const Context context(device);
  for (const char* const layout : {"nchw", "nhwc"})
    for (const char* const type : {"f32", "f16", "bf16"})
      for (const char* const geometry : {"m9n4c3h8w8", "flip m9n4c3h7w9", "m9n4c1h8w12s6", "flip m40n12c3h16w16s4",
                                         "gathered m9n4c3h8w8", "gathered flip m40n12c3h7w9s4"}) {
        const std::string text = fmt::format("{} {} {}", type, layout, geometry);
        EXPECT_EQ(expect_exact_and_bounded(context, batch(text), {.solver = {.solver = direct}}), 1);
        expect_defined(context, batch(text), direct, {.first = 2, .seed = 0xFEDCBA9876543210, .epoch = 7});
      }
}

// Whole groups, some more and less; images of several groups; tables that no group keeps.
TEST_F(GpuBatch, EveryExtent) {
  const Context context(device);
  for (const char* const layout : {"nchw", "nhwc"})
    for (const char* const geometry :
         {"m2n1c1h1w1", "m3n2c5h1w1", "m3n2c1h1w3", "m3n2c4h16w16", "m3n2c1h31w33", "m3n2c1h32w33", "m3n3c1h1w1025",
          "flip m4n3c3h61w67s5", "m4n3c7h13w11s3", "flip m4n3c5h5w4", "m2n1c1h100w131s7", "m2n2c70h3w4"})
      expect_defined(context, batch(fmt::format("{} {}", layout, geometry)), direct, {.seed = 5, .epoch = 1});
}

TEST_F(GpuBatch, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* const text : {"m9n7c3h8w12", "flip m9n7c3h8w12s2", "f16 nhwc flip m9n7c3h5w7", "m9n7c1h32w32"})
    for (const BatchPlaces& places :
         {BatchPlaces{1, 0, 0, 0, 0, 0}, BatchPlaces{0, 1, 0, 0, 1, 0}, BatchPlaces{2, 0, 1, 0, 2, 1},
          BatchPlaces{0, 0, 0, 3, 3, 0}, BatchPlaces{4, 4, 4, 4, 4, 4}, BatchPlaces{3, 2, 1, 7, 5, 3}})
      expect_defined(context, batch(text), direct, {.first = 1, .seed = 8, .epoch = 3}, places);
}

TEST_F(GpuBatch, NothingOutsideIsRead) {
  const Context context(device);
  for (const char* const text :
       {"m8n5c3h4w5", "m8n5c1h4w4", "bf16 nhwc flip m8n5c2h4w5s2", "gathered m8n5c1h4w4", "gathered flip m8n5c3h4w5s1"})
    expect_nothing_outside(context, batch(text), direct);
}

TEST_F(GpuBatch, RecordedBatchesReadChangingScalars) {
  const Context context(device);
  for (const char* const text : {"flip m20n6c3h6w5s2", "m20n6c1h6w5", "f16 nhwc flip m20n6c3h6w5"})
    expect_recorded_batches(context, batch(text));
}

TEST_F(GpuBatch, RefusesF64AndEnormousImages) {
  const Context context(device);
  EXPECT_HAS(error_of([&] { BatchPlan(context, batch("f64 m1n1c1h4w4")); }, ErrorKind::bad_input),
             "f64 is served on the CPU, since not every GPU has double precision");
  EXPECT_HAS(error_of([&] { BatchPlan(context, batch("m1n1c1h32768w32768")); }, ErrorKind::bad_input),
             "an image has 1073741824 elements, and 1073741823 are the most here");
}

}  // namespace
}  // namespace omniconv::gpu_batch_tests
