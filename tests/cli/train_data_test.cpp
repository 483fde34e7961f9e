// train: with no data of the user's, and the picture of what came out.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"

namespace omniconv::train_data_tests {
namespace {

using nlohmann::json;

class TrainWithoutData : public Command {
 protected:
  void put_models() const {
    write("grey.txt", "input 1 28 28\ndense 10\n");
    write("colour.txt", "input 3 32 32\nconv 4 5x5 stride 4\nrelu\ndense 10\n");
  }
  static constexpr const char* quickly = " --device cpu --epochs 1 --batch 50";
};

TEST_F(TrainWithoutData, TheSampleComesAlong) {
  put_models();
  const std::string sample = " --dataset fashion-mnist-sample";
  const Outcome outcome = run("train grey.txt --checkpoint run --json r.json" + sample + quickly);
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("fashion-mnist-sample: 4000 images for training, 1000 for the test ("), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("9 ankle boot"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("r.json"));
  EXPECT_EQ(report["dataset"]["train"], 4000);
  // By chance it is a tenth.
  EXPECT_GT(report["test"]["accuracy"], 0.5);
  const Outcome again = run("evaluate run --device cpu --json e.json");
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_NE(again.out.find("fashion-mnist-sample: 1000 images for the test ("), std::string::npos) << again.out;
  EXPECT_EQ(json::parse(read_here("e.json"))["test"]["right"], report["test"]["right"]);
}

// Debian's package or the sample; neither of them is for colours, for which there are shapes.
TEST_F(TrainWithoutData, ASetThatFitsIsFound) {
  put_models();
  const Outcome grey = run("train grey.txt --train-size 100 --test-size 10" + std::string(quickly));
  ASSERT_EQ(grey.status, 0) << grey.error;
  EXPECT_NE(grey.out.find("mnist"), std::string::npos) << grey.out;
  EXPECT_NE(grey.out.find(": 100 images for training, 10 for the test (/"), std::string::npos) << grey.out;
  const Outcome colour =
      run("train colour.txt --dataset shapes --train-size 100 --test-size 20 --checkpoint run --json r.json" +
          std::string(quickly));
  ASSERT_EQ(colour.status, 0) << colour.error;
  EXPECT_NE(colour.out.find("shapes: 100 images for training, 20 for the test (made of seed 1)"), std::string::npos)
      << colour.out;
  EXPECT_NE(colour.out.find("9 checks"), std::string::npos) << colour.out;
  const Outcome again = run("evaluate run --test-size 20 --device cpu --json e.json");
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(json::parse(read_here("e.json"))["test"], json::parse(read_here("r.json"))["test"]);
}

TEST_F(TrainWithoutData, BadInput) {
  put_models();
  write("small.txt", "input 1 8 8\ndense 10\n");
  refuses("train small.txt", {"no data set fits the model small.txt, which takes 1 x 8 x 8: found ",
                              "fashion-mnist-sample (", "; give --data DIR, a folder with MNIST's"});
  refuses("train grey.txt --dataset shapes",
          {"no shapes data set fits the model grey.txt, which takes 1 x 28 x 28: found 3 x 32 x 32"});
  refuses("train colour.txt --dataset fashion-mnist-sample", {"no fashion-mnist-sample data set fits the model"});
  refuses("train colour.txt --dataset shapes --data .", {"--data beside --dataset shapes"});
  refuses("train colour.txt --dataset shape", {"unknown data set 'shape': did you mean shapes?"});
  refuses("train colour.txt --train-size 1048577", {"shapes: 1048577 images for training: must be 0 to 1048576"});
  const Outcome none = shell("OMNICONV_DATA_DIR=none $OMNICONV train grey.txt --dataset fashion-mnist-sample");
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.error.find("fashion-mnist-sample is not beside the program, in share/omniconv: name the folder that "
                            "holds it by --data, or by OMNICONV_DATA_DIR"),
            std::string::npos)
      << none.error;
}

TEST_F(TrainWithoutData, OtherFoldersOfWhatComesAlong) {
  put_models();
  const std::string from = "'" OMNICONV_SOURCE_DIR "/data'";
  const Outcome by_variable =
      shell("OMNICONV_DATA_DIR=" + from + " $OMNICONV train grey.txt --dataset fashion-mnist-sample --train-size 50" +
            quickly);
  EXPECT_EQ(by_variable.status, 0) << by_variable.error;
  EXPECT_NE(by_variable.out.find("(" OMNICONV_SOURCE_DIR "/data/fashion-mnist-sample)"), std::string::npos)
      << by_variable.out;
  const Outcome by_option = run("train grey.txt --train-size 50 --data " + from + quickly);
  EXPECT_EQ(by_option.status, 0) << by_option.error;
  EXPECT_NE(by_option.out.find("fashion-mnist-sample: 50 images"), std::string::npos) << by_option.out;
}

TEST_F(TrainWithoutData, MemoryOfLayers) {
  put_models();
  const Outcome outcome = run("train colour.txt --list-models --batch 32 --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("layer                output       neurons  parameters  memory, batch of 32\n"),
            std::string::npos)
      << outcome.out;
  // 4 x 7 x 7 numbers of 4 bytes for each of 32 images.
  EXPECT_NE(outcome.out.find("conv 4 5x5 stride 4    4 x 7 x 7      196         304             24.5 KiB\n"),
            std::string::npos)
      << outcome.out;
  const json layers = json::parse(read_here("r.json"))["models"][0]["layers"];
  EXPECT_EQ(layers[0]["neurons"], 196);
  EXPECT_EQ(layers[0]["memory_bytes"], 196 * 4 * 32);
  ASSERT_EQ(run("train colour.txt --list-models --batch 32 --precision bf16 --json r.json").status, 0);
  EXPECT_EQ(json::parse(read_here("r.json"))["models"][0]["layers"][0]["memory_bytes"], 196 * 2 * 32);
}

// What is in them tests/train/event_file_test.cpp and tests/oracle/compare_events.py look at.
TEST_F(TrainWithoutData, FilesOfEvents) {
  put_models();
  const std::string command = "train colour.txt --dataset shapes --train-size 100 --test-size 20 --device cpu --quiet";
  const auto files = [&](const char* inside) {
    const std::filesystem::directory_iterator all(folder_ / inside);
    return std::distance(begin(all), end(all));
  };
  ASSERT_EQ(run(command + " --epochs 2 --validation 20 --tensorboard a/b --checkpoint run").status, 0);
  EXPECT_EQ(files("a/b"), 1);
  ASSERT_EQ(run(command + " --epochs 3 --validation 20 --tensorboard a/b --checkpoint run --resume").status, 0);
  EXPECT_EQ(files("a/b"), 2);
  write("file", "no folder");
  refuses(command + " --tensorboard file", {"file: the folder of events cannot be made: Not a directory"});
  refuses(command + " --tensorboard /dev/null/x", {"/dev/null/x: the folder of events cannot be made: "});
  refuses(command + " --tensorboard ''", {"--tensorboard"});
  // What fails before an epoch is over leaves nothing.
  refuses(command + " --rate 1e30 --batch 10 --epochs 9 --tensorboard new", {"a number is not finite"}, 3);
}

#if OMNICONV_HAS_PLOT
// Of a PNG file's head.
std::int64_t word_at(const std::string& bytes, std::size_t at) {
  std::int64_t word = 0;
  for (std::size_t i = at; i < at + 4; ++i) word = word << 8 | static_cast<unsigned char>(bytes.at(i));
  return word;
}

TEST_F(TrainWithoutData, Plots) {
  put_models();
  const std::string command = "train colour.txt --dataset shapes --train-size 200 --test-size 20 --quiet --device cpu";
  for (const char* const more : {" --epochs 1", " --epochs 3 --validation 50", " --epochs 50 --batch 100"}) {
    const Outcome outcome = run(command + more + " --plot plot.png");
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    const std::string bytes = read_here("plot.png");
    EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
    EXPECT_EQ(word_at(bytes, 16), 1680);
    EXPECT_EQ(word_at(bytes, 20), 960);
    EXPECT_EQ(bytes.substr(bytes.size() - 8, 4), "IEND");
    EXPECT_GT(bytes.size(), 20000u);  // text and lines, not a white page
    EXPECT_EQ(listing().size(), 3u);
  }
}

// A picture's pixels of one colour, as the other modules read it.
#ifndef OMNICONV_NO_IMAGE_MODULE
TEST_F(TrainWithoutData, PlotsHaveALineForEachCurve) {
  put_models();
  const auto pixels_of = [&](const std::string& colour) {
    EXPECT_EQ(run("filter p.PNG q.ppm --kernel '1x1: 1' --device cpu").status, 0);
    const std::string image = read_here("q.ppm"), head = "P6\n1680 960\n255\n";
    EXPECT_EQ(image.substr(0, head.size()), head);
    std::int64_t count = 0;
    for (std::size_t at = head.size(); at + 3 <= image.size(); at += 3) count += image.compare(at, 3, colour) == 0;
    return count;
  };
  const std::string of_training("\x00\x72\xb2", 3), of_validation("\xd5\x5e\x00", 3);
  const std::string command =
      "train colour.txt --dataset shapes --train-size 200 --test-size 20 --device cpu --epochs 2";
  const Outcome alone = run(command + " --plot p.PNG");
  ASSERT_EQ(alone.status, 0) << alone.error;
  EXPECT_NE(alone.out.find("plot: p.PNG\n"), std::string::npos) << alone.out;
  EXPECT_GT(pixels_of(of_training), 500);
  EXPECT_EQ(pixels_of(of_validation), 0);
  ASSERT_EQ(run(command + " --validation 50 --plot p.PNG").status, 0);
  EXPECT_GT(pixels_of(of_training), 500);
  EXPECT_GT(pixels_of(of_validation), 500);
}
#endif

TEST_F(TrainWithoutData, PlotsThatCannotBeWritten) {
  put_models();
  refuses("train colour.txt --dataset shapes --plot plot.jpg", {"--plot 'plot.jpg': a plot is a PNG file"});
  refuses("train colour.txt --dataset shapes --plot none/plot.png", {"none"});
  refuses("train colour.txt --dataset shapes --plot ''", {"--plot"});
  // What fails later leaves no file.
  refuses("train colour.txt --dataset shapes --train-size 40 --rate 1e30 --quiet --batch 10 --device cpu --plot p.png",
          {"a number is not finite"}, 3);
}
#else
TEST_F(TrainWithoutData, PlotsNeedCairo) {
  put_models();
  refuses("train colour.txt --plot plot.png",
          {"--plot needs omniconv's module that draws, and this omniconv was built without it; install cairo (Debian: "
           "libcairo2-dev)"},
          3);
}
#endif

}  // namespace
}  // namespace omniconv::train_data_tests
