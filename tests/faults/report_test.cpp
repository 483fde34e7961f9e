// Every call on a report's way out fails in turn: an error of one line, the report as it was, or whole with what was
// found until then; and what else was written is whole.
#include <nlohmann/json.hpp>

#include "faults_testing.h"

namespace omniconv {
namespace {

using nlohmann::json;

class Reports : public Faults {
 protected:
  static constexpr const char* old_report = "what was there";

  // Calls look(fault, run) for each fault (of one kind of calls) that is to be an error; others must leave a whole
  // report.
  template <typename Look>
  void for_each_fault(const std::string& arguments, const Files& before, Look look,
                      const std::string& kind = "") const {
    const Run good = run_with("", before, arguments);
    ASSERT_EQ(good.outcome.status, 0) << good.outcome.error;
    expect_report(good, "good run", {});
    for (const char* const one : {"write", "fsync", "link", "fsync-folder"}) EXPECT_EQ(good.calls.count(one), 1U);
    for (const Fault& fault : faults_of(good.calls)) {
      if (!kind.empty() && fault.kind != kind) continue;
      std::filesystem::remove(folder_ / "y.ppm");
      const Run run = run_with(fault.injected(), before, arguments);
      EXPECT_TRUE(run.is_injected) << fault.described();
      const Effect effect = effect_of(fault, harmless_of_files);
      if (effect == Effect::none || (effect == Effect::whichever && run.outcome.status == 0)) {
        EXPECT_EQ(run.outcome.status, 0) << fault.described() << "\n" << run.outcome.error;
        EXPECT_EQ(run.outcome.error, "") << fault.described();
        expect_report(run, fault.described(), {});
      } else {
        expect_one_error_line(run.outcome, 2, fault.described());
        look(fault, run);
      }
    }
  }

  // A whole one, which has one of these keys; of none, neither an error nor an interruption.
  static void expect_report(const Run& run, const std::string& what, const std::vector<std::string>& keys) {
    ASSERT_EQ(run.files.count("r.json"), 1U) << what;
    const json report = json::parse(run.files.at("r.json"), nullptr, false);
    ASSERT_TRUE(report.is_object()) << what << ": a part of a report";
    EXPECT_TRUE(report.contains("schema")) << what;
    const auto has = [&](const std::vector<std::string>& some) {
      return std::any_of(some.begin(), some.end(), [&](const auto& key) { return report.contains(key); });
    };
    EXPECT_EQ(has({"error", "interrupted"}), !keys.empty()) << what << "\n" << report;
    EXPECT_TRUE(keys.empty() || has(keys)) << what << "\n" << report;
  }
};

TEST_F(Reports, AreWholeOrAsTheyWere) {
  for (const Files& before : {Files{}, Files{{"r.json", old_report}}})
    for_each_fault("filter --list-kernels --json out/r.json --quiet", before,
                   [&](const Fault& fault, const Run& run) { EXPECT_TRUE(run.files == before) << fault.described(); });
}

// What fails before the work begins, stops it in time; later the image is there.
TEST_F(Reports, TheImageIsWhole) {
  const Files before = {{"r.json", old_report}};
  const std::string image = read_here("in.ppm");
  for_each_fault("filter in.ppm y.ppm --kernel identity --device cpu --json out/r.json", before,
                 [&](const Fault& fault, const Run& run) {
                   EXPECT_TRUE(run.files == before) << fault.described();
                   const bool is_early = fault.kind == "stat" || fault.kind == "faccessat" || fault.kind == "fchmod";
                   EXPECT_EQ(read_here("y.ppm"), is_early ? "" : image) << fault.described();
                 });
}

// One line says what failed first, and the report, where it can be written, says it too.
TEST_F(Reports, BesideAnImageThatFails) {
  const Files before = {{"r.json", old_report}, {"y.ppm", "an old image"}};
  const std::string image = read_here("in.ppm");
  int images = 0, both = 0;
  for_each_fault(
      "filter in.ppm out/y.ppm --kernel identity --device cpu --json out/r.json", before,
      [&](const Fault& fault, const Run& run) {
        ASSERT_EQ(run.files.size(), 2U) << fault.described();
        const bool has_image = run.files.at("y.ppm") == image, has_report = run.files.at("r.json") != old_report;
        EXPECT_TRUE(has_image || run.files.at("y.ppm") == before.at("y.ppm")) << fault.described();
        EXPECT_FALSE(has_image && has_report) << fault.described();
        if (has_report) expect_report(run, fault.described(), {"error"});
        const std::string failed = has_image ? "cannot write out/r.json" : "cannot write out/";
        EXPECT_NE(run.outcome.error.find(failed), std::string::npos) << run.outcome.error;
        // Of a full disk the image learns first.
        const bool is_of_image = !has_image && (has_report || fault.count > 1);
        EXPECT_TRUE(!is_of_image || run.outcome.error.find("out/y.ppm") != std::string::npos) << run.outcome.error;
        images += has_image ? 1 : 0;
        both += !has_image && !has_report ? 1 : 0;
      });
  EXPECT_GT(images, 0);
  EXPECT_GT(both, 0);
}

// The report of several problems is written before each but the first.
TEST_F(Reports, ThatGrow) {
  const Files before = {{"r.json", old_report}};
  const auto look = [&](const Fault& fault, const Run& run) {
    EXPECT_EQ(run.files.size(), 1U) << fault.described();
    if (run.files != before) expect_report(run, fault.described(), {"error", "interrupted"});
  };
  const std::string of_two = " 'filter2d u8 h4w4r3s3' 'filter2d u8 h5w4r3s3' --device cpu --quiet --json out/r.json";
  for_each_fault("verify" + of_two, before, look);
  for_each_fault("bench --budget 0.001" + of_two, before, look, "rename");
}

}  // namespace
}  // namespace omniconv
