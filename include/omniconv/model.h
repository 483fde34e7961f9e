// A network as a text, a layer a line, whose shapes follow from the input's:
//
//   # the classical pair of layers
//   input 3 32 32                     channels, rows, columns: first
//   conv 32 3x3 pad 1 [stride 2]      filters of so many rows and columns; a bias each, unless it says nobias
//   relu                              or sigmoid, or tanh
//   maxpool 2x2 [stride 2]            or avgpool; the stride is the window's extent if none is named
//   batchnorm                         each channel to mean 0 and deviation 1, then times a number and plus another
//   dropout 0.5                       so much of what comes in is 0 in training
//   mark a                            names what comes in here, for
//   add a                             which adds it: as it is, or with a stride and channels of 0 (He et al., option A)
//   dense 10                          fully connected, with a bias each, unless it says nobias
//
// A model's last layer gives a number for each class. docs/training.md has the text, and the models that are built in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace omniconv {

struct ModelShape {
  std::int64_t channels = 0, height = 0, width = 0;

  std::int64_t elements() const { return channels * height * width; }
  bool operator==(const ModelShape&) const = default;
};

struct ModelLayer {
  enum class Kind : std::uint8_t {
    convolution,
    dense,
    relu,
    sigmoid,
    tanh,
    max_pool,
    average_pool,
    batch_norm,
    dropout,
    add
  };

  Kind kind = Kind::relu;
  std::int64_t outputs = 0;            // of convolution and dense; batch_norm: its channels
  std::int64_t rows = 1, columns = 1;  // of filters and windows; dense: those of its input
  std::int64_t pad = 0, stride_h = 1, stride_w = 1;
  bool has_bias = true;                   // of convolution and dense
  double epsilon = 1e-5, momentum = 0.1;  // of batch_norm
  double rate = 0;                        // of dropout: the share that becomes 0
  std::size_t from = 0;                   // of add: the layer whose output is added
  ModelShape in = {}, out = {};
  int line = 0;  // of the text

  bool has_filters() const { return kind == Kind::convolution || kind == Kind::dense; }
  bool has_parameters() const { return has_filters() || kind == Kind::batch_norm; }
  // batch_norm: what each channel is multiplied by, and then what is added.
  std::int64_t weights() const { return has_filters() ? outputs * in.channels * rows * columns : outputs; }
  std::int64_t biases() const { return has_parameters() && has_bias ? outputs : 0; }
  std::int64_t parameters() const { return weights() + biases(); }
  std::string text() const;  // "conv 32 3x3 pad 1"; of add without the mark's name
};

struct Model {
  std::string name;
  ModelShape input = {};
  std::vector<ModelLayer> layers = {};

  std::int64_t parameters() const;
  std::int64_t classes() const { return layers.back().out.elements(); }
};

// Throws with the line, what it says, and what was expected. `source` names the text in errors, and is the model's
// name.
Model parse_model(std::string_view text, const std::string& source);

// A text that gives the same model, but for its name.
std::string to_text(const Model& model);

// A built-in one by its name, or a file's.
Model load_model(const std::string& name_or_file);
std::vector<std::string> built_in_models();

}  // namespace omniconv
