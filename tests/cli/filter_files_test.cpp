// Standard input and output, several inputs, several pages, and how results are stored.
#include <nlohmann/json.hpp>

#include "command.h"

namespace omniconv {
namespace {

using FilterFiles = Command;
using nlohmann::json;

std::string pgm(int w, int h, const std::string& pixels) {
  return "P5\n" + std::to_string(w) + " " + std::to_string(h) + "\n255\n" + pixels;
}

TEST_F(FilterFiles, StandardInputAndOutput) {
  const std::string image = pgm(3, 2, "\1\2\3\4\5\6");
  write("in.pgm", image);
  ASSERT_EQ(run("filter in.pgm out.pgm --kernel box:3").status, 0);
  const std::string expected = read_here("out.pgm");
  const std::vector<std::string> before = listing();
  for (const std::string line :
       {"cat in.pgm | $OMNICONV filter - - --kernel box:3", "$OMNICONV filter - - --kernel box:3 < in.pgm",
        "$OMNICONV filter in.pgm - --kernel box:3 --format pgm",
        // What was read before is not read again.
        "{ echo; cat in.pgm; } > both; { read -r line; $OMNICONV filter - - -k box:3; } < both; rm both"}) {
    const Outcome outcome = shell(line);
    EXPECT_EQ(outcome.status, 0) << line << outcome.error;
    EXPECT_EQ(outcome.out, expected) << line;
    EXPECT_EQ(outcome.error, "") << line;
  }
  ASSERT_EQ(shell("$OMNICONV filter - last.pgm --kernel box:3 < in.pgm").status, 0);
  EXPECT_EQ(read_here("last.pgm"), expected);
  std::filesystem::remove(folder_ / "last.pgm");
  // Texts make way for the image.
  const Outcome explained = run("filter in.pgm - --kernel box:3 --format pgm --explain --print-kernel");
  EXPECT_EQ(explained.out, expected);
  EXPECT_NE(explained.error.find("filter2d u8 h2w3r3s3"), std::string::npos);
  EXPECT_EQ(run("filter in.pgm - --kernel box:3 --dry-run --quiet").out, "");
  EXPECT_EQ(listing(), before);
}

TEST_F(FilterFiles, StandardInputAndOutputThatCannotBe) {
  write("in.pgm", pgm(3, 2, "\1\2\3\4\5\6"));
  refuses("filter - - --kernel box:3 < $OMNICONV", {"the standard input is not an image"});
  refuses("filter - out.pgm --kernel box:3 < /dev/null", {"the standard input is empty"});
  refuses("filter in.pgm - --kernel box:3 --format xyz", {"the standard output: the format .xyz is not written"});
  refuses("filter in.pgm - --kernel box:3 --format ../x", {"--format '../x' is no extension"});
  refuses("filter in.pgm - --kernel box:3 --json -", {"--json -", "standard output"});
  refuses("filter in.pgm out.pgm --kernel box:3 --format png", {"--format", "out.pgm has a name"});
  refuses("filter in.pgm - --kernel box:3 > /dev/full", {"the standard output takes no more: No space left"}, 3);
  // Nothing is left where nobody reads to the end, and that is said.
  std::filesystem::create_directory(folder_ / "temporary");
  write("large.pgm", pgm(1000, 1000, std::string(1000000, 'x')));
  const Outcome cut = shell(
      "export TMPDIR=temporary; set -o pipefail; $OMNICONV filter large.pgm - -k identity | head -c 9; ls temporary");
  EXPECT_EQ(cut.out, "P5\n1000 1");
  EXPECT_EQ(cut.error, "omniconv: error: the standard output takes no more: Broken pipe\n");
  refuses("filter in.pgm - --kernel box:3 >&-", {"the standard output takes no more"}, 3);
  refuses("filter - out.pgm --kernel box:3 <&-", {"cannot read the standard input"});
  write("missing/", "");
  const Outcome nowhere = shell("cat in.pgm | TMPDIR=missing $OMNICONV filter - out.pgm --kernel box:3");
  EXPECT_EQ(nowhere.status, 3);
  EXPECT_NE(nowhere.error.find("TMPDIR names"), std::string::npos) << nowhere.error;
}

TEST_F(FilterFiles, SeveralInputsGoIntoAFolder) {
  for (const char* name : {"a", "b", "c"}) write(std::string(name) + ".pgm", pgm(3, 1, std::string(3, name[0])));
  write("bad.pgm", "P5\n3 1\n255\n");
  std::filesystem::create_directory(folder_ / "out");
  const Outcome outcome =
      run("filter a.pgm bad.pgm b.pgm missing.pgm c.pgm --into out --kernel identity --json r.json");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 2) << outcome.error;
  EXPECT_EQ(outcome.error.rfind("omniconv: error: bad.pgm is cut short", 0), 0u) << outcome.error;
  EXPECT_NE(outcome.error.find("\nomniconv: error: cannot read missing.pgm"), std::string::npos) << outcome.error;
  for (const std::string name : {"a.pgm", "b.pgm", "c.pgm"}) EXPECT_EQ(read_here("out/" + name), read_here(name));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/bad.pgm"));
  const json report = json::parse(read_here("r.json"));
  ASSERT_EQ(report["results"].size(), 5u);
  EXPECT_EQ(report["results"][0]["input"], "a.pgm");
  EXPECT_EQ(report["results"][0]["output"], "out/a.pgm");
  EXPECT_TRUE(report["results"][0].contains("solver"));
  EXPECT_TRUE(report["results"][1]["error"]["message"].get<std::string>().starts_with("bad.pgm is cut short"));

  EXPECT_EQ(run("filter a.pgm b.pgm --into out --format npy --kernel identity").status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/a.npy"));
  EXPECT_EQ(run("filter a.pgm --into out --kernel identity --dry-run --quiet").status, 0);
}

TEST_F(FilterFiles, FoldersThatCannotBe) {
  std::filesystem::create_directory(folder_ / "out");
  write("a.pgm", pgm(1, 1, "\1"));
  write("out/a.pgm", pgm(1, 1, "\2"));
  refuses("filter a.pgm --into nowhere --kernel identity", {"--into nowhere", "no such folder"});
  refuses("filter a.pgm --into a.pgm --kernel identity", {"--into a.pgm", "no such folder"});
  refuses("filter --into out --kernel identity", {"--into out", "no input"});
  refuses("filter a.pgm out/../a.pgm --into out --kernel identity", {"two results would become out/a.pgm"});
  refuses("filter a.pgm --into . --kernel identity", {"./a.pgm would replace the input a.pgm: name another folder"});
  refuses("filter - --into out --kernel identity", {"- has no name"});
  refuses("filter a.pgm --into out --kernel identity --json out/a.pgm", {"--json out/a.pgm is the image"});
  refuses("filter a.pgm --into out --kernel gausian:3", {"gaussian"});
  // By links, too: onto another input, and onto one file.
  std::filesystem::create_directory(folder_ / "in");
  write("in/b.pgm", pgm(1, 1, "\3"));
  std::filesystem::create_symlink("../in/b.pgm", folder_ / "out/l.pgm");
  write("l.pgm", pgm(1, 1, "\4"));
  refuses("filter l.pgm in/b.pgm --into out --kernel identity", {"out/l.pgm would replace the input in/b.pgm"});
  std::filesystem::create_symlink("l.pgm", folder_ / "out/m.pgm");
  write("m.pgm", pgm(1, 1, "\5"));
  refuses("filter l.pgm m.pgm --into out --kernel identity", {"two results would become out/m.pgm"});
  EXPECT_EQ(read_here("out/a.pgm"), pgm(1, 1, "\2"));
  EXPECT_EQ(read_here("in/b.pgm"), pgm(1, 1, "\3"));
  // The report says what was wrong.
  EXPECT_EQ(run("filter a.pgm --into nowhere --kernel identity --json r.json").status, 2);
  EXPECT_EQ(json::parse(read_here("r.json"))["error"]["kind"], "bad_input");
}

TEST_F(FilterFiles, PagesThatWouldBeLost) {
  const std::string pages = pgm(1, 1, "\1") + pgm(1, 1, "\2");
  write("out-1.pgm", pages);
  write("a.pgm", pages);
  write("a-1.pgm", pgm(1, 1, "\3"));
  std::filesystem::create_directory(folder_ / "out");
  refuses("filter out-1.pgm out.pgm --kernel identity --page all", {"out-1.pgm would replace the input out-1.pgm"});
  refuses("filter a.pgm a-1.pgm --into out --kernel identity --page all", {"two results would become out/a-1.pgm"});
  const Outcome report = run("filter a.pgm b.pgm --kernel identity --page all --json b-2.pgm");
  EXPECT_EQ(report.status, 2);
  EXPECT_NE(report.error.find("--json b-2.pgm is page 2 of a.pgm"), std::string::npos) << report.error;
  EXPECT_EQ(read_here("out-1.pgm"), pages);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b-1.pgm"));
}

TEST_F(FilterFiles, EveryPage) {
  const std::vector<std::string> pages = {pgm(3, 2, "\1\2\3\4\5\6"), pgm(2, 2, "\7\10\11\12"), pgm(1, 1, "\13")};
  write("in.pgm", pages[0] + pages[1] + pages[2]);
  refuses("filter in.pgm out.pgm --kernel identity", {"in.pgm holds 3 images; choose one with --page N"});
  refuses("filter in.pgm out.pgm --kernel identity --page al", {"'al'", "or all"});
  refuses("filter in.pgm - --kernel identity --page all", {"holds 3 images, and - takes one"});
  ASSERT_EQ(run("filter in.pgm out.pgm --kernel identity --page all --json r.json").status, 0);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(read_here("out-" + std::to_string(i + 1) + ".pgm"), pages[i]);
  const json report = json::parse(read_here("r.json"));
  ASSERT_EQ(report["results"].size(), 3u);
  EXPECT_EQ(report["results"][2]["page"], 3);
  EXPECT_EQ(report["results"][2]["output"], "out-3.pgm");
  // The only page has the name itself.
  write("one.pgm", pages[1]);
  ASSERT_EQ(run("filter one.pgm copy.pgm --kernel identity --page all").status, 0);
  EXPECT_EQ(read_here("copy.pgm"), pages[1]);
  // Those before a page that fails are there, and the page is named.
  const Outcome valid = run("filter in.pgm v.pgm --kernel box:2 --border valid --page all --quiet");
  EXPECT_EQ(valid.status, 2);
  EXPECT_NE(valid.error.find("error: page 3 of 3: in.pgm: 1x1 pixels"), std::string::npos) << valid.error;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "v-2.pgm"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "v-3.pgm"));
}

#ifndef OMNICONV_NO_IMAGE_MODULE
TEST_F(FilterFiles, EveryPageOfTiff) {
  const std::vector<std::string> pages = {pgm(3, 2, "\1\2\3\4\5\6"), pgm(2, 2, "\7\10\11\12"), pgm(1, 1, "\13")};
  write("in.pgm", pages[0] + pages[1] + pages[2]);
  const auto expect_pages = [&](const std::string& file) {
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(run("filter " + file + " page.pgm --kernel identity --page " + std::to_string(i + 1)).status, 0);
      EXPECT_EQ(read_here("page.pgm"), pages[i]) << file << i;
    }
    refuses("filter " + file + " no.pgm --kernel identity --page 4", {"holds 3 images; there is no page 4"});
  };
  ASSERT_EQ(run("filter in.pgm a.tif --kernel identity --page all --explain --quiet").status, 0);
  expect_pages("a.tif");
  // The input may be the output, and keeps its compression.
  ASSERT_EQ(run("filter a.tif a.tif --kernel identity --page all --compression zip").status, 0);
  ASSERT_EQ(run("filter a.tif a.tif --kernel identity --page all").status, 0);
  expect_pages("a.tif");
  ASSERT_EQ(shell("$OMNICONV filter - - --kernel identity --page all < a.tif > b.tif").status, 0);
  expect_pages("b.tif");
  std::filesystem::create_directory(folder_ / "out");
  ASSERT_EQ(run("filter a.tif in.pgm --into out --kernel identity --page all").status, 0);
  expect_pages("out/a.tif");
  EXPECT_EQ(read_here("out/in-2.pgm"), pages[1]);
  // All of them or none.
  refuses("filter in.pgm v.tif --kernel box:2 --border valid --page all --quiet", {"page 3 of 3: in.pgm: 1x1 pixels"});
  refuses("filter in.pgm v.tif --kernel identity --page all --compression jpeg", {"page 1 of 3", "jpeg"});
  refuses("filter in.pgm v.tif --kernel identity --page all --depth f64", {"page 1 of 3", "f64"});
}

// OpenImageIO's remarks are not the command's.
TEST_F(FilterFiles, NothingIsSaidWhereNothingIsWrong) {
  for (const char* name : {"a.png", "a.tif", "a.webp", "a.jp2", "a.bmp", "a.tga"})
    EXPECT_EQ(run(std::string("filter $PHOTO --kernel identity ") + name).error, "") << name;
  EXPECT_EQ(run("filter $PHOTO a.exr --kernel identity --depth f16").error, "");
  EXPECT_EQ(run("filter $PHOTO a.hdr --kernel identity --depth f32").error, "");
}

TEST_F(FilterFiles, QualityAndCompression) {
  const auto size_of = [&](const std::string& name, const std::string& options) {
    EXPECT_EQ(run("filter $PHOTO " + name + " --kernel identity " + options).status, 0) << name << options;
    return std::filesystem::file_size(folder_ / name);
  };
  EXPECT_LT(size_of("a.jpg", "--quality 40"), size_of("a.jpg", ""));
  EXPECT_LT(size_of("a.webp", "--quality 40"), size_of("a.webp", "--compression lossless"));
  EXPECT_LT(size_of("a.tif", "--compression zip"), size_of("a.tif", ""));
  EXPECT_LT(size_of("a.png", "--compression 9"), size_of("a.png", "--compression 1"));
  refuses("filter $PHOTO a.bmp --kernel identity --quality 40", {"a.bmp: a quality is of .jpg"});
  refuses("filter $PHOTO a.jpg --kernel identity --quality 0", {"--quality", "'0'", "1 to 100"});
  refuses("filter $PHOTO a.tif --kernel identity --compression lzma", {"'lzma'", "none, lzw, zip, packbits, jpeg"});
  refuses("filter $PHOTO a.bmp --kernel identity --compression lzw", {"a.bmp", "no choice of compressions"});
}

// Doubles in one row, which OpenImageIO does not read: whatever is written, the file is.
TEST_F(FilterFiles, DoublesWhateverTheOutput) {
  write("in.pgm", pgm(3, 1, "\1\2\3"));
  ASSERT_EQ(run("filter in.pgm in.tif --kernel identity --depth f64").status, 0);
  for (const char* output : {"a.npy", "a.png --depth u8", "a.tif", "a.jpg --depth u8", "a.exr --depth f32"})
    EXPECT_EQ(run(std::string("filter in.tif --kernel identity ") + output).status, 0) << output;
}
#endif

}  // namespace
}  // namespace omniconv
