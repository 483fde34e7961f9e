// Checkpoints: what is saved is found again, training goes on to the same bits, and damage is said.
#include "omniconv/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../error_testing.h"
#include "core/philox.h"
#include "devices_testing.h"

namespace omniconv::checkpoint_tests {
namespace {

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("omniconv_checkpoints_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& from) {
    std::ifstream file(from, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& to, const std::string& text) {
    std::ofstream(to, std::ios::binary | std::ios::trunc) << text;
  }

  std::filesystem::path folder_;
};

Dataset noise(std::int64_t images) {
  Dataset set{.name = "noise", .channels = 2, .height = 6, .width = 6, .classes = {"a", "b", "c"}};
  PhiloxStream stream(3, PhiloxUse::order, 9);
  for (Examples* const part : {&set.train, &set.test}) {
    part->count = images;
    for (std::int64_t i = 0; i < images * set.image_bytes(); ++i)
      part->pixels.push_back(static_cast<std::uint8_t>(stream.word(static_cast<std::uint64_t>(i)) >> 24));
    for (std::int64_t i = 0; i < images; ++i) part->labels.push_back(static_cast<std::uint8_t>(i % 3));
  }
  return set;
}

const char* const text = "input 2 6 6\nconv 4 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 3\n";

Checkpoint checkpoint_of(const Network& network, const Dataset& dataset, const TrainingProgress& progress,
                         std::vector<NamedTensor> tensors) {
  return {.model = network.model(),
          .dataset = dataset.name,
          .classes = dataset.classes,
          .standard = standard_of(dataset),
          .options = {{"batch", "5"}},
          .solvers = {},
          .progress = progress,
          .tensors = std::move(tensors)};
}

std::vector<NamedTensor> tensors_of(const Network& network) {
  std::vector<NamedTensor> tensors;
  network.read_tensors(tensors).wait();
  return tensors;
}

void expect_same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name) << what;
    EXPECT_EQ(a[i].extents, b[i].extents) << what;
    ASSERT_EQ(a[i].values.size(), b[i].values.size()) << what;
    const std::size_t bytes = a[i].values.size() * 4;
    EXPECT_TRUE(bytes == 0 || std::memcmp(a[i].values.data(), b[i].values.data(), bytes) == 0) << what << a[i].name;
  }
}

TEST_F(Checkpoints, TensorsAreFoundAgain) {
  const std::vector<NamedTensor> tensors = {
      {"one", {2, 3}, {1, -0.0f, 3e38f, 1e-45f, 5, 6}}, {"none", {0, 7}, {}}, {"scalar", {}, {42}}};
  write_tensors(path("t.safetensors"), tensors);
  expect_same(read_tensors(path("t.safetensors")), tensors, "");
  const std::string bytes = read(path("t.safetensors"));
  EXPECT_EQ(
      bytes.find(R"({"__metadata__":{"format":"omniconv"},"one":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})"),
      8u);
  EXPECT_EQ((bytes.size() - 28) % 8, 0u);
}

TEST_F(Checkpoints, HostileTensorsAreRefused) {
  const auto expect = [&](const std::string& header, const std::string& data, const std::string& part) {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    write(path("t.safetensors"), bytes + header + data);
    const std::string error = error_of([&] { read_tensors(path("t.safetensors")); }, ErrorKind::bad_input);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  const auto entry = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  expect("[]", "", "its header is no JSON object");
  expect("{", "", "its header is no JSON object");
  expect(R"({"a":3})", "", "a: its entry has no dtype");
  expect(entry("F16", "[1]", "[0,2]"), "12", "its type is not F32");
  expect(entry("F32", "[-1]", "[0,4]"), "1234", "its shape is no list");
  expect(entry("F32", "[1.5]", "[0,4]"), "1234", "its shape is no list");
  expect(entry("F32", "[1]", "[0]"), "1234", "its data_offsets are not two numbers");
  expect(entry("F32", "[2]", "[0,4]"), "1234", "bytes 0 to 4 of 4, and it has 2 numbers");
  expect(entry("F32", "[1]", "[4,8]"), "1234", "bytes 4 to 8 of 4, and it has 1 numbers");
  expect(entry("F32", "[4294967296,4294967296]", "[0,4]"), "1234", "too large");
  expect(entry("F32", "[18446744073709551615]", "[0,4]"), "1234", "an extent is too large");
  expect(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      "1234", "tensors share bytes");
  write(path("t.safetensors"), "1234");
  EXPECT_NE(error_of([&] { read_tensors(path("t.safetensors")); }, ErrorKind::bad_input).find("its first eight bytes"),
            std::string::npos);
  write(path("t.safetensors"), std::string(8, '\x7f') + "{}");
  EXPECT_NE(
      error_of([&] { read_tensors(path("t.safetensors")); }, ErrorKind::bad_input).find("its header is said to have"),
      std::string::npos);
}

// Stopped after some steps, in the middle of an epoch, and gone on with elsewhere: the same bits as without a stop.
TEST_F(Checkpoints, TrainingGoesOnToTheSameBits) {
  const Context context({.device = "cpu", .threads = 2});
  const Dataset dataset = noise(23);
  const Model model = parse_model(text, "small");
  for (const auto rule : {UpdateProblem::Rule::nesterov, UpdateProblem::Rule::adam}) {
    const NetworkOptions of_network{.batch = 5, .rule = rule, .deterministic = true};
    TrainingOptions options{.epochs = 3, .validation = 3, .augmentation = {.flip = true, .shift = 1}};
    options.schedule = parse_schedule("warm-up:1,cosine");
    options.rates.l2 = 0.001;
    Network whole(context, model, of_network);
    whole.initialise(7);
    std::vector<EpochReport> reports;
    train(whole, dataset, options,
          {.epoch = [&](const EpochReport& report) { return reports.push_back(report), true; }});
    options.checkpoint_every = 3;
    for (const std::int64_t last : {3, 6, 12}) {
      Network begun(context, model, of_network);
      begun.initialise(7);
      TrainingHooks hooks;
      hooks.checkpoint = [&](const TrainingProgress& progress, std::vector<NamedTensor>&& tensors) {
        if (progress.updates <= last)
          save_checkpoint(path("run"), checkpoint_of(begun, dataset, progress, std::move(tensors)));
      };
      train(begun, dataset, options, hooks);
      const Checkpoint found = load_checkpoint(path("run"));
      EXPECT_EQ(found.progress.updates, last);
      EXPECT_EQ(found.options.at("batch"), "5");
      EXPECT_EQ(found.classes, dataset.classes);
      Network again = network_of(context, found, of_network);
      std::vector<EpochReport> later;
      train(again, dataset, options,
            {.epoch = [&](const EpochReport& report) { return later.push_back(report), true; }}, found.progress);
      expect_same(tensors_of(again), tensors_of(whole), std::to_string(last));
      std::vector<EpochReport> all = found.progress.epochs;
      all.insert(all.end(), later.begin(), later.end());
      ASSERT_EQ(all.size(), reports.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].loss, reports[i].loss) << last << ", " << i;
        EXPECT_EQ(all[i].validation_accuracy, reports[i].validation_accuracy) << last << ", " << i;
      }
      std::filesystem::remove_all(path("run"));
    }
  }
}

// f16 gradients of 128 times the loss leave the range behind weights of 30000, whose own are 0: the step changes these
// by l2, and nobody is shown them.
TEST_F(Checkpoints, NoneIsOfAStepThatIsNotFinite) {
  const Dataset dataset = noise(23);
  const Model model = parse_model("input 2 6 6\nconv 1 3x3 pad 1\ntanh\ndense 3\n", "small");
  std::vector<float> weights(static_cast<std::size_t>(model.layers[2].parameters()), 30000);
  std::fill(weights.begin() + 36, weights.begin() + 72, -30000.0f);
  const std::vector<float> none(static_cast<std::size_t>(model.layers[0].parameters()), 0);
  for (const std::string& id : devices_here())
    for (const std::int64_t every : {1, 2}) {
      Network network(Context({.device = id, .threads = 2}), model, {.batch = 5, .precision = Precision::f16});
      network.initialise(7);
      std::string json, tensors;
      TrainingHooks hooks;
      hooks.checkpoint = [&](const TrainingProgress& progress, std::vector<NamedTensor>&& state) {
        ASSERT_LE(progress.updates, 2);
        save_checkpoint(path("run"), checkpoint_of(network, dataset, progress, std::move(state)));
        if (progress.updates < 2) return;
        json = read(path("run/step-00000002.json")), tensors = read(path("run/step-00000002.safetensors"));
        network.set_parameters(0, none), network.set_parameters(2, weights);
      };
      hooks.epoch = [&](const EpochReport&) { return ADD_FAILURE() << id << ": an epoch is over", true; };
      const TrainingOptions options{.epochs = 2, .rates = {.l2 = 0.01}, .validation = 3, .checkpoint_every = every};
      const std::string error = error_of([&] { train(network, dataset, options, hooks); }, ErrorKind::environment);
      EXPECT_NE(error.find("epoch 1, step 3: a number is not finite"), std::string::npos) << id << ": " << error;
      EXPECT_NE(network.parameters(2), weights) << id;
      ASSERT_FALSE(tensors.empty()) << id;
      EXPECT_EQ(find_checkpoints(path("run")).front(), path("run/step-00000002.json")) << id;
      EXPECT_EQ(read(path("run/step-00000002.json")), json) << id;
      EXPECT_EQ(read(path("run/step-00000002.safetensors")), tensors) << id;

      // Nor do those who stop it go on as if nothing were.
      network.initialise(7);
      network.set_parameters(0, none), network.set_parameters(2, weights);
      const std::string stopped =
          error_of([&] { train(network, dataset, {}, {.progress = [](std::int64_t, std::int64_t) { return false; }}); },
                   ErrorKind::environment);
      EXPECT_NE(stopped.find("epoch 1, step 1: a number is not finite"), std::string::npos) << id << ": " << stopped;
      std::filesystem::remove_all(path("run"));
    }
}

TEST_F(Checkpoints, TheLastTwoAreKept) {
  const Context context({.device = "cpu", .threads = 1});
  const Dataset dataset = noise(6);
  Network network(context, parse_model(text, "small"), {.batch = 2});
  EXPECT_TRUE(find_checkpoints(path("none")).empty());
  for (const std::int64_t updates : {9, 10, 100000000})
    save_checkpoint(path("run"), checkpoint_of(network, dataset, {.updates = updates}, tensors_of(network)));
  EXPECT_EQ(find_checkpoints(path("run")),
            (std::vector<std::string>{path("run/step-100000000.json"), path("run/step-00000010.json")}));
  EXPECT_FALSE(std::filesystem::exists(path("run/step-00000009.safetensors")));
  EXPECT_EQ(load_checkpoint(path("run/step-00000010.json")).progress.updates, 10);
}

TEST_F(Checkpoints, DamageIsSaidAndAnOlderOneOffered) {
  const Context context({.device = "cpu", .threads = 1});
  const Dataset dataset = noise(6);
  Network network(context, parse_model(text, "small"), {.batch = 2});
  for (const std::int64_t updates : {1, 2})
    save_checkpoint(path("run"), checkpoint_of(network, dataset, {.updates = updates}, tensors_of(network)));
  const auto expect = [&](const std::string& part, const std::string& what = "the checkpoint is damaged: ") {
    const std::string error = error_of([&] { load_checkpoint(path("run")); }, ErrorKind::bad_input);
    EXPECT_NE(error.find("run/step-00000002.json: " + what), std::string::npos) << error;
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find("run/step-00000001.json is older: name that one"), std::string::npos) << error;
  };
  const std::string tensors = path("run/step-00000002.safetensors"), json = path("run/step-00000002.json"),
                    whole = read(tensors), whole_json = read(json);
  std::string changed = whole;
  changed[changed.size() - 1] ^= 1;
  write(tensors, changed);
  expect("step-00000002.safetensors does not match its checksum");
  std::filesystem::remove(tensors);
  expect("run/step-00000002.safetensors is missing; ", "the checkpoint is not whole: ");
  write(tensors, whole);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"updates\": 2", "\"updates\": \"x\""},
                                 {"\"epoch\": 1", "\"epoch\": -1"},
                                 {"input 2 6 6", "input 3 6 6"},
                                 {"omniconv-checkpoint/1", "omniconv-checkpoint/9"},
                                 {"dense 3", "dence 3"},
                                 {"\"progress\"", "\"regress\""}}) {
    std::string other = whole_json;
    ASSERT_NE(other.find(from), std::string::npos) << from;
    write(json, other.replace(other.find(from), from.size(), to));
    expect("");
  }
  write(json, whole_json.substr(0, 100));
  expect("");
  EXPECT_EQ(load_checkpoint(path("run/step-00000001.json")).progress.updates, 1);
  EXPECT_NE(error_of([&] { load_checkpoint(path("none")); }, ErrorKind::bad_input).find("step-NUMBER.json"),
            std::string::npos);
}

TEST_F(Checkpoints, OneThatIsMissingIsSaidAndAnOlderOneOffered) {
  const Context context({.device = "cpu", .threads = 1});
  const Dataset dataset = noise(6);
  Network network(context, parse_model(text, "small"), {.batch = 2});
  for (const std::int64_t updates : {3, 5})
    save_checkpoint(path("run"), checkpoint_of(network, dataset, {.updates = updates}, tensors_of(network)));
  const auto error_at = [&](const char* name) {
    return error_of([&] { load_checkpoint(path(name)); }, ErrorKind::bad_input);
  };
  for (const auto& [missing, older] : {std::pair("run/step-00000004.json", "run/step-00000003.json"),
                                       {"run/step-00000009.json", "run/step-00000005.json"},
                                       {"run/step-100000000.json", "run/step-00000005.json"}})
    EXPECT_EQ(error_at(missing), path(missing) + ": the checkpoint is not whole: " + path(missing) + " is missing; " +
                                     path(older) + " is older: name that one");
  EXPECT_EQ(error_at("run/step-00000002.json"), path("run/step-00000002.json") + ": the checkpoint is not whole: " +
                                                    path("run/step-00000002.json") + " is missing");
}

TEST_F(Checkpoints, WhereNoneCanBeKept) {
  EXPECT_TRUE(make_checkpoint_folder(path("a/new")));
  EXPECT_FALSE(make_checkpoint_folder(path("a/new")));
  EXPECT_TRUE(std::filesystem::is_empty(path("a/new")));
  write(path("file"), "");
  for (const char* const name : {"file", "file/run"}) {
    const std::string error = error_of([&] { make_checkpoint_folder(path(name)); }, ErrorKind::bad_input);
    EXPECT_EQ(error.find(path(name) + ": the folder of checkpoints cannot be made: "), 0u) << error;
  }
  // Nobody may make files there.
  const std::string error = error_of([&] { make_checkpoint_folder("/proc"); }, ErrorKind::bad_input);
  EXPECT_EQ(error.find("/proc: no checkpoint can be kept there: cannot write /proc/step-.json: "), 0u) << error;
}

TEST_F(Checkpoints, OfAnotherModel) {
  const Context context({.device = "cpu", .threads = 1});
  Network network(context, parse_model(text, "small"), {.batch = 2}),
      other(context, parse_model("input 2 6 6\ndense 3\n", "other"), {.batch = 2});
  EXPECT_NE(
      error_of([&] { other.set_tensors(tensors_of(network)); }, ErrorKind::bad_input)
          .find("layers.0.weight of other has extents 3 x 2 x 6 x 6, and 4 x 2 x 3 x 3 with 72 numbers are given"),
      std::string::npos);
  std::vector<NamedTensor> renamed = tensors_of(network);
  renamed[0].name = "layers.9.weight";
  EXPECT_NE(error_of([&] { network.set_tensors(renamed); }, ErrorKind::bad_input)
                .find("small has no numbers of the name layers.9.weight"),
            std::string::npos);
}

}  // namespace
}  // namespace omniconv::checkpoint_tests
