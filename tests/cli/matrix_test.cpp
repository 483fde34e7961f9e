// verify, explain and bench of convolutions and matrix products, beside filters in one list.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"

namespace omniconv {
namespace {

using nlohmann::json;

class Matrix : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    leave_kernels_unoptimized();
  }
  json results(const std::string& arguments, int status = 0) const {
    const Outcome outcome = run(arguments + " --json r.json");
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.out << outcome.error;
    return json::parse(read_here("r.json"))["results"];
  }
  static std::vector<std::string> problems(const json& results) {
    std::vector<std::string> texts;
    for (const json& result : results)
      if (texts.empty() || texts.back() != result["problem"]) texts.push_back(result["problem"]);
    return texts;
  }
};

TEST_F(Matrix, EverySolverPassesEveryPassAndLayout) {
  write("list.txt",
        "n2c6h7w9k9r3s2p1u2g3 \"groups, stride\"\n"
        "bias relu acc n1c3h6w5k4r3s3pt1pl2d2\n"
        "gemm f32 nt m13n21k17batch2\n");
  for (const std::string& device : devices_here()) {
    const std::size_t types = device == "cpu" ? 2 : 1;  // a program each
    const json found = results("verify --problems list.txt --solver all --pass all --layout nchw,nhwc --type " +
                               std::string(types == 2 ? "f16,f32" : "f16") + " --device " + device);
    std::set<std::string> passed;
    for (const json& result : found) {
      EXPECT_NE(result["status"], "failed") << result;
      if (result["status"] == "ok") passed.insert(result["problem"]);
    }
    EXPECT_EQ(passed.size(), types * (2 * 3 * 2 + 1));  // each by one solver at least
    EXPECT_EQ(passed.count("bwd_filter f16 nhwc acc n1c3h6w5k4r3s3pt1pl2d2"), 1u);
  }
}

TEST_F(Matrix, VariantsComeInOrderAndLeaveOthersAlone) {
  const json found = results(
      "verify 'filter2d u8 h8w8r3s3' 'bias relu n2c1h4w4k1r3s3' 'gemm f32 nn m2n3k4' --device cpu --pass "
      "fwd,bwd_filter --type f64,bf16 --batch 1");
  EXPECT_EQ(problems(found),
            (std::vector<std::string>{"filter2d u8 h8w8r3s3", "f64 bias relu n1c1h4w4k1r3s3",
                                      "bf16 bias relu n1c1h4w4k1r3s3", "bwd_filter f64 n1c1h4w4k1r3s3",
                                      "bwd_filter bf16 n1c1h4w4k1r3s3", "gemm f64 nn m2n3k4", "gemm bf16 nn m2n3k4"}));
}

TEST_F(Matrix, SweepsOfTheirExtents) {
  EXPECT_EQ(
      problems(results("verify n1c4h8w8k4r1s1 --device cpu --sweep g=1:4:x2 --sweep p=0:1:+1 --sweep ck=4:8:x2")),
      (std::vector<std::string>{"n1c4h8w8k4r1s1", "n1c8h8w8k8r1s1", "n1c4h8w8k4r1s1p1", "n1c8h8w8k8r1s1p1",
                                "n1c4h8w8k4r1s1g2", "n1c8h8w8k8r1s1g2", "n1c4h8w8k4r1s1p1g2", "n1c8h8w8k8r1s1p1g2",
                                "n1c4h8w8k4r1s1g4", "n1c8h8w8k8r1s1g4", "n1c4h8w8k4r1s1p1g4", "n1c8h8w8k8r1s1p1g4"}));
  EXPECT_EQ(problems(results("verify n1c4h8w8k4r3s3p1 --device cpu --sweep ph=0:1:+1 --sweep uwk=1:2:+1")),
            (std::vector<std::string>{"n1c4h8w8k1r3s3pw1", "n1c4h8w8k2r3s3pw1uw2", "n1c4h8w8k1r3s3p1",
                                      "n1c4h8w8k2r3s3p1uw2"}));
  EXPECT_EQ(problems(results("verify n1c4h8w8k4r3s3p1 --device cpu --sweep phpw=0:1:+1")),
            (std::vector<std::string>{"n1c4h8w8k4r3s3", "n1c4h8w8k4r3s3p1"}));
  EXPECT_EQ(problems(results("verify 'gemm f32 nt m1n1k1' --device cpu --sweep mn=2:4:x2 --sweep batch=1:2:+1")),
            (std::vector<std::string>{"gemm f32 nt m2n2k1", "gemm f32 nt m2n2k1 batch2", "gemm f32 nt m4n4k1",
                                      "gemm f32 nt m4n4k1 batch2"}));
  refuses("bench n1c4h8w8k4r1s1 --sweep batch=1:2:+1",
          {"'batch' is no extent of n1c4h8w8k4r1s1", "p, ph, pw, pt, pb, pl, pr, u, uh, uw, d, dh, dw, g"});
  refuses("bench 'gemm f32 nn m1n1k1' --sweep mr=1:2:+1", {"'r' is no extent of gemm", "m, n, k, batch"});
  refuses("bench n1c4h8w8k4r1s1 --sweep p=0:4:x2", {"FIRST must be a whole number from 1"});
  refuses("bench n1c4h8w8k4r1s1 --sweep g=1:3:+1", {"groups is 3"});
}

TEST_F(Matrix, ExplainPutsWhatAutoRunsFirst) {
  for (const std::string problem : {"n2c6h7w9k9r3s2p1u2g3", "gemm f32 tn m20n30k40"}) {
    const json found = results("explain '" + problem + "' --device cpu --measure --budget 0.01");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_GT(found[0]["multiply_adds"], 0.0);
    double last = 0;
    bool refused = false;
    for (const json& candidate : found[0]["candidates"]) {
      EXPECT_NE(candidate["applicable"].get<bool>(), candidate["reason"] != "") << candidate;
      refused = refused || !candidate["applicable"].get<bool>();
      EXPECT_EQ(candidate.contains("measured"), !refused) << candidate;  // refused ones stand last
      if (refused) continue;
      EXPECT_GE(candidate["predicted_ms"].get<double>(), last) << candidate;
      last = candidate["predicted_ms"];
      EXPECT_NE(candidate["bound"], "");
      EXPECT_EQ(candidate["measured"]["status"], "ok") << candidate;
    }
    const json run = results("verify '" + problem + "' --device cpu");
    EXPECT_EQ(run[0]["solver"], found[0]["candidates"][0]["solver"]);
  }
}

TEST_F(Matrix, ExplainLeavesOutWhatWouldTakeTooLong) {
  const json found = results("explain n4c256h56w56k256r3s3p1 --device cpu --measure --budget 0.001");
  for (const json& candidate : found[0]["candidates"])
    if (candidate["applicable"].get<bool>()) {
      EXPECT_EQ(candidate["measured"]["status"], "refused") << candidate;
      EXPECT_NE(candidate["measured"]["reason"].get<std::string>().find("longer than 0.001 s"), std::string::npos);
    }
}

TEST_F(Matrix, BenchFillsTheSchema) {
  const json found = results(
      "bench 'filter2d u8 h8w8r3s3' 'bias acc n1c8h12w12k8r3s3p1 \"layer\"' 'gemm f32 nn m32n32k32' --device cpu "
      "--budget 0.01 --vs conv2d/double/cpu.1");
  ASSERT_EQ(found.size(), 3u);
  const double elements = 8 * 12 * 12;
  for (const json& result : found) {
    EXPECT_EQ(result["status"], "ok") << result;
    EXPECT_GE(result["samples"].get<int>(), 5);
    EXPECT_LE(result["error"], result["bound"]) << result;
    const bool compared = result["name"] == "layer";
    EXPECT_EQ(result["vs"]["status"], compared ? "ok" : "refused") << result;
    EXPECT_EQ(result["vs"]["reason"].get<std::string>().find("is of conv2d") == std::string::npos, compared) << result;
  }
  const auto amount = [](const json& result, const char* rate) {
    return result[rate].get<double>() * result["median_ms"].get<double>();
  };
  EXPECT_NEAR(amount(found[1], "tflops") * 1e9, 2 * elements * 72, 1);
  EXPECT_NEAR(amount(found[1], "gbps") * 1e6, 4 * (elements * 3 + 8 * 72 + 8), 1);  // the output twice: acc
  EXPECT_NEAR(amount(found[2], "tflops") * 1e9, 2 * 32 * 32 * 32, 1);
  EXPECT_GT(found[1]["vs"]["ratio"], 0.0);
}

TEST_F(Matrix, BenchOfAllLeavesTheReferencesOut) {
  const auto solvers = [&](const std::string& options) {
    std::set<std::string> ids;
    for (const json& result :
         results("bench 'filter2d f32 h8w8r3s3' n1c4h6w6k4r3s3p1 'gemm f32 nn m8n8k8' --device cpu "
                 "--budget 0.01 " +
                 options))
      if (result["status"] == "ok") ids.insert(result["solver"]);
    return ids;
  };
  EXPECT_EQ(solvers("--solver all"),
            (std::set<std::string>{"filter2d/direct/cpu.1", "filter2d/fft/cpu.1", "conv2d/blocked/cpu.1",
                                   "conv2d/direct/cpu.1", "conv2d/fft/cpu.1", "conv2d/im2col_gemm/cpu.1",
                                   "conv2d/winograd/cpu.1", "gemm/packed/cpu.1"}));
  for (const std::string reference :
       {"filter2d/definition/cpu.1", "filter2d/double/cpu.1", "conv2d/double/cpu.1", "gemm/double/cpu.1"})
    EXPECT_EQ(solvers("--solver " + reference), std::set<std::string>{reference});
  const json allowed = results("bench n1c4h6w6k4r3s3p1 --device cpu --budget 0.01 --solver all --allow conv2d/double");
  EXPECT_EQ(std::count_if(allowed.begin(), allowed.end(), [](const json& r) { return r["status"] == "ok"; }), 1);
}

TEST_F(Matrix, OptionsOfTheChoiceAreKept) {
  const auto first = [&](const std::string& options, int status = 0) {
    return results("verify n1c8h8w8k8r3s3p1 --device cpu " + options, status)[0];
  };
  EXPECT_EQ(first("--allow conv2d/double")["solver"], "conv2d/double/cpu.1");
  EXPECT_EQ(first("--solver conv2d/double/cpu.1 --units fma --deterministic")["status"], "ok");
  EXPECT_EQ(first("--deny conv2d --allow gemm", 1)["status"], "refused");  // nothing was served
  EXPECT_EQ(first("--max-error 0", 1)["status"], "refused");
  const json limited = results("explain n1c8h8w8k8r3s3p1 --device cpu --budget 0.01 --workspace-limit 0");
  for (const json& candidate : limited[0]["candidates"])
    EXPECT_TRUE(!candidate["applicable"].get<bool>() || candidate["workspace_bytes"] == 0) << candidate;
  const json both = results("verify n1c1h4w4k1r3s3 'gemm f32 nn m2n2k2' --device cpu --solver gemm/double/cpu.1");
  EXPECT_EQ(both[0]["status"], "refused");
  EXPECT_NE(both[0]["reason"].get<std::string>().find("is of gemm"), std::string::npos) << both[0];
  EXPECT_EQ(both[1]["status"], "ok");
}

TEST_F(Matrix, OptionsOfTheChoiceHoldForFilters) {
  const auto only = [&](const std::string& options, int status = 0) {
    const json found = results("verify 'filter2d u8 h9w9r3s3 kernel:equal' --device cpu " + options, status);
    EXPECT_EQ(found.size(), 1u);
    return found[0];
  };
  EXPECT_EQ(only("")["solver"], "filter2d/box/cpu.1");
  EXPECT_EQ(only("--deny filter2d/box")["solver"], "filter2d/direct/cpu.1");
  EXPECT_EQ(only("--allow filter2d/definition --deterministic --units fma --max-error 0")["solver"],
            "filter2d/definition/cpu.1");
  EXPECT_EQ(only("--workspace-limit 0")["solver"], "filter2d/definition/cpu.1");
  EXPECT_EQ(only("--deny filter2d", 1)["status"], "refused");
}

TEST_F(Matrix, OptionsThatMeanNothingAreRefused) {
  const std::string filter = " 'filter2d u8 h8w8r3s3' ", conv = " n1c1h4w4k1r3s3 ", gemm = " 'gemm f32 nn m2n2k2' ";
  for (const std::string option : {"--pass all", "--layout nhwc", "--batch 2"})
    for (const std::string& problem : {filter, gemm})
      refuses("verify" + problem + option, {option.substr(0, option.find(' ')), "none of these", "leave it out"});
  refuses("verify" + filter + "--type f32", {"--type", "leave it out"});
  refuses("verify" + filter + conv + "--strip-rows 2", {"--strip-rows", "n1c1h4w4k1r3s3", "leave one of them out"});
}

TEST_F(Matrix, WordsThatNothingIsCalled) {
  const std::string conv = "explain n1c1h4w4k1r3s3 ";
  refuses(conv + "--pass bwd", {"--pass 'bwd'", "bwd_data"});
  refuses(conv + "--pass fwd,fwd", {"'fwd' stands twice"});
  refuses(conv + "--pass fwd,all", {"'all' stands beside others"});
  refuses(conv + "--pass ''", {"--pass", "empty"});
  refuses(conv + "--type u8", {"--type 'u8'", "bf16"});
  refuses(conv + "--layout nwhc", {"--layout 'nwhc'", "nhwc"});
  refuses(conv + "--batch 0", {"--batch", "'0'"});
  refuses(conv + "--batch 9223372036854775807", {"bytes"});
  refuses(conv + "--units fam", {"--units 'fam'", "fma"});
  for (const char* error : {"-1", "nan", "''"}) refuses(conv + "--max-error " + error, {"--max-error"});
  refuses(conv + "--workspace-limit lots", {"'lots' is no size in bytes"});
  for (const char* option : {"--allow", "--deny"}) {
    refuses(conv + option + " conv2d/doble", {"unknown solver 'conv2d/doble'", "conv2d/double"});
    refuses(conv + option + " ''", {option, "empty"});
  }
  for (const char* option : {"--allow", "--deny"})
    refuses(std::string("run ") + "'gemm f32 nn m1n1k1' --a a.npy --b b.npy -o c.npy " + option + " gemm,conv2d/direct",
            {option, "'conv2d/direct': it is of conv2d, and the problem of gemm"});
  refuses("filter in.png out.png --kernel box:3 --allow conv2d/direct", {"--allow 'conv2d/direct'", "of filter2d"});
  refuses(conv + "--solver gemm/doble/cpu.1", {"unknown solver 'gemm/doble/cpu.1'", "gemm/double/cpu.1"});
  refuses(conv + "--solver gemm/double/cpu.1", {"is of gemm, and the problem of conv2d"});
  refuses("bench n1c1h4w4k1r3s3 --vs filter2d/direct/cpu.1", {"is of filter2d, and the problem of conv2d"});
}

}  // namespace
}  // namespace omniconv
