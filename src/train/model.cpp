#include "omniconv/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/checked.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "train/quoted.h"

namespace omniconv {
namespace {

using Kind = ModelLayer::Kind;

struct BuiltIn {
  const char *name, *text;
};

// The classical ones of MNIST and CIFAR-10; resnet20 is written out.
constexpr BuiltIn models[] = {
    {"mnist-medium", "input 1 28 28\ndense 784\nrelu\ndense 256\nrelu\ndense 10\n"},
    {"mnist-big", "input 1 28 28\ndense 1000\nrelu\ndense 1000\nrelu\ndense 10\n"},
    {"mnist-large",
     "input 1 28 28\ndense 2000\nrelu\ndense 2000\nrelu\ndense 2000\nrelu\ndense 2000\nrelu\ndense 2000\nrelu\n"
     "dense 2000\nrelu\ndense 2000\nrelu\ndense 2000\nrelu\ndense 2000\nrelu\ndense 2000\n"},
    {"mnist-conv",
     "input 1 28 28\nconv 32 3x3 pad 1\nrelu\nmaxpool 2x2\nconv 64 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 128\nrelu\n"
     "dense 10\n"},
    {"cifar10-vgg1",
     "input 3 32 32\nconv 32 3x3 pad 1\nrelu\nconv 32 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 128\nrelu\ndense 10\n"},
    {"cifar10-vgg2",
     "input 3 32 32\nconv 32 3x3 pad 1\nrelu\nconv 32 3x3 pad 1\nrelu\nmaxpool 2x2\nconv 64 3x3 pad 1\nrelu\n"
     "conv 64 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 128\nrelu\ndense 10\n"},
    {"cifar10-vgg3",
     "input 3 32 32\nconv 32 3x3 pad 1\nrelu\nconv 32 3x3 pad 1\nrelu\nmaxpool 2x2\nconv 64 3x3 pad 1\nrelu\n"
     "conv 64 3x3 pad 1\nrelu\nmaxpool 2x2\nconv 128 3x3 pad 1\nrelu\nconv 128 3x3 pad 1\nrelu\nmaxpool 2x2\n"
     "dense 128\nrelu\ndense 10\n"},
    {"resnet20", nullptr},
};

constexpr std::int64_t most_extent = std::int64_t{1} << 24;
constexpr std::size_t most_layers = 10000, most_text = 1 << 20;
constexpr std::string_view layer_words[] = {"input",   "conv",    "dense",     "relu",    "sigmoid", "tanh",
                                            "maxpool", "avgpool", "batchnorm", "dropout", "mark",    "add"};

// ResNet-20 as He, Zhang, Ren and Sun have it for CIFAR-10 (2015): three stages of three blocks.
std::string resnet20() {
  std::string text = "input 3 32 32\nconv 16 3x3 pad 1 nobias\nbatchnorm\nrelu\n";
  for (int block = 0; block < 9; ++block) {
    const int channels = 16 << block / 3;
    const char* const stride = block == 3 || block == 6 ? " stride 2" : "";
    text += fmt::format(
        "mark a\nconv {0} 3x3 pad 1{1} nobias\nbatchnorm\nrelu\nconv {0} 3x3 pad 1 nobias\nbatchnorm\nadd a\nrelu\n",
        channels, stride);
  }
  return text + "avgpool 8x8\ndense 10\n";
}

std::string quoted_part(std::string_view word) {
  const std::string whole = quoted_word(word);
  return whole.substr(1, whole.size() - 2);
}

// The words of a line, of which each is asked for with what it should be.
class Line {
 public:
  Line(std::string_view text, const std::string& source, int number) : where_(fmt::format("{}:{}", source, number)) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = text.find_first_not_of(" \t\r", at);
      if (begin == std::string_view::npos || text[begin] == '#') break;
      at = std::min(text.find_first_of(" \t\r#", begin), text.size());
      words_.push_back(text.substr(begin, at - begin));
    }
  }
  bool is_empty() const { return words_.empty(); }
  bool is_at_end() const { return next_ == words_.size(); }
  [[noreturn]] void refuse(const std::string& what) const { throw bad_input(fmt::format("{}: {}", where_, what)); }

  std::string_view word(const char* expected) {
    if (is_at_end()) refuse(fmt::format("the line ends where {} is expected", expected));
    return words_[next_++];
  }
  std::int64_t number(std::string_view text, const char* what, std::int64_t least) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most_extent)
      refuse(fmt::format("{} where {} is expected: a whole number from {} to {}", quoted_word(text), what, least,
                         most_extent));
    return value;
  }
  std::int64_t number(const char* what, std::int64_t least = 1) { return number(word(what), what, least); }
  // In [least, most).
  double fraction(const char* what, double least, double most) {
    const std::string_view text = word(what);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value < most))
      refuse(fmt::format("{} where {} is expected: a number from {} to less than {}", quoted_word(text), what, least,
                         most));
    return value;
  }
  // "3x3"
  std::pair<std::int64_t, std::int64_t> extents(const char* what) {
    const std::string_view text = word(what);
    const std::size_t cross = text.find('x');
    if (cross == std::string_view::npos)
      refuse(fmt::format("{} where {} is expected, as in 3x3", quoted_word(text), what));
    return {number(text.substr(0, cross), what, 1), number(text.substr(cross + 1), what, 1)};
  }
  // Where the next word is this one it is taken.
  bool takes(std::string_view wanted) {
    if (is_at_end() || words_[next_] != wanted) return false;
    ++next_;
    return true;
  }
  void end() {
    if (!is_at_end()) refuse(fmt::format("{} where the line should end", quoted_word(words_[next_])));
  }

 private:
  std::string where_;
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

std::string print(const ModelShape& shape) {
  return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

// How often a window fits.
std::int64_t places(Line& line, std::int64_t extent, std::int64_t window, std::int64_t pad, std::int64_t stride,
                    const ModelShape& in) {
  if (extent + 2 * pad < window)
    line.refuse(fmt::format("a window of {} does not fit into the {} that come in ({}), with padding of {}", window,
                            extent, print(in), pad));
  return (extent + 2 * pad - window) / stride + 1;
}

// The names that lines have given to layers' outputs.
using Marks = std::map<std::string, std::size_t, std::less<>>;

void read_window(ModelLayer& layer, Line& line) {
  const bool is_convolution = layer.kind == Kind::convolution;
  if (is_convolution) layer.outputs = layer.out.channels = line.number("the number of filters");
  std::tie(layer.rows, layer.columns) = line.extents(is_convolution ? "a filter's extents" : "a window's extents");
  if (!is_convolution) layer.stride_h = layer.rows, layer.stride_w = layer.columns;
  bool pads = false, strides = false;  // each once, in any order
  while (!line.is_at_end()) {
    if (is_convolution && !pads && line.takes("pad"))
      pads = true, layer.pad = line.number("padding", 0);
    else if (is_convolution && layer.has_bias && line.takes("nobias"))
      layer.has_bias = false;
    else if (!strides && line.takes("stride"))
      strides = true, layer.stride_h = layer.stride_w = line.number("a stride");
    else
      break;
  }
  layer.out.height = places(line, layer.in.height, layer.rows, layer.pad, layer.stride_h, layer.in);
  layer.out.width = places(line, layer.in.width, layer.columns, layer.pad, layer.stride_w, layer.in);
}

void read_batch_norm(ModelLayer& layer, Line& line) {
  layer.outputs = layer.in.channels;
  bool has_epsilon = false, has_momentum = false;
  while (!line.is_at_end()) {
    if (!has_epsilon && line.takes("epsilon"))
      has_epsilon = true, layer.epsilon = line.fraction("what is added to the variance", 1e-30, 1);
    else if (!has_momentum && line.takes("momentum"))
      has_momentum = true, layer.momentum = line.fraction("the share of a new batch", 0, 1);
    else
      break;
  }
}

// What is added has the shape of what comes in, or is taken with a stride and fewer channels, which are filled up.
void read_add(ModelLayer& layer, Line& line, const Marks& marks, const std::vector<ModelLayer>& layers) {
  const std::string_view name = line.word("a mark's name");
  const auto found = marks.find(name);
  if (found == marks.end()) line.refuse(fmt::format("no line before it has 'mark {}'", quoted_part(name)));
  layer.from = found->second;
  const ModelShape &s = layers[layer.from].out, &y = layer.in;
  const std::int64_t stride = s.height / std::max<std::int64_t>(y.height, 1) + (s.height % y.height != 0);
  if (s.channels > y.channels || (s.height + stride - 1) / stride != y.height ||
      (s.width + stride - 1) / stride != y.width)
    line.refuse(
        fmt::format("{} cannot be added to the {} that come in: it needs as many channels or fewer, and rows "
                    "and columns that are the same or whole times as many",
                    print(s), print(y)));
  layer.stride_h = layer.stride_w = stride;
}

ModelLayer read_layer(std::string_view word, Line& line, const Marks& marks, const std::vector<ModelLayer>& layers,
                      const ModelShape& in) {
  constexpr std::pair<std::string_view, Kind> kinds[] = {{"conv", Kind::convolution},
                                                         {"dense", Kind::dense},
                                                         {"relu", Kind::relu},
                                                         {"sigmoid", Kind::sigmoid},
                                                         {"tanh", Kind::tanh},
                                                         {"maxpool", Kind::max_pool},
                                                         {"avgpool", Kind::average_pool},
                                                         {"batchnorm", Kind::batch_norm},
                                                         {"dropout", Kind::dropout},
                                                         {"add", Kind::add}};
  const auto* const found =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& kind) { return kind.first == word; });
  if (found == std::end(kinds))
    line.refuse(fmt::format("unknown layer {}: {}", quoted_word(word), suggest(word.substr(0, 40), layer_words)));
  ModelLayer layer{.kind = found->second, .in = in, .out = in};
  switch (layer.kind) {
    case Kind::convolution:
    case Kind::max_pool:
    case Kind::average_pool: read_window(layer, line); break;
    case Kind::dense:
      layer.outputs = line.number("the number of outputs");
      layer.rows = in.height, layer.columns = in.width;
      layer.out = {layer.outputs, 1, 1};
      layer.has_bias = !line.takes("nobias");
      break;
    case Kind::batch_norm: read_batch_norm(layer, line); break;
    case Kind::dropout: layer.rate = line.fraction("the share that becomes 0", 0, 1); break;
    case Kind::add: read_add(layer, line, marks, layers); break;
    default: break;
  }
  line.end();
  return layer;
}

}  // namespace

std::string ModelLayer::text() const {
  const std::string stride = stride_h == 1 ? "" : fmt::format(" stride {}", stride_h);
  switch (kind) {
    case Kind::convolution:
      return fmt::format("conv {} {}x{}{}{}{}", outputs, rows, columns, pad > 0 ? fmt::format(" pad {}", pad) : "",
                         stride, has_bias ? "" : " nobias");
    case Kind::dense: return fmt::format("dense {}{}", outputs, has_bias ? "" : " nobias");
    case Kind::relu: return "relu";
    case Kind::sigmoid: return "sigmoid";
    case Kind::tanh: return "tanh";
    case Kind::max_pool:
    case Kind::average_pool:
      return fmt::format("{} {}x{}{}", kind == Kind::max_pool ? "maxpool" : "avgpool", rows, columns,
                         stride_h == rows && stride_w == columns ? "" : fmt::format(" stride {}", stride_h));
    case Kind::batch_norm: {
      const ModelLayer usual;
      return fmt::format("batchnorm{}{}", epsilon == usual.epsilon ? "" : fmt::format(" epsilon {}", epsilon),
                         momentum == usual.momentum ? "" : fmt::format(" momentum {}", momentum));
    }
    case Kind::dropout: return fmt::format("dropout {}", rate);
    case Kind::add: return "add";
  }
  return {};
}

std::int64_t Model::parameters() const {
  std::int64_t all = 0;
  for (const ModelLayer& layer : layers) all += layer.parameters();
  return all;
}

std::string to_text(const Model& model) {
  std::string text = fmt::format("input {} {} {}\n", model.input.channels, model.input.height, model.input.width);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const ModelLayer& layer = model.layers[i];
    text += layer.text() + (layer.kind == Kind::add ? fmt::format(" layer{}", layer.from) : "") + "\n";
    const bool is_marked = std::any_of(model.layers.begin(), model.layers.end(), [&](const ModelLayer& other) {
      return other.kind == Kind::add && other.from == i;
    });
    if (is_marked) text += fmt::format("mark layer{}\n", i);
  }
  return text;
}

Model parse_model(std::string_view text, const std::string& source) {
  Model model{.name = source};
  Marks marks;
  int number = 0;
  std::int64_t parameters = 0;
  constexpr std::string_view mark = "\xEF\xBB\xBF";  // of UTF-8, before the text
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    Line line(text.substr(at, end - at), source, ++number);
    at = end + 1;
    if (line.is_empty()) continue;
    const std::string_view word = line.word("a layer");
    if (model.input.channels == 0) {
      if (word != "input")
        line.refuse(fmt::format("{} where 'input CHANNELS ROWS COLUMNS' is expected", quoted_word(word)));
      model.input = {line.number("channels"), line.number("rows"), line.number("columns")};
      line.end();
      continue;
    }
    if (word == "input") line.refuse("a second input");
    if (model.layers.size() == most_layers) line.refuse(fmt::format("more than {} layers", most_layers));
    if (word == "mark") {
      if (model.layers.empty()) line.refuse("a mark before the first layer: it names a layer's output");
      marks.insert_or_assign(std::string(line.word("a name")), model.layers.size() - 1);
      line.end();
      continue;
    }
    ModelLayer layer =
        read_layer(word, line, marks, model.layers, model.layers.empty() ? model.input : model.layers.back().out);
    layer.line = number;
    // Nothing that is multiplied later passes 2^63.
    const auto what = fmt::format("{}:{}: what the layer holds", source, number);
    const std::int64_t filters =
        checked_multiply(checked_multiply(layer.outputs * layer.in.channels, layer.rows, what), layer.columns, what);
    parameters = checked_add(parameters, checked_add(filters, layer.outputs, what), what);
    checked_multiply(checked_multiply(layer.out.channels, layer.out.height, what), 4 * layer.out.width, what);
    checked_multiply(parameters, 16, what);
    model.layers.push_back(layer);
  }
  if (model.layers.empty()) throw bad_input(fmt::format("{}: a model without layers", source));
  return model;
}

Model load_model(const std::string& name_or_file) {
  for (const BuiltIn& model : models)
    if (name_or_file == model.name) return parse_model(model.text ? model.text : resnet20(), model.name);
  if (std::error_code ignored; std::filesystem::is_directory(name_or_file, ignored))
    throw bad_input(fmt::format("{}: it is a folder, and a model is a file with its text", name_or_file));
  std::ifstream file(name_or_file, std::ios::binary);
  if (!file) {
    const std::vector<std::string> names = built_in_models();
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw bad_input(fmt::format("unknown model '{}', and no file of that name can be read: {}", name_or_file,
                                suggest(name_or_file, known)));
  }
  std::string text(most_text + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_text)
    throw bad_input(fmt::format("{}: a model's text has {} bytes at most", name_or_file, most_text));
  return parse_model(text, name_or_file);
}

std::vector<std::string> built_in_models() {
  std::vector<std::string> names;
  for (const BuiltIn& model : models) names.emplace_back(model.name);
  return names;
}

}  // namespace omniconv
