// Prepared operands: the bits of plain ones, shared by the plans whose format is the same, and refused elsewhere.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "../error_testing.h"
#include "checking/verify.h"
#include "conformance.h"
#include "omniconv/conv2d.h"
#include "omniconv/error.h"
#include "omniconv/gemm.h"
#include "operations/operation.h"
#include "operations/random.h"

namespace omniconv {
namespace {

class Prepared : public testing::Test {
 protected:
  Context context{{.device = "cpu", .threads = 2}};
  Queue queue = context.make_queue();

  Buffer random(const ArraySpec& array, std::uint64_t seed) const {
    Buffer buffer = context.allocate(array.bytes());
    operations::fill_random(array.type, 0, seed, {buffer.impl()->host(), static_cast<std::size_t>(array.bytes())});
    return buffer;
  }
  std::vector<NamedOperand> arrays_for(const Plan& plan) const {
    std::vector<NamedOperand> arrays;
    std::uint64_t seed = 1;
    for (const ArraySpec& array : plan.arrays()) arrays.push_back({array.name, {random(array, seed++)}});
    return arrays;
  }
  NamedOperand& find(std::vector<NamedOperand>& arrays, std::string_view name) const {
    for (NamedOperand& array : arrays)
      if (array.name == name) return array;
    throw bad_input("no such array");
  }
  std::vector<std::byte> output_of(const Plan& plan, const std::vector<NamedOperand>& arrays) {
    plan.run(queue, arrays, context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))).wait();
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (plan.arrays()[i].role == ArrayRole::out) {
        const std::byte* const bytes = arrays[i].operand.buffer.impl()->host();
        return {bytes, bytes + plan.arrays()[i].bytes()};
      }
    return {};
  }
};

struct Case {
  const char *problem, *array;
};

TEST_F(Prepared, GivesTheBitsOfPlainOperands) {
  for (const Case& one :
       {Case{"gemm f32 nn m70n50k600", "a"}, Case{"gemm f32 nt m70n50k600", "b"}, Case{"gemm f16 tn m33n2100k40", "a"},
        Case{"gemm f64 tt m9n70k300batch3", "b"}, Case{"gemm f32 nn m2100n17k20batch2", "a"},
        Case{"gemm bf16 nn m29n70k2049batch3", "a"}, Case{"gemm bf16 nt m29n70k2049batch3", "b"},
        Case{"gemm f32 nn m2100n17k20", "b"}, Case{"n3c8h9w11k12r3s3p1", "w"}, Case{"nhwc n3c8h9w11k12r3s3p1", "w"},
        Case{"bf16 n2c8h9w11k12r3s3p1g4", "w"}, Case{"n2c8h9w11k12r3s3p1g4 bias", "w"},
        Case{"nhwc n2c8h9w11k12r3s3p1g2 bias relu", "w"}, Case{"bwd_data n3c8h9w11k12r3s3p1u2", "w"},
        Case{"bwd_data nhwc n3c8h9w11k12r3s3p1g2", "w"}, Case{"n2c64h6w6k130r1s1", "w"},
        Case{"n2c8h9w11k8r3s3p1g8", "w"}, Case{"bwd_data f16 nhwc n1c8h9w11k16r3s3p1g8", "w"}}) {
    const Problem problem = parse_problem(one.problem);
    std::vector<std::string> ids{"conv2d/im2col_gemm/cpu.1", "conv2d/blocked/cpu.1"};
    if (problem.is<GemmProblem>()) ids = {"gemm/packed/cpu.1"};
    if (std::string_view(one.problem).ends_with("g8")) ids = {"conv2d/depthwise/cpu.1"};
    for (const std::string& id : ids) {
      const Plan plain(context, problem, {.solver = id});
      const Plan plan(context, problem, {.solver = id, .prepared = {one.array}});
      EXPECT_EQ(plain.format(one.array), nullptr);
      ASSERT_NE(plan.format(one.array), nullptr);
      EXPECT_LE(plan.workspace_bytes(), plain.workspace_bytes()) << one.problem << " by " << id;
      std::vector<NamedOperand> arrays = arrays_for(plain);
      const std::vector<std::byte> expected = output_of(plain, arrays);
      Operand& operand = find(arrays, one.array).operand;
      const std::int64_t bytes = plan.format(one.array)->bytes;
      constexpr std::int64_t guard = 64;
      const Buffer prepared = context.allocate(bytes + guard);
      std::memset(prepared.impl()->host(), 0x5A, static_cast<std::size_t>(bytes + guard));
      plan.prepare(queue, one.array, operand, prepared).wait();
      for (std::int64_t i = 0; i < guard; ++i)
        ASSERT_EQ(prepared.impl()->host()[bytes + i], std::byte{0x5A}) << one.problem << " by " << id;
      operand = {prepared, 0, plan.format(one.array)};
      EXPECT_EQ(output_of(plan, arrays), expected) << one.problem << " by " << id;
    }
  }
}

// Of other images: the filters alone decide their form.
TEST_F(Prepared, IsSharedByPlansOfOneFormat) {
  const SolverOptions options{.solver = "conv2d/im2col_gemm/cpu.1", .prepared = {"w"}};
  const Plan first(context, parse_problem("n8c16h20w20k24r3s3p1"), options),
      other(context, parse_problem("n1c16h7w31k24r3s3"), options),
      backward(context, parse_problem("bwd_data n8c16h20w20k24r3s3p1"), options);
  ASSERT_EQ(first.format("w")->text, other.format("w")->text);
  const Plan plain(context, other.problem(), {.solver = options.solver});
  std::vector<NamedOperand> arrays = arrays_for(plain);
  const std::vector<std::byte> expected = output_of(plain, arrays);
  const Buffer prepared = context.allocate(first.format("w")->bytes);
  Sequence sequence = context.make_sequence();  // made and read in one submission
  first.append_prepare(sequence, "w", find(arrays, "w").operand, prepared);
  find(arrays, "w").operand = {prepared, 0, first.format("w")};
  other.append(sequence, arrays, context.allocate(std::max<std::int64_t>(other.workspace_bytes(), 1)));
  queue.submit(std::move(sequence)).wait();
  const std::byte* const y = find(arrays, "y").operand.buffer.impl()->host();
  EXPECT_EQ(std::vector<std::byte>(y, y + other.arrays()[2].bytes()), expected);

  std::vector<NamedOperand> wrong = arrays_for(backward);
  find(wrong, "w").operand = {prepared, 0, first.format("w")};
  const std::string error = error_of([&] { backward.run(queue, wrong, {}); });
  EXPECT_NE(error.find("w is prepared as"), std::string::npos) << error;
  EXPECT_NE(error.find("prepare it by this plan"), std::string::npos) << error;
}

TEST_F(Prepared, IsRefusedWhereItDoesNotBelong) {
  const Problem problem = parse_problem("n2c8h9w11k12r3s3p1");
  const std::string id = "conv2d/im2col_gemm/cpu.1";
  const Plan plain(context, problem, {.solver = id}), plan(context, problem, {.solver = id, .prepared = {"w"}});
  std::vector<NamedOperand> arrays = arrays_for(plain);
  const Buffer workspace = context.allocate(plain.workspace_bytes() + 64),
               prepared = context.allocate(plan.format("w")->bytes);
  const Operand w = find(arrays, "w").operand;
  const auto expect = [&](const std::string& error, const char* part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  };
  expect(error_of([&] { plan.run(queue, arrays, workspace); }),
         "w is not prepared, and conv2d/im2col_gemm/cpu.1 takes");
  find(arrays, "w").operand = {prepared, 0, plan.format("w")};
  expect(error_of([&] { plain.run(queue, arrays, workspace); }), "takes it as it is");
  find(arrays, "w").operand = {context.allocate(16), 0, plan.format("w")};
  expect(error_of([&] { plan.run(queue, arrays, workspace); }), "the buffer of w has 16 bytes");
  find(arrays, "w").operand = {prepared, 4, plan.format("w")};
  expect(error_of([&] { plan.run(queue, arrays, workspace); }), "must be a multiple");
  expect(error_of([&] { plan.prepare(queue, "w", w, context.allocate(16)); }), "the prepared array has 16 bytes");
  expect(error_of([&] { plan.prepare(queue, "w", w, w.buffer); }), "the prepared array");
  expect(error_of([&] { plan.prepare(queue, "w", {prepared, 0, plan.format("w")}, prepared); }), "prepared already");
  expect(error_of([&] { plan.prepare(queue, "x", find(arrays, "x").operand, prepared); }), "takes x as it is");
  expect(error_of([&] { plan.prepare(queue, "z", w, prepared); }), "unknown array 'z'");
  expect(error_of([&] { plain.prepare(queue, "w", w, prepared); }), "name it in SolverOptions::prepared");

  const auto refusal = [&](const char* text, const char* solver, std::vector<std::string> names) {
    return error_of([&] { Plan(context, parse_problem(text), {.solver = solver, .prepared = std::move(names)}); });
  };
  expect(refusal("n2c8h9w11k12r3s3p1", "auto", {"q"}), "conv2d has x, w");
  expect(refusal("n2c8h9w11k12r3s3p1", "auto", {"w", "w"}), "stands twice");
  expect(refusal("n2c8h9w11k12r3s3p1", "conv2d/direct/cpu.1", {"w"}), "has no prepared form of w");
  expect(refusal("n2c8h9w11k12r3s3p1", id.c_str(), {"x"}), "has a prepared form of w alone");
  expect(refusal("bwd_filter n2c8h9w11k12r3s3p1", id.c_str(), {"w"}), "has a prepared form of w alone");
  const Problem strided = parse_problem("n2c8h9w11k12r3s3p1u2");
  // The one that is left and has it.
  EXPECT_EQ(Plan(context, strided, {.deny = {"conv2d/blocked"}, .prepared = {"w"}}).solver(), id);
  const auto measured_refusal = [&](std::vector<std::string> names, std::vector<std::string> measured) {
    return error_of(
        [&] { Plan(context, problem, {.solver = id, .prepared = std::move(names), .measured = std::move(measured)}); });
  };
  expect(measured_refusal({}, {"y"}), "has no measured form of y");
  expect(measured_refusal({}, {"q"}), "conv2d has x, w");
  expect(measured_refusal({"w"}, {"w"}), "stands twice");
}

// As many lines, steps and panels, of other numbers.
TEST_F(Prepared, FormatsSayWhatTheyAreOf) {
  const auto text = [&](const char* problem, const char* array) {
    return Plan(context, parse_problem(problem), {.prepared = {array}}).format(array)->text;
  };
  const std::string w = text("n1c64h8w8k64r1s1", "w");
  EXPECT_NE(w, text("bwd_data n1c64h8w8k64r1s1", "w"));
  EXPECT_NE(w, text("nhwc n1c64h8w8k64r1s1", "w"));
  EXPECT_NE(w, text("f16 n1c64h8w8k64r1s1", "w"));
  EXPECT_NE(w, text("n1c64h8w8k64r1s1g2", "w"));
  EXPECT_NE(text("n1c18h8w8k64r1s1", "w"), text("n1c2h8w8k64r3s3", "w"));
  const std::string a = text("gemm f32 nn m64n64k64", "a");
  EXPECT_NE(a, text("gemm f32 tn m64n64k64", "a"));
  EXPECT_NE(a, text("gemm f32 nn m64n64k64", "b"));
  EXPECT_NE(a, text("gemm f16 nn m64n64k64", "a"));
  EXPECT_EQ(a, text("gemm f32 nt m64n32k64", "a"));
}

TEST_F(Prepared, NamesStandOnce) {
  const Plan plan(context, parse_problem("gemm f32 nn m2n2k2"));
  std::vector<NamedOperand> arrays = arrays_for(plan);
  arrays.push_back(arrays.front());
  const Buffer workspace = context.allocate(plan.workspace_bytes() + 64);
  EXPECT_EQ(error_of([&] { plan.run(queue, arrays, workspace); }), "array 'a' is given twice");
  arrays.pop_back();
  const NamedScalar twice[] = {{"alpha", 1.0}, {"alpha", 2.0}};
  EXPECT_EQ(error_of([&] { plan.run(queue, arrays, workspace, twice); }), "scalar 'alpha' is given twice");
}

// By the checks that every solver passes.
TEST_F(Prepared, IsVerified) {
  for (const char* const text : {"n2c8h9w11k12r3s3p1", "bwd_data n2c8h9w11k12r3s3p1", "nhwc n2c8h9w11k12r3s3p1g2"})
    for (const checking::VerifyResult& result :
         checking::verify(context, parse_problem(text), {.solver = {.prepared = {"w"}}}))
      EXPECT_EQ(result.status, checking::Status::ok) << text << ": " << result.reason;
}

}  // namespace
}  // namespace omniconv
