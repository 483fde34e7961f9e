// ONNX files: networks come back as they went, PyTorch's are read, and what cannot be taken is named.
#include "omniconv/onnx.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "../error_testing.h"
#include "core/philox.h"

namespace omniconv::onnx_tests {
namespace {

class Onnx : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("omniconv_onnx_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    try {
      import_onnx(path("none.onnx"));
    } catch (const Error& error) {
      if (std::string(error.what()).find("built without ONNX") != std::string::npos) GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

std::string shipped(const std::string& name) {
  return OMNICONV_SOURCE_DIR "/tests/train/onnx/" + name;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Numbers of a model's parameters: from -0.25 to 0.25, those of variances above 0.
Checkpoint checkpoint_of(const std::string& text) {
  const Context context({.device = "cpu"});
  Network network(context, parse_model(text, "net"), {.batch = 1, .trains = false});
  Checkpoint made{.model = network.model(),
                  .dataset = "noise",
                  .classes = {"a \"word\"", "b"},
                  .standard = {.mean = {0.1, 1.0 / 3}, .deviation = {0.25, 0.7}},
                  .options = {},
                  .solvers = {}};
  network.read_tensors(made.tensors).wait();
  PhiloxStream stream(7, PhiloxUse::order, 1);
  std::uint64_t at = 0;
  for (NamedTensor& tensor : made.tensors)
    for (float& value : tensor.values) {
      value = static_cast<float>(static_cast<double>(stream.word(at++)) / 4294967296.0 - 0.5) / 2;
      if (tensor.name.ends_with("running_var")) value = 1 + value;
    }
  return made;
}

std::vector<float> outputs_of(const Checkpoint& checkpoint, std::vector<float> image) {
  const Context context({.device = "cpu"});
  Network network = network_of(context, checkpoint, {.batch = 1, .trains = false, .deterministic = true});
  return network.outputs(image.data());
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(to_text(a.model), to_text(b.model));
  EXPECT_EQ(a.model.name, b.model.name);
  EXPECT_EQ(a.dataset, b.dataset);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.standard.mean, b.standard.mean);
  EXPECT_EQ(a.standard.deviation, b.standard.deviation);
  EXPECT_EQ(b.progress.updates, 0);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const NamedTensor& tensor : a.tensors) {
    const auto found = std::find_if(b.tensors.begin(), b.tensors.end(),
                                    [&](const NamedTensor& other) { return other.name == tensor.name; });
    ASSERT_NE(found, b.tensors.end()) << tensor.name;
    EXPECT_EQ(found->extents, tensor.extents) << tensor.name;
    ASSERT_EQ(found->values.size(), tensor.values.size()) << tensor.name;
    EXPECT_EQ(std::memcmp(found->values.data(), tensor.values.data(), tensor.values.size() * 4), 0) << tensor.name;
  }
}

TEST_F(Onnx, EveryLayerComesBack) {
  const char* const texts[] = {
      // Strides, no padding, no biases, windows that are not square.
      "input 2 9 11\nconv 4 3x2 pad 1 stride 2\nrelu\nmaxpool 2x3\nconv 3 1x1 nobias\nsigmoid\ndense 5 nobias\ntanh\n"
      "dense 3\n",
      "input 2 8 8\nmaxpool 3x3 stride 1\navgpool 2x2\nbatchnorm epsilon 0.001 momentum 0.25\ndropout 0.3\ndense 4\n"
      "batchnorm\ndropout 0.1\nrelu\ndense 2\n",
      // Shortcuts as they are, of a layer itself, with strides, and with an odd number of channels more.
      "input 2 8 8\nconv 3 3x3 pad 1\nmark a\nrelu\nconv 3 3x3 pad 1\nadd a\nmark b\nadd b\nconv 6 3x3 pad 1 stride 2\n"
      "add b\nrelu\nconv 9 3x3 pad 1 nobias\nbatchnorm\nadd a\ndense 2\n",
      // Rows become images again; a shortcut between both.
      "input 2 3 3\ndense 4\nmark a\nconv 4 1x1\nadd a\nmaxpool 1x1\nmark b\ndense 4\nadd b\nconv 3 1x1\n",
      "input 2 4 4\nconv 2 4x4\nmark a\ndense 2\nadd a\nrelu\n"};
  for (const std::string text : texts) {
    // The third one has a shortcut that does not fit: 8 rows are not added to 4 without a stride, which it finds
    // itself.
    SCOPED_TRACE(text);
    const Checkpoint one = checkpoint_of(text.find("9 3x3") == std::string::npos ? text : text + "dense 2\n");
    export_onnx(one, path("net.onnx"));
    const Checkpoint found = import_onnx(path("net.onnx"));
    expect_same(one, found);
    std::vector<float> image;
    for (std::int64_t i = 0; i < one.model.input.elements(); ++i)
      image.push_back(static_cast<float>(i % 7) / 4 - 0.75f);
    EXPECT_EQ(outputs_of(one, image), outputs_of(found, image));
    export_onnx(found, path("again.onnx"));
    EXPECT_EQ(bytes_of(path("net.onnx")), bytes_of(path("again.onnx")));
  }
}

// Weights, images and sums are whole numbers or a few binary digits more: the bits do not depend on their order.
TEST_F(Onnx, PyTorchsFilesGiveItsNumbers) {
  const std::pair<const char*, const char*> files[] = {{"plain",
                                                        "input 1 8 8\nconv 4 3x3 pad 1\nrelu\nmaxpool 2x2\n"
                                                        "conv 3 3x3 stride 2\nrelu\ndense 6\nrelu\ndense 5\n"},
                                                       {"residual",
                                                        "input 3 8 8\nconv 4 3x3 pad 1 nobias\nbatchnorm\nrelu\n"
                                                        "mark layer2\n"
                                                        "conv 4 3x3 pad 1 nobias\nbatchnorm\nrelu\n"
                                                        "conv 4 3x3 pad 1 nobias\nbatchnorm\nadd layer2\nrelu\n"
                                                        "mark layer9\n"
                                                        "conv 8 3x3 pad 1 stride 2 nobias\nbatchnorm\nrelu\n"
                                                        "conv 8 3x3 pad 1 nobias\nbatchnorm\nadd layer9\nrelu\n"
                                                        "avgpool 4x4\ndense 5\n"},
                                                       {"residual-folded",
                                                        "input 3 8 8\nconv 4 3x3 pad 1\nrelu\nmark layer1\n"
                                                        "conv 4 3x3 pad 1\nrelu\nconv 4 3x3 pad 1\nadd layer1\nrelu\n"
                                                        "mark layer6\n"
                                                        "conv 8 3x3 pad 1 stride 2\nrelu\nconv 8 3x3 pad 1\n"
                                                        "add layer6\nrelu\navgpool 4x4\ndense 5\n"},
                                                       {"mean",
                                                        "input 2 4 4\nconv 3 3x3 nobias\nrelu\navgpool 2x2\n"
                                                        "dense 4 nobias\n"}};
  for (const auto& [name, text] : files) {
    const Checkpoint found = import_onnx(shipped(std::string(name) + ".onnx"));
    EXPECT_EQ(to_text(found.model), text);
    EXPECT_EQ(found.model.name, name);
    EXPECT_EQ(found.classes.back(), std::to_string(found.model.classes() - 1));
    EXPECT_EQ(found.standard.mean, std::vector<double>(static_cast<std::size_t>(found.model.input.channels), 0));
    EXPECT_EQ(found.standard.deviation, std::vector<double>(static_cast<std::size_t>(found.model.input.channels), 1));
    std::istringstream numbers(
        bytes_of(shipped(std::string(name).starts_with("residual") ? "residual.txt" : std::string(name) + ".txt")));
    std::vector<float> image(static_cast<std::size_t>(found.model.input.elements())), wanted(found.classes.size());
    for (float& one : image) numbers >> one;
    for (float& one : wanted) numbers >> one;
    ASSERT_TRUE(numbers) << name;
    EXPECT_EQ(outputs_of(found, image), wanted) << name;
  }
}

TEST_F(Onnx, WhatACheckpointLacksIsSaid) {
  Checkpoint one = checkpoint_of("input 2 4 4\nconv 3 3x3\ndense 2\n");
  const std::vector<NamedTensor> all = one.tensors;
  one.tensors.erase(one.tensors.begin() + 1);
  const auto error = [&] { return error_of([&] { export_onnx(one, path("net.onnx")); }, ErrorKind::bad_input); };
  EXPECT_EQ(error(), "the checkpoint of net lacks layers.0.bias");
  one.tensors = all, one.tensors[0].values.pop_back();
  EXPECT_EQ(error(), "the checkpoint of net has 53 numbers of layers.0.weight, and its layer has 54");
  EXPECT_FALSE(std::filesystem::exists(path("net.onnx")));
}

// Prefixes, and every byte with other bits, of a small file: refused in one line, or read.
TEST_F(Onnx, DamagedFilesAreRefused) {
  export_onnx(checkpoint_of("input 2 4 4\nconv 3 3x3\nmark a\nconv 3 1x1\nadd a\ndense 2\n"), path("net.onnx"));
  const std::string good = bytes_of(path("net.onnx"));
  const auto read = [&](const std::string& bytes) {
    write(path("bad.onnx"), bytes);
    return outcome_of([&] { import_onnx(path("bad.onnx")); }, ErrorKind::bad_input);
  };
  EXPECT_EQ(read(good), "nothing was thrown");
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 3)
    EXPECT_NE(read(good.substr(0, bytes)), "nothing was thrown") << bytes;
  constexpr int bits[] = {0x01, 0x80, 0xFF};
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ bits[at % 3]);
    read(bad);
  }
}

}  // namespace
}  // namespace omniconv::onnx_tests
