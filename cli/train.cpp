// train: a small network, from labelled images to what it finds in those for the test.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "omniconv/training.h"
#include "progress.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct TrainOptions {
  Common common;
  std::string model, data, dataset, optimizer = "sgd";
  std::int64_t epochs = 5, batch = 64, seed = 1, train_images = -1, test_images = -1;
  double rate = 0.01, momentum = 0.9, l2 = 0;
  bool list_models = false, deterministic = false, has_momentum = false;
};

constexpr std::string_view optimizers[] = {"sgd", "nesterov", "adam"},
                           datasets[] = {"mnist", "fashion-mnist", "cifar-10"};

void require_known(const char* what, const std::string& word, std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw bad_input(fmt::format("unknown {} '{}': {}", what, word, suggest(word, known)));
}

std::string print(const ModelShape& shape) {
  return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

void print_model(const Model& model) {
  fmt::print("{}: {} parameters\n", model.name, model.parameters());
  std::vector<std::vector<std::string>> table = {{"layer", "output", "parameters"}, {"input", print(model.input), ""}};
  for (const ModelLayer& layer : model.layers)
    table.push_back({layer.text(), print(layer.out), layer.has_parameters() ? std::to_string(layer.parameters()) : ""});
  print_table(table);
}

int list_models(const TrainOptions& options, Json& json) {
  json["models"] = Json::array();
  const bool prints = !options.common.quiet && options.common.json != "-";
  const std::vector<std::string> names =
      options.model.empty() ? built_in_models() : std::vector<std::string>{options.model};
  for (const std::string& name : names) {
    const Model model = load_model(name);
    Json layers = Json::array();
    for (const ModelLayer& layer : model.layers)
      layers.push_back({{"layer", layer.text()},
                        {"output", {layer.out.channels, layer.out.height, layer.out.width}},
                        {"parameters", layer.parameters()}});
    json["models"].push_back({{"model", name}, {"parameters", model.parameters()}, {"layers", layers}});
    if (!prints) continue;
    if (name != names.front()) fmt::print("\n");
    print_model(model);
  }
  return 0;
}

// The set that the model's input fits, of those in the folder.
DatasetPlace place_for(const TrainOptions& options, const Model& model) {
  constexpr const char* usual = "/usr/share/datasets";  // Debian's dataset-fashion-mnist
  std::string folder = options.data;
  if (folder.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(usual, ignored))
      throw bad_input(
          "no data set is named: give --data DIR, a folder with MNIST's, Fashion-MNIST's or CIFAR-10's files");
    folder = usual;
  }
  std::vector<DatasetPlace> places = find_datasets(folder), fitting;
  if (places.empty())
    throw bad_input(
        fmt::format("{}: neither it nor its mnist, fashion-mnist and cifar-10-batches-bin hold a data set: IDX "
                    "files as train-images-idx3-ubyte, or CIFAR-10's data_batch_1.bin",
                    folder));
  const auto list_of = [](const std::vector<DatasetPlace>& all) {
    std::string list;
    for (const DatasetPlace& place : all)
      list += fmt::format("{}{} ({}: {})", list.empty() ? "" : ", ", place.name, place.folder,
                          place.damage.empty() ? print({place.channels, place.height, place.width}) : "damaged");
    return list;
  };
  for (const DatasetPlace& place : places) {
    if (!options.dataset.empty() && options.dataset != place.name) continue;
    const bool is_named = !options.dataset.empty() || places.size() == 1;
    if (!place.damage.empty() && is_named) throw bad_input(place.damage);
    if (ModelShape{place.channels, place.height, place.width} == model.input) fitting.push_back(place);
  }
  const std::string found = list_of(places);
  if (fitting.empty())
    throw bad_input(fmt::format("no {}data set fits the model {}, which takes {}: found {}",
                                options.dataset.empty() ? "" : options.dataset + " ", model.name, print(model.input),
                                found));
  if (fitting.size() > 1)
    throw bad_input(
        fmt::format("several data sets fit the model {}: name one by --dataset: {}", model.name, list_of(fitting)));
  return fitting.front();
}

// How many images of each class were taken for which.
void print_confusion(const Dataset& dataset, const Evaluation& result) {
  const std::size_t classes = dataset.classes.size();
  std::vector<std::vector<std::string>> table = {{"of (rows) found as"}};
  for (std::size_t c = 0; c < classes; ++c) table[0].push_back(std::to_string(c));
  table[0].emplace_back("right");
  for (std::size_t of = 0; of < classes; ++of) {
    std::int64_t all = 0;
    std::vector<std::string> row = {
        fmt::format("{} {}", of, dataset.classes[of] == std::to_string(of) ? "" : dataset.classes[of])};
    for (std::size_t c = 0; c < classes; ++c) {
      const std::int64_t count = result.confusion[of * classes + c];
      all += count;
      row.push_back(count == 0 ? "." : std::to_string(count));
    }
    row.push_back(all == 0 ? ""
                           : fmt::format("{:.1f} %", 100.0 * static_cast<double>(result.confusion[of * classes + of]) /
                                                         static_cast<double>(all)));
    table.push_back(row);
  }
  print_table(table);
}

UpdateProblem::Rule rule_of(const std::string& name) {
  return name == "adam"       ? UpdateProblem::Rule::adam
         : name == "nesterov" ? UpdateProblem::Rule::nesterov
                              : UpdateProblem::Rule::sgd;
}

int run(const TrainOptions& options, Json& json) {
  if (options.list_models) return list_models(options, json);
  require_known("optimizer", options.optimizer, optimizers);
  if (!options.dataset.empty()) require_known("data set", options.dataset, datasets);
  if (options.optimizer == "adam" && options.has_momentum)
    throw bad_input("--momentum beside --optimizer adam, which has none to set: leave it out");
  if (options.model.empty())
    throw bad_input("no model is named: omniconv train --list-models shows those that are built in");
  const bool prints = !options.common.quiet && options.common.json != "-";
  const Model model = load_model(options.model);
  const Dataset dataset = read_dataset(place_for(options, model), options.train_images, options.test_images);
  require_fit(model, dataset, options.batch);
  const Context context(context_options(options.common));
  Network network(context, model,
                  {.batch = options.batch, .rule = rule_of(options.optimizer), .deterministic = options.deterministic});
  network.initialise(static_cast<std::uint64_t>(options.seed));
  json["device"] = describe(context.device());
  json["model"] = model.name, json["parameters"] = model.parameters();
  json["dataset"] = {{"name", dataset.name}, {"train", dataset.train.count}, {"test", dataset.test.count}};
  json["options"] = {{"epochs", options.epochs},
                     {"batch", options.batch},
                     {"rate", options.rate},
                     {"momentum", options.momentum},
                     {"l2", options.l2},
                     {"optimizer", options.optimizer},
                     {"deterministic", options.deterministic},
                     {"seed", options.seed},
                     {"memory_bytes", network.memory_bytes()}};
  json["steps"] = Json::array();
  for (const NetworkStep& step : network.steps())
    json["steps"].push_back(
        {{"layer", step.layer}, {"what", step.what}, {"problem", step.problem}, {"solver", step.solver}});
  if (prints)
    fmt::print("{}: {} parameters, {} on {}\n{}: {} images for training, {} for the test\n\n", model.name,
               model.parameters(), print_bytes(network.memory_bytes()), context.device().id, dataset.name,
               dataset.train.count, dataset.test.count);
  json["epochs"] = Json::array();
  ProgressBar bar(read_environment().progress && prints, 1);
  TrainingHooks hooks;
  hooks.progress = [&](std::int64_t done, std::int64_t all) {
    bar.update(done, all, "steps");
    return !interrupted();
  };
  hooks.epoch = [&](const EpochReport& report) {
    bar.clear();
    json["epochs"].push_back({{"epoch", report.epoch},
                              {"loss", report.loss},
                              {"seconds", report.seconds},
                              {"images_per_second", report.images_a_second}});
    if (prints)
      fmt::print("epoch {} of {}: loss {:.4f}, {:.2f} s, {:.0f} images/s\n", report.epoch, options.epochs, report.loss,
                 report.seconds, report.images_a_second);
    std::fflush(stdout);
    return !interrupted();
  };
  TrainingOptions training{.epochs = options.epochs, .seed = static_cast<std::uint64_t>(options.seed)};
  training.rates.rate = options.rate, training.rates.momentum = options.momentum, training.rates.l2 = options.l2;
  train(network, dataset, training, hooks);
  bar.clear();
  if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted: nothing is kept of the training");
  const Evaluation result = evaluate(network, dataset, dataset.test);
  json["test"] = {{"images", result.images},
                  {"right", result.right},
                  {"accuracy", result.accuracy()},
                  {"confusion", result.confusion}};
  if (prints) {
    fmt::print("\ntest accuracy {:.2f} %: {} of {} images\n\n", 100 * result.accuracy(), result.right, result.images);
    print_confusion(dataset, result);
  }
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("train", "train a small network on labelled images, and test it");
  command->footer(
      "Examples:\n"
      "  omniconv train mnist-conv --data ~/data --dataset fashion-mnist --epochs 5\n"
      "  omniconv train cifar10-vgg3 --data ~/data --device cuda --optimizer nesterov --rate 0.02\n"
      "  omniconv train my-model.txt --data ~/data --train-size 5000 --epochs 1\n"
      "  omniconv train --list-models\n"
      "docs/training.md has the text of models, and the files of data sets.");
  const auto options = std::make_shared<TrainOptions>();
  command->add_option("MODEL", options->model, "a built-in model's name, or a file with a model's text");
  command->add_option("--data", options->data, "the folder of the data set, or of its folder; else /usr/share/datasets")
      ->type_name("DIR")
      ->check(not_empty());
  command->add_option("--dataset", options->dataset, "the set, where several fit the model")
      ->type_name("NAME")
      ->check(known_words({std::begin(datasets), std::end(datasets)}));
  command->add_option("--epochs", options->epochs, "passes over the images for training")
      ->type_name("N")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "images of a step; those of an incomplete last one are left out")
      ->type_name("N")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "how parameters follow their gradients")
      ->type_name("sgd|nesterov|adam")
      ->check(known_words({std::begin(optimizers), std::end(optimizers)}))
      ->capture_default_str();
  command->add_option("--rate", options->rate, "the learning rate")
      ->type_name("R")
      ->check(finite_number(0))
      ->capture_default_str();
  CLI::Option* const momentum = command->add_option("--momentum", options->momentum, "of sgd and nesterov");
  momentum->type_name("M")->check(finite_number(0))->capture_default_str();
  command->add_option("--l2", options->l2, "weight decay: so many times a parameter is added to its gradient")
      ->type_name("L")
      ->check(finite_number(0))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "of the first weights and of the order of images")
      ->type_name("S")
      ->check(whole_number(0, std::int64_t{1} << 62))
      ->capture_default_str();
  command->add_option("--train-size", options->train_images, "only so many images for training, the first ones")
      ->type_name("N")
      ->check(whole_number(1, 1 << 28));
  command->add_option("--test-size", options->test_images, "only so many images for the test, the first ones")
      ->type_name("N")
      ->check(whole_number(1, 1 << 28));
  command->add_flag("--deterministic", options->deterministic, "the same bits in every run");
  command->add_flag("--list-models", options->list_models,
                    "show the built-in models' layers, or MODEL's, and train none");
  add_common(*command, options->common);
  command->callback([options, momentum, &body] {
    options->has_momentum = momentum->count() > 0;
    body = [options] {
      return with_report(options->common.json, "omniconv-train/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
