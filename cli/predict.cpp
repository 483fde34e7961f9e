// predict: what a checkpoint's network finds in images of any format and size.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "labelled.h"
#include "omniconv/checkpoint.h"
#include "omniconv/error.h"
#include "operations.h"
#include "report.h"
#include "train/picture.h"

namespace omniconv::cli {
namespace {

struct PredictOptions {
  Common common;
  std::string checkpoint;
  std::vector<std::string> images, solvers;
  std::int64_t top = 5, repeat = 1;
  bool operations = false;
};

// What the network finds in an image, and the seconds from its numbers to that, the median of several runs.
std::pair<std::vector<float>, double> found_by(Network& network, const std::vector<float>& image, std::int64_t runs) {
  std::vector<float> outputs;
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < runs; ++i) {
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    const auto begin = std::chrono::steady_clock::now();
    outputs = network.outputs(image.data());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {outputs, seconds[seconds.size() / 2]};
}

std::vector<float> standardised(const std::vector<std::uint8_t>& pixels, const Standard& standard) {
  std::vector<float> values;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t k = i / (pixels.size() / standard.mean.size());
    values.push_back(standard.deviation[k] > 0
                         ? static_cast<float>((pixels[i] / 255.0 - standard.mean[k]) / standard.deviation[k])
                         : 0.0f);
  }
  return values;
}

int run(const PredictOptions& options, Json& json) {
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint);
  const Context context(context_options(options.common));
  Network network =
      network_of(context, checkpoint, {.batch = 1, .trains = false, .solvers = parse_solvers(options.solvers)});
  const bool prints = !options.common.quiet && options.common.json != "-";
  json["device"] = describe(context.device());
  json["model"] = checkpoint.model.name;
  json["images"] = Json::array();
  double step_seconds = 0;  // of the last image
  std::vector<std::vector<std::string>> table = {{"image", "class", "share"}};
  for (const std::string& path : options.images) {
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    const std::vector<std::uint8_t> pixels = training::read_picture(path, checkpoint.model.input);
    const auto [outputs, seconds] = found_by(network, standardised(pixels, checkpoint.standard), options.repeat);
    step_seconds = seconds;
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
    json["images"].push_back({{"image", path}, {"found", found}, {"logits", outputs}, {"seconds", seconds}});
    if (prints && options.repeat > 1)
      fmt::print("{}: {:.1f} us, the median of {} runs\n", path, seconds * 1e6, options.repeat);
  }
  if (prints) print_table(table);
  if (options.operations) report_operations(network, step_seconds, prints, json);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("predict", "name what a trained network finds in images");
  command->footer(
      "Examples:\n"
      "  omniconv predict run1 shoe.png\n"
      "  omniconv predict run1 photos/*.jpg --top 1 --json found.json\n"
      "  omniconv predict run1 shoe.png --repeat 1000 --operations --device cpu\n"
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
  command
      ->add_option("--repeat", options->repeat,
                   "run the network on each image so many times, and say the median of its seconds")
      ->type_name("N")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  command->add_flag("--operations", options->operations, "time each operation of the network by itself, at the end");
  add_solvers(*command, options->solvers);
  add_common(*command, options->common);
  command->callback([options, &body] {
    body = [options] {
      return with_report(options->common.json, "omniconv-predict/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
