// Nodes of ONNX files that are not omniconv's own: forms that are read, and what each refusal says. The files are put
// together here, byte by byte as the format has it (protobuf).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "omniconv/onnx.h"

namespace omniconv::onnx_nodes_tests {
namespace {

using Numbers = std::vector<std::int64_t>;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
std::string whole(int field, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string real(int field, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint(static_cast<std::uint64_t>(field) << 3 | 5) + bytes;
}
std::string part(int field, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string wholes(int field, const Numbers& values) {
  std::string bytes;
  for (const std::int64_t value : values) bytes += whole(field, value);
  return bytes;
}

// AttributeProto: name 1, f 2, i 3, s 4, t 5, ints 8, type 20.
std::string attribute(const std::string& name, std::int64_t value) {
  return part(5, part(1, name) + whole(3, value) + whole(20, 2));
}
std::string attribute(const std::string& name, float value) {
  return part(5, part(1, name) + real(2, value) + whole(20, 1));
}
std::string attribute(const std::string& name, const Numbers& values) {
  return part(5, part(1, name) + wholes(8, values) + whole(20, 7));
}
std::string attribute(const std::string& name, const char* value) {
  return part(5, part(1, name) + part(4, value) + whole(20, 3));
}

// NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, domain 7.
std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += part(1, input);
  return part(1, bytes + part(2, output) + part(3, "n-" + output) + part(4, op) + attributes);
}

// TensorProto: dims 1, data_type 2 (1: FLOAT, 7: INT64), float_data 4, int64_data 7, name 8, raw_data 9.
std::string tensor(const std::string& name, const Numbers& extents, int elements, float value = 0.5) {
  std::string raw;
  for (int i = 0; i < elements; ++i) raw += real(0, value).substr(1);
  return part(5, wholes(1, extents) + whole(2, 1) + part(8, name) + part(9, raw));
}
std::string list(const std::string& name, const Numbers& values) {
  return part(5, whole(1, std::ssize(values)) + whole(2, 7) + wholes(7, values) + part(8, name));
}

// ValueInfoProto: name 1, type 2, in which the tensor's is 1: elem_type 1, shape 2 of dim 1: dim_value 1, dim_param 2.
std::string value(const std::string& name, const Numbers& extents, int type = 1) {
  std::string shape;
  for (const std::int64_t extent : extents) shape += part(1, extent < 0 ? part(2, "N") : whole(1, extent));
  return part(1, name) + part(2, part(1, whole(1, type) + part(2, shape)));
}

class OnnxNodes : public testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::temp_directory_path() / ("omniconv_nodes_" + std::to_string(getpid()) + ".onnx")).string();
    try {
      import_onnx("none.onnx");
    } catch (const Error& error) {
      if (std::string(error.what()).find("built without ONNX") != std::string::npos) GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Of an input x of 2 x 6 x 6, and the output y. ModelProto: ir_version 1, graph 7, opset_import 8 of version 2;
  // GraphProto: node 1, name 2, initializer 5, input 11, output 12.
  Checkpoint import(const std::string& graph, std::int64_t opset = 13,
                    const std::string& ends = part(11, value("x", {-1, 2, 6, 6})) + part(12, value("y", {-1, 4}))) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        << whole(1, 7) + part(7, graph + ends) + part(8, whole(2, opset));
    return import_onnx(path_);
  }
  std::string text_of(const std::string& graph, std::int64_t opset = 13) {
    const std::string text = to_text(import(graph, opset).model);
    return text.substr(text.find('\n') + 1);
  }
  void refuses(const std::string& graph, const std::string& what) {
    EXPECT_EQ(error_of([&] { import(graph); }, ErrorKind::bad_input), path_ + ": " + what);
  }
  void refuses_file(const std::string& bytes, const std::string& what) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_EQ(error_of([&] { import_onnx(path_); }, ErrorKind::bad_input), path_ + ": " + what);
  }

  std::string path_;
};

const std::string filters = tensor("w", {4, 2, 3, 3}, 72);
// What makes y of an image of any extents: a mean, and a product with a table of c x 4.
std::string end(const std::string& from, int channels) {
  return node("ReduceMean", {from}, "m", attribute("axes", Numbers{-1, -2}) + attribute("keepdims", std::int64_t{0})) +
         tensor("t", {channels, 4}, 4 * channels) + node("MatMul", {"m", "t"}, "y");
}

TEST_F(OnnxNodes, OtherFormsOfLayersAreRead) {
  EXPECT_EQ(text_of(filters + node("Conv", {"x", "w"}, "a") + end("a", 4)),
            "conv 4 3x3 nobias\navgpool 4x4\ndense 4 nobias\n");
  // Biases of matrix products that are added, on either side; a table of outputs x inputs is not turned.
  const std::string rows = node("Flatten", {"x"}, "f"), table = tensor("t", {72, 4}, 288),
                    bias = tensor("b", {4}, 4, 3);
  EXPECT_EQ(text_of(rows + table + bias + node("MatMul", {"f", "t"}, "p") + node("Add", {"b", "p"}, "y")), "dense 4\n");
  EXPECT_EQ(text_of(rows + tensor("t", {4, 72}, 288) + tensor("b", {1, 4}, 4) +
                    node("Gemm", {"f", "t", "b"}, "y", attribute("transB", std::int64_t{1}))),
            "dense 4\n");
  // Reshapes by numbers, and the last layer's Softmax.
  for (const Numbers& shape : {Numbers{-1, 72}, Numbers{0, -1}})
    EXPECT_EQ(text_of(list("s", shape) + node("Reshape", {"x", "s"}, "f") + table + node("MatMul", {"f", "t"}, "p") +
                      node("Softmax", {"p"}, "y", attribute("axis", std::int64_t{1}))),
              "dense 4 nobias\n");
  // Dropout and Pad as older operators have them; pads that are none.
  EXPECT_EQ(text_of(node("Dropout", {"x"}, "d", attribute("ratio", 0.1f)) +
                        node("Pad", {"d"}, "p", attribute("pads", Numbers(8, 0))) + end("p", 2),
                    9),
            "dropout 0.1\navgpool 6x6\ndense 4 nobias\n");
  EXPECT_EQ(text_of(node("GlobalAveragePool", {"x"}, "g") + node("Flatten", {"g"}, "f") + tensor("t", {2, 4}, 8) +
                    node("MatMul", {"f", "t"}, "y")),
            "avgpool 6x6\ndense 4 nobias\n");
  // A ceil_mode that changes nothing; windows and strides that are not square.
  EXPECT_EQ(text_of(node("MaxPool", {"x"}, "p",
                         attribute("kernel_shape", Numbers{3, 2}) + attribute("strides", Numbers{3, 2}) +
                             attribute("ceil_mode", std::int64_t{1})) +
                    end("p", 2)),
            "maxpool 3x2\navgpool 2x3\ndense 4 nobias\n");
}

TEST_F(OnnxNodes, ATableOfInputsByOutputsIsTurned) {
  std::string raw;
  for (int i = 0; i < 8; ++i) raw += real(0, static_cast<float>(i)).substr(1);
  const Checkpoint found =
      import(node("GlobalAveragePool", {"x"}, "g") + node("Flatten", {"g"}, "f") +
             part(5, wholes(1, {2, 4}) + whole(2, 1) + part(8, "t") + part(9, raw)) + node("MatMul", {"f", "t"}, "y"));
  EXPECT_EQ(found.tensors.back().extents, (Numbers{4, 2, 1, 1}));
  EXPECT_EQ(found.tensors.back().values, (std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST_F(OnnxNodes, WhatNoLayerDoesIsNamed) {
  const auto conv = [](const std::string& attributes) { return filters + node("Conv", {"x", "w"}, "a", attributes); };
  refuses(conv(attribute("group", std::int64_t{2})), "node 'n-a' (Conv): group 2: only 1 is taken");
  refuses(conv(attribute("dilations", Numbers{1, 2})), "node 'n-a' (Conv): dilations [1, 2]: each must be 1");
  refuses(conv(attribute("pads", Numbers{1, 1, 0, 1})),
          "node 'n-a' (Conv): pads [1, 1, 0, 1]: four of the same number are expected");
  refuses(conv(attribute("strides", Numbers{1, 2})),
          "node 'n-a' (Conv): strides [1, 2]: two of the same number are expected");
  refuses(conv(attribute("auto_pad", "SAME_UPPER")),
          "node 'n-a' (Conv): auto_pad 'SAME_UPPER': pads must be written out");
  refuses(conv(attribute("group", 1.0f)), "node 'n-a' (Conv): its attribute group is no INT");
  refuses(conv(attribute("activation", "relu")),
          "node 'n-a' (Conv): its attribute 'activation' is not known: known are auto_pad, dilations, group, "
          "kernel_shape, pads, strides");
  refuses(conv(attribute("strides", Numbers{0, 0})),
          "node 'n-a' (Conv): 'conv 4 3x3 pad 0 stride 0 nobias' behind 2 x 6 x 6: '0' where a stride is expected: a "
          "whole number from 1 to 16777216");
  refuses(
      tensor("w", {4, 2, 7, 7}, 392) + node("Conv", {"x", "w"}, "a"),
      "node 'n-a' (Conv): 'conv 4 7x7 pad 0 stride 1 nobias' behind 2 x 6 x 6: a window of 7 does not fit into the 6 "
      "that come in (2 x 6 x 6), with padding of 0");
  refuses(tensor("w", {4, 3, 3, 3}, 108) + node("Conv", {"x", "w"}, "a"),
          "node 'n-a' (Conv): filters of [4, 3, 3, 3] and a kernel_shape of [3, 3] for what comes in, 2 x 6 x 6");
  refuses(filters + node("Conv", {"x", "none"}, "a"),
          "node 'n-a' (Conv): its input 'none' is no output of a node before it, no initializer, and not the graph's "
          "input");
  refuses(filters + tensor("b", {3}, 3) + node("Conv", {"x", "w", "b"}, "a"),
          "node 'n-a' (Conv): its input 'b' has FLOAT of the extents [3]: FLOAT of [4] is expected");
  refuses(node("MaxPool", {"x"}, "a",
               attribute("kernel_shape", Numbers{4, 4}) + attribute("strides", Numbers{4, 4}) +
                   attribute("ceil_mode", std::int64_t{1})),
          "node 'n-a' (MaxPool): ceil_mode 1 with windows that reach beyond what comes in: only whole ones are taken");
  refuses(node("AveragePool", {"x"}, "a",
               attribute("kernel_shape", Numbers{2, 2}) + attribute("pads", Numbers{1, 1, 1, 1})),
          "node 'n-a' (AveragePool): pads [1, 1, 1, 1]: each must be 0");
  refuses(
      node("Gelu", {"x"}, "a"),
      "node 'n-a' (Gelu): no layer is like it: known are Add, AveragePool, BatchNormalization, Conv, Dropout, "
      "Flatten, Gemm, GlobalAveragePool, LogSoftmax, MatMul, MaxPool, Pad, ReduceMean, Relu, Reshape, Sigmoid, Slice, "
      "Softmax, Tanh, and Constant, Identity, Shape and what computes shapes");
  refuses(part(1, part(1, "x") + part(2, "a") + part(4, "Relu") + part(7, "com.example")),
          "node 0 (Relu): its operator is of 'com.example', and only those of ONNX itself are known");
  refuses(node("ReduceMean", {"x"}, "a", attribute("axes", Numbers{1})),
          "node 'n-a' (ReduceMean): axes [1]: 2 and 3 are expected, the rows and the columns");
  refuses(list("s", {0, 36, 2}) + node("Reshape", {"x", "s"}, "a"),
          "node 'n-a' (Reshape): extents of [0, 36, 2] for what comes in, 2 x 6 x 6: only all numbers of an image in a "
          "row, or the image itself, are taken");
  refuses(
      tensor("t", {72, 4}, 288) + node("MatMul", {"x", "t"}, "a"),
      "node 'n-a' (MatMul): a table of [72, 4] for what comes in, 2 x 6 x 6: FLOAT of 72 inputs is expected, behind "
      "a Flatten");
  const std::string norm = tensor("g", {2}, 2) + tensor("v", {2}, 2, 1);
  const auto normed = [&](const std::string& attributes) {
    return norm + node("BatchNormalization", {"x", "g", "g", "g", "v"}, "a", attributes);
  };
  refuses(normed(attribute("training_mode", std::int64_t{1})),
          "node 'n-a' (BatchNormalization): training_mode 1: only 0 is taken");
  refuses(normed(attribute("momentum", 1.5f)),
          "node 'n-a' (BatchNormalization): momentum 1.5: from 0 to 1 is expected");
  refuses(norm + node("BatchNormalization", {"x", "g", "g", "g"}, "a"),
          "node 'n-a' (BatchNormalization): it has 4 inputs: 5 to 5 are expected");
}

TEST_F(OnnxNodes, WhatIsNoChainIsNamed) {
  const std::string two =
      filters + tensor("v", {4, 4, 1, 1}, 16) + node("Conv", {"x", "w"}, "a") + node("Relu", {"a"}, "r");
  refuses(
      two + node("Conv", {"a", "v"}, "p"),
      "node 'n-p' (Conv): its input 'a' is not what the layer before it gives: a network is one chain of layers, and "
      "only Add takes another one's output");
  refuses(node("Relu", {"x"}, "r") + node("Add", {"r", "x"}, "y"),
          "node 'n-y' (Add): it adds the graph's input: only the output of a layer is added");
  const std::string by_two = list("from", {0, 0}) + list("to", {99, 99}) + list("axes", {2, 3}) + list("by", {2, 2}),
                    slice = by_two + node("Slice", {"a", "from", "to", "axes", "by"}, "s");
  refuses(two + slice + node("Relu", {"s"}, "y"),
          "node 'n-y' (Relu): its input 's' has been sliced or filled up, and only Add takes that");
  refuses(two + slice + node("Add", {"s", "r"}, "y"),
          "node 'n-y' (Add): 4 x 2 x 2 is added to 4 x 4 x 4: they must be "
          "the same");
  refuses(
      two + list("from", {1}) + list("to", {4}) + list("axes", {2}) + node("Slice", {"a", "from", "to", "axes"}, "s"),
      "node 'n-s' (Slice): axis 2 from 1 to 4 by 1: rows and columns are taken from the first to the last, by a step, "
      "and other axes whole");
  refuses(
      two + list("pads", {0, 0, 1, 1, 0, 0, 1, 1}) + node("Pad", {"a", "pads"}, "s"),
      "node 'n-s' (Pad): pads [0, 0, 1, 1, 0, 0, 1, 1]: only channels are filled up: write those of rows and columns "
      "as pads of the Conv");
  refuses(tensor("w", {2, 2, 1, 1}, 4) + tensor("v", {4, 2, 1, 1}, 8) + list("pads", {0, 0, 0, 0, 0, 2, 0, 0}) +
              node("Conv", {"x", "w"}, "a") + node("Pad", {"a", "pads"}, "s") + node("Conv", {"a", "v"}, "c") +
              node("Add", {"s", "c"}, "y"),
          "node 'n-y' (Add): 0 channels of 0 before the 2 that are added to 4: half of those that are missing are "
          "expected, 1");
  const std::string rows =
      node("Flatten", {"x"}, "f") + tensor("t", {72, 4}, 288) + tensor("b", {4}, 4) + node("MatMul", {"f", "t"}, "p");
  refuses(rows + node("Add", {"p", "b"}, "q") + node("Add", {"q", "p"}, "y"),
          "node 'n-y' (Add): its input 'p' is taken with a bias and without");
  refuses(rows + node("Relu", {"p"}, "q") + node("Add", {"q", "b"}, "y"),
          "node 'n-y' (Add): a constant is added only to a MatMul, as its bias");
  refuses(rows + node("Softmax", {"p"}, "s") + node("Relu", {"s"}, "y"),
          "node 'n-y' (Relu): it follows a Softmax, which is the end of a network");
  refuses(rows + node("Relu", {"p"}, "q") + node("Identity", {"p"}, "y"),
          "the graph's output 'y' is not what the last layer gives");
  refuses(two + node("Identity", {"r"}, "y"),
          "the graph's output 'y' is 4 x 4 x 4: a number for each class is expected");
  refuses(two, "the graph's output 'y' is no output of a layer");
  refuses(node("Identity", {"x"}, "y"), "the graph's output 'y' is its input: no node makes a layer");
}

TEST_F(OnnxNodes, HostileTensorsAreNamed) {
  const auto filters_of = [&](const std::string& bytes, const std::string& what) {
    refuses(part(5, part(8, "w") + bytes) + node("Conv", {"x", "w"}, "a"), "node 'n-a' (Conv): its input 'w': " + what);
  };
  const Numbers extents = {4, 2, 3, 3};
  filters_of(wholes(1, extents) + whole(2, 1) + part(9, "1234"),
             "it has 4 bytes, and its extents [4, 2, 3, 3] are 72 numbers of 4");
  filters_of(wholes(1, extents) + whole(2, 1), "it has 0 numbers, and its extents [4, 2, 3, 3] are 72");
  filters_of(wholes(1, {std::int64_t{1} << 40, std::int64_t{1} << 40}) + whole(2, 1),
             "the tensor is too large: 1099511627776 times 1099511627776 passes 2^63");
  filters_of(wholes(1, {-1}) + whole(2, 1), "an extent of -1");
  filters_of(wholes(1, extents) + whole(2, 10) + part(9, std::string(144, '\0')),
             "its type is FLOAT16: FLOAT is read, and INT64, INT32 and BOOL of shapes");
  filters_of(wholes(1, extents) + whole(2, 1) + part(13, part(1, "location") + part(2, "/etc/passwd")) + whole(14, 1),
             "its numbers are in another file: only those in the file itself are read");
  // Constants that would take the machine's memory or time.
  refuses(list("s", {1 << 20, 1 << 20}) +
              node("ConstantOfShape", {"s"}, "a",
                   part(5, part(1, "value") + part(5, wholes(1, {1}) + whole(2, 1) + part(9, "1234")) + whole(20, 4))),
          "node 'n-a' (ConstantOfShape): only whole numbers are computed");
  const std::string zero = part(5, part(1, "value") + part(5, whole(1, 1) + whole(2, 7) + whole(7, 0)) + whole(20, 4));
  refuses(list("s", {1 << 20, 1 << 20}) + node("ConstantOfShape", {"s"}, "a", zero),
          "node 'n-a' (ConstantOfShape): more than 65536 numbers");
  refuses(list("s", {INT64_MAX, 3}) + node("ConstantOfShape", {"s"}, "a", zero),
          "node 'n-a' (ConstantOfShape): the tensor is too large: 9223372036854775807 times 3 passes 2^63");
  refuses(list("s", {1, 2}) + list("i", {2}) + node("Gather", {"s", "i"}, "a"),
          "node 'n-a' (Gather): axis 2 of a tensor of 2 axes");
}

TEST_F(OnnxNodes, FilesAroundTheirNodes) {
  const std::string x = part(11, value("x", {-1, 2, 6, 6})), y = part(12, value("y", {-1, 4})),
                    opset = part(8, whole(2, 13)), net = end("x", 2);
  const auto file = [&](const std::string& graph) { return part(7, graph) + opset; };
  refuses_file(opset, "an ONNX file without a graph");
  refuses_file("text", "it is no ONNX file, or a damaged one");
  refuses_file(part(7, net + x + y), "it does not say which opset its operators are of");
  refuses_file(part(7, net + x + y) + part(8, whole(2, 6)), "its operators are of opset 6: 7 or newer is read");
  refuses_file(file(net + y), "the graph has no input");
  refuses_file(file(net + x + part(11, value("z", {1})) + y), "two inputs, 'x' and 'z': one is expected");
  refuses_file(file(net + x), "the graph has 0 outputs: one is expected");
  refuses_file(file(net + part(11, value("x", {-1, 72})) + y),
               "the input 'x' has 2 extents: images, channels, rows and columns are expected");
  refuses_file(file(net + part(11, value("x", {-1, 2, -1, 6})) + y),
               "the input 'x' leaves its extent 2 open: only that of images may be");
  refuses_file(file(net + part(11, value("x", {1, 2, 6, 6}, 11)) + y),
               "the input 'x' is not of FLOAT, the only type that is taken");
  const auto with = [&](const std::string& key, const std::string& text) {
    return file(net + x + y) + part(14, part(1, key) + part(2, text));
  };
  refuses_file(with("omniconv.classes", "a"), "omniconv.classes of its metadata is no list");
  refuses_file(with("omniconv.classes", "[1]"), "omniconv.classes of its metadata are no names");
  refuses_file(with("omniconv.classes", R"(["a","b","c","d","e"])"), "it has 5 classes, and 4 outputs");
  refuses_file(with("omniconv.mean", "[0]"), "omniconv.mean of its metadata has 1 numbers, and there are 2 channels");
  refuses_file(with("omniconv.deviation", R"([0,"1"])"), "omniconv.deviation of its metadata has no numbers");
  refuses_file(with("omniconv.dataset", "\x1b[2J"), "omniconv.dataset '?[2J' is no line of UTF-8");
}

}  // namespace
}  // namespace omniconv::onnx_nodes_tests
