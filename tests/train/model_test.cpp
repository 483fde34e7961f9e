// Models: texts, shapes that follow, parameters that are counted, errors that name the line.
#include "omniconv/model.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "../error_testing.h"

namespace omniconv::model_tests {
namespace {

TEST(Models, BuiltInOnesHaveTheirParameters) {
  const std::map<std::string, std::int64_t> expected = {
      {"mnist-medium", 818970},  {"mnist-big", 1796010},   {"mnist-large", 37588000}, {"mnist-conv", 421642},
      {"cifar10-vgg1", 1060138}, {"cifar10-vgg2", 591274}, {"cifar10-vgg3", 550570},  {"resnet20", 269722}};
  for (const std::string& name : built_in_models()) EXPECT_EQ(load_model(name).parameters(), expected.at(name)) << name;
  EXPECT_EQ(built_in_models().size(), expected.size());
  const Model large = load_model("mnist-large");
  EXPECT_EQ(large.layers.size(), 19u);
  EXPECT_EQ(large.classes(), 2000);
}

TEST(Models, ShapesFollow) {
  const Model model = parse_model(
      "# a comment\n\ninput 3 33 20\r\nconv 8 5x3 pad 1 stride 2  # another\nsigmoid\n avgpool 3x2 \n\tmaxpool 2x2 "
      "stride 1\ndense 7\ntanh",
      "own");
  ASSERT_EQ(model.layers.size(), 6u);
  EXPECT_EQ(model.input, (ModelShape{3, 33, 20}));
  EXPECT_EQ(model.layers[0].out, (ModelShape{8, 16, 10}));
  EXPECT_EQ(model.layers[0].parameters(), 8 * 3 * 5 * 3 + 8);
  EXPECT_EQ(model.layers[2].out, (ModelShape{8, 5, 5}));
  EXPECT_EQ(model.layers[3].out, (ModelShape{8, 4, 4}));
  EXPECT_EQ(model.layers[4].parameters(), 8 * 16 * 7 + 7);
  EXPECT_EQ(model.classes(), 7);
  EXPECT_EQ(model.layers[0].line, 4);
  std::string text = "input 3 33 20\n";
  for (const ModelLayer& layer : model.layers) text += layer.text() + "\n";
  const Model again = parse_model(text, "again");
  ASSERT_EQ(again.layers.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) EXPECT_EQ(again.layers[i].out, model.layers[i].out) << i;
}

// As He et al. have them: 19 convolutions and a dense layer, nine sums, two of them with a stride and channels of 0.
TEST(Models, ResNet20) {
  using Kind = ModelLayer::Kind;
  const Model model = load_model("resnet20");
  int convolutions = 0, sums = 0, strided = 0;
  for (const ModelLayer& layer : model.layers) {
    convolutions += layer.kind == Kind::convolution;
    sums += layer.kind == Kind::add;
    if (layer.kind != Kind::add) continue;
    const ModelShape &from = model.layers[layer.from].out, &to = layer.out;
    EXPECT_EQ(layer.in, to);
    EXPECT_EQ(from.height, to.height * layer.stride_h);
    EXPECT_EQ(from.channels, to.channels / layer.stride_h);
    EXPECT_EQ(model.layers[layer.from].kind, Kind::relu);
    strided += layer.stride_h == 2;
  }
  EXPECT_EQ(convolutions, 19);
  EXPECT_EQ(sums, 9);
  EXPECT_EQ(strided, 2);
  EXPECT_EQ(model.layers[model.layers.size() - 2].in, (ModelShape{64, 8, 8}));
  EXPECT_EQ(model.classes(), 10);
}

TEST(Models, LayersWithOptions) {
  const Model model = parse_model(
      "input 4 8 8\nconv 4 3x3 nobias pad 1\nmark a\nbatchnorm momentum 0.25 epsilon 0.001\ndropout 0.125\nmark "
      "a\nmark b\nadd a\navgpool 2x2\nconv 6 1x1\nadd b\ndense 3 nobias\n",
      "own");
  ASSERT_EQ(model.layers.size(), 8u);
  EXPECT_EQ(model.layers[0].parameters(), 4 * 4 * 9);
  EXPECT_EQ(model.layers[1].parameters(), 8);
  EXPECT_EQ(model.layers[1].epsilon, 0.001);
  EXPECT_EQ(model.layers[1].momentum, 0.25);
  EXPECT_EQ(model.layers[2].rate, 0.125);
  EXPECT_EQ(model.layers[3].from, 2u);  // a name that is given again is the later one's
  EXPECT_EQ(model.layers[6].from, 2u);
  EXPECT_EQ(model.layers[6].stride_h, 2);
  EXPECT_EQ(model.layers[7].parameters(), 3 * 6 * 16);
  const Model again = parse_model(to_text(model), "own");
  EXPECT_EQ(to_text(again), to_text(model));
  ASSERT_EQ(again.layers.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    EXPECT_EQ(again.layers[i].out, model.layers[i].out) << i;
    EXPECT_EQ(again.layers[i].parameters(), model.layers[i].parameters()) << i;
    EXPECT_EQ(again.layers[i].from, model.layers[i].from) << i;
  }
  EXPECT_EQ(again.layers[1].epsilon, 0.001);
  EXPECT_EQ(again.layers[2].rate, 0.125);
}

TEST(Models, AMarkOfUtf8IsNoWord) {
  EXPECT_EQ(parse_model("\xEF\xBB\xBFinput 1 4 4\ndense 2\n", "net").parameters(), 34);
}

TEST(Models, ErrorsNameTheLine) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string error = error_of([&] { parse_model(text, "net.txt"); }, ErrorKind::bad_input);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect("", "net.txt: a model without layers");
  expect("input 1 2 3\n", "net.txt: a model without layers");
  expect("\nrelu\n", "net.txt:2: 'relu' where 'input CHANNELS ROWS COLUMNS' is expected");
  expect("input 1 28\n", "net.txt:1: the line ends where columns is expected");
  expect("input 1 28 -3\n", "net.txt:1: '-3' where columns is expected: a whole number from 1 to 16777216");
  expect("input 1 28 99999999999999999999\n", "a whole number from 1");
  expect("input 1 4 4\nconv 8 3\n", "net.txt:2: '3' where a filter's extents is expected, as in 3x3");
  expect("input 1 4 4\nconv 8 5x5\n",
         "net.txt:2: a window of 5 does not fit into the 4 that come in (1 x 4 x 4), with padding of 0");
  expect("input 1 4 4\ndence 8\n", "net.txt:2: unknown layer 'dence': did you mean dense?");
  expect("input 1 4 4\ndense 8 relu\n", "net.txt:2: 'relu' where the line should end");
  expect("input 1 4 4\ninput 1 4 4\n", "net.txt:2: a second input");
  expect("input 1 4 4\nmark a\ndense 2\n", "net.txt:2: a mark before the first layer");
  expect("input 1 4 4\nrelu\nadd b\n", "net.txt:3: no line before it has 'mark b'");
  expect("input 2 4 4\nrelu\nmark b\nconv 1 1x1\nadd b\n", "net.txt:5: 2 x 4 x 4 cannot be added to the 1 x 4 x 4");
  expect("input 1 9 9\nrelu\nmark b\nmaxpool 2x2\nadd b\n", "net.txt:5: 1 x 9 x 9 cannot be added to the 1 x 4 x 4");
  expect("input 1 4 4\ndropout 1\n",
         "net.txt:2: '1' where the share that becomes 0 is expected: a number from 0 to less");
  expect("input 1 4 4\nbatchnorm epsilon 0\n", "net.txt:2: '0' where what is added to the variance is expected");
  expect("input 1 4 4\nbatchnorm bias\n", "net.txt:2: 'bias' where the line should end");
  expect("input 1 4 4\nconv 8 3x3 pad 1 pad 2\n", "net.txt:2: 'pad' where the line should end");
  expect("input 1 4 4\ndense " + std::string(1000, '7') + "\n", "net.txt:2: '" + std::string(40, '7') + "...' where");
  expect("input 1 4 4\n\x1b[31m\n", "net.txt:2: unknown layer '?[31m'");
  expect("input 16777216 16777216 16777216\ndense 16777216\n", "too large");
  EXPECT_NE(error_of([] { load_model("."); }, ErrorKind::bad_input).find("it is a folder"), std::string::npos);
  const std::string unknown = error_of([] { load_model("mnist-bigg"); }, ErrorKind::bad_input);
  EXPECT_NE(unknown.find("did you mean mnist-big?"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace omniconv::model_tests
