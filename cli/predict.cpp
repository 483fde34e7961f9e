// predict: what a checkpoint's network finds in images of any format and size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common.h"
#include "core/convert.h"
#include "image/image.h"
#include "labelled.h"
#include "omniconv/checkpoint.h"
#include "omniconv/error.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct PredictOptions {
  Common common;
  std::string checkpoint;
  std::vector<std::string> images, solvers;
  std::int64_t top = 5;
};

// An image's colours from 0 to 1, c x h x w; opacity is left away.
struct Picture {
  std::int64_t c = 0, h = 0, w = 0;
  std::vector<double> values;

  double at(std::int64_t k, std::int64_t p, std::int64_t q) const {
    return values[static_cast<std::size_t>((k * h + p) * w + q)];
  }
};

Picture read_picture(const std::string& path) {
  const std::unique_ptr<image::ImageReader> reader = image::open_image(path);
  const image::ImageInfo& info = reader->info();
  const bool is_integer = info.type == DataType::u8 || info.type == DataType::u16;
  if (!is_integer && info.type != DataType::f32 && info.type != DataType::f16)
    throw bad_input(fmt::format("{}: its pixels are {}: u8, u16, f16 and f32 are taken", path, name(info.type)));
  const double white = !is_integer ? 1 : info.max_value > 0 ? info.max_value : info.type == DataType::u8 ? 255 : 65535;
  const std::int64_t size = size_of(info.type), colours = info.c == 2 || info.c == 4 ? info.c - 1 : info.c;
  Picture picture{.c = colours, .h = info.h, .w = info.w, .values = {}};
  picture.values.resize(static_cast<std::size_t>(colours * info.h * info.w));
  std::vector<std::byte> row(static_cast<std::size_t>(info.w * info.c * size));
  for (std::int64_t p = 0; p < info.h; ++p) {
    reader->read_rows(p, 1, row.data(), std::ssize(row));
    for (std::int64_t q = 0; q < info.w; ++q)
      for (std::int64_t k = 0; k < colours; ++k)
        picture.values[static_cast<std::size_t>((k * info.h + p) * info.w + q)] =
            load_element(info.type, row.data() + (q * info.c + k) * size) / white;
  }
  return picture;
}

// Grey for one channel (Rec. 601), three alike of one.
Picture with_channels(const Picture& from, std::int64_t channels, const std::string& path) {
  if (from.c == channels) return from;
  const bool to_grey = channels == 1 && from.c == 3, to_colour = channels == 3 && from.c == 1;
  if (!to_grey && !to_colour)
    throw bad_input(fmt::format("{} has {} channels, and the model takes {}", path, from.c, channels));
  Picture to{.c = channels, .h = from.h, .w = from.w, .values = {}};
  for (std::int64_t k = 0; k < channels; ++k)
    for (std::int64_t p = 0; p < from.h; ++p)
      for (std::int64_t q = 0; q < from.w; ++q)
        to.values.push_back(to_grey ? 0.299 * from.at(0, p, q) + 0.587 * from.at(1, p, q) + 0.114 * from.at(2, p, q)
                                    : from.at(0, p, q));
  return to;
}

// What each pixel of one axis takes of those before: the share of each that it covers where it is larger than they are,
// and the two beside its middle where it is smaller.
struct Share {
  std::int64_t first = 0;
  std::vector<double> weights;
};
std::vector<Share> shares(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Share> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const std::int64_t first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(middle - reach))),
                       last = std::min(from - 1, static_cast<std::int64_t>(std::floor(middle + reach)));
    Share own{.first = first, .weights = {}};
    for (std::int64_t k = first; k <= last; ++k)
      own.weights.push_back(std::max(0.0, 1 - std::fabs(static_cast<double>(k) - middle) / reach));
    const double sum = std::accumulate(own.weights.begin(), own.weights.end(), 0.0);
    for (double& weight : own.weights) weight /= sum;
    all.push_back(std::move(own));
  }
  return all;
}

// Triangles as wide as a new pixel, or as an old one where that is larger: no pixel is passed over.
Picture resized(const Picture& from, std::int64_t h, std::int64_t w) {
  if (from.h == h && from.w == w) return from;
  const std::vector<Share> rows = shares(from.h, h), columns = shares(from.w, w);
  Picture to{.c = from.c, .h = h, .w = w, .values = {}};
  std::vector<double> row(static_cast<std::size_t>(from.w));
  for (std::int64_t k = 0; k < from.c; ++k)
    for (const Share& of_row : rows) {
      std::fill(row.begin(), row.end(), 0);
      for (std::size_t i = 0; i < of_row.weights.size(); ++i)
        for (std::int64_t q = 0; q < from.w; ++q)
          row[static_cast<std::size_t>(q)] +=
              of_row.weights[i] * from.at(k, of_row.first + static_cast<std::int64_t>(i), q);
      for (const Share& of_column : columns) {
        double sum = 0;
        for (std::size_t i = 0; i < of_column.weights.size(); ++i)
          sum += of_column.weights[i] * row[static_cast<std::size_t>(of_column.first) + i];
        to.values.push_back(sum);
      }
    }
  return to;
}

std::vector<float> standardised(const Picture& picture, const Standard& standard) {
  std::vector<float> values;
  for (std::size_t i = 0; i < picture.values.size(); ++i) {
    const std::size_t k = i / static_cast<std::size_t>(picture.h * picture.w);
    // As the images of the training are, to a whole step of 255.
    const double pixel = std::nearbyint(picture.values[i] * 255) / 255;
    values.push_back(standard.deviation[k] > 0 ? static_cast<float>((pixel - standard.mean[k]) / standard.deviation[k])
                                               : 0.0f);
  }
  return values;
}

int run(const PredictOptions& options, Json& json) {
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint);
  const ModelShape& in = checkpoint.model.input;
  const Context context(context_options(options.common));
  Network network =
      network_of(context, checkpoint, {.batch = 1, .trains = false, .solvers = parse_solvers(options.solvers)});
  const bool prints = !options.common.quiet && options.common.json != "-";
  json["device"] = describe(context.device());
  json["model"] = checkpoint.model.name;
  json["images"] = Json::array();
  std::vector<std::vector<std::string>> table = {{"image", "class", "share"}};
  for (const std::string& path : options.images) {
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    const Picture picture = resized(with_channels(read_picture(path), in.channels, path), in.height, in.width);
    const std::vector<float> outputs = network.outputs(standardised(picture, checkpoint.standard).data());
    const double most = *std::max_element(outputs.begin(), outputs.end());
    std::vector<double> shares;
    for (const float one : outputs) shares.push_back(std::exp(static_cast<double>(one) - most));
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    std::vector<std::size_t> order(checkpoint.classes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(options.top)));
    Json found = Json::array();
    for (const std::size_t c : order) {
      found.push_back({{"class", c}, {"name", checkpoint.classes[c]}, {"share", shares[c] / sum}});
      table.push_back(
          {c == order.front() ? path : "", checkpoint.classes[c], fmt::format("{:.2f} %", 100 * shares[c] / sum)});
    }
    json["images"].push_back({{"image", path}, {"found", found}, {"logits", outputs}});
  }
  if (prints) print_table(table);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("predict", "name what a trained network finds in images");
  command->footer(
      "Examples:\n"
      "  omniconv predict run1 shoe.png\n"
      "  omniconv predict run1 photos/*.jpg --top 1 --json found.json\n"
      "Images are made as large as the model takes them. docs/training.md says what a checkpoint is.");
  const auto options = std::make_shared<PredictOptions>();
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "a folder of checkpoints, of which the last is taken, or one's JSON")
      ->required()
      ->check(not_empty());
  command->add_option("IMAGE", options->images, "files of images")->required();
  command->add_option("--top", options->top, "classes of each image, the likeliest ones")
      ->type_name("N")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  add_solvers(*command, options->solvers);
  add_common(*command, options->common);
  command->callback([options, &body] {
    body = [options] {
      return with_report(options->common.json, "omniconv-predict/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
