// Prepared operands of a device's matrix units: the bits of plain ones, whichever passes they serve, and numbers of any
// range.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../conformance/conv2d_testing.h"
#include "../list_testing.h"
#include "checking/verify.h"
#include "choice/plan_record.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* solver = "conv2d/split_gemm/gpu.1";

Asked asked(int bits) {
  Asked asked(solver);
  asked.prepared = bits;
  return asked;
}

class SplitPrepared : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (device == nullptr) return;
    const int capability = device->facts().compute_capability;
    if (capability != 90) GTEST_SKIP() << "the solver is for compute capability 9.0, and the device has " << capability;
    context = Context(device);
    queue = context.make_queue();
  }

  static std::int64_t bytes_of(const Plan& plan, std::size_t array) { return plan.arrays()[array].bytes(); }

  // The arrays of a plan, at random.
  std::vector<NamedOperand> arrays_for(const Plan& plan, std::uint64_t seed = 1) {
    std::vector<NamedOperand> arrays;
    for (const ArraySpec& array : plan.arrays()) {
      std::vector<std::byte> values(static_cast<std::size_t>(array.bytes()));
      operations::fill_random(array.type, 0, seed++, values);
      const Buffer buffer = context.allocate(array.bytes());
      queue.upload(buffer, 0, values.data(), array.bytes()).wait();
      arrays.push_back({array.name, {buffer}});
    }
    return arrays;
  }
  Buffer filled(std::int64_t bytes, std::uint8_t value) {
    const std::vector<std::uint8_t> values(static_cast<std::size_t>(bytes), value);
    const Buffer buffer = context.allocate(bytes);
    queue.upload(buffer, 0, values.data(), bytes).wait();
    return buffer;
  }
  std::vector<std::byte> result(const Plan& plan, const std::vector<NamedOperand>& arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (plan.arrays()[i].role == ArrayRole::in) continue;
      std::vector<std::byte> values(static_cast<std::size_t>(bytes_of(plan, i)));
      queue.download(values.data(), arrays[i].operand.buffer, 0, bytes_of(plan, i)).wait();
      return values;
    }
    return {};
  }
  // Of a run whose workspace and output hold NaN before.
  std::vector<std::byte> output_of(const Plan& plan, const std::vector<NamedOperand>& arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (plan.arrays()[i].role == ArrayRole::out)
        queue.copy(arrays[i].operand.buffer, 0, filled(bytes_of(plan, i), 0xFF), 0, bytes_of(plan, i)).wait();
    plan.run(queue, arrays, filled(std::max<std::int64_t>(plan.workspace_bytes(), 1), 0xFF)).wait();
    return result(plan, arrays);
  }
  // In memory that holds NaN before, and behind which nothing is written.
  Operand prepared(const Plan& plan, const NamedOperand& array) {
    constexpr std::int64_t guard = 256;
    const std::int64_t bytes = plan.format(array.name)->bytes;
    const Buffer buffer = filled(bytes + guard, 0xFF);
    plan.prepare(queue, array.name, array.operand, buffer).wait();
    std::vector<std::uint8_t> behind(guard);
    queue.download(behind.data(), buffer, bytes, guard).wait();
    EXPECT_EQ(behind, std::vector<std::uint8_t>(guard, 0xFF));
    return {buffer, 0, plan.format(array.name)};
  }
  static NamedOperand& find(std::vector<NamedOperand>& arrays, std::string_view name) {
    return *std::find_if(arrays.begin(), arrays.end(), [&](const NamedOperand& each) { return each.name == name; });
  }

  bool serves(const Problem& problem, const std::vector<std::string>& names) const {
    return explain(context, problem, {.solver = solver, .prepared = names}).front().applicable;
  }
  // The plan, and the same of arrays as they are, by the same tiles.
  std::pair<Plan, Plan> plans_of(const Problem& problem, const std::vector<std::string>& names) const {
    const Plan plan(context, problem, {.solver = solver, .prepared = names});
    return {plan, Plan(context, problem, {.solver = solver, .tuning = plan.record().tuning.to_text()})};
  }

  Context context{{.device = "cpu"}};  // until there is a device
  Queue queue;
};

TEST_F(SplitPrepared, GivesTheBitsOfPlainOperands) {
  constexpr const char* words[] = {"", "nhwc", "tf32", "f16", "bias relu nhwc", "flip", "bf16 flip"};
  int number = 0, checked = 0;
  for (const char* geometry :
       {"n2c64h13w11k72r3s3p1", "n2c3h23w25k32r5s5p2u2", "n3c40h9w8k24r3s2p1u2g2", "n2c72h14w16k136r1s1",
        "n2c20h9w8k33r1s1u2", "n1c512h4w4k64r3s3p1", "n2c20h33w21k16r9s9p4", "n2c18h25w25k40r3s3u9"})
    for (const Pass pass : all_passes)
      for (const int bits : {1, 2, 3}) {
        Conv2dProblem problem = conv2d_problem(fmt::format("{} {}", words[number++ % std::size(words)], geometry));
        problem = with_pass(problem, pass);
        const std::vector<std::string> names = read_by(pass, bits);
        if (!serves(problem, names)) continue;
        ++checked;
        const auto [plan, plain] = plans_of(problem, names);
        std::vector<NamedOperand> arrays = arrays_for(plain);
        const std::vector<std::byte> expected = output_of(plain, arrays);
        for (const std::string& name : names) find(arrays, name).operand = prepared(plan, find(arrays, name));
        EXPECT_EQ(output_of(plan, arrays), expected) << to_text(problem) << ", " << bits;
        EXPECT_EQ(output_of(plan, arrays), expected) << to_text(problem) << ", once more";
      }
  EXPECT_GT(checked, 60);
}

// By the checks that every solver passes.
TEST_F(SplitPrepared, EveryForm) {
  int number = 0, checked = 0;
  for (Conv2dProblem problem : listed_problems<Conv2dProblem>("tiles.txt"))
    for (const Pass pass : all_passes) {
      problem.layout = ++number % 2 == 0 ? Layout::nchw : Layout::nhwc;
      const Problem one = with_pass(problem, pass);
      const std::vector<std::string> names = read_by(pass, 1 + number % 3);
      if (!serves(one, names)) continue;
      ++checked;
      for (const checking::VerifyResult& result : checking::verify(
               context, one, {.solver = {.solver = solver, .prepared = names}, .sampled = true, .samples = 1000}))
        EXPECT_EQ(result.status, checking::Status::ok) << to_text(one) << ": " << result.reason;
    }
  EXPECT_GT(checked, 80);
}

TEST_F(SplitPrepared, EveryTuning) {
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "tile_n=64 resident=1 parts=2 shared=0 raw=0",
        "tile_n=32 resident=2 parts=3 shared=0 raw=0", "tile_n=128 resident=1 parts=1 shared=1 raw=0",
        "tile_n=64 resident=2 parts=2 shared=1 raw=0", "tile_n=128 resident=1 parts=1 shared=0 raw=1",
        "tile_n=64 resident=1 parts=1 shared=0 raw=1"})
    for (const char* text : {"acc n2c128h14w14k128r3s3p1", "bwd_data nhwc n2c128h14w14k128r3s3p1",
                             "nhwc bias relu acc n2c96h14w14k72r3s5p2dw2", "n3c264h13w12k72r1s1"})
      for (const int bits : {2, 3}) {
        const Conv2dProblem problem = conv2d_problem(text);
        const SolverOptions options{.solver = solver, .tuning = tuning, .prepared = read_by(problem.pass, bits)};
        if (!explain(context, problem, options).front().applicable) continue;
        for (const checking::VerifyResult& result : checking::verify(context, problem, {.solver = options}))
          EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << text << ": " << result.reason;
      }
}

// x of the forward pass in that to the filter, dy of both passes backward.
TEST_F(SplitPrepared, OneServesSeveralPasses) {
  for (const char* layout : {"nchw", "nhwc", "tf32 nchw", "f16 nchw"})
    for (const char* geometry : {"n2c80h13w11k72r3s3p1", "n2c3h23w25k32r5s5p2u2", "n2c72h14w16k136r1s1",
                                 "n2c20h9w8k48r1s1u2", "n2c24h15w16k80r3s3p1u2", "n3c40h9w8k48r3s2p1g2"})
      for (const auto& [first, name] : {std::pair(Pass::forward, "x"), std::pair(Pass::backward_data, "dy")}) {
        const Conv2dProblem problem = conv2d_problem(fmt::format("{} {}", layout, geometry));
        const Problem one = with_pass(problem, first), other = with_pass(problem, Pass::backward_filter);
        if (!serves(one, {name}) || !serves(other, {name})) continue;
        const Plan maker(context, one, {.solver = solver, .prepared = {name}});
        const auto [plan, plain] = plans_of(other, {name});
        ASSERT_EQ(maker.format(name)->text, plan.format(name)->text);
        std::vector<NamedOperand> arrays = arrays_for(plain);
        const std::vector<std::byte> expected = output_of(plain, arrays);
        find(arrays, name).operand = prepared(maker, find(arrays, name));
        EXPECT_EQ(output_of(plan, arrays), expected) << to_text(other);
      }
}

// Filters of one format serve problems of other images; those of another are refused.
TEST_F(SplitPrepared, FiltersServeOtherImages) {
  int alike = 0;
  for (const char* words : {"", "nhwc", "bwd_data", "bwd_data nhwc"})
    for (const char* geometry : {"c64k72r3s3p1", "c24k48r3s3p1u2", "c64k64r1s1", "c3k32r7s7p3u2", "c48k40r1s1u2"}) {
      const Plan maker(context, parse_problem(fmt::format("{} n2h14w15{}", words, geometry)),
                       {.solver = solver, .prepared = {"w"}});
      for (const char* images : {"n1h14w15", "n3h27w22", "n1h40w64"}) {
        const auto [plan, plain] = plans_of(parse_problem(fmt::format("{} {}{}", words, images, geometry)), {"w"});
        std::vector<NamedOperand> arrays = arrays_for(plain);
        const std::vector<std::byte> expected = output_of(plain, arrays);
        const Operand w = find(arrays, "w").operand = prepared(maker, find(arrays, "w"));
        if (maker.format("w")->text != plan.format("w")->text) {
          EXPECT_HAS(error_of([&] { plan.run(queue, arrays, filled(plan.workspace_bytes(), 0)); }),
                     "prepare it by this plan");
          continue;
        }
        ++alike;
        EXPECT_EQ(output_of(plan, arrays), expected) << to_text(plan.problem());
      }
    }
  EXPECT_GT(alike, 20);
}

TEST_F(SplitPrepared, OthersFormsAreRefused) {
  const Plan forward(context, parse_problem("n2c64h13w11k72r3s3p1"), {.solver = solver, .prepared = {"x", "w"}}),
      backward(context, parse_problem("bwd_data n2c64h13w11k72r3s3p1"), {.solver = solver, .prepared = {"w"}}),
      rounded(context, parse_problem("tf32 n2c64h13w11k72r3s3p1"), {.solver = solver, .prepared = {"x"}}),
      plain(context, parse_problem("n2c64h13w11k72r3s3p1"), {.solver = solver});
  std::vector<NamedOperand> arrays = arrays_for(plain);
  const Operand x = prepared(forward, find(arrays, "x")), w = prepared(forward, find(arrays, "w"));
  std::vector<NamedOperand> of_backward = arrays_for(backward), of_rounded = arrays_for(rounded);
  find(of_backward, "w").operand = w, find(of_rounded, "x").operand = x;
  const auto error = [&](const Plan& plan, const std::vector<NamedOperand>& given) {
    return error_of([&] { plan.run(queue, given, filled(plan.workspace_bytes(), 0)); });
  };
  EXPECT_HAS(error(backward, of_backward), "prepare it by this plan");
  EXPECT_HAS(error(rounded, of_rounded), "prepare it by this plan");
  EXPECT_HAS(error(forward, arrays), "x is not prepared");
  find(arrays, "x").operand = x;
  EXPECT_HAS(error(plain, arrays), "name it in SolverOptions::prepared");
}

// One preparation, many runs, beside other arrays of any scale; made and run in recordings too.
TEST_F(SplitPrepared, IsReplayed) {
  for (const char* text : {"n2c64h13w11k72r3s3p1", "nhwc n2c64h13w11k72r3s3p1", "bwd_data n2c64h9w8k72r3s3p1u2",
                           "bwd_filter n2c64h9w8k72r3s3p1", "n1c512h4w4k64r3s3p1"})
    for (const int bits : {1, 2, 3}) {
      const Conv2dProblem problem = conv2d_problem(text);
      const std::vector<std::string> names = read_by(problem.pass, bits);
      const auto [plan, plain] = plans_of(problem, names);
      std::vector<NamedOperand> arrays = arrays_for(plain), given = arrays;
      Sequence sequence = context.make_sequence(), preparing = context.make_sequence();
      for (const std::string& name : names) {
        Operand& operand = find(given, name).operand;
        const Buffer buffer = filled(plan.format(name)->bytes, 0xFF);
        plan.append_prepare(preparing, name, operand, buffer);
        operand = {buffer, 0, plan.format(name)};
      }
      plan.append(sequence, given, filled(plan.workspace_bytes(), 0xFF));
      const Recording made = context.record(std::move(preparing)), recording = context.record(std::move(sequence));
      for (const float scale : {1.0f, 0x1p40f, 0x1p-40f}) {
        std::uint64_t seed = 7;
        for (std::size_t i = 0; i < arrays.size(); ++i) {
          const std::vector<float> values = randoms(bytes_of(plain, i) / 4, ++seed, scale);
          queue.upload(arrays[i].operand.buffer, 0, values.data(), bytes_of(plain, i)).wait();
        }
        const std::vector<std::byte> expected = output_of(plain, arrays);
        made.replay(queue);
        for (int run = 0; run < 2; ++run) {
          recording.replay(queue).wait();
          EXPECT_EQ(result(plain, arrays), expected) << text << ", " << bits;
        }
      }
    }
}

TEST_F(SplitPrepared, InfinitiesAndNaN) {
  for (const int bits : {1, 2, 3})
    expect_infinities_as_defined(context, asked(bits),
                                 {"n2c20h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "nhwc n2c64h9w8k64r3s3p1",
                                  "n1c300h3w3k12r1s1", "tf32 n2c20h9w8k12r1s1u2"},
                                 all_passes);
}

TEST_F(SplitPrepared, LargeAndSmall) {
  for (const Pass pass : all_passes)
    for (const char* layout : {"nchw", "nhwc"})
      for (const auto& [of_x, of_w] : {std::pair(0x1p100f, 0x1p-110f), std::pair(0x1p-140f, 0x1p120f),
                                       std::pair(0x1p70f, 0x1p70f), std::pair(0.0f, 1.0f), std::pair(0.0f, 0.0f)})
        for (const int bits : {1, 2, 3}) {
          const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} n2c20h9w8k12r3s3p1", layout)), pass);
          const Conv2dElements all = elements_of(problem);
          expect_as_defined(context, asked(bits), problem,
                            {randoms(all.x, 1, of_x), randoms(all.w, 2, pass == Pass::backward_data ? of_x : of_w),
                             randoms(all.y, 3, of_w)});
        }
}

// A layer leaves the largest magnitude of what it writes before it, and the next looks no more for it: the bits are
// those of layers that know nothing of each other. Recorded once, for numbers that grow and shrink.
TEST_F(SplitPrepared, LargestMagnitudesAreLeftForTheNextLayer) {
  struct Layers {
    const char *first, *written, *second, *read;
  };
  constexpr std::int64_t ahead = 256;
  for (const Layers& layers :
       {Layers{"bias relu n2c64h13w11k72r3s3p1", "y", "n2c72h13w11k40r3s3p1", "x"},
        Layers{"nhwc n2c20h13w11k33r3s3p1", "y", "nhwc n2c33h13w11k64r1s1", "x"},
        Layers{"nhwc n2c72h14w15k128r1s1", "y", "nhwc n2c128h14w15k64r1s1", "x"},
        Layers{"n1c512h4w4k64r3s3p1", "y", "bwd_filter n1c64h4w4k32r3s3p1", "x"},
        Layers{"tf32 n2c3h23w25k32r5s5p2u2", "y", "n2c32h12w13k40r3s3", "x"},
        Layers{"bwd_data n2c24h16w18k32r3s3p1u2", "dx", "bwd_data n2c12h16w18k24r3s3p1", "dy"},
        Layers{"bwd_data nhwc n2c24h16w18k32r1s1u2", "dx", "bwd_filter nhwc n2c12h16w18k24r3s3p1", "dy"},
        Layers{"bwd_data n2c3h32w32k24r7s7p3u2", "dx", "bwd_data n2c40h32w32k3r3s3p1", "dy"}}) {
    const auto plans = [&](const char* problem, const char* array) {
      const Plan plan(context, parse_problem(problem), {.solver = solver, .measured = {array}});
      return std::pair(plan,
                       Plan(context, plan.problem(), {.solver = solver, .tuning = plan.record().tuning.to_text()}));
    };
    const auto [first, plain_first] = plans(layers.first, layers.written);
    const auto [second, plain_second] = plans(layers.second, layers.read);
    ASSERT_EQ(first.format(layers.written)->text, second.format(layers.read)->text);
    const std::int64_t bytes = first.format(layers.written)->bytes - ahead;
    std::vector<NamedOperand> of_first = arrays_for(plain_first), of_second = arrays_for(plain_second, 9),
                              given_first = of_first, given_second = of_second;
    find(of_second, layers.read).operand = find(of_first, layers.written).operand;
    const Operand between{filled(ahead + bytes, 0xFF), 0, first.format(layers.written)};
    find(given_first, layers.written).operand = find(given_second, layers.read).operand = between;
    Sequence sequence = context.make_sequence();
    first.append(sequence, given_first, filled(first.workspace_bytes(), 0xFF));
    second.append(sequence, given_second, filled(second.workspace_bytes(), 0xFF));
    const Recording recording = context.record(std::move(sequence));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float scale : {1.0f, 0x1p40f, 0x1p-40f, 0.0f, infinity}) {
      std::uint64_t seed = 5;
      for (std::size_t i = 0; i < of_first.size(); ++i) {
        if (plain_first.arrays()[i].role != ArrayRole::in) continue;
        std::vector<float> values = randoms(bytes_of(plain_first, i) / 4, ++seed, std::isinf(scale) ? 1.0f : scale);
        if (std::isinf(scale)) values[values.size() / 2] = infinity;
        queue.upload(of_first[i].operand.buffer, 0, values.data(), bytes_of(plain_first, i)).wait();
      }
      const std::vector<std::byte> written = output_of(plain_first, of_first),
                                   expected = output_of(plain_second, of_second);
      recording.replay(queue).wait();
      std::vector<std::byte> found(static_cast<std::size_t>(bytes));
      queue.download(found.data(), between.buffer, ahead, bytes).wait();
      EXPECT_EQ(found, written) << layers.first << ", by " << scale;
      std::uint32_t largest = 0, most = 0;
      queue.download(&largest, between.buffer, 0, 4).wait();
      for (std::size_t i = 0; i < written.size(); i += 4) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &written[i], 4);
        most = std::max(most, bits & 0x7fffffff);
      }
      EXPECT_EQ(largest, most) << layers.first << ", by " << scale;
      EXPECT_EQ(result(plain_second, given_second), expected) << layers.second << ", by " << scale;
    }
  }
}

TEST_F(SplitPrepared, MeasuredArraysAreRefusedWhereTheyDoNotBelong) {
  const Problem problem = parse_problem("n2c64h13w11k72r3s3p1");
  const Plan plan(context, problem, {.solver = solver, .measured = {"x", "y"}}),
      plain(context, problem, {.solver = solver});
  std::vector<NamedOperand> arrays = arrays_for(plain);
  const auto error = [&](const Plan& of) {
    return error_of([&] { of.run(queue, arrays, filled(of.workspace_bytes(), 0)); });
  };
  EXPECT_HAS(error(plan), "x is not prepared");
  find(arrays, "x").operand = {filled(plan.format("x")->bytes, 0), 0, plan.format("x")};
  EXPECT_HAS(error(plan), "give it Plan::format");
  EXPECT_HAS(error(plain), "takes it as it is");
  find(arrays, "y").operand = {filled(64, 0), 0, plan.format("y")};
  EXPECT_HAS(error(plan), "the buffer of y has 64 bytes");
  EXPECT_HAS(error_of([&] {
               plan.prepare(queue, "x", arrays_for(plain).front().operand, filled(plan.format("x")->bytes, 0));
             }),
             "made by the run that writes it");
}

// An array so large that a run would look at a sample: a prepared one has been looked at whole, the other is mended.
TEST_F(SplitPrepared, LargeNumbersBesideTheSample) {
  constexpr std::size_t not_looked_at = 40;  // in the second line of 32, of which the first is
  for (const Pass pass : all_passes)
    for (const int bits : {1, 2}) {
      const Conv2dProblem problem = with_pass(conv2d_problem("n1c16h1024w1032k16r1s1"), pass);
      const Conv2dElements all = elements_of(problem);
      Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
      for (std::vector<float>* const each : {&arrays.x, &arrays.y}) (*each)[not_looked_at] = 1e6f;
      expect_as_defined(context, asked(bits), problem, arrays);
      if (pass != Pass::forward) continue;
      arrays.x[not_looked_at] = std::numeric_limits<float>::infinity();
      expect_as_defined(context, asked(bits), problem, arrays);
    }
}

}  // namespace
}  // namespace omniconv
