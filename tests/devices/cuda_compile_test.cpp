// Every kernel in every shipped form, compiled for CUDA devices as their solvers would build it, and the arithmetic of
// what comes out. It needs NVRTC, and neither a device nor a driver.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "../conformance/solver_testing.h"
#include "../error_testing.h"
#include "checking/verify.h"
#include "choice/choose.h"
#include "devices/cuda/cuda_api.h"
#include "devices/cuda/nvrtc.h"
#include "devices/definitions.h"
#include "devices/device.h"
#include "devices/gpu_peaks.h"
#include "image/kernel_text.h"
#include "omniconv/error.h"
#include "operations/activation/activation.h"
#include "operations/add/add.h"
#include "operations/batch/batch.h"
#include "operations/batch_norm/batch_norm.h"
#include "operations/bias_add/bias_add.h"
#include "operations/conv2d/conv2d.h"
#include "operations/dropout/dropout.h"
#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/random_image.h"
#include "operations/filter2d/weights.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/tiled/tiles.h"
#include "operations/loss/loss.h"
#include "operations/norm/norm.h"
#include "operations/pool2d/pool2d.h"
#include "operations/update/update.h"
#include "recording_device.h"

namespace omniconv {
namespace {

using devices::cuda::Nvrtc;

class CudaCompile : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    nvrtc = Nvrtc::find(1000, &why_not);
    if (!nvrtc) GTEST_SKIP() << why_not;
  }
  // PTX that stands for all devices of the kind: 81 is no device, so that the newest before it is taken, as text.
  std::string ptx(std::string_view text) const {
    const Nvrtc::Code code = nvrtc->compile(text, {}, 81);
    EXPECT_TRUE(code.is_ptx);
    return code.image;
  }
  // Code of compute capability 9.0, whose products on matrix units need not wait for each other: where registers of one
  // that is on its way may be touched, the compiler lets each end before the next begins.
  void expect_products_overlap(const devices::RecordingDevice::Text& built, const std::string& problem) const {
    const Nvrtc::Code code = nvrtc->compile(built.text, built.definitions, 90, built.target);
    EXPECT_FALSE(code.image.empty()) << problem;
    EXPECT_EQ(code.log.find("serialized"), std::string::npos) << problem << ": " << code.log;
  }
  const Nvrtc* nvrtc = nullptr;
};

// Text for the matrix units of 9.0, which NVRTC has known since 12.0: of an older one there is nothing to compile.
class CudaCompileFor90 : public CudaCompile {
 protected:
  void SetUp() override {
    CudaCompile::SetUp();
    if (!nvrtc) return;
    if (const std::string reason = nvrtc->target_refusal("sm_90a", 90); !reason.empty()) GTEST_SKIP() << reason;
  }
  // What split_gemm builds, whose products overlap; for so many compute units.
  std::size_t expect_split_gemm_overlaps(const Conv2dProblem& problem, const SolverOptions& options,
                                         int units = 1) const {
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->be_of_capability_90(), device->set_compute_units(units);
    const operations::Answer answer = operations::conv2d_split_gemm_gpu().offer(problem, device, options);
    const std::string text = to_text(problem);
    EXPECT_NE(answer.offer(), nullptr) << text << ": " << answer.refusal();
    if (answer.offer() == nullptr) return 0;
    answer.offer()->plan();
    for (const auto& built : device->built) expect_products_overlap(built, text);
    return device->built.size();
  }
  std::size_t expect_split_gemm_overlaps(const char* problem, const SolverOptions& options, int units = 1) const {
    return expect_split_gemm_overlaps(get<Conv2dProblem>(parse_problem(problem)), options, units);
  }
};

// Bytes of the largest stack frame of a program's kernels, as a cubin's section .nv.info has them: an attribute is its
// format, its number (17: frames) and two bytes, of format 4 the length of what follows, here a symbol and its bytes.
std::uint32_t largest_frame(const std::string& cubin) {
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    EXPECT_LE(at + bytes, cubin.size());
    if (at + bytes <= cubin.size()) std::memcpy(&value, cubin.data() + at, bytes);
    return value;
  };
  const std::size_t sections = number(0x28, 8), count = number(0x3C, 2),
                    names = number(sections + 64 * number(0x3E, 2) + 0x18, 8);
  std::uint32_t largest = 0;
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t section = sections + 64 * i;
    if (std::strcmp(cubin.c_str() + names + number(section, 4), ".nv.info") != 0) continue;
    const std::size_t begin = number(section + 0x18, 8), end = begin + number(section + 0x20, 8);
    for (std::size_t at = begin; at < end;) {
      const bool has_payload = number(at, 1) == 4;
      const std::size_t length = has_payload ? number(at + 2, 2) : 0;
      if (has_payload && number(at + 1, 1) == 17)
        largest = std::max(largest, static_cast<std::uint32_t>(number(at + 8, 4))), found = true;
      at += 4 + length;
    }
  }
  EXPECT_TRUE(found) << "the program says nothing of its kernels' frames";
  return largest;
}

// How many programs matrix units' products have: of the launches before the tiles, of the tiles, and of those behind,
// which add parts of sums.
std::size_t programs_of(std::string_view problem, std::string_view tuning) {
  const bool has_parts = problem.find("bwd_filter") != std::string_view::npos ||
                         (!tuning.empty() && tuning.find("parts=1") == std::string_view::npos);
  return has_parts ? 3 : 2;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The texts that the solvers which serve the problem on a CUDA device build for it.
std::vector<devices::RecordingDevice::Text> texts_of(const std::string& problem_text, std::set<std::string>& solvers) {
  const auto problem = get<Filter2dProblem>(parse_problem(problem_text));
  const Kernel kernel = kernel_for(problem, 1);
  const Filter2dTask task =
      task_for(problem, centred(problem, {.weights = kernel.weights, .second_weights = kernel.second_weights}));
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  for (const operations::Solver* const solver : operations::filter2d_solvers()) {
    const operations::Answer answer = solver->offer_any(operations::AnyTask(task), device, {});
    if (answer.offer() == nullptr) continue;
    solvers.insert(std::string(solver->id()));
    answer.offer()->plan();
  }
  EXPECT_FALSE(device->built.empty()) << problem_text;
  return device->built;
}

constexpr const char* types[] = {"u8", "u16", "s16", "s32", "f16", "f32"};
constexpr const char* borders[] = {"constant:3", "replicate", "reflect", "reflect101", "wrap", "valid"};
// What makes a text different: the form of the weights, the size where the loops are no longer unrolled, how many
// channels a work item has, the pair's forms, what becomes of opacity.
constexpr const char* forms[] = {
    "c3r3s4 kernel:integer",       "c1r11s13 kernel:random",      "c3r3s5 kernel:rank1",
    "c1r41s43 kernel:rank1",       "c3r4s3 kernel:equal",         "c2r33s31 kernel:equal",
    "c3r3s3 kernel:sobel",         "c1r3s3 kernel:scharr",        "c4r3s5 kernel:random alpha:3",
    "c4r3s5 kernel:rank1 alpha:3", "c5r4s3 kernel:equal alpha:2", "c4r3s3 kernel:laplacian alpha:3",
    "c3r5s5 kernel:integer"};

class CudaCompileForm : public CudaCompile, public testing::WithParamInterface<std::size_t> {};

// Every type, every second of them for either device: the types differ in loads and stores alone.
TEST_P(CudaCompileForm, ForEveryTypeAndBorder) {
  std::set<std::string> solvers;
  for (std::size_t i = 0; i < std::size(types); ++i) {
    const std::size_t number = GetParam() + i;
    const std::string text =
        fmt::format("filter2d {} h90w140{} {}", types[i], forms[GetParam()], borders[number % std::size(borders)]);
    const int capability = number % 2 == 0 ? 80 : 90;
    for (const auto& built : texts_of(text, solvers)) {
      try {
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty());
      } catch (const Error& error) {
        ADD_FAILURE() << text << " for " << capability << ": " << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, CudaCompileForm, testing::Range(std::size_t{0}, std::size(forms)));

// Strips and the fused form have tunables for each size of a kernel, and others where rows begin on 16 bytes (144
// columns of RGB): each of them for both devices.
TEST_F(CudaCompile, TunablesOfEverySize) {
  constexpr const char* problems[] = {"r3s3 kernel:random", "r5s5 kernel:random", "r7s7 kernel:integer",
                                      "r9s9 kernel:integer", "r9s9 kernel:rank1"};
  std::set<std::string> solvers;
  for (const char* const problem : problems)
    for (const int columns : {144, 145})
      for (const auto& built : texts_of(fmt::format("filter2d u8 h90w{}c3{}", columns, problem), solvers)) {
        if (built.text.find("void strips(") == std::string::npos && built.text.find("void fused(") == std::string::npos)
          continue;
        for (const int capability : {80, 90}) {
          try {
            EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty());
          } catch (const Error& error) {
            ADD_FAILURE() << problem << ", " << columns << " columns, for " << capability << ": " << error.what();
          }
        }
      }
}

TEST_F(CudaCompile, TextThatMeasuresPeaks) {
  devices::RecordingDevice device(devices::DeviceKind::cuda);
  devices::measure_gpu_peaks(device, 1, 0);
  ASSERT_EQ(device.built.size(), 1U);
  for (const int capability : {80, 90})
    EXPECT_FALSE(nvrtc->compile(device.built[0].text, device.built[0].definitions, capability).image.empty());
}

TEST_F(CudaCompile, TextThatProbesMatrixUnits) {
  for (const int capability : {80, 89, 90}) {
    devices::RecordingDevice device(devices::DeviceKind::cuda);
    if (capability == 90)
      device.be_of_capability_90();
    else
      device.set_capability(capability);
    const std::string target = capability == 90 ? "sm_90a" : "";
    if (!nvrtc->target_refusal(target, capability).empty()) continue;
    devices::probe_matrix_units(device);
    ASSERT_EQ(device.built.size(), 1U);
    EXPECT_EQ(device.built[0].target, target);
    const std::string image =
        nvrtc->compile(device.built[0].text, device.built[0].definitions, capability, target).image;
    EXPECT_NE(image.find("by_warps"), std::string::npos);
    EXPECT_EQ(image.find("by_warpgroups") != std::string::npos, capability == 90);
  }
}

// Every solver for GPUs is among those that the forms reach.
TEST(CudaCompileForms, ReachEverySolver) {
  std::set<std::string> reached;
  for (const char* const type : {"u8", "f32"})
    for (const char* const form : forms) texts_of(fmt::format("filter2d {} h90w140{}", type, form), reached);
  for (const operations::Solver* const solver : operations::filter2d_solvers()) {
    if (solver->id().find("/gpu") != std::string_view::npos) {
      EXPECT_TRUE(reached.contains(std::string(solver->id()))) << solver->id();
    }
  }
}

// Dot products of bytes where the device has them, and from the size on where they take less time than multiply-adds.
TEST(CudaCompileForms, DotProductsAreChosenWhereTheyAreCheaper) {
  const auto solver_for = [](const char* text, bool byte_dots) {
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    const Filter2dTask task = task_for(problem, {.weights = kernel_for(problem, 1).weights});
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->byte_dots = byte_dots;
    const Problem any(problem);
    return std::string(choice::choose(any.operation(), operations::AnyTask(task), any, device, {}).solver->id());
  };
  constexpr const char *dots = "filter2d/integer_dot/gpu-strips.1", *direct = "filter2d/direct/gpu-strips.1";
  EXPECT_EQ(solver_for("filter2d u8 h90w140c3r5s5 kernel:integer", true), dots);
  EXPECT_EQ(solver_for("filter2d u8 h90w140c3r7s7 kernel:integer", true), dots);
  EXPECT_EQ(solver_for("filter2d u8 h90w140c3r3s3 kernel:integer", true), direct);
  EXPECT_EQ(solver_for("filter2d u8 h90w140c3r7s7 kernel:integer", false), direct);
  EXPECT_EQ(solver_for("filter2d u8 h90w140c3r7s7 kernel:random", true), direct);
}

TEST_F(CudaCompile, DotProductsAreOneInstruction) {
  const std::string text = ptx("KERNEL void f(GLOBAL uint* x, GLOBAL int* y) { y[0] = DOT_U8_S8(x[0], y[1], y[0]); }");
  EXPECT_EQ(count(text, "dp4a.u32.s32"), 1) << text;
}

// No multiply-add but those that FMA asks for, no other precision than fp32, no approximate division or root, no
// flushing to zero: what the bits of integer images and the bounds of the others rest on.
TEST_F(CudaCompile, ArithmeticIsAsWritten) {
  const std::string text = ptx(R"(
KERNEL void f(GLOBAL float* x, const float a, const float b) {
  x[0] = a * b + x[0];
  x[1] = FMA(a, b, x[1]);
  x[2] = a / b;
  x[3] = sqrt(a);
  x[4] = 1.0f / a;
}
)");
  EXPECT_EQ(count(text, "fma.rn.f32"), 1) << text;
  EXPECT_EQ(count(text, "fma."), 1) << text;
  EXPECT_EQ(count(text, "mul.f32") + count(text, "mul.rn.f32"), 1) << text;
  EXPECT_EQ(count(text, "div.rn.f32") + count(text, "rcp.rn.f32"), 2) << text;
  EXPECT_EQ(count(text, "sqrt.rn.f32"), 1) << text;
  EXPECT_EQ(count(text, "approx"), 0) << text;
  EXPECT_EQ(count(text, ".ftz"), 0) << text;
  EXPECT_EQ(count(text, ".f64"), 0) << text;
}

TEST_F(CudaCompile, SolversUseNoDoublePrecision) {
  std::set<std::string> solvers;
  for (const char* const form : forms)
    for (const auto& built : texts_of(fmt::format("filter2d u8>f32 h90w140{}", form), solvers)) {
      const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
      EXPECT_EQ(count(text, ".f64"), 0) << form;
      // Approximate are the reciprocals that exact_division.kernel corrects, and nothing else.
      const int reciprocals = count(text, "rcp.approx.ftz.f32");
      EXPECT_EQ(count(text, "approx"), reciprocals) << form;
      EXPECT_EQ(count(text, ".ftz"), reciprocals) << form;
      EXPECT_TRUE(reciprocals == 0 || built.text.find("divisor_of") != std::string::npos) << form;
    }
}

// Quotients share a reciprocal where pixels are integers and weights no extremes, and pixels that are words leave
// nothing on a stack, be their chains unrolled or not.
TEST_F(CudaCompile, QuotientsShareAReciprocalWhereTheyAreNormal) {
  const std::pair<const char*, bool> cases[] = {{"u8 h5600w5600c4r3s3 alpha:3", true},
                                                {"u8 h90w140c4r9s9 kernel:unsharp:9,2,1.5 alpha:0", true},
                                                {"u8 h90w140c3r5s5 kernel:gaussian:5,1.1 alpha:1", true},
                                                {"u8 h90w140c5r4s3 kernel:equal alpha:2", true},
                                                {"f32 h90w140c4r3s3 kernel:equal alpha:3", false}};
  for (const auto& [problem, shared] : cases) {
    std::set<std::string> solvers;
    for (const auto& built : texts_of(fmt::format("filter2d {}", problem), solvers)) {
      const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
      EXPECT_EQ(count(text, "div.rn.f32") == 0, shared) << problem;
      EXPECT_EQ(count(text, "rcp.approx.ftz.f32") > 0, shared) << problem;
      EXPECT_EQ(count(text, ".local"), 0) << problem;
    }
  }
}

// gemm: every tile, whole and split; every type, transposition and ending; rows of whole vectors and others.
std::vector<devices::RecordingDevice::Text> gemm_texts() {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  const auto task_of = [](const std::string& text, std::int64_t number) {
    operations::GemmTask task = operations::task_for(get<GemmProblem>(parse_problem(text)));
    task.bias = static_cast<operations::BiasAlong>(number % 3);
    task.accumulate = number % 2 == 0, task.relu = number % 4 < 2;
    if (number % 3 == 0) task.output = DataType::f32;
    return task;
  };
  constexpr const char *gemm_types[] = {"f32", "f16", "bf16", "tf32"}, *transpositions[] = {"nn", "nt", "tn", "tt"};
  std::int64_t number = 0;
  for (const operations::GemmTile& tile : operations::gemm_tiles())
    for (const std::int64_t parts : {1, 4}) {
      const operations::GemmTask task = task_of(fmt::format("gemm {} {} m512n512k{} batch2", gemm_types[number % 4],
                                                            transpositions[number / 4 % 4], parts == 1 ? 513 : 2048),
                                                number);
      const auto choice = operations::choice_of(tile, parts, task, *device);
      EXPECT_TRUE(choice && choice->parts == parts);
      operations::plan_of_tiles(task, *device, *choice);
      ++number;
    }
  for (const char* const type : {"f32", "f16", "bf16"})
    for (const char* const transposition : transpositions) {
      const operations::GemmTask task = task_of(fmt::format("gemm {} {} m70n90k33", type, transposition), ++number);
      for (const operations::GemmSolver* const solver :
           {&operations::gemm_tiled_gpu(), &operations::gemm_short_gpu(), &operations::gemm_plain_gpu()}) {
        offer_by(*solver, task, operations::DevicePointer(device)).plan();
      }
    }
  return device->built;
}

// Every transposition and ending, matrices of a batch and shared ones, whole chunks and others.
TEST_F(CudaCompile, GemmOfPlanesInEveryForm) {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  device->set_capability(80);
  int number = 0;
  for (const char* const transposition : {"nn", "nt", "tn", "tt"}) {
    operations::GemmTask task = operations::task_for(get<GemmProblem>(parse_problem(
        fmt::format("gemm f32 {} m70n90k{} batch{}", transposition, number % 2 == 0 ? 33 : 64, 1 + number % 3))));
    task.bias = static_cast<operations::BiasAlong>(number % 3);
    task.accumulate = number % 2 == 0, task.relu = number % 4 < 2;
    if (number == 1) task.batch_b = 0;
    offer_by(operations::gemm_planes_gpu(), task, operations::DevicePointer(device)).plan();
    const int capability = number++ % 2 == 0 ? 80 : 90;
    const auto& built = device->built.back();
    try {
      const std::string text = nvrtc->compile(built.text, built.definitions, capability + 1).image;  // as PTX
      EXPECT_GT(count(text, "mma.sync.aligned.m16n8k16"), 0) << transposition;
      EXPECT_EQ(count(text, ".f64"), 0);
      EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty());
    } catch (const Error& error) {
      ADD_FAILURE() << transposition << " for " << capability << ": " << error.what();
    }
  }
}

// Every type, transposition and ending; whole chunks and single words; warps that share sums.
TEST_F(CudaCompile, GemmOnUnitsOfElevenBitsInEveryForm) {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  device->set_capability(80);
  int number = 0;
  for (const char* const type : {"f32", "tf32"})
    for (const char* const transposition : {"nn", "nt", "tn", "tt"}) {
      operations::GemmTask task = operations::task_for(get<GemmProblem>(
          parse_problem(fmt::format("gemm {} {} m70n90k{}", type, transposition, number % 2 == 0 ? 33 : 64))));
      task.bias = static_cast<operations::BiasAlong>(number % 3);
      task.accumulate = number % 2 == 0, task.relu = number % 4 < 2;
      const std::string tuning =
          number % 3 == 0 ? "tile_m=64 tile_n=64 tile_k=32 warp_m=32 warp_n=32 slices=2 stages=3 resident=1" : "";
      const operations::Answer answer = operations::gemm_mma_gpu().offer(task, device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << answer.refusal();
      answer.offer()->plan();
      const int capability = number++ % 2 == 0 ? 80 : 90;
      const auto& built = device->built.back();
      try {
        const std::string text = nvrtc->compile(built.text, built.definitions, capability + 1).image;  // as PTX
        EXPECT_EQ(count(text, "mma.sync.aligned.m16n8k8") > 0, true) << transposition;
        EXPECT_EQ(count(text, ".f64"), 0);
        EXPECT_EQ(count(text, ".ftz"), 0);
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty());
      } catch (const Error& error) {
        ADD_FAILURE() << type << ' ' << transposition << " for " << capability << ": " << error.what();
      }
    }
}

TEST_F(CudaCompile, GemmInEveryForm) {
  int number = 0;
  for (const auto& built : gemm_texts()) {
    const int capability = number++ % 2 == 0 ? 80 : 90;
    try {
      EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty());
    } catch (const Error& error) {
      ADD_FAILURE() << "text " << number << " for " << capability << ": " << error.what();
    }
  }
}

TEST_F(CudaCompile, GemmUsesNoDoublePrecision) {
  int number = 0;
  for (const auto& built : gemm_texts()) {
    if (number++ % 2 == 1) continue;  // the arithmetic is the same in all
    const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
    EXPECT_EQ(count(text, ".f64"), 0);
    EXPECT_EQ(count(text, "approx"), 0);
    EXPECT_EQ(count(text, ".ftz"), 0);
    EXPECT_GT(count(text, "fma.rn.f32"), 0);
    // Sums are multiplied by alpha where they are stored, at once or one by one; products that are rounded by
    // themselves would take the place of multiply-adds.
    EXPECT_LE(count(text, "mul.f32") + count(text, "mul.rn.f32"), count(text, "fma.rn.f32"));
  }
}

// The one text that the pooling's solver builds for the problem.
devices::RecordingDevice::Text pool2d_text(const std::string& problem) {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  offer_by(operations::pool2d_direct_gpu(), get<Pool2dProblem>(parse_problem(problem)),
           operations::DevicePointer(device))
      .plan();
  EXPECT_EQ(device->built.size(), 1u) << problem;
  return device->built.back();
}

// pool2d: every form of its kernels in every pooling, pass and layout; the types in turn.
std::vector<devices::RecordingDevice::Text> pool2d_texts() {
  std::vector<devices::RecordingDevice::Text> texts;
  constexpr const char* pool2d_types[] = {"f32", "f16", "bf16"};
  constexpr const char* geometries[] = {"n2c8h56w56r3s3p1u2", "n2c5h15w15r3s3p1", "n2c8h7w7r7s7", "n1c2h40w50r30s40pt3",
                                        "n1c2h2w2500r2s1100"};
  int number = 0, turn = 0;
  for (const char* const geometry : geometries)
    for (const char* const pooling : {"max", "avg", "avg_inside"})
      for (const char* const pass : {"fwd", "bwd"})
        for (const char* const layout : {"nchw", "nhwc"}) {
          if (std::string_view(pooling) == "avg_inside" && ++turn % 2 == 0) continue;
          texts.push_back(pool2d_text(
              fmt::format("pool2d {} {} {} {} {}", pooling, pass, pool2d_types[++number % 3], layout, geometry)));
        }
  return texts;
}

// batch: every type, layout and draw, with tables in local memory and where they lie; any number of quads.
TEST_F(CudaCompile, BatchesKeepToRegisters) {
  for (const char* const layout : {"nchw", "nhwc"})
    for (const char* const type : {"f32", "f16", "bf16"})
      for (const char* const geometry : {"m60000n64c1h28w28", "flip m50000n1024c3h32w32s4", "m50000n64c3h224w224s8",
                                         "flip m5000n64c5h224w224", "gathered flip m50000n1024c3h32w32s4"}) {
        const std::string problem = fmt::format("batch {} {} {}", type, layout, geometry);
        const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
        offer_by(operations::batch_direct_gpu(), get<BatchProblem>(parse_problem(problem)),
                 operations::DevicePointer(device))
            .plan();
        ASSERT_EQ(device->built.size(), 1u) << problem;
        const auto& built = device->built.back();
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
        const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
        EXPECT_EQ(count(text, ".f64"), 0) << problem;
        EXPECT_EQ(count(text, "ld.local"), 0) << problem;
        EXPECT_GT(count(text, std::string_view(type) == "f32" ? "st.global.v4" : "st.global"), 0) << problem;
      }
}

// bias_add: every pass, type and layout, with both widths of indices.
TEST_F(CudaCompile, BiasesKeepToRegisters) {
  for (const char* const pass : {"fwd", "bwd", "bwd relu"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const type : {"f32", "f16", "bf16"})
        for (const char* const geometry : {"n2c8h56w56", "n40c64h1000w1000"}) {
          const std::string problem = fmt::format("bias_add {} {} {} {}", pass, type, layout, geometry);
          const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
          offer_by(operations::bias_add_direct_gpu(), get<BiasAddProblem>(parse_problem(problem)),
                   operations::DevicePointer(device))
              .plan();
          ASSERT_EQ(device->built.size(), 1u) << problem;
          const auto& built = device->built.back();
          EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
          const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
          EXPECT_EQ(count(text, ".f64"), 0) << problem;
          EXPECT_EQ(count(text, "ld.local"), 0) << problem;
          EXPECT_EQ(count(text, ".ftz"), 0) << problem;
          EXPECT_GT(count(text, std::string_view(type) == "f32" ? "v4" : "v2"), 0) << problem;  // four at once
        }
}

// add: every pass, type and layout, plain and strided, with both widths of indices, 16 bytes of f32 at a time; what is
// added is read so where it lies side by side.
TEST_F(CudaCompile, ShortcutsReadAndWriteVectors) {
  const std::pair<const char*, int> geometries[] = {
      {"n2c8h56w56k8", 4}, {"n2c8h56w56k16u2", 4}, {"n2c16h56w56k32u2", 4}, {"n40c64h1000w1000k67", 2}};
  for (const char* const words : {"", "relu", "bwd", "nhwc relu", "nhwc bwd"})
    for (const char* const type : {"f32", "f16", "bf16"})
      for (const auto& [geometry, quads] : geometries) {
        const std::string problem = fmt::format("add {} {} {}", words, type, geometry);
        const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
        offer_by(operations::add_direct_gpu(), get<AddProblem>(parse_problem(problem)),
                 operations::DevicePointer(device))
            .plan();
        ASSERT_EQ(device->built.size(), 1u) << problem;
        const auto& built = device->built.back();
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
        const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
        EXPECT_EQ(count(text, ".f64"), 0) << problem;
        EXPECT_EQ(count(text, "ld.local"), 0) << problem;
        EXPECT_EQ(count(text, ".ftz"), 0) << problem;
        if (std::string_view(type) != "f32") continue;
        const bool is_plain = std::string_view(geometry) == "n2c8h56w56k8",
                   is_nhwc = std::string_view(words).starts_with("nhwc");
        EXPECT_GE(count(text, "ld.global.v4") + count(text, "ld.global.nc.v4"), is_plain || is_nhwc ? quads : 2)
            << problem;
        EXPECT_GE(count(text, "st.global.v4"), 2) << problem;
      }
}

// dropout: every type, 16 bytes of f32 at a time, and no word of Philox in memory.
TEST_F(CudaCompile, DropoutReadsAndWritesVectors) {
  for (const char* const type : {"f32", "f16", "bf16"}) {
    const std::string problem = fmt::format("dropout {} n5000", type);
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    offer_by(operations::dropout_direct_gpu(), get<DropoutProblem>(parse_problem(problem)),
             operations::DevicePointer(device))
        .plan();
    ASSERT_EQ(device->built.size(), 1u) << problem;
    const auto& built = device->built.back();
    EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
    const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
    EXPECT_EQ(count(text, ".f64"), 0) << problem;
    EXPECT_EQ(count(text, "ld.local"), 0) << problem;
    EXPECT_EQ(count(text, ".ftz"), 0) << problem;
    if (std::string_view(type) != "f32") continue;
    EXPECT_GE(count(text, "ld.global.v4"), 2) << problem;
    EXPECT_GE(count(text, "st.global.v4"), 2) << problem;
  }
}

// batch_norm: every pass, type and layout, with and without relu, with both widths of indices.
TEST_F(CudaCompile, NormalisationsKeepToRegisters) {
  int turn = 0;
  for (const char* const pass : {"fwd", "inference", "bwd"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const type : {"f32", "f16", "bf16"})
        for (const char* const geometry : {"n2c8h56w56", "n40c64h1000w1000"}) {
          const std::string problem =
              fmt::format("batch_norm {} {} {} {} {}", pass, type, layout, turn++ % 3 == 0 ? "" : "relu", geometry);
          const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
          offer_by(operations::batch_norm_direct_gpu(), get<BatchNormProblem>(parse_problem(problem)),
                   operations::DevicePointer(device))
              .plan();
          ASSERT_EQ(device->built.size(), 1u) << problem;
          const auto& built = device->built.back();
          EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
          const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
          EXPECT_EQ(count(text, ".f64"), 0) << problem;
          EXPECT_EQ(count(text, "ld.local"), 0) << problem;
          EXPECT_EQ(count(text, ".ftz"), 0) << problem;
          EXPECT_GT(count(text, std::string_view(type) == "f32" ? "v4" : "v2"), 0) << problem;  // four at once
        }
}

// The rungs of the classic study: each kernel of each rung.
TEST_F(CudaCompile, RungsOfTheStudy) {
  for (const char* const text :
       {"gemm f32 nn m33n21k50", "gemm f32 tt m33n21k50", "n3c5h9w11k7r3s3p1u2", "bwd_data n3c5h9w11k7r3s3p1u2",
        "bias_add n3c7h9w5", "bias_add bwd nhwc n3c7h9w5", "loss softmax n37c10", "loss softmax bwd n37c10",
        "loss mse n37c10", "loss mse bwd n37c10", "activation relu n3c5h9w7", "activation sigmoid bwd n3c5h9w7",
        "update sgd guarded n1003", "update adam guarded scaled n1003", "add n3c5h8w6k5", "add bwd n2c4h9w7k8u2"})
    for (const char* const tuning : {"rung=1 tile_m=16 tile_n=16 work=1", "rung=2 tile_m=32 tile_n=32 work=1",
                                     "rung=3 tile_m=64 tile_n=32 work=8"}) {
      const Problem problem = parse_problem(text);
      const std::string id = std::string(problem.operation_name()) + "/rungs/gpu.1";
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      for (const operations::Solver* const solver : problem.operation().solvers()) {
        if (solver->id() != id) continue;
        const operations::Answer answer = solver->offer_any(problem.operation().task(problem, 1),
                                                            operations::DevicePointer(device), {.tuning = tuning});
        ASSERT_NE(answer.offer(), nullptr) << text << ", " << tuning << ": " << answer.refusal();
        answer.offer()->plan();
      }
      EXPECT_GE(device->built.size(), 1u) << text;
      for (const auto& built : device->built) {
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << text << ", " << tuning;
        const std::string ptx = nvrtc->compile(built.text, built.definitions, 81).image;
        EXPECT_EQ(count(ptx, ".f64"), 0) << text << ", " << tuning;
        EXPECT_EQ(count(ptx, "ld.local"), 0) << text << ", " << tuning;
      }
    }
}

// activation: every function, pass and type, 16 bytes of f32 at a time.
TEST_F(CudaCompile, ActivationsReadAndWriteVectors) {
  for (const char* const function : {"relu", "sigmoid", "tanh"})
    for (const char* const pass : {"fwd", "bwd"})
      for (const char* const type : {"f32", "f16", "bf16"}) {
        const std::string problem = fmt::format("activation {} {} {} n2c8h56w56", function, pass, type);
        const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
        offer_by(operations::activation_direct_gpu(), get<ActivationProblem>(parse_problem(problem)),
                 operations::DevicePointer(device))
            .plan();
        ASSERT_EQ(device->built.size(), 1u) << problem;
        const auto& built = device->built.back();
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
        const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
        EXPECT_EQ(count(text, ".f64"), 0) << problem;
        EXPECT_EQ(count(text, "ld.local"), 0) << problem;
        // CUDA's exponential flushes results below the normal range.
        const bool is_exponential =
            problem.find("sigmoid fwd") != std::string::npos || problem.find("tanh fwd") != std::string::npos;
        EXPECT_TRUE(is_exponential || count(text, ".ftz") == 0) << problem;
        if (std::string_view(type) != "f32") continue;
        EXPECT_GE(count(text, "ld.global.v4") + count(text, "ld.global.nc.v4"), 4) << problem;
        EXPECT_GE(count(text, "st.global.v4"), 4) << problem;
      }
}

// loss: every loss, pass and type, of one work item for a row, of several that keep theirs, and of a group that reads a
// row in parts; 16 bytes of f32 at a time.
TEST_F(CudaCompile, LossesReadAndWriteVectors) {
  const std::pair<const char*, int> rows[] = {{"n70c4", 1}, {"n70c10", 1}, {"n9c1000", 4}, {"n3c5000", 4}};
  for (const char* const kind : {"softmax", "mse"})
    for (const char* const pass : {"fwd", "bwd", "bwd sums"})
      for (const char* const type : {"f32", "f16", "bf16"})
        for (const auto& [extents, quads] : rows) {
          const std::string problem = fmt::format("loss {} {} {} {}", kind, pass, type, extents);
          const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
          offer_by(operations::loss_direct_gpu(), get<LossProblem>(parse_problem(problem)),
                   operations::DevicePointer(device))
              .plan();
          ASSERT_EQ(device->built.size(), 1u) << problem;
          const auto& built = device->built.back();
          EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
          const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
          EXPECT_EQ(count(text, ".f64"), 0) << problem;
          EXPECT_EQ(count(text, "ld.local"), 0) << problem;
          if (std::string_view(type) != "f32") continue;
          EXPECT_GE(count(text, "ld.global.v4") + count(text, "ld.global.nc.v4"), quads) << problem;
          EXPECT_GE(count(text, "st.global.v4"), std::string_view(pass) == "fwd" ? 0 : quads) << problem;
        }
}

// norm: every type, eight times 16 bytes of f32 at a time, and no sum, root or quotient but those that are written.
TEST_F(CudaCompile, NormsReadVectors) {
  for (const char* const words : {"", "acc"})
    for (const char* const type : {"f32", "f16", "bf16"}) {
      const std::string problem = fmt::format("norm {} {} n50000", words, type);
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      offer_by(operations::norm_direct_gpu(), get<NormProblem>(parse_problem(problem)),
               operations::DevicePointer(device))
          .plan();
      ASSERT_EQ(device->built.size(), 1u) << problem;
      const auto& built = device->built.back();
      EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
      const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
      EXPECT_EQ(count(text, ".f64"), 0) << problem;
      EXPECT_EQ(count(text, "ld.local"), 0) << problem;
      EXPECT_EQ(count(text, ".ftz"), 0) << problem;
      EXPECT_EQ(count(text, ".approx"), 0) << problem;
      EXPECT_EQ(count(text, "fma."), 0) << problem;
      if (std::string_view(type) != "f32") continue;
      EXPECT_GE(count(text, "ld.global.v4") + count(text, "ld.global.nc.v4"), 8) << problem;
    }
}

// update: every rule and type, with all that may go with them and without; 16 bytes of f32 at a time, no register
// spilled, and no sum or quotient but those that are written.
TEST_F(CudaCompile, UpdatesReadAndWriteVectors) {
  for (const char* const rule : {"sgd", "nesterov", "adam"})
    for (const char* const words : {"", "scaled guarded"})
      for (const char* const type : {"f32", "f16", "bf16"}) {
        const std::string problem = fmt::format("update {} {} {} n5000", rule, words, type);
        const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
        offer_by(operations::update_direct_gpu(), get<UpdateProblem>(parse_problem(problem)),
                 operations::DevicePointer(device))
            .plan();
        ASSERT_EQ(device->built.size(), 1u) << problem;
        const auto& built = device->built.back();
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty()) << problem;
        const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
        EXPECT_EQ(count(text, ".f64"), 0) << problem;
        EXPECT_EQ(count(text, "ld.local"), 0) << problem;
        EXPECT_EQ(count(text, ".ftz"), 0) << problem;
        EXPECT_EQ(count(text, ".approx"), 0) << problem;
        const int states = std::string_view(rule) == "adam" ? 3 : 2;
        EXPECT_GE(count(text, "ld.global.v4") + count(text, "ld.global.nc.v4"), 2 * states) << problem;
        EXPECT_GE(count(text, "st.global.v4"), 2 * states) << problem;
      }
}

// Vectors of f32 in both layouts and passes: 16 bytes at a time, and no sum or quotient but those that are written.
TEST_F(CudaCompile, Pool2dInEveryForm) {
  int number = 0;
  for (const auto& built : pool2d_texts()) {
    const int capability = number++ % 2 == 0 ? 81 : 90;
    try {
      const std::string image = nvrtc->compile(built.text, built.definitions, capability).image;
      EXPECT_FALSE(image.empty());
      if (capability == 90) continue;
      EXPECT_EQ(count(image, ".f64"), 0) << number;
      EXPECT_EQ(count(image, "approx"), 0) << number;
      EXPECT_EQ(count(image, ".ftz"), 0) << number;
    } catch (const Error& error) {
      ADD_FAILURE() << "text " << number << " for " << capability << ": " << error.what();
    }
  }
}

TEST_F(CudaCompile, Pool2dReadsAndWritesVectors) {
  for (const char* const words : {"fwd nchw", "fwd nhwc", "bwd nchw", "bwd nhwc", "avg fwd nchw", "avg fwd nhwc",
                                  "avg bwd nchw", "avg bwd nhwc"}) {
    const auto built = pool2d_text(fmt::format("pool2d {} n2c8h56w56r3s3p1u2", words));
    const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
    EXPECT_GE(count(text, "ld.global.nc.v"), 3) << words;
    EXPECT_GE(count(text, "st.global.v4"), 2) << words;
    EXPECT_EQ(count(text, "ld.local"), 0) << words;
    EXPECT_EQ(count(text, "st.local"), 0) << words;
  }
}

// conv2d/depthwise, as the text that it builds for a device of many compute units.
devices::RecordingDevice::Text depthwise_text(const std::string& problem, int capability = 0) {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  device->set_compute_units(132);
  device->set_capability(capability);
  if (capability == 90) device->be_of_capability_90();
  offer_by(operations::conv2d_depthwise_gpu(), get<Conv2dProblem>(parse_problem(problem)),
           operations::DevicePointer(device))
      .plan();
  EXPECT_EQ(device->built.size(), 1u) << problem;
  return device->built.back();
}

TEST_F(CudaCompile, DepthwiseInEveryForm) {
  constexpr const char *passes[] = {"fwd", "bwd_data", "bwd_filter"}, *depthwise_types[] = {"f32", "f16", "bf16"};
  int number = 0;
  for (const char* const geometry :
       {"n8c64h28w28k64r3s3p1g64", "n8c32h15w17k32r3s3p1u2g32", "n8c32h14w14k64r5s5p2g8", "n8c32h20w20k32r7s7p3g32",
        "n2c8h40w40k8r31s31p15g8", "n8c32h14w14k32r3s3p1g32", "n8c40h14w14k40r5s5p2u2g40"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const pass : passes) {
        const int capability = ++number % 2 == 0 ? 81 : 90;
        const std::string problem = fmt::format("{} {} {} {}", pass, depthwise_types[number % 3], layout, geometry);
        const auto built = depthwise_text(problem, capability == 90 ? 90 : 80);
        try {
          const std::string image = nvrtc->compile(built.text, built.definitions, capability).image;
          EXPECT_FALSE(image.empty());
          if (capability == 90) continue;
          for (const char* const part : {".f64", "approx", ".ftz", "ld.local", "st.local"})
            EXPECT_EQ(count(image, part), 0) << problem << ": " << part;
        } catch (const Error& error) {
          ADD_FAILURE() << problem << " for " << capability << ": " << error.what();
        }
      }
}

// 16 bytes at a time wherever rows or channels allow it, and nothing stored to pieces but by arrays that begin
// elsewhere.
TEST_F(CudaCompile, DepthwiseReadsAndWritesVectors) {
  for (const char* const words :
       {"fwd nchw", "fwd nhwc", "bwd_data nchw", "bwd_data nhwc", "bwd_filter nchw", "bwd_filter nhwc"}) {
    const auto built = depthwise_text(fmt::format("{} n64c256h56w56k256r3s3p1g256", words));
    const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
    EXPECT_GE(count(text, "ld.global.nc.v4"), 8) << words;
    if (std::string_view(words).starts_with("bwd_filter")) continue;
    EXPECT_GE(count(text, "st.global.v4"), 8) << words;
    EXPECT_LE(count(text, "st.global.f32") + count(text, "st.global.u32") + count(text, "st.global.b32"), 1) << words;
  }
}

// Strips of 16-bit elements: the first turn's rows of four columns (and of the filter's gradient y's of two) are
// asked for before one is used, the next turn's in the loop; nothing leaves registers.
TEST_F(CudaCompile, DepthwiseStripsHaveRowsOnTheirWay) {
  for (const char* const words :
       {"fwd bf16", "fwd f16", "bwd_data bf16", "bwd_data f16", "bwd_filter bf16", "bwd_filter f16"}) {
    const auto built = depthwise_text(fmt::format("{} nhwc n64c256h56w56k256r3s3p1g256", words));
    const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
    const int rows = std::string_view(words).starts_with("bwd_filter") ? 3 * (4 + 2) : 3 * 4;
    EXPECT_GE(count(text, "ld.global.nc.v2"), 2 * rows) << words;
    const std::string before = text.substr(0, text.find("fma.rn.f32", text.find("ld.global.nc.v2")));
    EXPECT_GE(count(before, "ld.global.nc.v2"), rows) << words;
    for (const char* const part : {"ld.local", "st.local"}) EXPECT_EQ(count(text, part), 0) << words << ": " << part;
  }
}

// Of small planes: all vectors that a work item brings into local memory are asked for before the first is stored
// there, and nothing leaves registers.
TEST_F(CudaCompile, DepthwiseAsksForWholePlanesAtOnce) {
  for (const char* const words : {"fwd nchw", "fwd nhwc", "bwd_data nchw", "bwd_data nhwc"})
    for (const char* const geometry : {"n32c384h14w14k384r3s3p1g384", "n32c960h7w7k960r3s3p1g960"}) {
      const auto built = depthwise_text(fmt::format("{} {}", words, geometry));
      const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
      const std::size_t first_stored = text.find("st.shared.v4");
      ASSERT_NE(first_stored, std::string::npos) << words << ' ' << geometry;
      const auto value = [&](const char* symbol) {
        const auto has_it = [&](const devices::Definition& one) { return one.name == symbol; };
        return std::stoi(std::find_if(built.definitions.begin(), built.definitions.end(), has_it)->value);
      };
      const int pixels = value("CONV_H") * value("CONV_W");
      const int vectors = value("PLANES") * pixels * value("LANES") * value("CHANNELS") / value("COPIED");
      const int of_item = (vectors + value("GROUP") - 1) / value("GROUP");
      EXPECT_GE(of_item, 3) << words << ' ' << geometry;
      EXPECT_GE(count(text.substr(0, first_stored), "ld.global.nc.v4"), of_item) << words << ' ' << geometry;
      for (const char* const part : {"ld.local", "st.local"})
        EXPECT_EQ(count(text, part), 0) << words << ' ' << geometry;
    }
}

// Where vectors are copied by themselves, before one is awaited, too: NHWC's weights beside them, by vectors.
TEST_F(CudaCompile, DepthwiseCopiesWholePlanesAtOnce) {
  for (const char* const words : {"fwd nchw", "fwd nhwc", "bwd_data nchw", "bwd_data nhwc"})
    for (const char* const geometry : {"n32c384h14w14k384r3s3p1g384", "n32c960h7w7k960r3s3p1g960"}) {
      const auto built = depthwise_text(fmt::format("{} {}", words, geometry), 80);
      const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
      const std::size_t awaited = text.find("cp.async.wait_all");
      ASSERT_NE(awaited, std::string::npos) << words << ' ' << geometry;
      const std::string before = text.substr(0, awaited);
      EXPECT_GE(count(before, "cp.async.cg"), 3) << words << ' ' << geometry;
      EXPECT_EQ(count(text, "cp.async.cg"), count(before, "cp.async.cg")) << words << ' ' << geometry;
      const int weights = std::string_view(words).ends_with("nhwc") ? 9 : 0;
      EXPECT_GE(count(before, "ld.global.nc.v4"), weights) << words << ' ' << geometry;
      for (const char* const part : {"ld.local", "st.local"})
        EXPECT_EQ(count(text, part), 0) << words << ' ' << geometry;
    }
}

// The launch that adds parts may begin before the one that makes them has ended, and waits for it.
TEST_F(CudaCompile, DepthwisePartsAreAwaited) {
  const auto built = depthwise_text("bwd_filter nhwc n64c256h56w56k256r3s3p1g256", 90);
  EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90).image.empty());
  const std::size_t adds = built.text.find("void add_parts"), waits = built.text.find("AWAIT_LAUNCH_BEFORE;", adds);
  ASSERT_NE(waits, std::string::npos);
  EXPECT_LT(waits, built.text.find("partials[", adds));
}

// Taken for groups of few channels, whatever the pass and layout, and not for others.
TEST(CudaCompileForms, DepthwiseIsChosenForGroupsOfFewChannels) {
  const auto chosen = [](const std::string& text) {
    const Problem any = parse_problem(text);
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->set_compute_units(132);
    const operations::AnyTask task(get<Conv2dProblem>(any));
    return std::string(choice::choose(any.operation(), task, any, device, {}).solver->id());
  };
  for (const char* const pass : {"fwd", "bwd_data", "bwd_filter"})
    for (const char* const layout : {"nchw", "nhwc"}) {
      for (const char* const geometry :
           {"n64c256h56w56k256r3s3p1g256", "n64c256h56w56k256r3s3p1u2g256", "n32c96h56w56k96r7s7p3g96",
            "n64c128h56w56k128r3s3p1g32", "n64c512h7w7k512r3s3p1g512", "n64c32h112w112k32r1s1g32"})
        EXPECT_EQ(chosen(fmt::format("{} {} {}", pass, layout, geometry)), "conv2d/depthwise/gpu.1")
            << pass << ' ' << layout << ' ' << geometry;
      // Transforms take other filters: of 3 x 3 either.
      const std::string prefix = fmt::format("{} {}", pass, layout);
      EXPECT_NE(chosen(prefix + " n64c64h56w56k64r3s3p1"), "conv2d/depthwise/gpu.1") << prefix;
      EXPECT_EQ(chosen(prefix + " n64c64h28w28k64r5s5p2"), "conv2d/fft/gpu.1") << prefix;
    }
}

// A solver of conv2d, as the text that it builds for a device of many compute units.
devices::RecordingDevice::Text text_of(const operations::Conv2dSolver& solver, const std::string& problem,
                                       const std::string& tuning, int capability) {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  device->set_compute_units(132);
  device->set_capability(capability);
  const operations::Answer answer =
      solver.offer(get<Conv2dProblem>(parse_problem(problem)), device, {.tuning = tuning});
  EXPECT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
  answer.offer()->plan();
  EXPECT_EQ(device->built.size(), 1u) << problem;
  return device->built.back();
}
devices::RecordingDevice::Text implicit_text(const std::string& problem, const std::string& tuning = {}) {
  return text_of(operations::conv2d_implicit_gemm_gpu(), problem, tuning, 0);
}

// A kernel that may begin before the launch before has ended reads and writes nothing before it waits, does not end
// before, and asks for nothing as for what never changes.
TEST_F(CudaCompileFor90, LaunchesThatOverlapWaitFirst) {
  const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  device->be_of_capability_90(), device->set_compute_units(132);
  for (const operations::Conv2dSolver* const solver :
       {&operations::conv2d_implicit_gemm_gpu(), &operations::conv2d_mma_gemm_gpu(),
        &operations::conv2d_im2col_gemm_gpu(), &operations::conv2d_direct_gpu(), &operations::conv2d_few_pixels_gpu()})
    for (const char* const problem :
         {"n5c33h57w43k130r3s3p1u3", "f16 bias nhwc n5c33h57w43k130r3s3p1u3", "bwd_data n3c200h17w19k8r4s4p2",
          "bwd_data acc bf16 nhwc n3c200h17w19k8r4s4p2u2", "bwd_filter n1c512h7w7k512r3s3p1",
          "bwd_filter acc nhwc n1c512h7w7k512r3s3p1", "n4c256h64w64k512r1s1", "n4c3h64w64k16r7s7p3"}) {
      const bool serves_filters_alone = solver == &operations::conv2d_few_pixels_gpu();
      if (serves_filters_alone && !std::string_view(problem).starts_with("bwd_filter")) continue;
      const operations::Answer answer = solver->offer(get<Conv2dProblem>(parse_problem(problem)), device, {});
      ASSERT_NE(answer.offer(), nullptr) << solver->id() << ' ' << problem << ": " << answer.refusal();
      answer.offer()->plan();
    }
  for (const operations::GemmSolver* const solver : {&operations::gemm_planes_gpu(), &operations::gemm_mma_gpu(),
                                                     &operations::gemm_tiled_gpu(), &operations::gemm_short_gpu()})
    for (const char* const problem : {"gemm f32 nn m200n300k16", "gemm bf16 tt m64n64k12", "gemm f16 nt m32n32k15"}) {
      if (solver->id().find("/tiled/") == std::string_view::npos &&
          solver->id().find("/short/") == std::string_view::npos && !std::string_view(problem).starts_with("gemm f32"))
        continue;
      const operations::GemmTask task = operations::task_for(get<GemmProblem>(parse_problem(problem)));
      const operations::Answer answer = solver->offer(task, device, {});
      ASSERT_NE(answer.offer(), nullptr) << solver->id() << ' ' << problem << ": " << answer.refusal();
      answer.offer()->plan();
    }
  int kernels = 0;
  for (const auto& built : device->built) {
    const Nvrtc::Code code = nvrtc->compile(built.text, built.definitions, 91);  // as text, for 9.0
    ASSERT_TRUE(code.is_ptx);
    for (std::size_t at = code.image.find(".entry "); at != std::string::npos; ++kernels) {
      const std::size_t end = code.image.find(".entry ", at + 1);
      const std::string kernel = code.image.substr(at, end == std::string::npos ? end : end - at);
      at = end;
      if (kernel.starts_with(".entry plain(")) continue;  // gemm/plain, whose launches do not overlap
      const std::size_t waits = kernel.find("griddepcontrol.wait");
      EXPECT_NE(waits, std::string::npos) << kernel.substr(0, 60);
      for (const char* const touches : {"ld.global", "st.global", "cp.async", "red.global", "atom.global", "ret;"})
        EXPECT_GE(kernel.find(touches), waits) << touches << " of " << kernel.substr(0, 60);
      EXPECT_EQ(count(kernel, "ld.global.nc"), 0) << kernel.substr(0, 60);
    }
  }
  EXPECT_GT(kernels, 60);
}

// Both layouts, every type, vectors of sums and single ones, one image and several, planes of more than a work item
// fetches at once.
TEST_F(CudaCompile, FewPixelsInEveryForm) {
  for (const char* const form :
       {"n1c512h7w7k512r3s3p1", "nhwc n1c512h7w7k512r3s3p1", "acc n2c33h5w6k35r3s2p1u2", "f16 n1c64h14w14k70r3s3p1",
        "bf16 nhwc n2c40h9w5k36r2s2d2", "nhwc acc n1c64h14w14k64r5s5p2"})
    for (const int capability : {80, 90}) {
      const auto built = text_of(operations::conv2d_few_pixels_gpu(), fmt::format("bwd_filter {}", form), "", 0);
      try {
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty()) << form;
      } catch (const Error& error) {
        ADD_FAILURE() << form << " for " << capability << ": " << error.what();
      }
    }
}

// Every tile; stages of one tap and of several, classes of pixels, vectors and single elements; types and endings in
// turn.
TEST_F(CudaCompile, ImplicitGemmInEveryForm) {
  std::vector<std::pair<std::string, std::string>> forms_of_it;
  for (const char* const geometry :
       {"n8c64h28w28k64r3s3p1", "n8c67h15w17k30r3s3p1u2", "n8c3h30w30k64r7s7p3u2", "n2c10h9w9k6r3s3d2p2u3g2"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const pass : {"fwd bias relu acc", "bwd_data acc", "bwd_filter"})
        forms_of_it.emplace_back(fmt::format("{} {} {}", pass, layout, geometry), "");
  int number = 0;
  for (const operations::GemmTile& tile : operations::gemm_tiles()) {
    const char* const pass = std::array{"fwd", "bwd_data", "bwd_filter"}[static_cast<std::size_t>(++number % 3)];
    forms_of_it.emplace_back(fmt::format("{} {} n64c64h28w28k64r3s3p1", pass, number % 2 == 0 ? "nchw" : "nhwc"),
                             fmt::format("tile_m={} tile_n={} tile_k={} quads_m={} quads_n={} resident={} parts=2",
                                         tile.m, tile.n, tile.k, tile.quads_m, tile.quads_n, tile.resident));
  }
  constexpr const char* implicit_types[] = {"f32", "f16", "bf16"};
  for (const auto& [problem, tuning] : forms_of_it) {
    const int capability = ++number % 2 == 0 ? 81 : number % 4 == 1 ? 89 : 90;
    const auto built = implicit_text(fmt::format("{} {}", implicit_types[number % 3], problem), tuning);
    try {
      const std::string image = nvrtc->compile(built.text, built.definitions, capability).image;
      EXPECT_FALSE(image.empty());
      if (capability != 81) continue;
      for (const char* const part : {".f64", "approx", ".ftz", "ld.local", "st.local"})
        EXPECT_EQ(count(image, part), 0) << problem << ": " << part;
    } catch (const Error& error) {
      ADD_FAILURE() << problem << ' ' << tuning << " for " << capability << ": " << error.what();
    }
  }
}

// The loop over stages reads vectors from local memory, and divides nowhere. Whole vectors are stored, but for arrays
// that begin elsewhere.
TEST_F(CudaCompile, ImplicitGemmMovesVectorsAndDoesNotDivide) {
  for (const char* const words : {"fwd nchw", "fwd nhwc", "bwd_data nchw", "bwd_filter nchw", "bwd_filter nhwc"}) {
    const auto built = implicit_text(fmt::format("{} n32c256h56w56k256r3s3p1", words));
    const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
    EXPECT_EQ(count(text, "ld.shared.v4"), 48) << words;  // six for each of eight products
    EXPECT_GE(count(text, "st.global.v4"), 31) << words;  // of 32
    // Products; then one for each of 128 sums, which tells whether it is a number, and some of a sum by the
    // definition.
    EXPECT_GE(count(text, "fma.rn.f32"), 1024) << words;
    EXPECT_LE(count(text, "fma.rn.f32"), 1024 + 128 + 16) << words;
    const std::size_t loop = text.find("bar.sync");
    ASSERT_NE(loop, std::string::npos);
    EXPECT_EQ(count(text.substr(loop), "div."), 0) << words;
    EXPECT_EQ(count(text.substr(loop), "rem."), 0) << words;
  }
}

// Transforms of every form, pass and layout, and the products between them, for both devices: the matrices are
// constants of instructions, and what a work item transforms stays in registers.
TEST_F(CudaCompile, WinogradInEveryForm) {
  int number = 0;
  for (const char* const form : {"tile=4 tiles=0", "tile=2 tiles=0", "r5"})
    for (const std::string_view words :
         {"bias relu acc", "nhwc bias", "bwd_data acc", "flip bwd_data nhwc", "bwd_filter acc", "bwd_filter nhwc"}) {
      const bool large = std::string_view(form) == "r5", is_filter = words.starts_with("bwd_filter");
      if (large && is_filter) continue;
      const std::string problem = fmt::format("{} n2c24h13w16k40{}", words, large ? "r5s5p2" : "r3s3p1g2");
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      device->set_compute_units(132);
      const operations::Answer answer = operations::conv2d_winograd_gpu().offer(
          get<Conv2dProblem>(parse_problem(problem)), device, {.tuning = large ? "" : form});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      EXPECT_GE(device->built.size(), 2u) << problem;  // a product is one of them
      const int capability = ++number % 2 == 0 ? 80 : 90;
      try {
        for (const auto& built : device->built) {
          EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, capability).image.empty()) << problem;
          if (built.text.find("transform_inputs") == std::string::npos) continue;
          const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
          for (const char* const part : {".f64", "approx", ".ftz", "ld.local", "st.local", "ld.const"})
            EXPECT_EQ(count(text, part), 0) << problem << ": " << part;
          const std::string image = nvrtc->compile(built.text, built.definitions, 90).image;
          EXPECT_EQ(largest_frame(image), 0u) << problem;  // nothing is spilled
          // Rows of 16 and 13 columns: whole vectors of outputs under nchw, where 16 of them are; pairs as one
          // number.
          const bool are_pairs = large || std::string_view(form) == "tile=2 tiles=0";
          const auto stores =
              are_pairs ? count(text, "st.global.u64") + count(text, "st.global.b64") : count(text, "st.global.v4");
          if (problem.find("nhwc") == std::string::npos && !is_filter) {
            EXPECT_GT(stores, 0) << problem;
          }
        }
      } catch (const Error& error) {
        ADD_FAILURE() << problem << " for " << capability << ": " << error.what();
      }
    }
}

// Places in an image that is read are counted in 64 bits where it has so many elements, also those of dy.
TEST(CudaCompileForms, WinogradCountsLargeImagesInLongs) {
  const auto type_of_places = [](const char* problem) {
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->set_compute_units(132);
    const operations::Answer answer =
        operations::conv2d_winograd_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device, {});
    EXPECT_NE(answer.offer(), nullptr) << answer.refusal();
    answer.offer()->plan();
    for (const auto& built : device->built)
      for (const devices::Definition& definition : built.definitions)
        if (definition.name == "PLACE") return definition.value;
    return std::string("none");
  };
  EXPECT_EQ(type_of_places("bwd_filter nhwc n1c16h110w110k2048r3s3p1"), "int");
  EXPECT_EQ(type_of_places("bwd_filter nhwc n1c16h1100w1100k2048r3s3p1"), "long");
  EXPECT_EQ(type_of_places("nhwc n1c2048h1100w1100k16r3s3p1"), "long");
  EXPECT_EQ(type_of_places("nhwc n1c16h1100w1100k2048r3s3p1"), "int");  // only rows and columns of the target
}

// Every tile, pass and layout, products at every bin and groups of one channel in turn: twiddles are constants of
// instructions, and what a work item transforms stays in registers.
TEST_F(CudaCompile, FftInEveryForm) {
  int number = 0;
  for (const char* const tuning : {"tile=16 tiles=0", "tile=32 tiles=0", "tile=64 tiles=0", "tile=128 tiles=0"})
    for (const char* const form : {"bias relu acc n2h43w46c24k40g2", "nhwc flip bias n2h43w46c24k24g24",
                                   "bwd_data acc n2h43w46c24k24g24", "flip bwd_data nhwc n2h43w46c24k40",
                                   "bwd_filter acc n2h43w46c24k40g2", "bwd_filter nhwc n2h43w46c24k24g24"}) {
      const std::string problem = fmt::format("{}r7s5p2", form);
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      const bool in_memory = std::string_view(tuning).starts_with("tile=128");  // lines of 128 numbers
      const int capability = ++number % 2 == 0 && !in_memory ? 80 : 90;
      device->set_compute_units(132);
      if (capability == 90) device->be_of_capability_90();  // whose launches bring more local memory
      const operations::Answer answer =
          operations::conv2d_fft_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      int kernels = 0;
      for (const auto& built : device->built) {
        if (built.text.find("transform_rows") == std::string::npos) continue;  // a product
        ++kernels;
        const auto of_launch = std::ranges::find(built.definitions, "TILES_OF_LAUNCH", &devices::Definition::name);
        ASSERT_NE(of_launch, built.definitions.end());
        EXPECT_EQ(of_launch->value == "1",
                  in_memory || (capability == 90 && std::string_view(tuning).starts_with("tile=64")));
        try {
          const std::string text = nvrtc->compile(built.text, built.definitions, 81).image;
          EXPECT_EQ(count(text, ".entry"), 1) << tuning << ' ' << problem;
          const auto made = std::ranges::find_if(built.definitions, [](const devices::Definition& definition) {
            return definition.name.starts_with("MAKES_");
          });
          ASSERT_NE(made, built.definitions.end());
          EXPECT_EQ(count(text, ".entry " + made->name.substr(std::strlen("MAKES_")) + "("), 1) << made->name;
          for (const char* const part : {".f64", "approx", ".ftz"})
            EXPECT_EQ(count(text, part), 0) << tuning << ' ' << problem << ": " << part;
          for (const char* const part : {"ld.local", "st.local", "ld.const"})
            EXPECT_EQ(count(text, part) > 0, in_memory) << tuning << ' ' << problem << ": " << part;
          const std::string image = nvrtc->compile(built.text, built.definitions, capability).image;
          EXPECT_LE(largest_frame(image), in_memory ? 3072u : 0u) << tuning << ' ' << problem;  // nothing is spilled
        } catch (const Error& error) {
          ADD_FAILURE() << tuning << ' ' << problem << ": " << error.what();
        }
      }
      const bool is_fused = problem.find("g24") != std::string::npos && problem.find("bwd_filter") == std::string::npos;
      EXPECT_EQ(kernels, is_fused ? 2 : 3) << tuning << ' ' << problem;
    }
}

// Products on the matrix units of 8.0 and above: passes, layouts, types, tiles and endings in turn.
TEST_F(CudaCompile, MmaGemmInEveryForm) {
  int number = 0;
  for (const char* const geometry :
       {"n8c64h28w28k64r3s3p1", "n8c67h15w17k30r3s3p1u2", "n8c3h30w30k64r7s7p3u2", "n2c10h9w9k6r3s3d2p2u3g2"})
    for (const char* const words :
         {"fwd bias relu acc", "nhwc fwd", "bwd_data acc", "nhwc bwd_data", "bwd_filter acc", "nhwc bwd_filter"}) {
      constexpr const char* mma_types[] = {"f32", "f32", "tf32", "f16", "bf16"};
      constexpr const char* tunings[] = {
          "", "tile_m=128 tile_n=128 tile_k=16 warp_m=64 warp_n=32 resident=1 parts=1 merged=0",
          "tile_m=64 tile_n=64 tile_k=32 warp_m=32 warp_n=32 resident=3 parts=1 merged=0",
          "tile_m=32 tile_n=64 tile_k=16 warp_m=32 warp_n=16 resident=4 parts=1 merged=0"};
      const int capability = std::array{80, 89, 90}[static_cast<std::size_t>(++number % 3)];
      const std::string problem = fmt::format("{} {} {}", mma_types[number % 5], words, geometry);
      const auto built = text_of(operations::conv2d_mma_gemm_gpu(), problem, tunings[number % 4], capability);
      try {
        const std::string image = nvrtc->compile(built.text, built.definitions, capability).image;
        EXPECT_FALSE(image.empty());
      } catch (const Error& error) {
        ADD_FAILURE() << problem << " for " << capability << ": " << error.what();
      }
    }
}

// Products on the matrix units of 9.0: every tile, box, type and pass; the rest in turn.
TEST_F(CudaCompileFor90, SplitGemmInEveryForm) {
  int number = 0, turn = 0;
  const std::set<std::string_view> fused = {"", "bias relu acc", "bias", "acc"};
  auto words = fused.begin();
  for (const char* const type : {"f32", "tf32", "f16", "bf16"})
    for (const char* const pass : {"", "bwd_data", "bwd_filter"})
      for (const char* const tuning :
           {"tile_n=128 resident=1 parts=1", "tile_n=64 resident=2 parts=2", "tile_n=32 resident=2 parts=1"}) {
        constexpr const char* geometries[] = {"n2c64h20w20k128r3s3p1", "n2c32h20w20k128r3s3p1", "n2c3h20w20k128r3s3p1",
                                              "n2c16h90w90k128r31s31p15"};
        if (std::string_view(pass) == "bwd_filter" && std::string_view(tuning).starts_with("tile_n=32")) continue;
        // Each type's parts are alike in all passes.
        if (++turn % 4 != 0 && std::string_view(type) != "f32") continue;
        const bool forward = std::string_view(pass).empty();
        const std::string problem =
            fmt::format("{} {} {} {}", pass, forward ? *words : "", type, geometries[number % 4]);
        if (forward && ++words == fused.end()) words = fused.begin();
        ++number;
        Conv2dProblem parsed = get<Conv2dProblem>(parse_problem(problem));
        parsed.layout = number % 2 == 0 ? Layout::nchw : Layout::nhwc;
        const bool shares = number % 4 < 2 && std::string_view(pass) != "bwd_filter" && parsed.c > 16 && turn % 2 == 0;
        const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
        device->be_of_capability_90(), device->set_compute_units(132);  // all tiles are cut
        const operations::Answer answer = operations::conv2d_split_gemm_gpu().offer(
            parsed, device, {.tuning = fmt::format("{} shared={} raw=0", tuning, shares ? 1 : 0)});
        ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
        answer.offer()->plan();
        ASSERT_EQ(device->built.size(), programs_of(problem, tuning));
        for (const auto& built : device->built) {
          EXPECT_EQ(built.target, "sm_90a");
          expect_products_overlap(built, problem);
        }
      }
}

// What makes the parts of prepared operands, and tiles that find their largest magnitudes.
TEST_F(CudaCompileFor90, SplitGemmOfPreparedOperands) {
  for (const auto& [problem, prepared] : std::initializer_list<std::pair<const char*, std::vector<std::string>>>{
           {"n2c64h20w20k128r3s3p1", {"x", "w"}},
           {"tf32 nhwc n2c64h20w20k128r1s1", {"w"}},
           {"f16 bias n2c64h20w20k64r3s3p1", {"x"}},
           {"bwd_data nhwc acc n2c64h20w20k64r3s3p1u2", {"dy"}},
           {"bwd_filter n2c64h20w20k64r3s3p1", {"x", "dy"}},
           {"bwd_filter nhwc n2c3h20w20k64r3s3p1", {"dy"}}}) {
    EXPECT_EQ(expect_split_gemm_overlaps(problem, {.prepared = prepared}), programs_of(problem, {}));
  }
}

// The launches before the tiles and behind them stream: what leaves their registers costs a quarter of their rate.
TEST_F(CudaCompileFor90, SplitGemmMakesPartsInRegisters) {
  for (const char* const problem :
       {"n2c64h224w224k64r3s3p1", "nhwc n2c64h224w224k64r3s3p1", "bwd_data nhwc n2c64h224w224k64r3s3p1",
        "tf32 nhwc n2c64h56w56k64r3s3p1", "tf32 bwd_data nhwc n2c64h56w56k64r3s3p1", "nhwc n2c256h14w14k256r3s3p1",
        "bwd_data nhwc n2c32h28w28k96r5s5p2", "nhwc n2c33h57w43k130r3s3p1u3", "f16 nhwc n64c32h32w32k32r3s3p1",
        "bf16 bwd_data nhwc n64c32h32w32k32r3s3p1", "bwd_filter n2c64h56w56k64r3s3p1"}) {
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->be_of_capability_90(), device->set_compute_units(132);
    const operations::Answer answer =
        operations::conv2d_split_gemm_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device, {});
    ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    answer.offer()->plan();
    ASSERT_GE(device->built.size(), 2u);
    for (std::size_t i = 1; i < device->built.size(); ++i) {  // the tiles' program is the first
      const devices::RecordingDevice::Text& passes = device->built[i];
      EXPECT_EQ(largest_frame(nvrtc->compile(passes.text, passes.definitions, 90, passes.target).image), 0u) << problem;
    }
  }
}

// What their program is compiled for is not what the tiles are: with the tiles' definitions it is the same code, byte
// for byte.
TEST_F(CudaCompileFor90, LaunchesBeforeTheTilesDoNotDependOnThem) {
  const auto expect_same = [&](const devices::RecordingDevice& device, const std::string& problem) {
    ASSERT_GE(device.built.size(), 2u);
    const devices::RecordingDevice::Text& passes = device.built[1];
    std::vector<devices::Definition> of_tiles = device.built[0].definitions;
    ASSERT_EQ(std::count_if(of_tiles.begin(), of_tiles.end(), [](const auto& one) { return one.name == "TILES"; }), 1);
    for (devices::Definition& one : of_tiles)
      if (one.name == "TILES") one.value = "2";
    const auto code = [&](const std::vector<devices::Definition>& definitions) {
      return nvrtc->compile(passes.text, definitions, 90, passes.target).image;
    };
    EXPECT_TRUE(code(passes.definitions) == code(of_tiles)) << problem;
  };
  const auto device_for = [] {
    auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->be_of_capability_90(), device->set_compute_units(132);
    return device;
  };
  for (const auto& [problem, options] : std::initializer_list<std::pair<const char*, SolverOptions>>{
           {"bias relu n64c64h56w56k64r3s3p1", {}},        // windows of pairs
           {"bwd_data nhwc n32c64h56w56k64r7s7p3", {}},    // many taps
           {"n64c256h56w56k512r1s1u2", {}},                // boxes of planes
           {"nhwc acc n64c64h56w56k256r1s1", {}},          // raw rows
           {"n64c256h56w56k64r1s1", {}},                   // and columns
           {"bwd_data n64c32h28w28k96r5s5p2", {}},         // blocks
           {"bwd_data nhwc n64c32h29w29k96r5s5p2u2", {}},  // classes
           {"n1c256h56w56k256r3s3p1", {}},                 // groups that meet
           {"n64c32h28w28k96r5s5p2", {.tuning = "tile_n=32 resident=2 parts=1 shared=1 raw=0"}},
           {"bf16 nhwc n2c64h20w20k64r3s3p1", {.tuning = "tile_n=64 resident=1 parts=1 shared=2 raw=0"}},
           {"nhwc n2c64h20w20k64r3s3p1", {.measured = {"y"}}},
           {"n2c64h20w20k128r3s3p1", {.prepared = {"x", "w"}}},
           {"n2c64h20w20k128r3s3p1", {.relative_error = true}},
           {"bwd_filter n64c128h28w28k128r3s3p1", {}},
           {"bwd_filter tf32 nhwc n64c64h56w56k256r1s1", {}},
           {"bwd_filter n8c96h20w20k64r3s3p1", {.tuning = "tile_n=64 resident=1 parts=2 shared=0 raw=1"}}}) {
    const auto device = device_for();
    const operations::Answer answer =
        operations::conv2d_split_gemm_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device, options);
    ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    answer.offer()->plan();
    expect_same(*device, problem);
  }
  // So layers have one program, whose tiles differ.
  std::vector<devices::RecordingDevice::Text> shared;
  for (const char* const problem :
       {"n64c256h56w56k64r1s1", "n64c512h28w28k128r1s1", "bias relu n64c256h56w56k128r1s1"}) {
    const auto device = device_for();
    operations::conv2d_split_gemm_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device, {}).offer()->plan();
    shared.push_back(device->built[1]);
    EXPECT_EQ(shared.back().text, shared.front().text) << problem;
    EXPECT_EQ(devices::definition_options(shared.back().definitions),
              devices::definition_options(shared.front().definitions))
        << problem;
  }
  for (const char* const problem : {"gemm f32 tn m300n200k1000", "gemm f16 nt m300n30k1000"}) {
    const auto device = device_for();
    const operations::GemmTask task = operations::task_for(get<GemmProblem>(parse_problem(problem)));
    const operations::Answer answer = operations::gemm_split_gpu().offer(task, device, {});
    ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    answer.offer()->plan();
    expect_same(*device, problem);
  }
}

// Tiles that leave the largest magnitude of what they store, by every way of storing.
TEST_F(CudaCompileFor90, SplitGemmOfMeasuredOutputs) {
  for (const auto& [problem, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"bias relu n2c64h20w20k128r3s3p1", "tile_n=128 resident=1 parts=1 shared=0 raw=0"},
           {"nhwc n2c64h20w20k64r3s3p1", "tile_n=64 resident=2 parts=1 shared=1 raw=0"},
           {"tf32 n2c64h20w20k32r3s3p1", "tile_n=32 resident=2 parts=3 shared=0 raw=0"},
           {"nhwc n2c256h20w20k128r1s1", "tile_n=128 resident=1 parts=1 shared=0 raw=1"},
           {"bwd_data n2c3h32w32k64r7s7p3u2", ""},
           {"bwd_data nhwc acc n2c64h16w16k32r1s1u2", ""}}) {
    const auto parsed = get<Conv2dProblem>(parse_problem(problem));
    expect_split_gemm_overlaps(parsed, {.tuning = tuning, .measured = {parsed.pass == Pass::forward ? "y" : "dx"}});
  }
}

// Of 32 columns, whose two halves one warpgroup makes: boxes of every size.
TEST_F(CudaCompileFor90, SplitGemmOfFewColumns) {
  // Kept filters, blocks of rows, boxes of each kind, windows of three steps or of a half step, turned filters.
  for (const auto& [problem, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"bwd_data n2c32h20w20k96r5s5p2", "tile_n=32 resident=2 parts=1 shared=1 raw=0"},
           {"nhwc bias n2c16h20w20k32r3s3p1", "tile_n=32 resident=2 parts=1 shared=0 raw=0"},
           {"tf32 n2c64h20w20k32r3s3p1", "tile_n=32 resident=2 parts=1 shared=1 raw=0"},
           {"bf16 nhwc n2c64h20w20k64r3s3p1", "tile_n=64 resident=1 parts=1 shared=2 raw=0"},
           {"tf32 n2c32h20w20k32r3s3p1", "tile_n=32 resident=1 parts=1 shared=2 raw=0"},
           {"bwd_data f16 nhwc n2c64h20w20k32r3s3p1", "tile_n=64 resident=1 parts=1 shared=2 raw=0"},
           {"bwd_data nhwc n2c32h20w20k96r5s5p2", "tile_n=64 resident=2 parts=1 shared=1 raw=0"},
           {"bias n2c64h16w16k64r3s3p1", "tile_n=64 resident=2 parts=1 shared=0 raw=0"}}) {
    expect_split_gemm_overlaps(problem, {.tuning = tuning});
  }
}

// Of 96 columns, of boxes of 32 channels to the filter, of pairs of tiles.
TEST_F(CudaCompileFor90, SplitGemmOf96ColumnsNarrowBoxesAndPairs) {
  for (const auto& [problem, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"bias n2c32h20w20k96r5s5p2", "tile_n=96 resident=1 parts=1 shared=0 raw=0"},
           {"nhwc n2c32h20w20k96r5s5p2", "tile_n=96 resident=1 parts=1 shared=1 raw=0"},
           {"bwd_data bf16 nhwc n2c96h20w20k64r3s3p1", "tile_n=96 resident=1 parts=2 shared=0 raw=0"},
           {"bwd_filter n8c32h20w20k96r5s5p2", "tile_n=96 resident=1 parts=2 shared=0 raw=0"},
           {"bwd_filter f16 nhwc n8c96h20w20k96r3s3p1", "tile_n=96 resident=1 parts=2 shared=0 raw=0"},
           {"bwd_filter n8c96h20w20k64r3s3p1", "tile_n=64 resident=2 parts=2 shared=0 raw=0"},
           {"bwd_filter n8c32h20w20k128r3s3p1", "tile_n=128 resident=1 parts=2 shared=0 raw=1"},
           {"n2c64h20w20k64r3s3p1", "tile_n=64 resident=1 parts=1 shared=3 raw=0"},
           {"bwd_data nhwc n2c32h20w20k96r5s5p2", "tile_n=64 resident=1 parts=1 shared=3 raw=0"},
           {"bf16 nhwc n2c64h20w20k64r3s3p1", "tile_n=64 resident=1 parts=1 shared=3 raw=0"}}) {
    expect_split_gemm_overlaps(problem, {.tuning = tuning});
  }
}

// Tiles of blocks of rows, of 104, 96 and 112 rows.
TEST_F(CudaCompileFor90, SplitGemmOfFewerRows) {
  for (const char* const problem : {"bwd_data n64c32h28w28k96r5s5p2", "bwd_data nhwc n60c32h28w28k96r5s5p2",
                                    "bwd_data nhwc n70c32h28w28k96r5s5p2"}) {
    expect_split_gemm_overlaps(problem, {.tuning = "tile_n=64 resident=2 parts=1 shared=1 raw=0"}, 132);
  }
}

// Rows of a split in registers.
TEST_F(CudaCompileFor90, SplitGemmOfRawRows) {
  for (const char* const problem :
       {"nhwc n2c64h20w20k128r3s3p1", "tf32 nhwc bias n2c32h20w20k64r5s5p2", "bwd_data nhwc n2c64h20w20k64r3s3p1u2",
        "n2c256h20w20k128r1s1", "bwd_filter n8c256h20w20k128r1s1", "bwd_filter acc tf32 nhwc n8c64h20w20k128r1s1",
        "bwd_filter n8c64h20w20k64r3s3p1", "bwd_filter flip nhwc n8c32h20w20k96r5s5p2u2"})
    for (const char* const tuning :
         {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "tile_n=64 resident=1 parts=2 shared=0 raw=1",
          "tile_n=128 resident=2 parts=2 shared=0 raw=1"}) {
      const auto parsed = get<Conv2dProblem>(parse_problem(problem));
      if (parsed.pass == Pass::backward_data && std::string_view(tuning).find("parts=2") != std::string_view::npos)
        continue;
      if (parsed.pass != Pass::backward_filter && std::string_view(tuning).find("resident=2") != std::string_view::npos)
        continue;
      expect_split_gemm_overlaps(parsed, {.tuning = tuning});
    }
}

// Of three parts of bf16, where errors are to be relative: every tile, pass and layout, windows that steps share.
TEST_F(CudaCompileFor90, SplitGemmOfSixProducts) {
  for (const auto& [problem, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"n2c64h20w20k128r3s3p1", "tile_n=128 resident=1 parts=1 shared=0 raw=0"},
           {"nhwc bias relu acc n2c128h20w20k64r3s3p1", "tile_n=64 resident=1 parts=2 shared=1 raw=0"},
           {"n2c32h20w20k30r3s3p1", "tile_n=32 resident=1 parts=1 shared=0 raw=0"},
           {"bias nhwc n2c16h20w20k64r5s5p2", "tile_n=64 resident=1 parts=1 shared=1 raw=0"},
           {"bwd_data n2c64h20w20k128r3s3p1u2", "tile_n=64 resident=1 parts=1 shared=0 raw=0"},
           {"bwd_filter nhwc n2c64h20w20k128r3s3p1", "tile_n=128 resident=1 parts=3 shared=0 raw=0"},
           {"bwd_filter acc n2c3h20w20k60r7s7p3u2", "tile_n=64 resident=1 parts=1 shared=0 raw=0"}}) {
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->be_of_capability_90(), device->set_compute_units(132);
    const operations::Answer answer = operations::conv2d_split_gemm_gpu().offer(
        get<Conv2dProblem>(parse_problem(problem)), device, {.relative_error = true, .tuning = tuning});
    ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    EXPECT_EQ(answer.offer()->bound.absolute, 0) << problem;
    answer.offer()->plan();
    ASSERT_EQ(device->built.size(), programs_of(problem, tuning));
    for (const auto& built : device->built) expect_products_overlap(built, problem);
  }
}

// Tiles of 256 columns, which one product has.
TEST_F(CudaCompileFor90, SplitGemmOfWideTiles) {
  for (const char* const problem : {"bf16 nhwc n2c64h20w20k256r3s3p1", "tf32 bias relu n2c16h20w20k200r3s3p1",
                                    "bwd_data f16 n2c256h20w20k64r3s3p1u2", "bwd_filter bf16 n2c64h20w20k256r3s3p1"}) {
    expect_split_gemm_overlaps(problem, {.tuning = "tile_n=256 resident=1 parts=1 shared=0 raw=0"});
  }
}

// The same of few channels: every number of columns, records of one tap and of several; layouts and endings in turn.
TEST_F(CudaCompileFor90, FewChannelsInEveryForm) {
  constexpr const char *endings[] = {"", "bias relu acc", "bias", "acc", "flip relu"},
                       *all[] = {"f32", "f16", "tf32", "bf16"};
  int number = 0;
  for (const auto& [geometry, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"n8c3h224w224k64r7s7p3u2", ""},
           {"n8c3h224w224k64r7s7p3u2", "columns=64 held=1 blocks=1 width=32 side=1 workers=4 resident=1"},
           {"n10c3h128w128k10r16s16", "columns=24 held=1 blocks=1 width=16 side=2 workers=4 resident=1"},
           {"n32c3h224w224k64r3s3p1", ""},
           {"n8c3h224w224k48r3s3p1", "columns=16 held=3 blocks=1 width=64 side=1 workers=2 resident=2"},
           {"n8c3h224w224k64r3s3p1", "columns=64 held=1 blocks=2 width=64 side=1 workers=2 resident=2"},
           {"n10c3h128w128k10r16s16", ""},
           {"n8c1h28w28k64r5s5p2", "columns=32 held=2 blocks=2 width=32 side=1 workers=2 resident=3"},
           {"n8c2h30w31k8r3s5p1u3d2", "columns=8 held=1 blocks=1 width=16 side=1 workers=2 resident=1"},
           {"n8c8h30w31k24r1s4u4g2", "columns=16 held=1 blocks=1 width=16 side=1 workers=2 resident=2"}})
    for (const char* const layout : {"nchw", "nhwc"}) {
      const std::string problem =
          fmt::format("{} {} {} {}", endings[number % 5], all[(number + number / 4) % 4], layout, geometry);
      const bool is_scaled = problem.find("f16") == std::string::npos;
      ++number;
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      device->be_of_capability_90();
      const operations::Answer answer = operations::conv2d_few_channels_gpu().offer(
          get<Conv2dProblem>(parse_problem(problem)), device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      ASSERT_EQ(device->built.size(), is_scaled ? 2u : 1u);
      for (const auto& built : device->built) {
        EXPECT_EQ(built.target, "sm_90a");
        expect_products_overlap(built, problem);
      }
    }
}

// The same of the filter's gradient: rows of y and of x, every number of columns.
TEST_F(CudaCompileFor90, FewChannelsFilterInEveryForm) {
  constexpr const char *words[] = {"", "acc", "flip", "flip acc"}, *all[] = {"f32", "f32", "tf32"};
  int number = 0;
  for (const auto& [geometry, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"n32c3h224w224k64r3s3p1", ""},
           {"n64c3h224w224k64r7s7p3u2", ""},
           {"n8c64h180w180k1r3s3p1", ""},
           {"n10c3h128w128k10r16s16", "columns=56 held=3 stages=1 workers=2 rows_of_x=0"},
           {"n8c1h28w28k64r5s5p2", "columns=24 held=2 stages=2 workers=3 rows_of_x=0"},
           {"n8c2h30w31k8r3s5p1u3d2", "columns=8 held=4 stages=2 workers=4 rows_of_x=0"},
           {"n8c8h30w31k8r2s4g2", "columns=16 held=2 stages=2 workers=4 rows_of_x=1"},
           {"n8c30h30w31k3r5s5p2", "columns=40 held=2 stages=2 workers=3 rows_of_x=1"},
           {"n8c3h30w31k30r5s5p2", "columns=48 held=2 stages=2 workers=2 rows_of_x=0"},
           {"n8c3h30w31k30r9s9p2", "columns=64 held=2 stages=2 workers=2 rows_of_x=0"}})
    for (const char* const layout : {"nchw", "nhwc"}) {
      const std::string problem =
          fmt::format("bwd_filter {} {} {} {}", words[number % 4], all[number % 3], layout, geometry);
      ++number;
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      device->be_of_capability_90();
      const operations::Answer answer = operations::conv2d_few_channels_filter_gpu().offer(
          get<Conv2dProblem>(parse_problem(problem)), device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      ASSERT_EQ(device->built.size(), 2u);
      for (const auto& built : device->built) {
        EXPECT_EQ(built.target, "sm_90a");
        expect_products_overlap(built, problem);
      }
    }
}

// The same by warps: blocks that share pixels and not, one product and three, most registers of each number of warps.
TEST_F(CudaCompileFor90, FewChannelsFilterByWarpsInEveryForm) {
  constexpr const char *words[] = {"", "acc", "flip", "flip acc"}, *all[] = {"f32", "f32", "tf32"};
  int number = 0;
  for (const auto& [geometry, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"n10c3h128w128k10r16s16", ""},
           {"n64c3h227w227k96r11s11u4", ""},
           {"n10c3h128w128k10r16s16", "rows=16 blocks=8 warps=12 resident=1 width=128 height=9 sixteens=4"},
           {"n64c3h227w227k96r11s11u4", "rows=32 blocks=12 warps=8 resident=1 width=64 height=2 sixteens=2"},
           {"n32c3h224w224k64r3s3p1", "rows=32 blocks=4 warps=8 resident=2 width=32 height=8 sixteens=1"},
           {"n8c2h30w31k8r3s5p1u3d2", "rows=16 blocks=1 warps=8 resident=1 width=16 height=3 sixteens=1"}})
    for (const char* const layout : {"nchw", "nhwc"}) {
      const std::string problem =
          fmt::format("bwd_filter {} {} {} {}", words[number % 4], all[number % 3], layout, geometry);
      ++number;
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      device->be_of_capability_90();
      const operations::Answer answer = operations::conv2d_few_channels_warps_gpu().offer(
          get<Conv2dProblem>(parse_problem(problem)), device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      ASSERT_EQ(device->built.size(), 2u);
      for (const auto& built : device->built) expect_products_overlap(built, problem);
    }
}

// The same of few channels to the data: one slice and several, one body and several; layouts and types in turn.
TEST_F(CudaCompileFor90, FewChannelsToTheDataInEveryForm) {
  constexpr const char *words[] = {"", "acc", "flip"}, *all[] = {"f32", "f32", "tf32", "f32"};
  int number = 0;
  for (const char* const geometry :
       {"n8c3h224w224k64r7s7p3u2", "n8c3h224w224k64r3s3p1", "n10c3h128w128k10r16s16", "n8c1h28w28k32r5s5p2",
        "n8c2h30w31k8r3s5p1u3d2", "n8c8h30w31k200r1s4u4g2", "n8c4h64w64k48r4s4u4"})
    for (const char* const layout : {"nchw", "nhwc"}) {
      const std::string problem =
          fmt::format("bwd_data {} {} {} {}", words[number % 3], all[number % 4], layout, geometry);
      ++number;
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      device->be_of_capability_90();
      const operations::Answer answer =
          operations::conv2d_few_channels_gpu().offer(get<Conv2dProblem>(parse_problem(problem)), device, {});
      ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
      answer.offer()->plan();
      ASSERT_EQ(device->built.size(), 2u);
      for (const auto& built : device->built) {
        EXPECT_EQ(built.target, "sm_90a");
        expect_products_overlap(built, problem);
      }
    }
}

// The same of gemm: every type, transposition, tile and ending.
TEST_F(CudaCompileFor90, SplitMatricesInEveryForm) {
  constexpr const char *transpositions[] = {"nn", "nt", "tn", "tt"},
                       *tunings[] = {"tile_n=128 resident=1 parts=1 shared=0 raw=0",
                                     "tile_n=64 resident=2 parts=4 shared=0 raw=0",
                                     "tile_n=32 resident=2 parts=1 shared=0 raw=0",
                                     "tile_n=128 resident=1 parts=2 shared=0 raw=0"};
  int number = 0;
  for (const char* const type : {"f32", "tf32", "f16", "bf16"})
    for (const char* const transposition : transpositions) {
      // Columns that are copied as they are stored come by sixty-fours; of parts, where they are more than 32.
      const bool has_wide_copies = number >= 8 && transposition[1] == 'n';
      const int tiles = (number + number / 4) % (has_wide_copies ? 2 : 4), n = tiles == 2 ? 30 : 200;
      operations::GemmTask task = operations::task_for(
          get<GemmProblem>(parse_problem(fmt::format("gemm {} {} m300n{}k1000 batch2", type, transposition, n))));
      task.bias = static_cast<operations::BiasAlong>(number % 3);
      task.accumulate = number % 2 == 0, task.relu = number % 4 < 2;
      if (number % 5 == 0) task.output = DataType::f32;
      const char* const tuning = tunings[tiles];
      ++number;
      const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
      device->be_of_capability_90();
      const operations::Answer answer = operations::gemm_split_gpu().offer(task, device, {.tuning = tuning});
      ASSERT_NE(answer.offer(), nullptr) << type << ' ' << transposition << ": " << answer.refusal();
      answer.offer()->plan();
      ASSERT_EQ(device->built.size(), programs_of({}, tuning));
      for (const auto& built : device->built) {
        EXPECT_EQ(built.target, "sm_90a");
        EXPECT_FALSE(nvrtc->compile(built.text, built.definitions, 90, built.target).image.empty())
            << type << ' ' << transposition << ' ' << tuning;
      }
    }
}

TEST_F(CudaCompileFor90, SplitMatricesOfSixProducts) {
  for (const auto& [problem, tuning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"gemm f32 nn m300n200k1000batch2", "tile_n=128 resident=1 parts=1 shared=0 raw=0"},
           {"gemm f32 tt m300n200k1000", "tile_n=64 resident=1 parts=4 shared=0 raw=0"},
           {"gemm tf32 nt m300n20k1000", "tile_n=32 resident=1 parts=1 shared=0 raw=0"}}) {
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->be_of_capability_90();
    const operations::Answer answer =
        operations::gemm_split_gpu().offer(operations::task_for(get<GemmProblem>(parse_problem(problem))), device,
                                           {.relative_error = true, .tuning = tuning});
    ASSERT_NE(answer.offer(), nullptr) << problem << ": " << answer.refusal();
    EXPECT_EQ(answer.offer()->bound.absolute, 0) << problem;
    answer.offer()->plan();
    ASSERT_EQ(device->built.size(), programs_of({}, tuning));
    for (const auto& built : device->built) expect_products_overlap(built, problem);
  }
}

// Maxima of 16-bit types by one comparison for two elements, and none by the compiler's own maximum, which forgets
// NaN's bits.
TEST_F(CudaCompile, Pool2dComparesInPairs) {
  for (const char* const type : {"f16", "bf16", "f32"})
    for (const char* const geometry :
         {"nchw n2c8h56w56r3s3p1u2", "nhwc n2c8h56w56r3s3p1u2", "nchw n3c7h57w75r3s3p1u2", "nchw n200c2h7w7r7s7"}) {
      const std::string problem = fmt::format("pool2d {} {}", type, geometry);
      const auto built = pool2d_text(problem);
      const std::string text = nvrtc->compile(built.text, built.definitions, 91).image;  // PTX of 9.0
      const std::string pairs = fmt::format("set.gt.u32.{}x2", type);
      if (type != std::string_view("f32")) {
        EXPECT_GE(count(text, pairs), 9) << problem;
      }
      EXPECT_EQ(count(text, "max.NaN"), 0) << problem;
      EXPECT_EQ(count(text, "cvt.f32"), 0) << problem;
    }
}

TEST_F(CudaCompile, TheWordsOfThePreludeAreThere) {
  const std::string text = ptx(R"(
CONSTANT int table[2] = {1, 2};
DEVICE float twice(const float x) { return 2.0f * x; }
KERNEL void f(GLOBAL uchar* RESTRICT a, GLOBAL ushort* b, GLOBAL short* c, GLOBAL int* d, GLOBAL half_t* e, GLOBAL const float* x) {
  LOCAL float shared[64];
  const long i = GLOBAL_ID_X + GLOBAL_ID_Y + GROUP_ID_X + GROUP_ID_Y;
  shared[LOCAL_ID_X + LOCAL_ID_Y] = twice(x[i]);
  BARRIER;
  float v = FABS(shared[0]) + ILOGB(shared[1]) + LDEXP(v = x[i], table[i & 1]) + BITS_TO_FLOAT(FLOAT_TO_BITS(x[i]) + 1);
  UNROLL
  for (int k = 0; k < 3; ++k) v = FMA(v, v, (float)LOAD_HALF(e, i));
  a[i] = to_u8(v);
  b[i] = to_u16(v);
  c[i] = to_s16(v);
  d[i] = to_s32(v < INFINITY ? v : 0.0f);
  STORE_HALF(v, e, i);
}
)");
  for (const char* const part :
       {".entry f", "cvt.f32.f16", "cvt.rn.f16.f32", "cvt.rni.s32.f32", "bar.sync", "ld.param.u64"})
    EXPECT_GT(count(text, part), 0) << part;
}

// A copy of a box by its tensor map, into memory that the launch asks for, and a multiplication that only compute
// capability 9.0 itself has.
TEST_F(CudaCompile, TargetsHaveInstructionsOfTheirOwn) {
  constexpr const char* text = R"(
KERNEL void f(GLOBAL float* y, TENSOR_MAP map) {
  LAUNCH_LOCAL(float, box);
  const uint to = (uint)__cvta_generic_to_shared(box);
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(&map), "r"(0), "r"(0), "r"(to + 4096) : "memory");
  y[GLOBAL_ID_X + GLOBAL_ID_Z + GROUP_ID_Z] = box[LOCAL_ID_X + LOCAL_ID_Z];
}
)";
  EXPECT_EQ(nvrtc->target_refusal("sm_90a", 90), "");
  EXPECT_EQ(nvrtc->target_refusal("", 90), "");
  EXPECT_NE(nvrtc->target_refusal("sm_90a", 80), "");
  EXPECT_NE(nvrtc->target_refusal("sm_999a", 999), "");  // no compiler knows it
  EXPECT_FALSE(nvrtc->compile(text, {}, 90, "sm_90a").is_ptx);
  EXPECT_THROW(nvrtc->compile(text, {}, 90), Error);
}

TEST_F(CudaCompile, ErrorsShowTheLog) {
  const auto message = [&](std::string_view text) {
    return error_of([&] { nvrtc->compile(text, {}, 90); }, ErrorKind::environment);
  };
  const std::string text = message("\nKERNEL void f() { nonsense; }\n");
  EXPECT_NE(text.find("nvrtcCompileProgram failed: NVRTC_ERROR_COMPILATION"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel(2)"), std::string::npos) << text;
  EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
  const std::string named = message("#line 1 \"first\"\n#warning not this\n#line 7 \"a/second.kernel\"\nnonsense;\n");
  EXPECT_NE(named.find("a/second.kernel(7): error"), std::string::npos) << named;
  EXPECT_EQ(named.find("not this"), std::string::npos) << named;
  const std::vector<devices::Definition> blank{{"A", "1 --use_fast_math"}};
  EXPECT_NE(error_of([&] { nvrtc->compile("", blank, 90); }).find("hold no blanks"), std::string::npos);
}

TEST_F(CudaCompile, NewerDevicesGetPtxAndOlderOnesARefusal) {
  EXPECT_FALSE(nvrtc->compile("KERNEL void f() {}", {}, 90).is_ptx);
  EXPECT_TRUE(nvrtc->compile("KERNEL void f() {}", {}, 999).is_ptx);
  EXPECT_EQ(nvrtc->refusal(90), "");
  EXPECT_EQ(nvrtc->refusal(999), "");
  EXPECT_NE(nvrtc->refusal(20).find("and the device has 2.0"), std::string::npos) << nvrtc->refusal(20);
}

// As the driver would name them, which need not be there.
TEST(CudaErrors, SayWhereTheDeviceIsLost) {
  namespace cuda = devices::cuda;
  cuda::Api api{};
  api.GetErrorName = [](cuda::CUresult, const char** name) { return *name = "CUDA_ERROR_NAME", cuda::CUDA_SUCCESS; };
  api.GetErrorString = [](cuda::CUresult, const char** text) { return *text = "a text", cuda::CUDA_SUCCESS; };
  const auto named = [](int code) { return "CUDA_ERROR_NAME (" + std::to_string(code) + "): a text"; };
  const std::string lost = "; the device is lost to this process: start it again";
  // Memory errors of the hardware, its link, contained; illegal address, time-out, destroyed context, assertion,
  // stack, instruction, alignment, address space, program counter, launch; the service that shares the device;
  // unknown.
  for (const int code : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 809, 999})
    EXPECT_EQ(cuda::error_name(api, code), named(code) + lost);
  // Invalid value, out of memory, busy, no device, not found, not ready, too much for a launch.
  for (const int code : {1, 2, 46, 100, 500, 600, 701}) EXPECT_EQ(cuda::error_name(api, code), named(code));
  api.GetErrorName = [](cuda::CUresult, const char**) { return cuda::CUDA_ERROR_INVALID_VALUE; };
  EXPECT_EQ(cuda::error_name(api, 719), "an unknown error (719): a text" + lost);
}

TEST(CudaErrors, TellLackOfMemoryFromALostDevice) {
  EXPECT_EQ(devices::cuda::kind_of(2), ErrorKind::out_of_memory);
  for (const int code : {1, 201, 700, 719, 999}) EXPECT_EQ(devices::cuda::kind_of(code), ErrorKind::environment);
}

}  // namespace
}  // namespace omniconv
