// train: from files to a report, and what it says of bad input.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
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
    // conv, pool, dense; the loss and its gradient; three, one and two backward; the update.
    EXPECT_EQ(report["steps"].size(), 3u + 1 + 3 + 1 + 2 + 1);
    EXPECT_EQ(report["steps"][3]["problem"], "loss bwd sums n10c10");
    EXPECT_EQ(report["steps"].back()["problem"], "update guarded n" + std::to_string(64 + 64 + 640 + 64));
  }
}

// All rungs learn the same; what each computes by itself stands beside the others'.
TEST_F(TrainCommand, ClimbsTheLadder) {
  put_set("", 400, 100);
  put_model();
  for (const std::string& device : devices_here()) {
    if (device == "cpu") continue;
    const std::string common = "train net.txt --data . --epochs 2 --batch 10 --rate 0.02 --seed 5 --device " + device;
    const Outcome outcome = run(common + " --ladder --tile 8x4 --work-per-thread 2 --json r.json");
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    const json report = json::parse(read_here("r.json")), &ladder = report["ladder"];
    ASSERT_EQ(ladder.size(), 5u);
    const char* const rungs[] = {"naive", "tiled", "work-per-thread", "own", "vendor"};
    for (std::size_t i = 0; i < std::size(rungs); ++i) EXPECT_EQ(ladder[i]["rung"], rungs[i]);
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_FALSE(ladder[i].contains("reason")) << ladder[i]["reason"];
      EXPECT_EQ(ladder[i]["accuracy"], ladder[0]["accuracy"]);
      EXPECT_EQ(ladder[i].contains("tile"), i == 1 || i == 2);
      EXPECT_GT(ladder[i]["seconds_an_epoch"], 0);
      EXPECT_DOUBLE_EQ(ladder[i]["speed_up"],
                       ladder[0]["seconds_an_epoch"].get<double>() / ladder[i]["seconds_an_epoch"].get<double>());
      EXPECT_EQ(ladder[i]["operations"].contains("bias_add forward-bias"), i < 3);
      EXPECT_EQ(ladder[i]["operations"].contains("activation backward-data"), i < 3);  // own has it with the bias's
      EXPECT_EQ(ladder[i]["operations"].contains("loss, backward"), i < 3);            // own has it with the loss
      for (const char* const kind : {"conv2d forward", "conv2d backward-filter", "loss", "update"})
        EXPECT_TRUE(ladder[i]["operations"].contains(kind)) << kind;
    }
    EXPECT_EQ(ladder[2]["tile"], "8x4");
    EXPECT_EQ(ladder[2]["work"], 2);
    EXPECT_EQ(ladder[1]["work"], 1);
    EXPECT_NE(outcome.out.find("speed-up over naive"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("vendor: left out: "), std::string::npos) << outcome.out;
    for (const char* const more : {" --solver conv2d=conv2d/direct", " --tensorboard curves", " --precision f16",
                                   " --tile 4 --work-per-thread 8"}) {
      const Outcome refused = run(common + " --ladder" + more);
      EXPECT_EQ(refused.status, 2) << more;
      EXPECT_EQ(refused.out, "") << more;
    }
    // A training on a rung goes on as it began.
    ASSERT_EQ(run(common + " --rung tiled --tile 8 --checkpoint run --json r.json").status, 0);
    const json steps = json::parse(read_here("r.json"))["steps"];
    EXPECT_EQ(steps[0]["solver"], "conv2d/rungs/gpu.1");
    EXPECT_EQ(steps[1]["solver"], "bias_add/rungs/gpu.1");
    EXPECT_EQ(run(common + " --rung tiled --tile 8 --checkpoint run --resume").status, 0);
    const Outcome other = run(common + " --rung tiled --checkpoint run --resume");
    EXPECT_EQ(other.status, 2);
    EXPECT_NE(other.error.find("was made with --rung tiled --tile 8x8, and this is tiled --tile 16x16"),
              std::string::npos)
        << other.error;
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

std::string line_of(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST_F(TrainCommand, KeepsApartLogsAndTimes) {
  put_set("", 60, 20);
  put_model();
  const Outcome outcome =
      run("train net.txt --data . --device cpu --epochs 3 --batch 10 --validation 13 --augment flip,crop1 --log l.csv "
          "--schedule warm-up:1,cosine:0.5 --rate 0.5 --operations --solver conv2d=conv2d/direct --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(line_of(outcome.out, "epoch 3 of 3: loss ").find(", validation "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("all operations, each by itself: "), std::string::npos) << outcome.out;
  const json report = json::parse(read_here("r.json"));
  EXPECT_EQ(report["epochs"][0]["validation"]["images"], 13);
  EXPECT_EQ(report["epochs"][0]["rate"], 0.5);
  // The last of 12 steps, of which the first 4 warm up.
  EXPECT_NEAR(report["epochs"][2]["rate"].get<double>(), 0.5 * (0.5 + 0.25 * (1 + std::cos(3.141592653589793 * 7 / 8))),
              1e-12);
  for (const json& step : report["steps"]) {
    EXPECT_GT(step["seconds"], 0) << step;
    const bool is_convolution = step["problem"].get<std::string>().find("k4r3s3") != std::string::npos;
    EXPECT_TRUE(!is_convolution || step["solver"].get<std::string>().starts_with("conv2d/direct")) << step;
  }
  const std::string log = read_here("l.csv");
  EXPECT_EQ(log.find("epoch,steps,loss,rate,seconds,images_per_second,validation_loss,validation_accuracy\n1,4,"), 0u)
      << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4);
}

// Of each operation the largest of three floors, of all of them each one's sum.
TEST_F(TrainCommand, ShowsOperationsBesideTheirFloors) {
  put_set("", 60, 20);
  put_model();
  for (const std::string& device : devices_here()) {
    const Outcome outcome =
        run("train net.txt --data . --epochs 3 --batch 10 --operations --json r.json --device " + device);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    const json report = json::parse(read_here("r.json"));
    const double launch = report["device"]["launch_seconds"], gbps = report["device"]["peak_gbps"];
    EXPECT_GT(launch, 0);
    double floors = 0, bytes = 0, arithmetic = 0;
    std::int64_t launches = 0;
    for (const json& step : report["steps"]) {
      const double of_launches = step["launches"].get<double>() * launch,
                   of_bytes = step["bytes"].get<double>() / (gbps * 1e9), floor = step["floor_seconds"];
      EXPECT_GE(step["launches"], 1) << step;
      EXPECT_GE(floor, std::max(of_launches, of_bytes) * (1 - 1e-12)) << step;
      if (step["floor_by"] != "arithmetic")
        EXPECT_DOUBLE_EQ(floor, step["floor_by"] == "launches" ? of_launches : of_bytes) << step;
      else
        arithmetic += floor;
      launches += step["launches"].get<std::int64_t>(), floors += floor, bytes += of_bytes;
    }
    EXPECT_EQ(report["launches"], launches);
    EXPECT_NEAR(report["floor_seconds"], floors, 1e-9 * floors);
    EXPECT_NEAR(report["floors"]["launches"], static_cast<double>(launches) * launch, 1e-9 * floors);
    EXPECT_NEAR(report["floors"]["bytes"], bytes, 1e-9 * floors);
    EXPECT_GE(report["floors"]["arithmetic"].get<double>() * (1 + 1e-12), arithmetic);
    EXPECT_GT(report["floors"]["arithmetic"], 0);
    EXPECT_GT(report["step_seconds"], 0);
    EXPECT_NE(line_of(outcome.out, "floors: ").find(fmt::format(" ms of launches ({} at ", launches)),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(line_of(outcome.out, "floors: ").find(" GB/s), "), std::string::npos) << outcome.out;
    EXPECT_NE(line_of(outcome.out, "a step, all in all: "), "") << outcome.out;
  }
}

TEST_F(TrainCommand, StopsWhereValidationGetsNoBetter) {
  put_set("", 60, 20);
  put_model();
  const Outcome outcome =
      run("train net.txt --data . --device cpu --epochs 50 --batch 10 --validation 20 --early-stop 2 --rate 0 --json "
          "r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(json::parse(read_here("r.json"))["epochs"].size(), 3u);
}

// In the middle of an epoch the process is ended: what goes on ends with the bits of a training without a stop.
TEST_F(TrainCommand, ResumesToTheSameBits) {
  put_set("", 200, 20);
  put_model();
  const std::string all =
      "train net.txt --data . --device cpu --batch 10 --deterministic --checkpoint-every 7 --quiet ";
  ASSERT_EQ(run(all + "--epochs 3 --checkpoint whole").status, 0);
  ASSERT_EQ(run(all + "--epochs 1 --checkpoint part").status, 0);
  for (const char* const path : {"part/step-00000020.json", "part/step-00000020.safetensors"})
    std::filesystem::remove(folder_ / path);
  const Outcome resumed = run(all + "--epochs 3 --checkpoint part --resume --json r.json");
  EXPECT_EQ(resumed.status, 0) << resumed.error;
  EXPECT_EQ(read_here("part/step-00000060.safetensors"), read_here("whole/step-00000060.safetensors"));
  EXPECT_EQ(json::parse(read_here("r.json"))["epochs"].size(), 3u);
  // Another training than that of the checkpoint.
  refuses(all + "--checkpoint part --resume --seed 3", {"its checkpoint was made with --seed 1, and this is 3"});
  refuses("train net.txt --data . --device cpu --batch 20 --checkpoint part --resume", {"--batch 10, and this is 20"});
  write("other.txt", "input 1 8 8\ndense 10\n");
  refuses("train other.txt --data . --device cpu --checkpoint part --resume",
          {"its checkpoint is of the model net.txt"});
  refuses("train net.txt --data . --resume", {"--resume needs --checkpoint DIR"});
  refuses("train net.txt --data . --checkpoint-every 3", {"--checkpoint-every needs --checkpoint DIR"});
  write("part/step-00000060.safetensors", "damaged");
  refuses(all + "--checkpoint part --resume",
          {"part/step-00000060.json: the checkpoint is damaged", "part/step-00000056.json is older"});
  EXPECT_EQ(run(all + "--checkpoint none --resume").status, 0);
}

// Images come in parts, and everything else is as without.
// What is no longer than it may be stays as it is; a resumed training may be clipped otherwise.
TEST_F(TrainCommand, ClipsByTheNorm) {
  put_set("", 100, 20);
  put_model();
  for (const std::string& device : devices_here()) {
    const std::string all = "train net.txt --data . --epochs 2 --batch 10 --deterministic --quiet --device " + device;
    ASSERT_EQ(run(all + " --checkpoint none-" + device + " --json none.json").status, 0);
    ASSERT_EQ(run(all + " --clip-norm 1e9 --checkpoint long-" + device).status, 0);
    ASSERT_EQ(run(all + " --clip-norm 0.25 --checkpoint short-" + device + " --json short.json").status, 0);
    const std::string last = device + "/step-00000020.safetensors";
    EXPECT_EQ(read_here("long-" + last), read_here("none-" + last));
    EXPECT_NE(read_here("short-" + last), read_here("none-" + last));
    const json none = json::parse(read_here("none.json")), found = json::parse(read_here("short.json"));
    EXPECT_EQ(none["options"]["clip_norm"], 0);
    EXPECT_EQ(found["options"]["clip_norm"], 0.25);
    const json &steps = found["steps"], &unclipped = none["steps"];
    ASSERT_EQ(steps.size(), unclipped.size() + 1);
    EXPECT_EQ(unclipped.back()["problem"], "update guarded n832");
    EXPECT_EQ(steps[steps.size() - 2]["problem"], "norm n832");
    EXPECT_EQ(steps.back()["problem"], "update scaled guarded n832");
    EXPECT_EQ(run(all + " --clip-norm 0.5 --resume --checkpoint short-" + device).status, 0);
  }
  for (const char* const number : {"-1", "nan", "inf", "much"})
    refuses(fmt::format("train net.txt --data . --clip-norm {}", number),
            {"--clip-norm", "must be a finite decimal number, at least 0"});
}

TEST_F(TrainCommand, ChunksChangeNothing) {
  leave_kernels_unoptimized();
  put_set("", 207, 33);
  put_model();
  for (const std::string& device : devices_here()) {
    const std::string all =
        "train net.txt --data . --batch 10 --deterministic --epochs 3 --validation 20 "
        "--augment flip,crop1 --checkpoint-every 7 --device " +
        device;
    ASSERT_EQ(run(all + " --checkpoint whole-" + device + " --json whole.json").status, 0);
    const Outcome outcome = run(all + " --chunk 37 --checkpoint part-" + device + " --json part.json");
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("\nimages are brought to the device in chunks of 30\n"), std::string::npos)
        << outcome.out;
    const std::string last = device + "/step-00000054.safetensors";
    EXPECT_EQ(read_here("part-" + last), read_here("whole-" + last));
    const json whole = json::parse(read_here("whole.json")), part = json::parse(read_here("part.json"));
    EXPECT_EQ(whole["options"]["chunk"], 0);
    EXPECT_EQ(part["options"]["chunk"], 30);
    EXPECT_EQ(part["test"], whole["test"]);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(part["epochs"][i]["validation"], whole["epochs"][i]["validation"]);
    // From the middle of an epoch on, in other chunks.
    for (const char* const kind : {".json", ".safetensors"})
      std::filesystem::remove(folder_ / ("part-" + device + "/step-00000054" + kind));
    ASSERT_EQ(run(all + " --chunk 50 --resume --checkpoint part-" + device).status, 0);
    EXPECT_EQ(read_here("part-" + last), read_here("whole-" + last));
    const Outcome found =
        run("evaluate part-" + device + " --data . --chunk 16 --batch 8 --json e.json --device " + device);
    ASSERT_EQ(found.status, 0) << found.error;
    EXPECT_NE(found.out.find("\nimages are brought to the device in chunks of 16\n"), std::string::npos) << found.out;
    EXPECT_EQ(json::parse(read_here("e.json"))["test"]["confusion"], whole["test"]["confusion"]);
  }
  refuses("train net.txt --data . --batch 10 --chunk 9",
          {"--chunk 9 beside --batch 10: a chunk holds a batch at least"});
  refuses("train net.txt --data . --chunk 0", {"--chunk: '0' must be a whole number from 1 to "});
  refuses("evaluate whole-cpu --data . --chunk 9", {"--chunk 9 beside --batch 64: a chunk holds a batch at least"});
}

// What an epoch left stays as it was where a later step is not finite.
TEST_F(TrainCommand, KeepsTheLastCheckpointThatIsFinite) {
  put_set("", 200, 20);
  put_model();
  for (const std::string& device : devices_here()) {
    const std::string all =
        "train net.txt --data . --batch 10 --quiet --device " + device + " --checkpoint run-" + device;
    ASSERT_EQ(run(all + " --epochs 1").status, 0);
    const std::string progress = "run-" + device + "/step-00000020.json",
                      tensors = "run-" + device + "/step-00000020.safetensors";
    const std::string before = read_here(progress), before_tensors = read_here(tensors);
    const Outcome outcome = run(all + " --epochs 3 --resume --rate 1e30");
    EXPECT_EQ(outcome.status, 3) << outcome.error;
    EXPECT_NE(outcome.error.find("epoch 2, step "), std::string::npos) << outcome.error;
    EXPECT_NE(outcome.error.find(": a number is not finite, first in "), std::string::npos) << outcome.error;
    EXPECT_EQ(read_here(progress), before);
    EXPECT_EQ(read_here(tensors), before_tensors);
    EXPECT_EQ(run("evaluate run-" + device + " --data . --device " + device).status, 0);
    std::filesystem::remove_all(folder_ / ("run-" + device));
  }
}

TEST_F(TrainCommand, EvaluatesAndPredicts) {
  put_set("", 400, 100);
  put_model();
  ASSERT_EQ(
      run("train net.txt --data . --device cpu --epochs 4 --batch 10 --rate 0.02 --checkpoint run --quiet").status, 0);
  for (const std::string& device : devices_here()) {
    const Outcome outcome = run("evaluate run --data . --batch 32 --json r.json --device " + device);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("net.txt: 690 parameters, trained for 160 steps"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("test accuracy 100.00 %: 100 of 100 images"), std::string::npos) << outcome.out;
    const json report = json::parse(read_here("r.json"));
    EXPECT_EQ(report["schema"], "omniconv-evaluate/1");
    EXPECT_EQ(report["test"]["right"], 100);
  }
  // A bright fourth line, of its own size and twice as large, grey and coloured.
  for (const int scale : {1, 2})
    for (const int channels : {1, 3}) {
      std::string pixels;
      for (int h = 0; h < 8 * scale; ++h)
        for (int w = 0; w < 8 * scale * channels; ++w) pixels += static_cast<char>(h / scale == 3 ? 200 : 14);
      write("line.pnm", fmt::format("P{}\n{} {}\n255\n", channels == 1 ? 5 : 6, 8 * scale, 8 * scale) + pixels);
      const Outcome outcome = run("predict run line.pnm line.pnm --device cpu --top 2 --json p.json");
      ASSERT_EQ(outcome.status, 0) << outcome.error;
      EXPECT_NE(outcome.out.find("line.pnm      3  "), std::string::npos) << outcome.out;
      const json report = json::parse(read_here("p.json"));
      ASSERT_EQ(report["images"].size(), 2u);
      ASSERT_EQ(report["images"][1]["found"].size(), 2u);
      EXPECT_EQ(report["images"][1]["found"][0]["class"], 3);
      EXPECT_GT(report["images"][1]["found"][0]["share"], 0.5);
    }
  write("two.pam", "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\nENDHDR\n12345");
  // What each operation takes, and how often it was asked.
  const Outcome timed = run("predict run line.pnm --device cpu --repeat 3 --operations --json t.json");
  ASSERT_EQ(timed.status, 0) << timed.error;
  EXPECT_NE(timed.out.find(" us, the median of 3 runs"), std::string::npos) << timed.out;
  EXPECT_NE(timed.out.find("all operations, each by itself: "), std::string::npos) << timed.out;
  const json steps = json::parse(read_here("t.json"))["steps"];
  ASSERT_FALSE(steps.empty());
  for (const json& step : steps) EXPECT_TRUE(step["seconds"] > 0 && step["what"] == "forward") << step;
  refuses("predict run two.pam --device cpu", {"two.pam has 5 channels, and the model takes 1"});
  refuses("predict run none.png --device cpu", {"none.png"});
  refuses("predict none line.pnm", {"none: a checkpoint is named by its file step-NUMBER.json, or by its folder"});
  refuses("evaluate . --data .", {".: no checkpoint lies there"});
}

// What cannot be written is refused before the training, which prints nothing then; of what is new nothing is left.
TEST_F(TrainCommand, LooksFirstWhereItWrites) {
  put_set("", 40, 20);
  put_model();
  write("file", "");
  const std::string all = "train net.txt --data . --device cpu --epochs 1 --batch 10 ";
  refuses(all + "--checkpoint file", {"file: the folder of checkpoints cannot be made: ", "; name another one"});
  refuses(all + "--checkpoint file/run", {"file/run: the folder of checkpoints cannot be made: "});
  refuses(all + "--checkpoint /proc", {"/proc: no checkpoint can be kept there: ", "; name another folder"});
  refuses(all + "--log none/l.csv", {"cannot write none/l.csv: there is no folder none; make it first"});
  refuses(all + "--log file/l.csv", {"cannot write file/l.csv: "});
  refuses(all + "--json none/r.json", {"cannot write none/r.json: there is no folder none; make it first"});
  refuses(all + "--tensorboard file", {"file: the folder of events cannot be made: "});
  refuses(all + "--checkpoint new --log none/l.csv", {"cannot write none/l.csv: "});
  EXPECT_EQ(run(all + "--checkpoint new/run --log l.csv").status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "new/run/step-00000004.json"));
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
  refuses("train net.txt --schedule cos" + to, {"schedule 'cos': unknown word 'cos'"});
  refuses("train net.txt --augment flop" + to, {"--augment 'flop': 'flop' is neither flip nor crop"});
  refuses("train net.txt --augment crop" + to, {"'crop' is neither flip nor crop"});
  refuses("train net.txt --precision f64" + to, {"unknown precision 'f64': "});
  refuses("train net.txt --solver conv2d" + to, {"--solver 'conv2d': it is OPERATION=ID"});
  refuses("train net.txt --solver conv2d=conv2d/none" + to, {"conv2d/none"});
  refuses("train net.txt --validation 40" + to, {"40 images for validation, of 40 of mnist"});
  refuses("train net.txt --validation 35" + to,
          {"35 images for validation, of 40 of mnist for training: at most 30, so that a batch of 10 is left"});
  refuses("train net.txt --early-stop 3" + to, {"--early-stop needs --validation N"});
  refuses("train net.txt --rung tilde" + to, {"unknown rung 'tilde': did you mean tiled?"});
  refuses("train net.txt --rung naive" + to,
          {"the rung naive is kernels of OpenCL and CUDA devices, and cpu is neither: choose the device opencl"});
  refuses("train net.txt --rung vendor" + to, {"conv2d/cudnn/gpu.1 cannot serve ", "cuDNN is for CUDA devices"});
  refuses("train net.txt --rung tiled --tile 12" + to, {"--tile '12': rows x columns", "4, 8, 16, 32 or 64 each"});
  refuses("train net.txt --rung tiled --tile 8x" + to, {"--tile '8x': "});
  refuses("train net.txt --rung tiled --tile 8x8x8" + to, {"--tile '8x8x8': "});
  refuses("train net.txt --rung naive --tile 8" + to, {"--tile 8: the rung naive has no tiles"});
  refuses("train net.txt --tile 8" + to, {"--tile 8: the rung own has no tiles"});
  refuses("train net.txt --rung work-per-thread --work-per-thread 3" + to,
          {"--work-per-thread 3: must be 1, 2, 4 or 8"});
  refuses("train net.txt --rung tiled --work-per-thread 2" + to,
          {"--work-per-thread 2: it is of the rung work-per-thread, not of tiled"});
  refuses("train net.txt --ladder" + to, {"--ladder: its rungs are kernels of OpenCL and CUDA devices"});
  refuses("train net.txt --ladder --rung own" + to, {"--rung beside --ladder"});
  refuses("train net.txt --ladder --log l.csv" + to, {"--log beside --ladder"});
  refuses("train net.txt --ladder --checkpoint run" + to, {"--checkpoint beside --ladder"});
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
