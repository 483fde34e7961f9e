// Every call on an output's way out fails in turn: an error of one line, and the folder as it was; or, where the call
// is no more than an attempt, the whole output.
#include "faults_testing.h"
#include "image/formats/npy/npy.h"

namespace omniconv {
namespace {

// Written by name, by a library that goes on after errors; what it wrote is then read.
const std::vector<Harmless> harmless_by_name = {
    {"write", EIO, Effect::whichever, "a directory that is written once more, with the Exif"},
};

// Of a JPEG file: a date, and an Exif directory with a focal length.
std::string exif_segment() {
  using namespace std::string_literals;
  const std::string date = "2001:02:03 04:05:06\0"s;
  const std::string first = "\x02\0\x32\x01\x02\0\x14\0\0\0\x26\0\0\0\x69\x87\x04\0\x01\0\0\0\x3a\0\0\0\0\0\0\0"s;
  const std::string second = "\x01\0\x0a\x92\x05\0\x01\0\0\0\x4c\0\0\0\0\0\0\0"s;
  const std::string content = "Exif\0\0II*\0\x08\0\0\0"s + first + date + second + "\x23\0\0\0\x01\0\0\0"s;
  return "\xff\xe1\0"s + static_cast<char>(content.size() + 2) + content;
}

// The formats differ in what writes them; what puts the files in place is the same for all, and OpenImageIO takes a
// tenth of a second to load.
enum class Depth {
  all_states,    // of the target and the file system
  target_there,  // every call, where a file is replaced
  own_calls      // what the format's own code has to pass on
};

struct Way {
  const char* name;
  std::vector<const char*> preparations;  // commands that make the input
  const char* arguments;
  std::vector<const char*> outputs;
  Depth depth = Depth::target_there;
  bool is_by_name = false;
};

void PrintTo(const Way& way, std::ostream* to) {
  *to << way.name;
}

class Outputs : public Faults, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    Faults::SetUp();
    if (IsSkipped()) return;
    write("x.npy",
          image::npy_header_text(DataType::f32, std::vector<std::int64_t>{1, 1, 4, 4}) + std::string(64, '\0'));
    write("exif", exif_segment());
    for (const char* const preparation : GetParam().preparations)
      ASSERT_EQ(shell(preparation).status, 0) << preparation;
  }

  // `always` fails in each run.
  void fails_whole(const Files& before, const std::string& always) const {
    const Way& way = GetParam();
    const std::string arguments = std::string(way.arguments) + " --device cpu --quiet";
    const Run good = run_with(always, before, arguments);
    ASSERT_EQ(good.outcome.status, 0) << good.outcome.error;
    ASSERT_EQ(good.files.size(), way.outputs.size());
    expect_all_kinds(good, before.empty(), !always.empty());
    for (const Fault& fault : faults_of(good.calls)) {
      if (always.starts_with(fault.kind + ":") || (way.depth == Depth::own_calls && !is_own(fault))) continue;
      const Run run = run_with(fault.injected() + "," + always, before, arguments);
      expect_effect(fault, run, before, good.files);
    }
  }

  void same_as_always(const Files& before, const std::string& faults) const {
    const std::string arguments = std::string(GetParam().arguments) + " --device cpu --quiet";
    const Run good = run_with("", before, arguments), run = run_with(faults, before, arguments);
    EXPECT_EQ(run.outcome.status, 0) << run.outcome.error;
    EXPECT_TRUE(run.is_injected);
    EXPECT_EQ(run.calls.count("link"), 0U);
    EXPECT_TRUE(run.files == good.files) << faults;
  }

 private:
  static Effect effect_of(const Fault& fault) {
    const std::vector<Harmless>& first = GetParam().is_by_name ? harmless_by_name : harmless_of_files;
    const Effect effect = Faults::effect_of(fault, first);
    return effect == Effect::refusal ? Faults::effect_of(fault, harmless_of_files) : effect;
  }

  static bool is_own(const Fault& fault) {
    if (fault.kind == "write") return fault.error != EINTR;
    return fault.kind == "open-to-write" || fault.kind == "fsync" || fault.kind == "link" || fault.kind == "rename";
  }

  // A run that makes none of these calls would show nothing.
  static void expect_all_kinds(const Run& run, bool is_new, bool is_named) {
    for (const char* const kind : {"write", "fsync", "fstat", "copy", "close-copy", "fsync-folder"})
      EXPECT_GT(run.calls.count(kind), 0U) << kind;
    EXPECT_EQ(run.calls.count("link"), is_named ? 0U : 1U);
    EXPECT_EQ(run.calls.count("rename"), is_new && !is_named ? 0U : 1U);
    EXPECT_EQ(run.calls.count("fchmod"), is_new ? 0U : 1U);
  }

  void expect_effect(const Fault& fault, const Run& run, const Files& before, const Files& whole) const {
    EXPECT_TRUE(run.is_injected) << fault.described();
    const Effect effect = effect_of(fault);
    if (effect == Effect::none || (effect == Effect::whichever && run.outcome.status == 0)) {
      EXPECT_EQ(run.outcome.status, 0) << fault.described() << "\n" << run.outcome.error;
      EXPECT_EQ(run.outcome.error, "") << fault.described();
      EXPECT_TRUE(run.files == whole) << fault.described() << ": the output is not what it is without";
      return;
    }
    expect_one_error_line(run.outcome, 2, fault.described());
    EXPECT_TRUE(GetParam().is_by_name || run.outcome.error.find(std::strerror(fault.error)) != std::string::npos)
        << fault.described() << "\n"
        << run.outcome.error;
    if (GetParam().outputs.size() > 1 && (fault.kind == "link" || fault.kind == "rename"))
      return expect_last_as_it_was(fault, run, before, whole);
    EXPECT_TRUE(run.files == before) << fault.described() << ": the folder is not as it was: " << run.files.size()
                                     << " files";
  }

  // Two files cannot appear in one call: the first may be there, whole, when the last one's name fails.
  static void expect_last_as_it_was(const Fault& fault, const Run& run, const Files& before, const Files& whole) {
    Files expected = before;
    const std::string first = GetParam().outputs.front();
    if (run.files.contains(first) && run.files.at(first) == whole.at(first)) expected[first] = whole.at(first);
    EXPECT_TRUE(run.files == expected) << fault.described();
  }
};

TEST_P(Outputs, AreWholeOrAsTheyWere) {
  Files before;
  for (const char* const output : GetParam().outputs) before[output] = "what was there";
  fails_whole(before, "");
  const std::string without_unnamed = Fault{"open-unnamed", 1, all_that_follow, EOPNOTSUPP}.injected();
  if (GetParam().depth != Depth::all_states) return same_as_always(before, without_unnamed);
  fails_whole({}, "");
  fails_whole(before, without_unnamed);
  fails_whole({}, without_unnamed);
}

// What cannot be removed stays, beside the old target.
TEST_F(Faults, CleaningUpFailsToo) {
  const Files before = {{"y.ppm", "what was there"}};
  const Run run =
      run_with("rename:1:1:5,unlink:1:1:5", before, "filter in.ppm out/y.ppm --kernel identity --device cpu");
  expect_one_error_line(run.outcome, 2, "rename and unlink");
  EXPECT_EQ(run.files.at("y.ppm"), before.at("y.ppm"));
  EXPECT_EQ(run.calls.count("unlink"), 1U);
}

// Dates are those of the input, so that files are the same in every run.
constexpr const char* jpeg = "$OMNICONV filter in.ppm in.jpg --kernel identity --device cpu";
constexpr const char* exif_jpeg = "{ head -c 2 in.jpg; cat exif; tail -c +3 in.jpg; } > exif.jpg";
constexpr const char* tiff = "$OMNICONV filter in.ppm in.tif --kernel identity --device cpu";
constexpr const char* openexr = "$OMNICONV filter in.tif in.exr --depth f16 --kernel identity --device cpu";

INSTANTIATE_TEST_SUITE_P(
    Of, Outputs,
    testing::Values(Way{"ppm", {}, "filter in.ppm out/y.ppm --kernel identity", {"y.ppm"}, Depth::all_states},
                    Way{"npy", {}, "filter in.ppm out/y.npy --kernel identity", {"y.npy"}},
                    Way{"run",
                        {},
                        "run 'pool2d n1c1h4w4r2s2u2' --x x.npy -o out/y.npy --indices out/i.npy",
                        {"y.npy", "i.npy"},
                        Depth::all_states}),
    [](const auto& way) { return std::string(way.param.name); });

#ifndef OMNICONV_NO_IMAGE_MODULE
INSTANTIATE_TEST_SUITE_P(
    OfImageModules, Outputs,
    testing::Values(
        Way{"png", {}, "filter in.ppm out/y.png --kernel identity", {"y.png"}, Depth::own_calls},
        Way{"jpeg", {jpeg}, "filter in.jpg out/y.jpg --kernel identity", {"y.jpg"}},
        Way{"tiff", {tiff}, "filter in.tif out/y.tif --kernel identity", {"y.tif"}},
        Way{"tiff_with_exif",
            {jpeg, exif_jpeg},
            "filter exif.jpg out/y.tif --kernel identity",
            {"y.tif"},
            Depth::own_calls,
            true},
        Way{"openexr", {tiff, openexr}, "filter in.exr out/y.exr --kernel identity", {"y.exr"}, Depth::own_calls},
        Way{"webp", {}, "filter in.ppm out/y.webp --kernel identity", {"y.webp"}, Depth::own_calls}),
    [](const auto& way) { return std::string(way.param.name); });
#endif

}  // namespace
}  // namespace omniconv
