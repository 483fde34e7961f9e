// train, evaluate and predict on folders of images.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"

namespace omniconv::train_folders_tests {
namespace {

using nlohmann::json;

class TrainFolders : public Command {
 protected:
  // A bright line across or down, of 16 x 12 pixels, and coloured where it is a .ppm: the model takes 8 x 8.
  void put(const std::string& name, bool is_down, int i) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    const bool is_colour = name.ends_with(".ppm");
    std::string pixels;
    for (int h = 0; h < 12; ++h)
      for (int w = 0; w < 16; ++w)
        for (int k = 0; k < (is_colour ? 3 : 1); ++k)
          pixels += static_cast<char>((is_down ? w / 4 : h / 3) == i % 4 ? 200 - i % 50 : 10 + (h * 5 + w * 3 + i) % 9);
    write(name, (is_colour ? "P6" : "P5") + std::string("\n16 12\n255\n") + pixels);
  }
  void put_set(const std::string& inside, int of_each) const {
    for (int i = 0; i < of_each; ++i)
      for (const char* const name : {"across", "down"})
        put(fmt::format("{}{}/{}.{}", inside, name, i, i % 3 == 0 ? "ppm" : "pgm"), name == std::string("down"), i);
  }
  void put_model() const { write("net.txt", "input 1 8 8\nconv 4 3x3 pad 1\nrelu\ndense 2\n"); }
};

TEST_F(TrainFolders, TrainsEvaluatesAndPredicts) {
  put_set("lines/train/", 60), put_set("lines/test/", 10);
  put_model();
  const Outcome outcome =
      run("train net.txt --data lines --device cpu --epochs 6 --batch 10 --rate 0.02 --checkpoint run --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("lines: 120 images for training, 20 for the test (lines)"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("test accuracy 100.00 %: 20 of 20 images"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 down  .   10  100.0 %"), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("r.json"));
  EXPECT_EQ(report["dataset"], (json{{"name", "lines"}, {"origin", "lines"}, {"train", 120}, {"test", 20}}));
  const Outcome again = run("evaluate run --data lines --device cpu --json e.json");
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(json::parse(read_here("e.json"))["test"], report["test"]);
  const Outcome found =
      run("predict run lines/test/down/3.ppm lines/test/across/4.pgm --device cpu --top 1 --json p.json");
  ASSERT_EQ(found.status, 0) << found.error;
  const json images = json::parse(read_here("p.json"))["images"];
  EXPECT_EQ(images[0]["found"][0]["name"], "down");
  EXPECT_EQ(images[1]["found"][0]["name"], "across");
  refuses("evaluate run --device cpu",
          {"unknown data set 'lines': known are: ", "; one of your own is named by --data DIR"});
  // Classes of other names are other classes.
  std::filesystem::rename(folder_ / "lines/train/down", folder_ / "lines/train/up");
  std::filesystem::rename(folder_ / "lines/test/down", folder_ / "lines/test/up");
  refuses("evaluate run --data lines --device cpu", {"lines: class 1 is 'up', and the checkpoint's is 'down': run"});
}

// The images that are kept apart stay the same from the training to its evaluation, and when it goes on.
TEST_F(TrainFolders, WhatIsKeptApartStaysApart) {
  put_set("lines/", 30);
  put_model();
  const std::string train = "train net.txt --data lines --device cpu --batch 10 --deterministic --checkpoint run ";
  const Outcome outcome = run(train + "--epochs 2 --test-size 12 --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("lines: 48 images for training, 12 kept apart for the test (lines)"), std::string::npos)
      << outcome.out;
  const json report = json::parse(read_here("r.json"));
  EXPECT_EQ(report["dataset"]["test_is_of_training"], true);
  const Outcome again = run("evaluate run --data lines --device cpu --json e.json");
  ASSERT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(json::parse(read_here("e.json"))["test"], report["test"]);
  refuses(
      "evaluate run --data lines --test-size 20 --device cpu",
      {"--test-size 20, and the checkpoint's training kept 12 images apart for the test: it may have learnt others"});
  refuses(train + "--epochs 3 --test-size 11 --resume", {"its checkpoint was made with --t", "and this is "});
  refuses(train + "--epochs 3 --test-size 11 --train-size 48 --resume", {"with --test-size 12, and this is 11"});
  EXPECT_EQ(run(train + "--epochs 3 --test-size 12 --resume").status, 0);
}

TEST_F(TrainFolders, BadInput) {
  put_model();
  const std::string to = " --device cpu --epochs 1 --batch 2";
  put_set("sets/one/", 4), put_set("sets/two/", 4);
  refuses("train net.txt --data sets" + to,
          {"several data sets fit the model net.txt: name one by --dataset: one (sets/one: folders of images), two"});
  EXPECT_EQ(run("train net.txt --data sets --dataset two" + to).status, 0);
  refuses("train net.txt --data sets --dataset tow" + to, {"unknown data set 'tow': did you mean two?"});
  refuses("train net.txt --data sets --dataset mnist" + to,
          {"no mnist data set fits the model net.txt, which takes 1 x 8 x 8: found one (sets/one: folders of images)"});
  refuses("train net.txt --data sets/one --test-size 8" + to,
          {"8 images for the test, of 8 that are there: at most 7"});
  write("sets/one/across/notes.txt", "no image");
  refuses("train net.txt --data sets/one" + to, {"sets/one/across/notes.txt"});
#ifndef OMNICONV_NO_IMAGE_MODULE
  std::filesystem::remove(folder_ / "sets/one/across/notes.txt");
  ASSERT_EQ(shell("head -c 2000 $PHOTO > sets/one/down/photo.jpg").status, 0);
  refuses("train net.txt --data sets/one" + to, {"sets/one/down/photo.jpg"});
#endif
  std::filesystem::create_directories(folder_ / "sets/two/empty");
  refuses("train net.txt --data sets/two" + to, {"sets/two/empty: the folder of a class has no image"});
  std::filesystem::create_directories(folder_ / "bare");
  refuses("train net.txt --data bare" + to,
          {"bare: neither it nor its mnist", "or folders of images, one for each class"});
  put_set("three/", 4), put("three/slant/1.pgm", false, 1);
  refuses("train net.txt --data three" + to, {"three has 3 classes, and the model net.txt has 2 outputs"});
  write("wide.txt", "input 5 8 8\ndense 3\n");
  refuses("train wide.txt --data three" + to, {"three/across/0.ppm has 3 channels, and the model takes 5"});
}

}  // namespace
}  // namespace omniconv::train_folders_tests
