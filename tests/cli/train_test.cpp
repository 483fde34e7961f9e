// train: from files to a report, and what it says of bad input.
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"

namespace omniconv {
namespace {

using nlohmann::json;

class TrainCommand : public Command {
 protected:
  // Ten classes of 8 x 8 pixels: a bright line each, the first eight across and two down.
  void put_set(const std::string& inside, int train, int test) const {
    std::filesystem::create_directories(folder_ / inside);
    for (const auto& [part, count] : {std::pair("train", train), std::pair("t10k", test)}) {
      std::string images = word(0x803) + word(count) + word(8) + word(8), labels = word(0x801) + word(count);
      for (int i = 0; i < count; ++i) {
        const int label = i % 10;
        labels += static_cast<char>(label);
        for (int h = 0; h < 8; ++h)
          for (int w = 0; w < 8; ++w)
            images += static_cast<char>((label < 8 ? h == label : w == 2 * label - 15) ? 200 - i % 7
                                                                                       : 10 + (h * 5 + w * 3 + i) % 9);
      }
      write(inside + part + "-images-idx3-ubyte", images);
      write(inside + part + "-labels-idx1-ubyte", labels);
    }
  }
  static std::string word(int value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
    return bytes;
  }
  void put_model() const { write("net.txt", "input 1 8 8\nconv 4 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 10\n"); }
};

TEST_F(TrainCommand, TrainsAndReports) {
  put_set("", 400, 100);
  put_model();
  for (const std::string& device : devices_here()) {
    const Outcome outcome =
        run("train net.txt --data . --epochs 4 --batch 10 --rate 0.02 --seed 5 --json r.json --device " + device);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("net.txt: 690 parameters, "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("mnist: 400 images for training, 100 for the test"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("epoch 4 of 4: loss "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("test accuracy 100.00 %: 100 of 100 images"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("100.0 %\n"), std::string::npos) << outcome.out;  // of a class
    const json report = json::parse(read_here("r.json"));
    EXPECT_EQ(report["schema"], "omniconv-train/1");
    EXPECT_EQ(report["parameters"], 690);
    EXPECT_EQ(report["dataset"], (json{{"name", "mnist"}, {"origin", "."}, {"train", 400}, {"test", 100}}));
    EXPECT_EQ(report["options"]["batch"], 10);
    ASSERT_EQ(report["epochs"].size(), 4u);
    EXPECT_LT(report["epochs"][3]["loss"], report["epochs"][0]["loss"]);
    EXPECT_EQ(report["test"]["right"], 100);
    EXPECT_EQ(report["test"]["confusion"][11], 10);
    // conv, pool, dense; two of the loss; three, two, one and two backward; the update.
    EXPECT_EQ(report["steps"].size(), 3u + 2 + 3 + 1 + 1 + 2 + 1);
    EXPECT_EQ(report["steps"].back()["problem"], "update guarded n" + std::to_string(64 + 64 + 640 + 64));
  }
}

TEST_F(TrainCommand, ListsModels) {
  const Outcome outcome = run("train --list-models");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("cifar10-vgg3: 550570 parameters\n"), std::string::npos) << outcome.out;
  put_model();
  const Outcome own = run("train net.txt --list-models");
  EXPECT_EQ(own.out.find("net.txt: 690 parameters\n"), 0u) << own.out;
  EXPECT_NE(own.out.find("conv 4 3x3 pad 1   4 x 8 x 8      256          40"), std::string::npos) << own.out;
}

TEST_F(TrainCommand, ASeedAndNoOtherThread) {
  put_set("", 60, 20);
  put_model();
  const auto losses = [&](const std::string& more) {
    EXPECT_EQ(
        run("train net.txt --data . --epochs 2 --batch 10 --deterministic --device cpu --json r.json " + more).status,
        0);
    const json report = json::parse(read_here("r.json"));
    return std::pair(report["epochs"][0]["loss"], report["epochs"][1]["loss"]);
  };
  const auto first = losses("--threads 1");
  EXPECT_EQ(losses("--threads 2"), first);
  EXPECT_NE(losses("--threads 1 --seed 2"), first);
}

TEST_F(TrainCommand, BadInput) {
  put_set("", 40, 20);
  put_model();
  const std::string to = " --data . --device cpu --epochs 1 --batch 10";
  refuses("train", {"no model is named: omniconv train --list-models shows"});
  refuses("train mnist-bog" + to, {"unknown model 'mnist-bog'", "did you mean mnist-big"});
  refuses("train mnist-big" + to,
          {"no data set fits the model mnist-big, which takes 1 x 28 x 28: found mnist (.: 1 x 8 x 8)"});
  refuses("train net.txt --data none", {"none: there is no such folder of data"});
  refuses("train net.txt --optimizer adan" + to, {"unknown optimizer 'adan': did you mean adam?"});
  refuses("train net.txt --dataset minst" + to, {"unknown data set 'minst': did you mean mnist?"});
  refuses("train net.txt --optimizer adam --momentum 0.5" + to, {"--momentum beside --optimizer adam"});
  refuses("train net.txt --data . --batch 41",
          {"a batch of 41 images, and mnist has 40 for training: make it smaller"});
  refuses("train net.txt --rate nan" + to, {"--rate"});
  refuses("train net.txt --rate 1e30 --device cpu --data . --batch 40 --epochs 1 --quiet",
          {"image 0: an output is not finite"}, 3);
  refuses("train net.txt --rate 1e30 --device cpu --data . --batch 10 --epochs 9 --quiet",
          {"epoch 1, step ", "a number is not finite, first in "}, 3);
  write("few.txt", "input 1 8 8\ndense 9\n");
  refuses("train few.txt" + to, {"mnist has 10 classes, and the model few.txt has 9 outputs"});
  put_set("one/mnist/", 20, 10), put_set("one/fashion-mnist/", 20, 10);
  refuses(
      "train net.txt --data one",
      {"several data sets fit the model net.txt: name one by --dataset: mnist (one/mnist: 1 x 8 x 8), fashion-mnist"});
  write("one/mnist/train-images-idx3-ubyte", "none");
  EXPECT_EQ(run("train net.txt --data one --batch 10 --epochs 1 --device cpu").status, 0);
  refuses("train net.txt --data one --dataset mnist", {"one/mnist/train-images-idx3-ubyte: it ends within its header"});
}

}  // namespace
}  // namespace omniconv
