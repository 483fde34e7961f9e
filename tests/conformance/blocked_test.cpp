// conv2d/blocked on the CPU: how it cuts a problem, and what it computes of its classes, chunks, blocks and panels.
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "../error_testing.h"
#include "conformance.h"
#include "conv2d_testing.h"
#include "core/checked.h"
#include "operations/conv2d/blocked/blocking.h"
#include "vector/matrix/matrix_tiles.h"

namespace omniconv {
namespace {

using operations::BlockedAxis, operations::BlockedClass, operations::BlockedCut, operations::BlockedTap,
    operations::BlockedTaps;

constexpr const char* blocked = "conv2d/blocked/cpu.1";
constexpr const char* by_tiles = "conv2d/blocked/cpu-tiles.1";
constexpr Pass blocked_passes[] = {Pass::forward, Pass::backward_data};

Context blocked_context(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

BlockedCut blocked_cut(const Conv2dProblem& problem, std::int64_t limit = -1, int threads = 2) {
  return {problem, threads, limit, false};
}

// Of the workspace: none, the whole, between, the least.
std::vector<std::int64_t> blocked_limits(const Conv2dProblem& problem) {
  const std::int64_t whole = blocked_cut(problem).workspace_bytes(), least = blocked_cut(problem, 0).workspace_bytes();
  return {-1, whole, (least + whole) / 2, least};
}

enum class Zeros { few, many };

// Exact on small integers and within its bound on random numbers, by this solver alone.
void expect_blocked(const Conv2dProblem& problem, Zeros zeros = Zeros::few, std::int64_t limit = -1,
                    std::int64_t some = 0, const char* solver = blocked) {
  const checking::VerifyOptions options{.solver = {.solver = solver, .max_workspace_bytes = limit},
                                        .sampled = some > 0 || instrumented,
                                        .samples = samples(some > 0 ? some : 2000),
                                        .may_be_zero = zeros == Zeros::many};
  EXPECT_EQ(expect_exact_and_bounded(blocked_context(), problem, options), 1) << to_text(problem) << ", " << limit;
}

// Each geometry in both passes and layouts, the types and the words in turn.
void expect_blocked_in_turn(std::initializer_list<const char*> geometries, Zeros zeros = Zeros::few,
                            std::int64_t some = 0) {
  constexpr std::array types = {"f32", "f16", "f64", "bf16", "tf32"};
  std::size_t number = 0;
  for (const char* geometry : geometries)
    for (const Pass pass : blocked_passes)
      for (const char* layout : {"nchw", "nhwc"})
        for (const char* words : {"", "bias acc", "flip relu", "bias relu acc flip"}) {
          if (instrumented && number % 3 != 0 && ++number) continue;
          const std::string text = fmt::format("{} {} {} {}", words, types[number++ % 5], layout, geometry);
          expect_blocked(with_pass(conv2d_problem(text), pass), zeros, -1, some);
        }
}

TEST(Blocked, EveryPassLayoutTypeAndWord) {
  for (const char* type : {"f32", "f16", "f64", "bf16", "tf32"})
    for (const Pass pass : blocked_passes)
      for (const char* layout : {"nchw", "nhwc"})
        for (const char* words : {"", "bias", "relu", "acc", "flip", "bias relu acc", "flip acc"})
          for (const char* geometry : {"n3c10h9w11k20r3s2p1g2u2", "n2c3h8w7k10r3s3p1", "n2c9h8w7k10r1s1"})
            expect_blocked(with_pass(conv2d_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)), pass));
}

TEST(Blocked, Strides) {
  expect_blocked_in_turn({"n2c9h17w19k10r3s3p1u2", "n1c8h20w21k5r3s3pt2pl1uh2uw3", "n2c7h20w22k4r3s3p2u3",
                          "n1c4h27w21k9r5s4u4", "n1c5h9w40k7r2s5p1uw4", "n2c3h40w9k4r5s2p2uh4",
                          "n1c2h21w20k3r4s4uh4uw2", "n2c13h15w16k9r7s7p3u2", "n1c6h13w31k8r3s7pl3uh1uw3"});
}

// Backward of the data: there are classes that no tap meets, along one axis, the other and both; under a stride larger
// than the image, no class at all.
TEST(Blocked, ClassesThatNoTapMeets) {
  expect_blocked_in_turn(
      {"n2c9h16w15k7r1s1u3", "n1c3h14w16k4r1s3uh3", "n1c8h11w17k4r3s1uw4pl1", "n2c5h12w13k3r2s2u4",
       "n1c4h9w8k5r2s3u3p1", "n2c7h12w11k9r2s2d2u2", "n1c5h10w12k4r3s2dh2uh2", "n1c5h12w10k4r2s3dw4uw4",
       "n2c3h9w1k3r1s1pl1uw2", "n2c3h1w9k3r1s1pt1uh2", "n2c3h1w1k3r1s1p1u2", "n2c3h1w9k4r1s3pt1uh2",
       "n2c3h9w1k4r3s1pl1uw2", "n1c9h2w3k4r1s1u4", "n1c2h3w2k5r2s2pt1pl2u4", "n1c9h3w3k2r1s1p2u4"},
      Zeros::many);
  const BlockedAxis none = BlockedAxis::down(Conv2dShape(conv2d_problem("bwd_data n1c1h1w1k1r1s1pt1uh2")), false);
  EXPECT_EQ(none.most_taps(), 0);
}

// Strides and dilations that share divisors, and those that do not.
TEST(Blocked, Dilations) {
  expect_blocked_in_turn({"n2c7h20w20k4r3s3p2d2u2", "n1c8h20w21k5r3s3pt2pl1dh2dw3uh3uw2", "n2c9h12w11k7r2s3d4p4",
                          "n1c2h19w23k3r2s3p1d3u2", "n1c4h17w30k6r3s4p3dw6dh4uh2uw4", "n2c3h25w9k5r4s2d2uh3",
                          "n1c7h13w14k9r3s3d2p2", "n1c2h9w30k3r1s5dw4uw2", "n1c6h28w8k5r3s1dh9uh3"},
                         Zeros::many);
}

TEST(Blocked, SingleTapsWithStrides) {
  expect_blocked_in_turn(
      {"n2c9h17w19k10r1s1u2", "n2c13h14w16k9r1s1u3p2", "n3c2h9w9k3r1s1u2p1g1", "n2c20h8w9k10r1s1uw2g2",
       "n1c7h5w40k3r1s1uw4pr6", "n1c7h40w5k3r1s1uh4pt2", "n1c30h9w9k40r1s1u2"},
      Zeros::many);
}

// Of four kinds, some larger than the filter: outputs and whole rows of them that meet nothing else, rows whose zeros
// are longer than what they hold.
TEST(Blocked, Paddings) {
  expect_blocked_in_turn(
      {"n2c9h6w7k10r3s3pt1pb2pl3pr4", "n1c3h5w6k4r2s2p7", "n2c8h4w5k9r1s1p3", "n1c7h3w4k5r3s3p9u3", "n1c9h1w1k2r5s5p4",
       "n1c9h5w5k3r3s3pt2", "n1c9h5w5k3r3s3pr2", "n2c1h4w4k1r2s3pb5pl6", "n1c5h4w3k6r1s1pl4uw3pt7uh2",
       "n2c300h2w2k7r1s1p5", "n1c60h2w3k9r3s3p6", "n2c4h3w5k8r3s3p5d2u2", "n1c3h3w1030k4r1s3pl9pr20"},
      Zeros::many);
}

TEST(Blocked, Groups) {
  expect_blocked_in_turn({"n2c6h7w9k6r3s3p1g6", "n2c18h7w9k36r3s3p1g2", "n1c21h5w6k9r1s1g3", "n2c10h6w6k30r3s2g5",
                          "n1c33h5w7k33r3s3p1g33", "n1c40h5w7k2r3s1p1g2", "n2c4h9w8k40r3s3p1g4u2",
                          "n2c12h7w7k18r3s3p1g3"});
}

// Channels and filters that fill no panel, one to three among them.
TEST(Blocked, ChannelsAndFilters) {
  std::size_t number = 0;
  for (const int c : {1, 2, 3, 5, 6, 7, 13, 17, 33})
    for (const int k : {1, 2, 3, 5, 8, 15, 16, 17, 33, 47})
      for (const Pass pass : blocked_passes)
        for (const char* layout : {"nchw", "nhwc"}) {
          if (instrumented && ++number % 5 != 0) continue;
          expect_blocked(with_pass(conv2d_problem(fmt::format("{} n2c{}h6w7k{}r2s3p1", layout, c, k)), pass));
        }
}

// Pairs of channels, of which the last of a group or of a chunk may be alone: of one tap, of some, of those of a class.
TEST(Blocked, OddChannelsOfBf16) {
  for (const char* geometry :
       {"n2c1h6w7k1r3s3p1", "n2c7h9w8k33r1s1", "n1c9h9w8k15r3s3p1g3", "n1c35h8w9k37r3s2p1u2", "n1c13h8w9k7r4s5p2uw3",
        "n1c5h9w20k31r9s17p8", "n1c601h5w6k271r1s1", "n1c3h9w20k5r9s17p8"})
    for (const Pass pass : blocked_passes)
      for (const char* layout : {"nchw", "nhwc"})
        for (const char* words : {"", "flip acc"})
          expect_blocked(with_pass(conv2d_problem(fmt::format("{} bf16 {} {}", words, layout, geometry)), pass));
}

// More channels than a tile adds up in registers: of one tap, of nine, and of so many that each channel is a chunk.
TEST(Blocked, ChunksOfChannels) {
  expect_blocked_in_turn(
      {"n1c600h5w6k270r1s1", "n1c58h6w7k60r3s3p1", "n1c85h7w6k29r3s3p1u2", "n1c5h20w21k6r17s17p8",
       "n2c515h3w4k10r1s1u2", "n1c120h5w5k130r3s3p1g2", "n1c11h9w9k7r7s7p3u2", "n1c257h9w9k257r1s1p1"},
      Zeros::few, 500);
  EXPECT_EQ(blocked_cut(conv2d_problem("n1c600h5w6k270r1s1")).channels.panels, 3);
  EXPECT_GT(blocked_cut(conv2d_problem("n1c58h6w7k60r3s3p1")).channels.panels, 2);
  EXPECT_EQ(blocked_cut(conv2d_problem("n1c5h20w21k6r17s17p8")).channels.panels, 5);
}

// Few blocks and many filters.
TEST(Blocked, RangesOfFilters) {
  expect_blocked_in_turn({"n1c4h3w3k300r3s3p1", "n1c300h3w3k4r3s3p1", "n1c7h30w40k200r3s3p1", "n1c200h31w40k7r3s3p1u2"},
                         Zeros::few, 500);
  EXPECT_GT(blocked_cut(conv2d_problem("n1c4h3w3k300r3s3p1"), -1, 8).ranges(), 2);
}

TEST(Blocked, SeveralImagesInABlock) {
  expect_blocked_in_turn(
      {"n5c8h7w7k9r3s3p1", "n11c9h7w7k3r3s3p1", "n23c3h7w7k17r3s3p1", "n300c7h1w1k5r1s1", "n257c2h3w1k3r2s1",
       "n19c8h5w3k9r2s2u2", "n13c9h7w7k8r1s1u2", "n70c30h7w7k40r1s1", "n9c300h7w7k12r1s1"},
      Zeros::few, 500);
  EXPECT_GT(blocked_cut(conv2d_problem("n70c30h7w7k40r3s3p1")).images, 1);
  EXPECT_NE(70 % blocked_cut(conv2d_problem("n70c30h7w7k40r3s3p1")).images, 0);
}

// Rows that are cut, alone and beside others, whose classes end at different columns.
TEST(Blocked, LongRows) {
  expect_blocked_in_turn({"n1c7h1w1025k3r1s1", "n1c3h2w1100k9r2s3p1", "n1c2h3w4500k4r3s3p1uw4", "n1c9h2w2105k4r1s1uw2",
                          "n1c5h3w1024k3r3s3p1", "n1c7h2w1777k2r1s5dw3", "n1c2h2w3077k3r2s2pl3uw3"});
  const BlockedCut cut = blocked_cut(conv2d_problem("n1c3h2w1100k9r2s3p1"));
  EXPECT_LT(cut.columns, cut.along.count());
}

// Rows of outputs follow each other in a tile, or each begins one; they lie as the outputs do, or do not.
TEST(Blocked, RowsInTiles) {
  expect_blocked_in_turn(
      {"n2c20h9w33k20r3s3p1", "n2c20h30w8k20r3s3p8", "n2c20h12w16k20r5s5p2", "n1c9h20w48k13r3s1p1", "n2c20h9w11k20r1s1",
       "n1c70h40w50k12r1s1", "n2c5h13w8k12r3s1", "n2c300h9w11k20r1s1", "n2c20h12w20k20r5s5"},
      Zeros::few, 500);
  std::set<std::pair<bool, bool>> found;
  for (const char* text : {"n2c20h9w33k20r3s3p1", "n1c70h40w50k12r1s1", "n2c20h12w20k20r5s5"}) {
    const BlockedCut cut = blocked_cut(conv2d_problem(text));
    found.emplace(cut.flattened, cut.stores_rows);
  }
  EXPECT_EQ(found, (std::set<std::pair<bool, bool>>{{true, false}, {true, true}, {false, true}}));
}

// Sums that are added up where the outputs lie, with what else is added there.
TEST(Blocked, OutputsHoldSums) {
  for (const char* type : {"f32", "f16", "f64"})
    for (const Pass pass : blocked_passes)
      for (const char* words : {"", "bias", "relu", "acc", "bias relu", "bias acc", "relu acc", "bias relu acc"})
        for (const char* geometry : {"n2c20h9w11k20r1s1", "n1c280h9w11k270r1s1", "n1c29h5w16k30r3s3"})
          expect_blocked(with_pass(conv2d_problem(fmt::format("{} {} {}", words, type, geometry)), pass), Zeros::few,
                         -1, 500);
}

TEST(Blocked, FiltersAsLargeAsTheImage) {
  expect_blocked_in_turn({"n2c9h7w7k10r7s7", "n2c9h7w7k10r7s7p6", "n1c2h31w29k3r31s29", "n3c5h1w40k8r1s40",
                          "n3c5h40w1k8r40s1p2", "n1c20h9w9k7r9s9p4u2"},
                         Zeros::many, 500);
}

// What a class is: every output belongs to one, and taps that meet it lie where the definition has them.
TEST(Blocked, ClassesCoverEveryOutputOnce) {
  for (const char* text : {"n1c1h23w19k1r3s4p2u3dh2", "n1c1h29w30k1r5s2pl7uw4uh2d3", "flip n1c1h20w13k1r4s3pt3uh4dh6",
                           "n1c1h2w3k1r1s2pl2pt3u4", "n1c1h17w17k1r3s3p1"})
    for (const bool forward : {true, false}) {
      const Conv2dShape g(conv2d_problem(text));
      for (const bool is_down : {true, false}) {
        const BlockedAxis axis = is_down ? BlockedAxis::down(g, forward) : BlockedAxis::along(g, forward);
        const std::int64_t of_x = is_down ? g.h : g.w, of_y = is_down ? g.p : g.q, taps = is_down ? g.r : g.s;
        const auto x_of = [&](std::int64_t y, std::int64_t tap) {
          return is_down ? g.row_of(y, tap) : g.column_of(y, tap);
        };
        std::set<std::int64_t> seen;
        for (const BlockedClass& some : axis.classes)
          for (std::int64_t i = 0; i < some.count; ++i) {
            const std::int64_t output = some.begin + i * some.step;
            EXPECT_TRUE(seen.insert(output).second) << text;
            std::set<std::pair<std::int64_t, std::int64_t>> reads, expected;
            for (const BlockedTap& tap : some.taps) {
              EXPECT_TRUE(tap.index >= axis.low && tap.index <= axis.high) << text;
              const std::int64_t read = (i + tap.index) * axis.unit + axis.phases[static_cast<std::size_t>(tap.phase)];
              if (read >= 0 && read < axis.extent) reads.emplace(tap.tap, read);
            }
            for (std::int64_t tap = 0; tap < taps; ++tap)
              for (std::int64_t y = forward ? output : 0; y < (forward ? output + 1 : of_y); ++y) {
                const std::int64_t x = x_of(y, tap);
                if (forward && x >= 0 && x < of_x) expected.emplace(tap, x);
                if (!forward && x == output) expected.emplace(tap, y);
              }
            EXPECT_EQ(reads, expected) << text << ", output " << output;
          }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), forward ? of_y : of_x) << text;
      }
    }
}

// Whatever the limit and the threads, chunks are the same; and no block, row or sum passes the room that it has.
TEST(Blocked, CutsKeepToTheirRooms) {
  for (const char* text :
       {"n3c40h70w70k48r3s3p1", "n1c64h100w100k64r3s3p1u2", "n1c200h33w1100k9r3s3p1", "n301c64h7w7k64r3s3p1",
        "n67c40h5w9k70r1s1u2", "f64 n5c3h120w150k20r5s5p2u2", "n1c1h1w1k1r1s1", "n2c300h20w513k300r1s1",
        "nhwc n7c90h40w512k33r1s3p1", "n2c30h20w3k30r2s9p9d2", "n1c3h224w224k64r7s7p3u2", "n1c5h2w3k5r3s3p40",
        "n1c30h1w1k9r9s9pt4pb4pl5pr5"})
    for (const Pass pass : blocked_passes) {
      const Conv2dProblem problem = with_pass(conv2d_problem(text), pass);
      const BlockedCut whole = blocked_cut(problem);
      const std::int64_t least = blocked_cut(problem, 0).workspace_bytes();
      EXPECT_LE(least, whole.workspace_bytes());
      for (const int threads : {1, 2, 5})
        for (std::int64_t limit = whole.workspace_bytes() + 1; limit > least / 2; limit = limit * 7 / 8) {
          const BlockedCut cut = blocked_cut(problem, limit, threads);
          EXPECT_EQ(cut.channels.panels, whole.channels.panels) << text;
          EXPECT_EQ(cut.chain(), whole.chain()) << text;
          EXPECT_EQ(cut.format(problem).text, whole.format(problem).text) << text;
          const std::int64_t least_of_threads = blocked_cut(problem, 0, threads).workspace_bytes();
          EXPECT_GE(cut.workspace_bytes(), least_of_threads) << text << ", " << limit;
          EXPECT_LE(cut.workspace_bytes(), std::max(limit, least_of_threads)) << text << ", " << limit;
          const std::int64_t channels = cut.channels.height + (cut.channels.taller > 0 ? 1 : 0);
          std::int64_t farthest = 0;
          for (const BlockedTaps& some : cut.taps)
            for (const std::int64_t offset : some.steps[static_cast<std::size_t>(channels - cut.channels.height)])
              farthest = std::max(farthest, offset);
          const std::int64_t last = farthest + (cut.images - 1) * cut.plane + cut.slots();
          EXPECT_LE(round_up(last, cut.tile.lanes), cut.plane_elements() + cut.tile.lanes) << text;
          EXPECT_LE(last, cut.plane_elements() - cut.tile.columns + 15) << text;
          EXPECT_LE(cut.images * cut.slots(), cut.sums_pitch) << text;
        }
      EXPECT_EQ(blocked_cut(problem, least - 1).workspace_bytes(), least) << text;
    }
}

// A limit is kept to where there are blocks that do; else the offer names the least.
TEST(Blocked, KeepsToWorkspaceLimits) {
  for (const char* text : {"n3c40h70w70k48r3s3p1", "n1c512h28w28k512r3s3p1", "n4c3h224w224k64r7s7p3u2",
                           "n301c64h7w7k64r3s3p1", "n1c9h1w1k9r3s9p9", "n2c3h3w1k4r9s9p4"})
    for (const Pass pass : blocked_passes)
      for (const char* layout : {"nchw", "nhwc"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", layout, text)), pass);
        const std::int64_t least = blocked_cut(problem, 0).workspace_bytes();
        for (const std::int64_t limit : {least, least - 1}) {
          const auto all = explain(blocked_context(), problem, {.solver = blocked, .max_workspace_bytes = limit});
          EXPECT_EQ(all.front().applicable, limit == least) << text;
          if (limit == least) {
            EXPECT_EQ(all.front().workspace_bytes, least) << text;
          }
        }
        const std::string reason = error_of(
            [&] { Conv2dPlan(blocked_context(), problem, {.solver = blocked, .max_workspace_bytes = least - 1}); });
        EXPECT_NE(reason.find(fmt::format("of {} bytes at the least", least)), std::string::npos) << reason;
      }
}

std::vector<std::byte> blocked_data(DataType type, std::int64_t count, std::uint64_t seed) {
  std::vector<std::byte> made(static_cast<std::size_t>(count * size_of(type)));
  operations::fill_random(type, 0, seed, made);
  return made;
}

// The bytes of the output; what it held at first is the same every time. `prepare` makes w's form by another plan.
std::vector<std::byte> blocked_output(const Context& context, const Conv2dProblem& problem,
                                      const SolverOptions& options, const Conv2dProblem* prepare = nullptr) {
  const Plan plan(context, problem, options);
  Queue queue = context.make_queue();
  std::vector<NamedOperand> arrays;
  std::uint64_t seed = 1;
  std::size_t output = 0;
  for (const ArraySpec& array : plan.arrays()) {
    const std::vector<std::byte> data = blocked_data(array.type, array.elements(), seed++);
    Buffer buffer = context.allocate(array.bytes());
    queue.upload(buffer, 0, data.data(), buffer.bytes()).wait();
    if (array.role != ArrayRole::in) output = arrays.size();
    if (const auto format = plan.format(array.name); format != nullptr) {
      const Plan other(context, prepare != nullptr ? *prepare : problem, {.solver = options.solver, .prepared = {"w"}});
      EXPECT_EQ(other.format("w")->text, format->text) << to_text(problem);
      constexpr std::int64_t guard = 4096;
      const Buffer prepared = context.allocate(format->bytes + guard);
      std::memset(prepared.impl()->host(), 0x5A, static_cast<std::size_t>(prepared.bytes()));
      other.prepare(queue, array.name, {buffer}, prepared).wait();
      for (std::int64_t i = 0; i < guard; ++i)
        EXPECT_EQ(prepared.impl()->host()[format->bytes + i], std::byte{0x5A}) << to_text(problem);
      arrays.push_back({array.name, {prepared, 0, format}});
    } else {
      arrays.push_back({array.name, {buffer}});
    }
  }
  const Buffer workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  const std::vector<std::byte> filled(static_cast<std::size_t>(workspace.bytes()), std::byte{0xFF});  // NaN
  queue.upload(workspace, 0, filled.data(), workspace.bytes()).wait();
  plan.run(queue, arrays, workspace).wait();
  std::vector<std::byte> result(static_cast<std::size_t>(plan.arrays()[output].bytes()));
  queue.download(result.data(), arrays[output].operand.buffer, 0, plan.arrays()[output].bytes()).wait();
  return result;
}

// The bits follow neither from the number of threads nor from a limit of the workspace.
TEST(Blocked, ThreadsAndLimitsChangeNothing) {
  int number = 0;
  for (const char* text :
       {"n3c20h30w41k40r3s3p1", "nhwc acc bias n3c40h30w31k40r3s3p1u2", "n2c3h60w75k20r5s5p2u2",
        "nhwc flip n70c40h7w7k50r3s3p1g2", "acc n2c300h20w30k290r1s1", "bias relu n2c300h20w30k290r1s1",
        "acc bias relu n2c290h20w32k300r1s1", "acc n2c60h19w16k60r3s3p1", "acc bias n1c20h19w24k20r3s3",
        "f16 bias n2c60h19w17k40r3s3p1", "f64 acc n1c33h20w1100k31r1s3p1", "bf16 nhwc acc n2c60h9w50k60r3s3p1u3"})
    for (const Pass pass : blocked_passes) {
      if (instrumented && number++ % 11 != 0) continue;
      const Conv2dProblem problem = with_pass(conv2d_problem(text), pass);
      std::vector<std::byte> expected;
      for (const int threads : {1, 2, 5})
        for (const std::int64_t limit : blocked_limits(problem)) {
          const std::int64_t most =
              limit < 0 ? -1 : std::max(limit, blocked_cut(problem, 0, threads).workspace_bytes());
          const std::vector<std::byte> made =
              blocked_output(blocked_context(threads), problem, {.solver = blocked, .max_workspace_bytes = most});
          if (expected.empty()) expected = made;
          EXPECT_TRUE(made == expected) << to_text(problem) << ", " << threads << " threads, " << most;
        }
    }
}

TEST(Blocked, LimitsAreRight) {
  for (const char* geometry : {"n3c40h30w50k48r3s3p1", "n2c3h60w70k20r5s5p2u2", "n1c20h3w1500k20r1s7p3",
                               "n40c9h7w7k10r3s3p1", "n2c60h30w31k60r3s3p3d3g3", "n1c270h20w30k40r1s1"})
    for (const Pass pass : blocked_passes)
      for (const char* words : {"nchw", "nhwc acc flip", "nchw acc"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", words, geometry)), pass);
        for (const std::int64_t limit : blocked_limits(problem))
          expect_blocked(problem, Zeros::few, limit, instrumented ? 100 : 400);
      }
}

TEST(Blocked, ArraysBeginAnywhere) {
  for (const char* text : {"n2c9h14w30k10r3s3p1u2", "nhwc n2c19h9w12k19r3s3p1", "nhwc n2c3h9w12k21r3s3",
                           "n1c13h9w12k8r1s1u2", "n3c16h7w7k16r1s1", "n1c5h9w40k7r2s5"})
    for (const Pass pass : blocked_passes)
      expect_same_wherever_arrays_begin(blocked_context(), with_pass(conv2d_problem(text), pass), blocked);
}

// Sums of integers are exact; between rows of sums nothing changes; and what the processor's unit makes of any numbers
// is what the model makes of them.
TEST(MatrixTiles, SumsOfPairs) {
  constexpr std::int64_t blocks = 2, guard = 3;
  const std::vector<std::int64_t> taps = {31, 0, 80};
  const auto tap_count = static_cast<std::int64_t>(taps.size());
  const auto unit = kernels::matrix_unit();
  for (const std::int64_t depth : {1, 5, 16})
    for (const std::int64_t rows : {1, 16, 17, 32, 33, 55})
      for (const std::int64_t columns : {1, 15, 16, 17, 32}) {
        const std::int64_t ld = columns + guard, b_step = columns + 1, b_tap = depth * b_step + 2,
                           b_block = tap_count * b_tap, a_row = 2 * depth + 1, a_block = 80 + rows * a_row;
        const auto numbers_of = [](std::int64_t pairs, const auto& number) {
          std::vector<std::byte> made(static_cast<std::size_t>(2 * pairs * size_of(DataType::bf16)));
          for (std::int64_t i = 0; i < 2 * pairs; ++i)
            store_element(DataType::bf16, number(i), made.data() + i * size_of(DataType::bf16));
          return made;
        };
        const auto product_of = [&](const std::vector<std::byte>& a, const std::vector<std::byte>& b, bool add) {
          std::vector<float> sums(static_cast<std::size_t>(rows * ld), 7);
          kernels::multiply_tiles({.a = reinterpret_cast<const std::uint16_t*>(a.data()),
                                   .b = reinterpret_cast<const kernels::BfloatPair*>(b.data()),
                                   .taps = taps.data(),
                                   .tap_count = tap_count,
                                   .blocks = blocks,
                                   .depth = depth,
                                   .a_block = a_block,
                                   .a_row = a_row,
                                   .b_block = b_block,
                                   .b_tap = b_tap,
                                   .b_step = b_step,
                                   .rows = rows,
                                   .columns = columns,
                                   .sums = sums.data(),
                                   .ld = ld,
                                   .add = add});
          return sums;
        };
        const auto small_a = [](std::int64_t i) { return static_cast<double>(i * 5 % 13 - 6); };
        const auto small_b = [](std::int64_t i) { return static_cast<double>(i * 7 % 17 - 8); };
        const std::int64_t of_a = (blocks * a_block + 1) / 2, of_b = blocks * b_block;
        const auto a = numbers_of(of_a, small_a), b = numbers_of(of_b, small_b);
        std::mt19937 random(static_cast<unsigned>(depth + rows + columns));
        const auto any = [&](std::int64_t) {
          const int exponent = static_cast<int>(random() % 200) - 150;
          return std::ldexp(static_cast<double>(random() % 256) - 128, exponent);
        };
        const auto any_a = numbers_of(of_a, any), any_b = numbers_of(of_b, any);
        std::vector<std::vector<float>> of_any;
        for (const auto chosen : {kernels::MatrixUnit::model, kernels::MatrixUnit::processor}) {
          kernels::set_matrix_unit(chosen);
          if (kernels::matrix_unit() != chosen) continue;  // none in this processor
          of_any.push_back(product_of(any_a, any_b, true));
          for (const bool add : {false, true}) {
            const std::vector<float> sums = product_of(a, b, add);
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t j = 0; j < ld; ++j) {
                double expected = add || j >= columns ? 7 : 0;
                for (std::int64_t block = 0; block < blocks && j < columns; ++block)
                  for (std::int64_t t = 0; t < tap_count; ++t)
                    for (std::int64_t k = 0; k < 2 * depth; ++k)
                      expected += small_a(block * a_block + taps[static_cast<std::size_t>(t)] + i * a_row + k) *
                                  small_b(2 * (block * b_block + t * b_tap + k / 2 * b_step + j) + k % 2);
                ASSERT_EQ(sums[static_cast<std::size_t>(i * ld + j)], expected) << depth << ", " << i << ", " << j;
              }
          }
        }
        kernels::set_matrix_unit(unit);
        for (std::size_t i = 0; i < of_any.front().size(); ++i)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(of_any.front()[i]), std::bit_cast<std::uint32_t>(of_any.back()[i]));
      }
}

// The matrix unit, by its model where the processor has none.
class BlockedTiles : public testing::Test {
 protected:
  BlockedTiles() {
    if (kernels::matrix_unit() == kernels::MatrixUnit::none) kernels::set_matrix_unit(kernels::MatrixUnit::model);
  }
  ~BlockedTiles() override { kernels::set_matrix_unit(kernels::MatrixUnit::processor); }
};

BlockedCut tiles_cut(const Conv2dProblem& problem, std::int64_t limit = -1, int threads = 2) {
  return {problem, threads, limit, false, operations::BlockedUnit::matrix};
}

// Depths of one instruction and of several, whole and not, of some taps, of those of a class and of none; tiles of one
// to four registers; several images, blocks, panels, chunks and groups; rows that are cut.
TEST_F(BlockedTiles, EveryPassAndLayout) {
  for (const char* geometry :
       {"n2c5h6w7k5r3s3p1", "n2c7h9w8k33r1s1", "n1c15h9w8k15r3s3p1g3", "n1c35h8w9k37r3s2p1u2", "n1c13h8w9k7r4s5p2uw3",
        "n1c32h6w15k6r5s14p6", "n1c601h5w6k71r1s1", "n2c34h7w9k66r3s3p1g2", "n1c66h5w6k16r2s2d2", "n11c9h7w7k6r3s3p1",
        "n2c20h9w33k20r3s3p1", "n1c7h2w1077k6r1s5dw3", "n2c20h12w20k20r3s3", "n2c9h3w2k6r3s3p1u4", "n1c1h5w6k1r3s3p1",
        "n2c3h8w9k2r3s3p1u2", "n1c9h14w16k8r1s3uh3", "n1c140h6w7k70r3s3p1"})
    for (const Pass pass : blocked_passes)
      for (const char* layout : {"nchw", "nhwc"})
        for (const char* words : {"", "flip acc", "bias relu"})
          expect_blocked(with_pass(conv2d_problem(fmt::format("{} bf16 {} {}", words, layout, geometry)), pass),
                         Zeros::many, -1, 500, by_tiles);
  EXPECT_EQ(tiles_cut(conv2d_problem("bf16 n1c601h5w6k71r1s1")).depth, 16);
  EXPECT_EQ(tiles_cut(conv2d_problem("bf16 n2c34h7w9k66r3s3p1g2")).depth, 9);
  EXPECT_GT(tiles_cut(conv2d_problem("bf16 n1c140h6w7k70r3s3p1")).channels.panels, 1);
}

// Of few channels, those under the taps of a row lie side by side: under strides, dilations and paddings larger than
// the image, in one depth and several, whose pairs are of two taps.
TEST_F(BlockedTiles, JoinedTaps) {
  for (const char* geometry :
       {"n2c3h19w23k20r7s7p3u2", "n2c3h17w40k9r3s3p1", "n1c3h20w21k10r16s16", "n1c1h9w30k5r3s9p4", "n1c2h9w12k5r2s2p3",
        "n2c6h9w20k10r3s3p1g2", "n1c5h11w9k33r1s3pl7pr9uw3", "n1c3h8w33k4r3s5p2d2u2", "n1c8h7w30k40r2s13p12dw2",
        "n1c3h5w1100k3r2s3p1", "n5c4h6w5k3r3s3p1uh2"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "flip acc", "bias relu"})
        expect_blocked(conv2d_problem(fmt::format("{} bf16 {} {}", words, layout, geometry)), Zeros::many, -1, 500,
                       by_tiles);
}

TEST_F(BlockedTiles, ThreadsLimitsAndPreparedFiltersChangeNothing) {
  for (const char* text : {"bf16 n3c20h30w41k40r3s3p1", "bf16 nhwc acc n2c70h9w50k60r3s3p1u3",
                           "bf16 bias n2c300h12w9k90r1s1", "bf16 flip n70c40h7w7k50r3s3p1g2",
                           "bf16 n2c70h20w9k40r3s3p1", "bf16 n2c3h30w33k40r7s7p3u2", "bf16 nhwc n2c3h30w33k40r3s3p1"})
    for (const Pass pass : blocked_passes) {
      const Conv2dProblem problem = with_pass(conv2d_problem(text), pass);
      const std::vector<std::byte> expected = blocked_output(blocked_context(), problem, {.solver = by_tiles});
      EXPECT_TRUE(blocked_output(blocked_context(), problem, {.solver = by_tiles, .prepared = {"w"}}) == expected)
          << text;
      for (const int threads : {1, 5})
        for (const std::int64_t limit : {std::int64_t{-1}, tiles_cut(problem, 0, threads).workspace_bytes()})
          EXPECT_TRUE(blocked_output(blocked_context(threads), problem,
                                     {.solver = by_tiles, .max_workspace_bytes = limit}) == expected)
              << text << ", " << threads << " threads, " << limit;
    }
}

TEST_F(BlockedTiles, ArraysBeginAnywhere) {
  for (const char* text : {"bf16 n2c35h9w12k19r3s3", "bf16 nhwc n2c35h9w12k19r3s3u2", "bf16 n1c3h9w30k7r3s7p3u2"})
    for (const Pass pass : blocked_passes)
      expect_same_wherever_arrays_begin(blocked_context(), with_pass(conv2d_problem(text), pass), by_tiles);
}

// Whoever asks for fused multiply-adds alone, for errors relative to an element's own terms, or for another type has
// other solvers; so has a processor without the unit.
TEST_F(BlockedTiles, RefusesInSentences) {
  const Conv2dProblem problem = conv2d_problem("bf16 n1c32h5w5k16r3s3p1");
  const auto reason_of = [&](const Conv2dProblem& asked, SolverOptions request) {
    request.solver = by_tiles;
    return error_of([&] { Conv2dPlan(blocked_context(), asked, request); });
  };
  EXPECT_TRUE(explain(blocked_context(), problem, {.solver = by_tiles}).front().applicable);
  EXPECT_NE(reason_of(problem, {.units = Units::fma}).find("no unit of fused multiply-adds"), std::string::npos);
  EXPECT_NE(reason_of(problem, {.relative_error = true}).find("below the normal range"), std::string::npos);
  EXPECT_NE(reason_of(conv2d_problem("n1c32h5w5k16r3s3p1"), {}).find("multiplies bf16"), std::string::npos);
  EXPECT_NE(reason_of(with_pass(problem, Pass::backward_filter), {}).find("forward pass"), std::string::npos);
  kernels::set_matrix_unit(kernels::MatrixUnit::none);
  EXPECT_NE(reason_of(problem, {}).find("no matrix unit"), std::string::npos);
}

// Prepared filters give the bits of plain ones.
TEST(Blocked, PreparedFilters) {
  for (const char* geometry :
       {"n3c8h9w11k12r3s3p1", "n2c60h9w11k70r3s3p1u2", "flip n2c10h9w11k14r2s3p1u3d2g2", "f16 n2c8h9w11k12r3s3p1g4",
        "n2c300h6w6k130r1s1", "bf16 n1c515h3w3k17r1s1", "bf16 n2c35h5w6k19r3s3p1", "f64 n1c7h9w8k9r4s2u2",
        "bias relu acc n1c7h9w8k9r3s2", "n2c9h3w2k5r3s3p1u4", "n2c10h9w11k12r1s1u2g2"})
    for (const Pass pass : blocked_passes)
      for (const char* layout : {"nchw", "nhwc"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", layout, geometry)), pass);
        EXPECT_TRUE(blocked_output(blocked_context(), problem, {.solver = blocked}) ==
                    blocked_output(blocked_context(), problem, {.solver = blocked, .prepared = {"w"}}))
            << to_text(problem);
      }
}

// By problems of other images; backward to the data of such strides as sort the taps alike.
TEST(Blocked, PreparedFiltersAreShared) {
  struct Pair {
    const char *text, *other;
  };
  for (const Pair& pair :
       {Pair{"n3c8h9w11k12r3s3p1", "n1c8h30w5k12r3s3p2"}, Pair{"n3c60h9w11k12r3s3p1u2", "n1c60h30w50k12r3s3d2"},
        Pair{"flip n2c8h9w11k12r3s3p1", "n1c8h7w7k12r3s3"}, Pair{"nhwc n1c8h7w7k12r3s3", "nhwc n7c8h9w19k12r3s3p1u3"},
        Pair{"bwd_data n3c8h9w11k12r3s3p1", "bwd_data flip n1c8h30w5k12r3s3p2d2"},
        Pair{"bwd_data n3c8h9w11k12r3s3p1u2", "bwd_data n1c8h30w25k12r3s3p3u2"},
        Pair{"bwd_data nhwc n3c8h9w11k12r3s3u2d2", "bwd_data nhwc n1c8h30w25k12r3s3p2u2d4"}}) {
    const Conv2dProblem problem = conv2d_problem(pair.text), other = conv2d_problem(pair.other);
    EXPECT_TRUE(blocked_output(blocked_context(), problem, {.solver = blocked}) ==
                blocked_output(blocked_context(), problem, {.solver = blocked, .prepared = {"w"}}, &other))
        << pair.text;
  }
}

// Whatever sorts the elements otherwise is another form.
TEST(Blocked, FormatsSayWhatTheyAreOf) {
  const auto text = [](const std::string& of) {
    const Conv2dProblem problem = conv2d_problem(of);
    return blocked_cut(problem).format(problem).text;
  };
  for (const char* pass : {"fwd", "bwd_data"}) {
    std::set<std::string> all;
    for (const char* words : {"", "nhwc", "f16", "f64", "bf16", "tf32"})
      all.insert(text(fmt::format("{} {} n1c64h8w8k64r3s3u2", pass, words)));
    for (const char* other :
         {"n1c64h8w8k64r3s3g2u2", "n1c32h8w8k64r3s3u2", "n1c64h8w8k32r3s3u2", "n1c64h16w8k64r9s1u2"})
      all.insert(text(fmt::format("{} {}", pass, other)));
    EXPECT_EQ(all.size(), 10u) << pass;
  }
  EXPECT_NE(text("n1c64h8w8k64r3s3"), text("bwd_data n1c64h8w8k64r3s3"));
  const std::string strided = text("bwd_data n1c64h8w8k64r3s3u2");
  for (const char* other :
       {"bwd_data flip n1c64h8w8k64r3s3u2", "bwd_data n1c64h8w8k64r3s3u2p1", "bwd_data n1c64h8w8k64r3s3u2pl1",
        "bwd_data n1c64h8w8k64r3s3u2d2", "bwd_data n1c64h8w8k64r3s3uh2", "bwd_data n1c64h8w8k64r3s3u3",
        "bwd_data n1c64h8w1k64r3s3u2pl1pr1", "bwd_data n1c64h8w1k64r3s3u2pl2"})
    EXPECT_NE(text(other), strided) << other;
}

// <conv(x, w), dy> = <x, dx>, exactly, since all are small integers.
TEST(Blocked, PassesAreAdjoint) {
  const Context context = blocked_context();
  Queue queue = context.make_queue();
  std::uint64_t seed = 1;
  for (const char* text : {"n2c10h14w30k15r3s3p1u2g5", "nhwc n2c19h9w12k19r5s4p2d2", "n1c3h20w33k12r7s2p4uh3dw3",
                           "flip nhwc n3c4h9w9k20r3s3p1u3", "flip n2c8h13w12k7r1s1u2p1", "n1c60h9w9k60r3s3p1u4"}) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements elements = elements_of(problem);
    const auto integers = [&](std::int64_t count) {
      std::vector<float> made(static_cast<std::size_t>(count));
      operations::fill_random(DataType::f32, 3, seed++, std::as_writable_bytes(std::span(made)));
      return made;
    };
    const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      return sum;
    };
    std::vector<float> x = integers(elements.x), w = integers(elements.w), dy = integers(elements.y), y = dy, dx = x;
    const auto run = [&](Pass pass, std::vector<float>& of_x, std::vector<float>& of_y) {
      const Conv2dPlan plan(context, with_pass(problem, pass), {.solver = blocked});
      plan.run(queue, {.x = {context.borrow(std::span(of_x))},
                       .w = {context.borrow(std::span(w))},
                       .y = {context.borrow(std::span(of_y))},
                       .workspace = context.allocate(plan.workspace_bytes())})
          .wait();
    };
    run(Pass::forward, x, y), run(Pass::backward_data, dx, dy);
    EXPECT_EQ(product(y, dy), product(x, dx)) << text;
    EXPECT_NE(product(y, dy), 0) << text;
  }
}

// A tap alone is not dilated, and strides pass by what no memory holds.
TEST(Blocked, LargeNumbers) {
  for (const char* layout : {"nchw", "nhwc"})
    for (const char* type : {"f32", "f64"}) {
      for (const char* geometry :
           {"n1c2h7w9k2r1s1d4611686018427387904", "n2c9h7w9k2r1s3p1dh4611686018427387904",
            "n2c9h3w5k7r1s1u1099511627776", "n2c5h3w3k7r3s3u1099511627776", "n2c5h3w3k7r3s2uw1099511627776",
            "n2c9h5w2k3r1s1pl1099511627776uw1099511627776", "n2c9h2w5k3r1s1pt1099511627776uh1099511627776",
            "n2c9h2w5k3r1s1pt1099511627775uh1099511627776", "n1c3h4w5k2r2s2p1099511627776u1099511627776d1099511627777"})
        expect_blocked(conv2d_problem(fmt::format("{} {} {}", layout, type, geometry)), Zeros::many);
      for (const char* geometry : {"n1c2h7w9k2r1s1d4611686018427387904", "n2c9h7w9k2r1s3p1dh4611686018427387904"})
        expect_blocked(conv2d_problem(fmt::format("bwd_data {} {} {}", layout, type, geometry)), Zeros::many);
    }
}

// Of problems that no memory holds, the solver says something, and quickly; another may serve.
constexpr const char* largest_geometries[] = {
    "n1c1h1w1k1r3s3p1000000000d1000000000",
    "n1c1h1000000w1000000k1r3s3p1",
    "n1c1099511627776h1w1k1r1s1",
    "n1c1h1w1k1099511627776r3s3p1",
    "n1c1h1w1k1r1s1p1099511627776u1099511627776",
    "n1c1h1w1k1r1s1p4611686018427387000u4611686018427387000",
    "n1c1h1w1k1r1s1pt9223372036854775806uh4611686018427387905",
    "n1c1h1w1k1r1s1pl9223372036854775800uw9223372036854775800",
    "n1c1h1099511627776w1k1r1099511627776s1",
    "n1c1h1w1099511627776k1r1s1099511627776uw1048576",
    "n1c1h100000w100000k1r100000s100000",
    "n1c1h65536w1k1r65536s1uh65536",
    "n1c1h256w256k1r256s256u256",
    "n288230376151711744c1h1w1k1r1s1",
    "n1c288230376151711744h1w1k1r1s1",
    "n1c1h288230376151711744w1k1r1s1",
    "n1c1h1w288230376151711744k1r1s1",
    "n1c1h1w1k288230376151711744r1s1",
    "n1c1h1w268435456k1r1s2dw268435455",
    "n1c1h268435456w1k1r2s1dh268435455",
    "n1c1099511627776h1w1k1099511627776r1s1g1099511627776",
    "n1c1h1w1k1r2s1pb4611686018427387904dh4611686018427387904",
    "n1c1h1w1000000000000k1r1s1uw1000000000000",
    "n1c1h1w1000000000000k1r1s3p1uw16",
    "n1c1h1w216172782113783808k1r1s1",
    "n1c1h1w288230376151711743k1r1s1",
    "n1c1h72057594037927941w1k1r1s1",
    "n1c4h1w134000000000000000k1r1s1",
    "n1c1h1w1k1r2s1pt1099511627776pb4uh4dh1099511627777",
    "n1c1h1w1k1r2s1pt1099511627776pb4611686018427387904uh1099511627776dh4611686018427387904"};

void expect_explained(std::initializer_list<Pass> passes, const char* type, const char* solver) {
  for (const char* geometry : largest_geometries)
    for (const Pass pass : passes)
      for (const char* layout : {"nchw", "nhwc"})
        for (const std::int64_t limit : {-1, 0, 1000}) {
          const Conv2dProblem problem =
              with_pass(conv2d_problem(fmt::format("{} {} {}", layout, type, geometry)), pass);
          const std::vector<Candidate> all =
              explain(blocked_context(), problem, {.solver = solver, .max_workspace_bytes = limit});
          EXPECT_EQ(all.size(), 1u);
          EXPECT_TRUE(all.front().applicable || !all.front().reason.empty()) << to_text(problem);
          EXPECT_GE(all.front().workspace_bytes, 0) << to_text(problem);
        }
}

TEST(Blocked, NoProblemIsTooLargeToExplain) {
  for (const char* type : {"f16", "bf16"}) expect_explained({Pass::forward, Pass::backward_data}, type, blocked);
}

TEST_F(BlockedTiles, NoProblemIsTooLargeToExplain) {
  expect_explained({Pass::forward, Pass::backward_data}, "bf16", by_tiles);
  expect_explained({Pass::backward_filter}, "bf16", "conv2d/shifted_panels/cpu-tiles.1");
}

// A sum goes on through all channels: of constant numbers each addition is as wrong as the one before.
TEST_F(BlockedTiles, BoundsCountEveryAddition) {
  EXPECT_EQ(tiles_cut(conv2d_problem("bf16 n1c2048h1w1k8r1s1")).chain(), 16 + 64);
  EXPECT_EQ(tiles_cut(conv2d_problem("bf16 n1c160h5w5k8r3s3p1")).chain(), 16 + 5 * 9);
}

// Tiles and vectors of each size.
TEST(Blocked, InstructionSets) {
  int sets = 0;
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    ++sets;
    for (const char* type : {"f32", "f64", "f16", "bf16"})
      for (const Pass pass : blocked_passes)
        for (const char* words : {"nchw acc", "nhwc flip"})
          for (const char* geometry : {"n3c9h9w7k35r3s3p1", "n2c3h9w11k20r5s5p2u2", "n2c15h8w9k17r1s1u2",
                                       "n1c29h5w40k20r2s3p1", "n2c10h6w7k6r3s3p1g2", "n1c5h7w33k2r3s3"})
            expect_blocked(with_pass(conv2d_problem(fmt::format("{} {} {}", type, words, geometry)), pass),
                           Zeros::many);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  EXPECT_GE(sets, (hwy::SupportedTargets() & HWY_TARGETS & HWY_AVX2) != 0 ? 2 : 1);
}

TEST(Blocked, IsChosen) {
  for (const char* text : {"n4c3h224w224k64r7s7p3u2", "n4c3h224w224k64r3s3p1", "bwd_data n4c3h224w224k64r7s7p3u2",
                           "bwd_data n4c3h224w224k64r3s3p1"})
    EXPECT_EQ(explain(blocked_context(), conv2d_problem(text), {}).front().solver, blocked) << text;
}

TEST(Blocked, Refusals) {
  const auto expect_says = [](const char* text, const char* part, const std::vector<std::string>& prepared = {}) {
    const std::string reason = error_of(
        [&] { Conv2dPlan(blocked_context(), conv2d_problem(text), {.solver = blocked, .prepared = prepared}); });
    EXPECT_NE(reason.find(part), std::string::npos) << text << ": " << reason;
  };
  expect_says("bwd_filter n1c4h8w8k4r3s3", "serves the forward pass and bwd_data");
  for (const char* text : {"bwd_data n1c4h40w40k4r3s3uh5uw4", "bwd_data n1c4h40w40k4r3s3uw17",
                           "bwd_data n1c4h40w40k4r3s3uh17", "bwd_data n1c4h9w40k4r3s3uh3uw1099511627776"})
    expect_says(text, "strides of bwd_data whose product is at most 16");
  expect_says("n1c1h1w1k1r3s3p1000000000d1000000000", "taps within 2^28 elements");
  expect_says("bwd_data n1c1h9w268435457k1r1s2dw268435456", "taps within 2^28 elements");
  expect_says("n1c1h300w300k1r257s256", "filters of at most 2^16 taps");
  expect_says("n1c1h1w1k1r1s1p1099511627777u1099511627777", "strides and paddings of at most 2^40");
  expect_says("n1c4h8w8k4r3s3", "has a prepared form of w alone", {"x"});
  expect_says("n1c4h8w8k4r3s3", "has a prepared form of w alone", {"x", "w"});
}

}  // namespace
}  // namespace omniconv
