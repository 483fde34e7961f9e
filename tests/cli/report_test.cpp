// The other subcommands, and their JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"

namespace omniconv {
namespace {

using nlohmann::json;
class Report : public Command {};

TEST_F(Report, Devices) {
  const Outcome outcome = run("devices --json -");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["schema"], "omniconv-devices/1");
  bool cpu = false;
  for (const json& device : report["devices"]) {
    EXPECT_GT(device["peak_tflops"], 0.0) << device;
    EXPECT_GT(device["peak_gbps"], 0.0) << device;
    EXPECT_GT(device["launch_seconds"], 0.0) << device;
    EXPECT_TRUE(device["gpu"].is_boolean()) << device;
    EXPECT_FALSE(device["id"] == "cpu" && device["gpu"].get<bool>()) << device;
    const bool is_cuda = device["id"].get<std::string>().starts_with("cuda");
    EXPECT_EQ(device.contains("peers"), is_cuda) << device;
    EXPECT_TRUE(!is_cuda || device["peers"].is_array()) << device;
    cpu = cpu || device["id"] == "cpu";
  }
  EXPECT_TRUE(cpu);
  for (const json& missing : report["missing"]) EXPECT_NE(missing["reason"], "") << missing;
}

// A kind of device without a number is its first.
TEST_F(Report, DevicesOfOneKind) {
  const json all = json::parse(run("devices --json -").out)["devices"];
  for (const std::string kind : {"cpu", "opencl", "cuda"}) {
    const auto is_of_kind = [&](const json& device) { return device["id"].get<std::string>().starts_with(kind); };
    const Outcome outcome = run("devices --device " + kind + " --json -");
    const bool is_here = std::any_of(all.begin(), all.end(), is_of_kind);
    ASSERT_EQ(outcome.status, is_here ? 0 : 3) << outcome.error;
    if (!is_here) continue;
    const json report = json::parse(outcome.out);
    ASSERT_EQ(report["devices"].size(), 1U) << kind;
    EXPECT_TRUE(is_of_kind(report["devices"][0])) << report;
  }
}

TEST_F(Report, VerifyPassesAndSaysSo) {
  const Outcome outcome =
      run("verify 'filter2d u8 h40w50c3r5s5 reflect' 'filter2d f32 h40w50r3s3 kernel:rank1' --solver all --device cpu "
          "--json v.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_NE(outcome.out.find("8 passed, 0 failed"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("v.json"));
  EXPECT_EQ(report["schema"], "omniconv-verify/1");
  int ok = 0;
  for (const json& result : report["results"]) {
    ok += result["status"] == "ok";
    EXPECT_LE(result["error"].get<double>(), result["bound"].get<double>()) << result;
    EXPECT_EQ(result["status"] == "refused", result["reason"] != "") << result;
  }
  EXPECT_EQ(ok, 8);
}

TEST_F(Report, BenchFillsTheSchema) {
  const Outcome outcome = run("bench 'filter2d u8 h300w400c3r3s3 \"small\"' --budget 0.01 --quiet --json b.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  const json report = json::parse(read_here("b.json"));
  EXPECT_EQ(report["schema"], "omniconv-bench/1");
  for (const char* key : {"version", "commit", "date", "host", "device"}) EXPECT_TRUE(report.contains(key)) << key;
  EXPECT_EQ(report["compiled_at_once"], 1);
  ASSERT_EQ(report["results"].size(), 1u);
  const json& result = report["results"][0];
  for (const char* key :
       {"problem",         "name",    "solver", "vendor", "status",   "reason",     "median_ms", "min_ms",
        "ci95_ms",         "samples", "tflops", "gbps",   "roofline", "compile_ms", "plan_ms",   "transfer_ms",
        "workspace_bytes", "error",   "bound",  "config", "floor_ms", "floor_binds"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_EQ(result["name"], "small");
  EXPECT_EQ(result["status"], "ok") << result;
  EXPECT_GE(result["samples"].get<int>(), 5);
  EXPECT_LE(result["min_ms"].get<double>(), result["median_ms"].get<double>());
}

TEST_F(Report, BenchTimesOtherLibrariesWhereItIsAsked) {
  const Outcome outcome =
      run("bench n1c4h8w8k4r3s3 'gemm f32 nn m4n4k4' 'filter2d u8 h30w40r3s3' --vendor --device cpu "
          "--budget 0.01 --json b.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  const json report = json::parse(read_here("b.json"));
  std::vector<std::string> vendors;
  for (const json& result : report["results"])
    if (result["vendor"] == true) vendors.push_back(result["solver"]);
  if (!vendors.empty()) {  // a build without CUDA has none
    EXPECT_EQ(vendors, (std::vector<std::string>{"conv2d/cudnn/gpu.1", "gemm/cublas/gpu.1"}));
    EXPECT_NE(outcome.out.find("cuDNN is for CUDA devices"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(report["results"].size(), 3 + vendors.size());
  ASSERT_TRUE(report["libraries"].is_object()) << report;
  for (const auto& [library, version] : report["libraries"].items()) {
    EXPECT_TRUE(library == "cuDNN" || library == "cuBLAS") << library;
    EXPECT_NE(version.get<std::string>().find('.'), std::string::npos) << version;
  }
}

// Equal weights need no more arithmetic than memory; those of full rank need a multiply-add each.
TEST_F(Report, BenchNamesTheFloor) {
  const Outcome outcome =
      run("bench 'filter2d u8 h300w400c3r31s31' 'filter2d u8 h300w400c3r31s31 kernel:rank1' --device cpu --budget 0.01 "
          "--json b.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_NE(outcome.out.find(" %  arithmetic"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("b.json"));
  const json &general = report["results"][0], &product = report["results"][1];
  EXPECT_EQ(general["floor_binds"], "arithmetic");
  const double peak = report["device"]["peak_tflops"], elements = 300 * 400 * 3;
  EXPECT_NEAR(general["floor_ms"].get<double>(), 2 * 961 * elements / peak / 1e9, 1e-9);
  EXPECT_LT(product["floor_ms"].get<double>(), general["floor_ms"].get<double>());
  for (const json& result : {general, product})
    EXPECT_NEAR(result["roofline"].get<double>(), result["floor_ms"].get<double>() / result["median_ms"].get<double>(),
                1e-9);
}

TEST_F(Report, BenchComparesTwoSolvers) {
  const Outcome outcome =
      run("bench 'filter2d f32 h60w80c3r3s3 kernel:rank1' 'filter2d u8 h60w80r3s3 kernel:rank1' --device cpu --solver "
          "filter2d/separable/cpu.1 --vs filter2d/direct/cpu.1 --budget 0.01 --json b.json");
  EXPECT_NE(outcome.out.find("vs: filter2d/direct/cpu.1"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("b.json"));
  ASSERT_EQ(report["results"].size(), 2u);
  const json& compared = report["results"][0];
  EXPECT_EQ(compared["solver"], "filter2d/separable/cpu.1");
  for (const char* key :
       {"solver", "status", "reason", "median_ms", "min_ms", "ci95_ms", "samples", "ratio", "ratio_ci95"})
    EXPECT_TRUE(compared["vs"].contains(key)) << key;
  EXPECT_EQ(compared["vs"]["solver"], "filter2d/direct/cpu.1");
  EXPECT_EQ(compared["vs"]["samples"], compared["samples"]);
  EXPECT_GT(compared["vs"]["ratio"], 0.0);
  EXPECT_LE(compared["vs"]["ratio_ci95"][0], compared["vs"]["ratio"]);
  EXPECT_GE(compared["vs"]["ratio_ci95"][1], compared["vs"]["ratio"]);
  // One that cannot serve is refused with its reason, and the other is timed alone.
  const json& refused = report["results"][1];
  EXPECT_EQ(refused["status"], "ok") << refused;
  EXPECT_EQ(refused["vs"]["status"], "refused");
  EXPECT_NE(refused["vs"]["reason"].get<std::string>().find("rank one"), std::string::npos);
  EXPECT_EQ(refused["vs"]["ratio"], 0.0);
}

TEST_F(Report, BenchTimesPreparedArraysToo) {
  const Outcome outcome =
      run("bench 'gemm f32 nn m20n30k40' 'n1c64h14w14k64r3s3p1 bias' 'pool2d max n1c2h4w4r2s2' --device cpu "
          "--also-prepared "
          "--budget 0.01 --json b.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_NE(outcome.out.find("prepared ms"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("b.json"));
  ASSERT_EQ(report["results"].size(), 3u);
  const json &product = report["results"][0]["prepared"], &convolution = report["results"][1]["prepared"];
  EXPECT_EQ(product["arrays"], (json{"a", "b"}));
  EXPECT_EQ(convolution["arrays"], json{"w"});
  for (const json& prepared : {product, convolution}) {
    EXPECT_EQ(prepared["status"], "ok") << prepared;
    for (const char* const key : {"median_ms", "min_ms", "prepare_ms"})
      EXPECT_GT(prepared[key].get<double>(), 0.0) << key;
    EXPECT_GE(prepared["samples"].get<int>(), 5);
    EXPECT_TRUE(prepared["config"].is_object());
  }
  EXPECT_LE(product["workspace_bytes"], report["results"][0]["workspace_bytes"]);
  EXPECT_FALSE(report["results"][2].contains("prepared")) << report["results"][2];
}

TEST_F(Report, SweepsMultiply) {
  const Outcome outcome = run(
      "explain 'filter2d u8 h40w50r1s1' --device cpu --budget 0.01 --sweep rs=3:7:+2 --sweep c=1:4:x2 --json e.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  std::vector<std::string> problems;
  const json report = json::parse(read_here("e.json"));
  for (const json& result : report["results"]) problems.push_back(result["problem"]);
  EXPECT_EQ(problems, (std::vector<std::string>{
                          "filter2d u8 h40w50r3s3", "filter2d u8 h40w50c2r3s3", "filter2d u8 h40w50c4r3s3",
                          "filter2d u8 h40w50r5s5", "filter2d u8 h40w50c2r5s5", "filter2d u8 h40w50c4r5s5",
                          "filter2d u8 h40w50r7s7", "filter2d u8 h40w50c2r7s7", "filter2d u8 h40w50c4r7s7"}));
}

// The order of choice is that of the predictions, and is the same whatever was measured.
TEST_F(Report, ExplainPredictsAndMeasures) {
  const Outcome outcome =
      run("explain 'filter2d f32 h64w64r9s9 kernel:rank1' --device cpu --measure --budget 0.3 --json e.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_NE(outcome.out.find("predicted"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("measured"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("e.json"));
  EXPECT_GT(report["device"]["peak_tflops"], 0.0);
  double last = 0;
  int measured = 0;
  for (const json& candidate : report["results"][0]["candidates"]) {
    EXPECT_EQ(candidate.contains("measured"), candidate["applicable"].get<bool>()) << candidate;
    if (!candidate["applicable"].get<bool>()) continue;
    EXPECT_GE(candidate["predicted_ms"].get<double>(), last) << candidate;
    last = candidate["predicted_ms"];
    if (candidate["measured"]["status"] != "ok") continue;
    EXPECT_GT(candidate["measured"]["median_ms"], 0.0);
    ++measured;
  }
  EXPECT_GE(measured, 2);
  EXPECT_EQ(report["results"][0]["candidates"][0]["solver"], "filter2d/separable/cpu.1");
}

TEST_F(Report, ExplainLeavesOutWhatWouldTakeTooLong) {
  const Outcome outcome =
      run("explain 'filter2d f32 h4000w4000c3r31s31' --device cpu --measure --budget 0.001 --json e.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  const json report = json::parse(read_here("e.json"));
  ASSERT_EQ(report["results"].size(), 1u);
  for (const json& candidate : report["results"][0]["candidates"])
    if (candidate["applicable"].get<bool>()) {
      EXPECT_EQ(candidate["measured"]["status"], "refused");
      EXPECT_NE(candidate["measured"]["reason"].get<std::string>().find("longer than 0.001 s"), std::string::npos);
    }
}

TEST_F(Report, ExplainsOneSolver) {
  const Outcome outcome =
      run("explain 'filter2d u8 h40w50r3s3' --device cpu --budget 0.01 --solver filter2d/direct/cpu.1 --json e.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out.find("separable"), std::string::npos) << outcome.out;
  const json candidates = json::parse(read_here("e.json"))["results"][0]["candidates"];
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0]["solver"], "filter2d/direct/cpu.1");
}

// A problem that nothing serves is refused with its reason, and those behind it are served.
TEST_F(Report, OneProblemThatCannotBeServed) {
  write("list.txt", "filter2d u8 h40w50c4r3s3 alpha:3 kernel:sobel\nfilter2d u8 h40w50c4r3s3 alpha:3\n");
  for (const std::string command : {"verify", "bench --budget 0.01"}) {
    const Outcome outcome = run(command + " --problems list.txt --device cpu --json r.json");
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("refused"), std::string::npos) << outcome.out;
    const json results = json::parse(read_here("r.json"))["results"];
    ASSERT_EQ(results.size(), 2u) << command;
    EXPECT_EQ(results[0]["status"], "refused") << results[0];
    EXPECT_NE(results[0]["reason"].get<std::string>().find("magnitude of a pair"), std::string::npos) << results[0];
    EXPECT_EQ(results[1]["status"], "ok") << results[1];
  }
  const Outcome outcome = run("explain --problems list.txt --device cpu --budget 0.01 --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("refused: alpha:3"), std::string::npos) << outcome.out;
  const json results = json::parse(read_here("r.json"))["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_NE(results[0]["reason"].get<std::string>().find("magnitude of a pair"), std::string::npos) << results[0];
  EXPECT_TRUE(results[0]["candidates"].empty());
  EXPECT_FALSE(results[1].contains("reason"));
  EXPECT_FALSE(results[1]["candidates"].empty());
}

TEST_F(Report, FilterKeepsStandardOutputForItsJson) {
  write("in.pgm", "P5\n2 2\n255\nabcd");
  const Outcome outcome =
      run("filter in.pgm out.pgm --kernel sharpen --device cpu --print-kernel --explain --dry-run --json -");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(json::parse(outcome.out)["schema"], "omniconv-filter/1");
  for (const char* text : {"0 -1 0\n-1 5 -1\n", "strips of", "filter2d/direct/cpu.1"})
    EXPECT_NE(outcome.error.find(text), std::string::npos) << outcome.error;
  const Outcome quiet = run("filter in.pgm out.pgm --kernel sharpen --device cpu --explain --dry-run --json - --quiet");
  EXPECT_EQ(json::parse(quiet.out)["schema"], "omniconv-filter/1");
  EXPECT_EQ(quiet.error, "");
}

TEST_F(Report, ExplainGivesEveryReason) {
  const Outcome outcome = run("explain 'filter2d u8 h480w640c3r9s9 kernel:gaussian:9' --budget 0.01 --json e.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("rank one"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("e.json"));
  for (const json& candidate : report["results"][0]["candidates"])
    EXPECT_NE(candidate["applicable"].get<bool>(), candidate["reason"] != "") << candidate;
}

TEST_F(Report, JsonTargetThatCannotBeWritten) {
  refuses("explain 'filter2d u8 h8w8r3s3' --quiet --json missing/e.json", {"missing"});
  write("in.pgm", "P5\n2 2\n255\nabcd");
  refuses("filter in.pgm out.pgm --kernel sobel-x --json missing/e.json", {"missing"});
  refuses("filter in.pgm out.pgm --kernel sobel-x --json out.pgm", {"--json out.pgm", "another file"});
  refuses("filter in.pgm out.pgm --kernel sobel-x --json ./in.pgm", {"another file"});
}

TEST_F(Report, FullStdout) {
  const Outcome outcome = shell("$OMNICONV filter --list-kernels > /dev/full");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.error, "omniconv: error: stdout takes no more output\n");
}

}  // namespace
}  // namespace omniconv
