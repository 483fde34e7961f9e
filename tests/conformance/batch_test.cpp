// batch: every solver of the CPU against the definition, to the bit; what chance does; what names no image; the
// operation's bad input.
#include "omniconv/batch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "../error_testing.h"
#include "../list_testing.h"
#include "batch_testing.h"
#include "conformance.h"
#include "matrix_testing.h"
#include "operations/batch/batch.h"
#include "solver_testing.h"

namespace omniconv::batch_tests {
namespace {

constexpr const char* direct = "batch/direct/cpu.1";
constexpr const char* reference = "batch/definition/cpu.1";

// The known answers of the authors' Random123 (tests/kat_vectors, philox4x32 of 10 rounds).
TEST(Batch, TheNumbersAreThoseOfPhilox) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Batch, EveryTypeLayoutAndDraw) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const layout : {"nchw", "nhwc"})
    for (const char* const type : {"f32", "f64", "f16", "bf16"})
      for (const char* const geometry :
           {"m9n4c3h7w9", "flip m9n4c3h7w9", "m9n4c1h7w9s6", "flip m40n12c3h8w8s4", "flip m2n1c5h1w1", "m1n3c70h2w2",
            "flip m6n3c2h1w30", "m6n3c2h30w2s1", "gathered m9n4c3h7w9", "gathered flip m40n12c3h8w8s4"}) {
        EXPECT_EQ(
            expect_exact_and_bounded(context, parse_problem(fmt::format("batch {} {} {}", type, layout, geometry)),
                                     {.solver = {.solver = "all"}}),
            2);
        for (const char* const solver : {direct, reference})
          expect_defined(context, batch(fmt::format("{} {} {}", type, layout, geometry)), solver,
                         {.first = 0, .seed = 0xFEDCBA9876543210, .epoch = 7});
      }
}

TEST(Batch, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (BatchProblem problem : listed_problems<BatchProblem>("batches.txt")) {
    problem.m = std::min<std::int64_t>(problem.m, 100);
    problem.n = std::min<std::int64_t>(problem.n, 20);
    problem.h = std::min<std::int64_t>(problem.h, 40);
    EXPECT_EQ(
        expect_exact_and_bounded(context, problem, {.solver = {.solver = "all"}, .sampled = true, .samples = 500}), 2)
        << to_text(problem);
  }
}

TEST(Batch, ArraysBeginAnywhereAndThreadsDoNotMatter) {
  for (const int threads : {1, 3}) {
    const Context context({.device = "cpu", .threads = threads});
    for (const char* const text : {"flip m30n25c3h9w11s3", "f16 nhwc flip m30n25c3h9w11s3"})
      for (const BatchPlaces& places : {BatchPlaces{1, 2, 3, 1, 1, 3}, BatchPlaces{7, 1, 1, 5, 3, 1}})
        expect_defined(context, batch(text), direct, {.first = 4, .seed = 3, .epoch = 1}, places);
  }
}

TEST(Batch, NothingOutsideIsRead) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const solver : {direct, reference})
    for (const char* const text :
         {"m8n5c3h4w5", "bf16 nhwc flip m8n5c2h4w5s2", "gathered m8n5c3h4w5", "gathered flip m8n5c2h4w5s2"})
      expect_nothing_outside(context, batch(text), solver);
}

TEST(Batch, RecordedBatchesReadChangingScalars) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const text : {"flip m20n6c3h6w5s2", "m20n6c1h6w5", "f16 nhwc flip m20n6c3h6w5"})
    expect_recorded_batches(context, batch(text));
}

// Every image of a set: 4096 throws of a coin, and of a die of 2 * 2 + 1 sides each way. A count is off from its mean
// by less than five standard deviations, which chance breaks once in a million, and these numbers do not change.
TEST(Batch, ChanceIsFair) {
  const BatchProblem problem = batch("flip m4096n1c1h8w8s2");
  const operations::BatchNumbers numbers(std::vector<double>{0, 1, 5, 0, 0});
  std::map<std::int64_t, int> rows, columns;
  int mirrored = 0, mirrored_again = 0;
  for (std::int64_t image = 0; image < problem.m; ++image) {
    const operations::ImageDraw draw = operations::draw_of(problem, numbers, image);
    mirrored += draw.mirrored;
    ++rows[draw.rows], ++columns[draw.columns];
    const operations::BatchNumbers next(std::vector<double>{0, 2, 5, 0, 0});
    mirrored_again += draw.mirrored && operations::draw_of(problem, next, image).mirrored;
  }
  const double images = 4096;
  EXPECT_NEAR(mirrored, images / 2, 5 * std::sqrt(images / 4));
  EXPECT_NEAR(mirrored_again, images / 4, 5 * std::sqrt(images * 3 / 16));  // another epoch knows nothing of this one
  for (const auto& counts : {rows, columns}) {
    EXPECT_EQ(counts.size(), 5u);
    EXPECT_EQ(counts.begin()->first, -2);
    for (const auto& [shift, count] : counts) EXPECT_NEAR(count, images / 5, 5 * std::sqrt(images * 4 / 25)) << shift;
  }
}

// Each of its 64 bits counts, and a draw is the image's, wherever it is in the order.
TEST(Batch, SeedsAndImagesMakeTheDraw) {
  const Context context({.device = "cpu", .threads = 1});
  const BatchProblem problem = batch("flip m30n30c1h9w9s4");
  BatchSet set = some_set(problem);
  BatchOnDevice on_device(context, problem, set);
  const BatchPlan plan(context, problem);
  std::set<std::vector<double>> all = {on_device.made(plan, {}).y};
  for (int bit = 0; bit < 64; ++bit) all.insert(on_device.made(plan, {.seed = std::uint64_t{1} << bit}).y);
  EXPECT_EQ(all.size(), 65u);
  const std::vector<double> before = on_device.made(plan, {.seed = 9, .epoch = 4}).y;
  std::vector<double> turned;
  for (std::ptrdiff_t i = 29; i >= 0; --i)
    turned.insert(turned.end(), before.begin() + i * 81, before.begin() + i * 81 + 81);
  std::reverse(set.order.begin(), set.order.end());
  BatchOnDevice reversed(context, problem, set);
  EXPECT_TRUE(reversed.made(plan, {.seed = 9, .epoch = 4}).y == turned);
}

// What a training does with a set that its device has no room for.
TEST(Batch, APartThatIsGatheredHasTheBitsOfTheWhole) {
  const Context context({.device = "cpu", .threads = 1});
  const BatchProblem whole = batch("flip m30n6c2h9w9s4");
  const BatchSet set = some_set(whole);
  BatchProblem part = whole;
  part.gathered = true, part.m = 12;
  BatchSet here{
      .images = {}, .labels = {}, .order = {set.order.begin() + 12, set.order.begin() + 24}, .table = set.table};
  for (const std::int32_t image : here.order) {
    here.images.insert(here.images.end(), set.images.begin() + image * 162, set.images.begin() + (image + 1) * 162);
    here.labels.push_back(set.labels[static_cast<std::size_t>(image)]);
  }
  BatchOnDevice all(context, whole, set), some(context, part, here);
  for (const char* const solver : {direct, reference})
    EXPECT_TRUE(some.made(BatchPlan(context, part, {.solver = solver}), {.first = 6, .seed = 5, .epoch = 2}) ==
                all.made(BatchPlan(context, whole, {.solver = solver}), {.first = 18, .seed = 5, .epoch = 2}))
        << solver;
}

TEST(Batch, SeedsAreThreeScalars) {
  EXPECT_EQ(seed_scalars(0), (std::array<double, 3>{0, 0, 0}));
  EXPECT_EQ(seed_scalars(0xFFFFFFFFFFFFFFFF), (std::array<double, 3>{16777215, 16777215, 65535}));
  EXPECT_EQ(seed_scalars(0x0123456789ABCDEF), (std::array<double, 3>{0xABCDEF, 0x456789, 0x0123}));
  const std::array<double, 3> seed = seed_scalars(0xFEDCBA9876543210);
  const operations::BatchNumbers numbers(std::vector<double>{3, 4, seed[0], seed[1], seed[2]});
  EXPECT_EQ(numbers.first, 3);
  EXPECT_EQ(numbers.epoch, 4u);
  EXPECT_EQ(numbers.key, (std::array<std::uint32_t, 2>{0x76543210, 0xFEDCBA98}));
}

// A table in a type of 16 bits is made in the workspace; without one the reference serves.
TEST(Batch, WithoutAWorkspaceTheReferenceServes) {
  const Context context({.device = "cpu", .threads = 1});
  EXPECT_EQ(BatchPlan(context, batch("m4n2c3h4w4")).workspace_bytes(), 0);
  EXPECT_EQ(BatchPlan(context, batch("f16 m4n2c3h4w4")).workspace_bytes(), 3 * 256 * 2);
  const BatchPlan limited(context, batch("f16 m4n2c3h4w4"), {.max_workspace_bytes = 1535});
  EXPECT_EQ(limited.solver(), reference);
  const std::string refusal = operations::refusal_of(operations::batch_direct_cpu(), batch("f16 m4n2c3h4w4"),
                                                     context.impl(), {.max_workspace_bytes = 1535});
  EXPECT_EQ(refusal, "needs a workspace of 1536 bytes for the table in f16, and 1535 is the limit");
}

TEST(Batch, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) { return error_of([&] { batch(text); }, ErrorKind::bad_input); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"m4n2c3h4", "w (columns)"},
      {"n2c3h4w4", "m (images of the set)"},
      {"m4n0c3h4w4", "n is 0: must be at least 1"},
      {"m16777217n2c1h1w1", "m is 16777217: must be at most 16777216"},
      {"m4n2c3h4w5s4", "s is 4: must be less than 4, so that something of each image is left"},
      {"m4n2c3h9w5s5", "s is 5: must be less than 5"},
      {"m4n2c3h4w4s1s1", "'s1' was given before"},
      {"u8 m4n2c3h4w4", "column 7: found 'u8'"},
      {"flip flip m4n2c3h4w4", "flip"},
      {"m16777216n2c1h1099511627776w1", "the images"},
      {"m1n1099511627776c1h1048576w1", "the output"},
      {"m1n1c1125899906842625h1w1", "the table"},
  };
  for (const auto& [text, part] : refused) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  EXPECT_EQ(to_text(parse_problem("batch f32 nchw s0 m4n2c3h4w5 \"few\"")), "batch m4n2c3h4w5 \"few\"");
  EXPECT_EQ(to_text(parse_problem("batch flip s3 m4n2c3h4w5 nhwc bf16")), "batch bf16 nhwc flip m4n2c3h4w5s3");
  EXPECT_EQ(to_text(parse_problem("batch flip gathered m4n2c3h4w5")), "batch gathered flip m4n2c3h4w5");
  const Context context({.device = "cpu", .threads = 1});
  BatchProblem problem = batch("m4n2c3h4w5");
  problem.layout = static_cast<Layout>(2);
  const std::string error = error_of([&] { BatchPlan(context, problem); }, ErrorKind::bad_input);
  EXPECT_NE(error.find("layout is number 2: must be nchw or nhwc"), std::string::npos) << error;
  problem = batch("m4n2c3h4w5");
  problem.shift = -1;
  const std::string negative = error_of([&] { BatchPlan(context, problem); }, ErrorKind::bad_input);
  EXPECT_NE(negative.find("s is -1: must be at least 0"), std::string::npos) << negative;
}

TEST(Batch, RefusesArraysThatLackAndScalarsThatItHasNot) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const BatchProblem problem = batch("m4n2c1h3w3");
  BatchOnDevice on_device(context, problem, some_set(problem));
  const BatchPlan plan(context, problem);
  BatchRun run = on_device.run({}, plan);
  run.order = {};
  EXPECT_NE(error_of([&] { plan.run(queue, run); }, ErrorKind::bad_input).find("the buffer of order is missing"),
            std::string::npos);
  run = on_device.run({}, plan);
  const std::vector<NamedOperand> arrays = {{"images", run.images}, {"labels", run.labels}, {"order", run.order},
                                            {"table", run.table},   {"y", run.y},           {"classes", run.classes}};
  const NamedScalar epoch{"epoch", 1};
  const std::string error = error_of(
      [&] {
        plan.plan().run(queue, arrays, run.workspace, {&epoch, 1});
      },
      ErrorKind::bad_input);
  EXPECT_NE(error.find("unknown scalar 'epoch'"), std::string::npos) << error;
}

}  // namespace
}  // namespace omniconv::batch_tests
