// train: a small network, from labelled images to what it finds in those for the test.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint_folder.h"
#include "common.h"
#include "core/suggest.h"
#include "epochs.h"
#include "labelled.h"
#include "ladder.h"
#include "models.h"
#include "omniconv/checkpoint.h"
#include "omniconv/error.h"
#include "omniconv/training.h"
#include "operations.h"
#include "plot.h"
#include "progress.h"
#include "report.h"
#include "train/event_file.h"

namespace omniconv::cli {
namespace {

struct TrainOptions {
  Common common;
  DataOptions data;
  RungWords rungs;
  std::string model, optimizer = "sgd", schedule = "constant", augment, precision = "f32", checkpoint, log, plot,
                     tensorboard;
  std::vector<std::string> solvers;
  std::int64_t epochs = 5, batch = 64, seed = 1, validation = 0, early_stop = 0, checkpoint_every = 0, chunk = 0;
  double rate = 0.01, momentum = 0.9, l1 = 0, l2 = 0, clip = 0, clip_norm = 0;
  bool list_models = false, deterministic = false, has_momentum = false, resume = false, operations = false;
};

constexpr std::string_view optimizers[] = {"sgd", "nesterov", "adam"}, precisions[] = {"f32", "tf32", "bf16", "f16"};

std::size_t place_of_word(const char* what, const std::string& word, std::span<const std::string_view> known) {
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) throw bad_input(fmt::format("unknown {} '{}': {}", what, word, suggest(word, known)));
  return static_cast<std::size_t>(found - known.begin());
}

// "flip,crop4"
Augmentation parse_augmentation(const std::string& text) {
  Augmentation found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    constexpr std::string_view crop = "crop";
    if (word == "flip") {
      found.flip = true;
      continue;
    }
    const char* const begin = word.data() + std::min(word.size(), crop.size());
    const auto [last, error] = std::from_chars(begin, word.data() + word.size(), found.shift);
    if (!word.starts_with(crop) || error != std::errc() || last != word.data() + word.size() || found.shift < 1)
      throw bad_input(
          fmt::format("--augment '{}': '{}' is neither flip nor crop with pixels behind it, as in crop4", text, word));
  }
  return found;
}

// What of a training a checkpoint keeps, so that another one cannot go on from it; and what may be changed.
struct Kept {
  std::map<std::string, std::string> fixed, free;
};
Kept kept_of(const TrainOptions& options, const Dataset& dataset) {
  Kept kept{.fixed = {{"batch", std::to_string(options.batch)},
                      {"seed", std::to_string(options.seed)},
                      {"optimizer", options.optimizer},
                      {"precision", options.precision},
                      {"augment", options.augment},
                      {"validation", std::to_string(options.validation)},
                      {"train-size", std::to_string(dataset.train.count)},
                      {"rung", print(parse_rungs(options.rungs))}},
            .free = {{"epochs", std::to_string(options.epochs)},
                     {"rate", fmt::format("{}", options.rate)},
                     {"momentum", fmt::format("{}", options.momentum)},
                     {"l1", fmt::format("{}", options.l1)},
                     {"l2", fmt::format("{}", options.l2)},
                     {"clip", fmt::format("{}", options.clip)},
                     {"clip-norm", fmt::format("{}", options.clip_norm)},
                     {"schedule", options.schedule}}};
  if (!dataset.kept_apart.empty()) {
    kept.fixed["test-size"] = std::to_string(dataset.test.count);
    kept.fixed["kept-apart"] = dataset.kept_apart;
  }
  return kept;
}

// The last checkpoint of the folder, for this training; none where the folder has none yet.
std::optional<Checkpoint> checkpoint_to_resume(const TrainOptions& options, const Model& model,
                                               const Dataset& dataset) {
  if (!options.resume) return std::nullopt;
  if (options.checkpoint.empty()) throw bad_input("--resume needs --checkpoint DIR, where the checkpoints are");
  if (find_checkpoints(options.checkpoint).empty()) return std::nullopt;
  Checkpoint found = load_checkpoint(options.checkpoint);
  if (to_text(found.model) != to_text(model))
    throw bad_input(fmt::format("{}: its checkpoint is of the model {}, which is another one than {}",
                                options.checkpoint, found.model.name, model.name));
  if (found.dataset != dataset.name)
    throw bad_input(fmt::format("{}: its checkpoint is of {}, and the images are {}", options.checkpoint, found.dataset,
                                dataset.name));
  found.options.try_emplace("rung", "own");  // checkpoints before there were rungs
  const Kept kept = kept_of(options, dataset);
  for (const auto& [name, value] : kept.fixed)
    if (name != "kept-apart" && found.options[name] != value)
      throw bad_input(
          fmt::format("{}: its checkpoint was made with --{} {}, and this is {}: a training goes on as it "
                      "began",
                      options.checkpoint, name, found.options[name], value));
  if (!dataset.kept_apart.empty() && found.options["kept-apart"] != dataset.kept_apart)
    throw bad_input(fmt::format(
        "{}: images have come to {}, or gone, since its checkpoint was made, and others would be kept apart for "
        "the test: make the folder as it was, or begin anew",
        options.checkpoint, dataset.origin));
  return found;
}

// Writes checkpoints beside the training, one at a time.
class CheckpointWriter {
 public:
  CheckpointWriter(const TrainOptions& options, const Network& network, const Dataset& dataset)
      : options_(options), network_(network), dataset_(dataset) {}

  void write(const TrainingProgress& progress, std::vector<NamedTensor>&& tensors) {
    finish();
    Checkpoint made{.model = network_.model(),
                    .dataset = dataset_.name,
                    .classes = dataset_.classes,
                    .standard = standard_of(dataset_),
                    .options = kept_of(options_, dataset_).fixed,
                    .solvers = {},
                    .progress = progress,
                    .tensors = std::move(tensors)};
    made.options.merge(kept_of(options_, dataset_).free);
    made.options["device"] = network_.context().device().id;
    for (const NetworkStep& step : network_.steps()) made.solvers[step.problem] = step.solver;
    written_ = std::async(std::launch::async, [folder = options_.checkpoint, own = std::move(made)] {
      return save_checkpoint(folder, own);
    });
  }
  // Waits for the last one; its path.
  const std::string& finish() {
    if (written_.valid()) last_ = written_.get();
    return last_;
  }

 private:
  const TrainOptions& options_;
  const Network& network_;
  const Dataset& dataset_;
  std::future<std::string> written_;
  std::string last_;
};

NetworkOptions network_options(const TrainOptions& options) {
  NetworkOptions made{.batch = options.batch, .deterministic = options.deterministic};
  constexpr UpdateProblem::Rule rules[] = {UpdateProblem::Rule::sgd, UpdateProblem::Rule::nesterov,
                                           UpdateProblem::Rule::adam};
  constexpr Precision known[] = {Precision::f32, Precision::tf32, Precision::bf16, Precision::f16};
  made.rule = rules[place_of_word("optimizer", options.optimizer, optimizers)];
  made.precision = known[place_of_word("precision", options.precision, precisions)];
  made.clips_norm = options.clip_norm > 0;
  made.seed = static_cast<std::uint64_t>(options.seed);
  made.solvers = parse_solvers(options.solvers);
  made.rungs = parse_rungs(options.rungs);
  return made;
}

TrainingOptions training_options(const TrainOptions& options) {
  TrainingOptions made{.epochs = options.epochs};
  made.rates.rate = options.rate, made.rates.momentum = options.momentum, made.rates.l2 = options.l2;
  made.rates.l1 = options.l1;
  if (options.clip > 0) made.rates.clip = options.clip;
  if (options.clip_norm > 0) made.rates.clip_norm = options.clip_norm;
  made.schedule = parse_schedule(options.schedule);
  made.seed = static_cast<std::uint64_t>(options.seed);
  made.validation = options.validation, made.early_stop = options.early_stop;
  made.augmentation = parse_augmentation(options.augment);
  made.checkpoint_every = options.checkpoint_every, made.chunk = options.chunk;
  return made;
}

Json options_json(const TrainOptions& options) {
  return {{"epochs", options.epochs},
          {"batch", options.batch},
          {"rate", options.rate},
          {"schedule", options.schedule},
          {"momentum", options.momentum},
          {"l1", options.l1},
          {"l2", options.l2},
          {"clip", options.clip},
          {"clip_norm", options.clip_norm},
          {"optimizer", options.optimizer},
          {"precision", options.precision},
          {"augment", options.augment},
          {"validation", options.validation},
          {"deterministic", options.deterministic},
          {"seed", options.seed},
          {"rung", print(parse_rungs(options.rungs))}};
}

void describe_options(const TrainOptions& options, const Network& network, Json& json) {
  json["options"] = options_json(options);
  json["options"]["memory_bytes"] = network.memory_bytes();
  json["steps"] = steps_json(network);
}

TrainingPicture picture_of(const Model& model, const Dataset& dataset, const std::vector<EpochReport>& epochs,
                           const Evaluation& result) {
  return {.title = fmt::format("{} on {}: {} of {} images of the test right, {:.2f} %",
                               std::filesystem::path(model.name).filename().string(), dataset.name, result.right,
                               result.images, 100 * result.accuracy()),
          .epochs = epochs,
          .classes = dataset.classes,
          .test = result};
}

// What a ladder, of which nothing is kept but its table, has no use for.
void require_no_more(const TrainOptions& options) {
  for (const auto& [option, is_given] : {std::pair("--checkpoint", !options.checkpoint.empty()),
                                         {"--resume", options.resume},
                                         {"--log", !options.log.empty()},
                                         {"--plot", !options.plot.empty()},
                                         {"--tensorboard", !options.tensorboard.empty()},
                                         {"--solver", !options.solvers.empty()},
                                         {"--operations", options.operations}})
    if (is_given)
      throw bad_input(fmt::format(
          "{} beside --ladder, which trains several networks and shows a table of them: leave one out", option));
}

int run(const TrainOptions& options, Json& json) {
  if (options.list_models) {
    const bool halves = place_of_word("precision", options.precision, precisions) >= 2;
    return list_models(options.model, {.batch = options.batch, .element_bytes = halves ? 2 : 4},
                       !options.common.quiet && options.common.json != "-", json);
  }
  NetworkOptions of_network = network_options(options);
  const TrainingOptions of_training = training_options(options);
  if (options.optimizer == "adam" && options.has_momentum)
    throw bad_input("--momentum beside --optimizer adam, which has none to set: leave it out");
  if (options.model.empty())
    throw bad_input("no model is named: omniconv train --list-models shows those that are built in");
  if (options.early_stop > 0 && options.validation == 0)
    throw bad_input("--early-stop needs --validation N: the images that it looks at");
  if (options.checkpoint.empty() && options.checkpoint_every > 0)
    throw bad_input("--checkpoint-every needs --checkpoint DIR, where the checkpoints go");
  require_chunk(options.chunk, options.batch);
  if (options.rungs.ladder) require_no_more(options);
  const bool prints = !options.common.quiet && options.common.json != "-";
  const Model model = load_model(options.model);
  PlotOutput plot(options.plot);
  Dataset dataset = labelled_images(options.data, model, prints);
  require_fit(model, dataset, options.batch, options.validation);
  dataset.standard = standard_of(dataset);  // once, and not for each checkpoint
  std::optional<Checkpoint> begin = checkpoint_to_resume(options, model, dataset);
  const CheckpointFolder folder(options.checkpoint);
  require_log(options.log);
  std::optional<training::EventFile> events;
  if (!options.tensorboard.empty()) events.emplace(options.tensorboard, begin ? begin->progress.updates : 0);
  const Context context(context_options(options.common));
  if (options.rungs.ladder) {
    climb({.context = context,
           .model = model,
           .dataset = dataset,
           .network = of_network,
           .training = of_training,
           .seed = static_cast<std::uint64_t>(options.seed),
           .prints = prints},
          json);
    json["options"] = options_json(options);
    json["options"].erase("rung");  // all of them
    return 0;
  }
  if (begin && begin->options["device"] == context.device().id)
    for (const auto& one : begin->solvers)
      if (one.second.find("/rungs/") == std::string::npos) of_network.solvers.insert(one);  // the rung names the others
  Network network = begin ? network_of(context, *begin, of_network) : Network(context, model, of_network);
  if (!begin) network.initialise(static_cast<std::uint64_t>(options.seed));
  const TrainingProgress progress = begin ? begin->progress : TrainingProgress();
  json["device"] = describe(context.device());
  json["model"] = model.name, json["parameters"] = model.parameters();
  json["dataset"] = describe(dataset, true);
  describe_options(options, network, json);
  const std::int64_t chunk = chunk_images(network, dataset.train, options.chunk);
  json["options"]["chunk"] = chunk;
  if (prints) {
    fmt::print("{}: {} parameters, {} on {}\n{}\n{}", model.name, model.parameters(),
               print_bytes(network.memory_bytes()), context.device().id, print(dataset, true), print_chunk(chunk));
    if (begin)
      fmt::print("goes on after {} steps: {} of epoch {}\n", progress.updates, progress.step, progress.epoch);
    else if (options.resume)
      fmt::print("{} has no checkpoint yet: begins anew\n", options.checkpoint);
    fmt::print("\n");
  }
  std::vector<EpochReport> epochs = progress.epochs;
  json["epochs"] = Json::array();
  for (const EpochReport& epoch : epochs) json["epochs"].push_back(epoch_json(epoch));
  ProgressBar bar(read_environment().progress && prints, 1);
  CheckpointWriter writer(options, network, dataset);
  TrainingHooks hooks = hooks_of(bar);
  hooks.epoch = [&](const EpochReport& report) {
    bar.clear();
    epochs.push_back(report);
    json["epochs"].push_back(epoch_json(report));
    write_log(options.log, epochs);
    if (events) add_events(*events, report);
    if (prints) print_epoch(report, options.epochs);
    return !interrupted();
  };
  if (!options.checkpoint.empty())
    hooks.checkpoint = [&](const TrainingProgress& at, std::vector<NamedTensor>&& tensors) {
      writer.write(at, std::move(tensors));
    };
  train(network, dataset, of_training, hooks, progress);
  bar.clear();
  const std::string& last = writer.finish();
  if (!last.empty()) json["checkpoint"] = last;
  if (interrupted())
    throw Error(ErrorKind::interrupted,
                last.empty() ? "interrupted: nothing is kept of the training: --checkpoint DIR would keep it"
                             : fmt::format("interrupted: {} keeps the training; --resume goes on from there", last));
  if (prints && !last.empty()) fmt::print("checkpoint: {}\n", last);
  const Evaluation result = evaluate(network, dataset, dataset.test, options.chunk);
  json["test"] = describe(result);
  if (events) add_events(*events, network, result);
  if (prints) print_evaluation(dataset, result);
  plot.write(picture_of(model, dataset, epochs, result));
  if (prints && !options.plot.empty()) fmt::print("plot: {}\n", options.plot);
  if (options.operations) report_operations(network, seconds_of_step(epochs, options.batch), prints, json);
  return 0;
}

void add_training_options(CLI::App& command, TrainOptions& options) {
  command.add_option("--epochs", options.epochs, "passes over the images for training")
      ->type_name("N")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  command.add_option("--batch", options.batch, "images of a step; those of an incomplete last one are left out")
      ->type_name("N")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--optimizer", options.optimizer, "how parameters follow their gradients")
      ->type_name("sgd|nesterov|adam")
      ->check(known_words({std::begin(optimizers), std::end(optimizers)}))
      ->capture_default_str();
  command.add_option("--rate", options.rate, "the learning rate")
      ->type_name("R")
      ->check(finite_number(0))
      ->capture_default_str();
  command
      .add_option("--schedule", options.schedule,
                  "how the rate goes: constant, step:EPOCHS,FACTOR or cosine[:LEAST], behind warm-up:EPOCHS, or not")
      ->type_name("S")
      ->check(known_words({"constant", "step:", "cosine", "warm-up:"}))
      ->capture_default_str();
  command.add_option("--l2", options.l2, "weight decay: so many times a parameter is added to its gradient")
      ->type_name("L")
      ->check(finite_number(0))
      ->capture_default_str();
  command.add_option("--l1", options.l1, "so many times a parameter's sign is added to its gradient")
      ->type_name("L")
      ->check(finite_number(0))
      ->capture_default_str();
  command.add_option("--clip", options.clip, "the largest magnitude of a gradient's number; 0: any")
      ->type_name("G")
      ->check(finite_number(0))
      ->capture_default_str();
  command.add_option("--clip-norm", options.clip_norm, "the largest norm of the gradient of all parameters; 0: any")
      ->type_name("N")
      ->check(finite_number(0))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "of the first weights, the order of images, and all else that is drawn")
      ->type_name("S")
      ->check(whole_number(0, std::int64_t{1} << 62))
      ->capture_default_str();
  command
      .add_option("--augment", options.augment,
                  "images change in each epoch: flip, left to right, and cropN, up to N pixels in each direction")
      ->type_name("flip,cropN")
      ->check(known_words({"flip", "crop4", "flip,crop4"}));
  command.add_option("--precision", options.precision, "what passes between layers, and how products are made")
      ->type_name("f32|tf32|bf16|f16")
      ->check(known_words({std::begin(precisions), std::end(precisions)}))
      ->capture_default_str();
  command
      .add_option("--train-size", options.data.train_images,
                  "only so many images for training, the first ones; of folders drawn ones")
      ->type_name("N")
      ->check(whole_number(1, 1 << 28));
  add_chunk(command, options.chunk);
  command.add_option("--validation", options.validation, "so many of them are kept apart and looked at each epoch")
      ->type_name("N")
      ->check(whole_number(1, 1 << 28));
  command.add_option("--early-stop", options.early_stop, "ends after so many epochs without a better validation")
      ->type_name("EPOCHS")
      ->check(whole_number(1, 1000000));
}

void add_keeping_options(CLI::App& command, TrainOptions& options) {
  command.add_option("--checkpoint", options.checkpoint, "a folder for checkpoints, one at the end of each epoch")
      ->type_name("DIR")
      ->check(not_empty());
  command.add_option("--checkpoint-every", options.checkpoint_every, "one after so many steps, instead")
      ->type_name("STEPS")
      ->check(whole_number(1, 1 << 30));
  command.add_flag("--resume", options.resume, "go on from the folder's last checkpoint, if it has one");
  command.add_option("--log", options.log, "a line for each epoch, as comma-separated values")
      ->type_name("FILE.csv")
      ->check(not_empty());
  command.add_option("--tensorboard", options.tensorboard, "a folder for curves that TensorBoard shows meanwhile")
      ->type_name("DIR")
      ->check(not_empty());
  command
      .add_option("--plot", options.plot,
                  "a picture of loss and accuracy by epoch, and of the classes found in the test; needs cairo")
      ->type_name("FILE.png")
      ->check(not_empty());
  add_solvers(command, options.solvers);
  add_rungs(command, options.rungs);
  command.add_flag("--operations", options.operations, "time each operation of a step by itself, at the end");
  command.add_flag("--deterministic", options.deterministic, "the same bits in every run");
  command.add_flag("--list-models", options.list_models,
                   "show the built-in models' layers, or MODEL's, and train none");
}

}  // namespace

void add_train(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("train", "train a small network on labelled images, and test it");
  command->footer(
      "Examples:\n"
      "  omniconv train mnist-conv --validation 500 --plot training.png\n"
      "  omniconv train mnist-conv --data ~/data --dataset fashion-mnist --epochs 5\n"
      "  omniconv train cifar10-vgg3 --data ~/data --device cuda --optimizer nesterov --rate 0.02\n"
      "  omniconv train mnist-big --data ~/data --checkpoint run1 --resume\n"
      "  omniconv train my-model.txt --data ~/flowers --epochs 20 --tensorboard curves\n"
      "  omniconv train mnist-conv --device opencl --epochs 1 --ladder\n"
      "  omniconv train my-model.txt --data ~/data --train-size 5000 --epochs 1\n"
      "  omniconv train my-model.txt --data ~/photos --chunk 10000\n"
      "  omniconv train --list-models\n"
      "docs/training.md has the text of models, and the files of data sets.");
  const auto options = std::make_shared<TrainOptions>();
  command->add_option("MODEL", options->model, "a built-in model's name, or a file with a model's text");
  add_data(*command, options->data);
  add_training_options(*command, *options);
  CLI::Option* const momentum = command->add_option("--momentum", options->momentum, "of sgd and nesterov");
  momentum->type_name("M")->check(finite_number(0))->capture_default_str();
  add_keeping_options(*command, *options);
  add_common(*command, options->common);
  command->callback([options, momentum, &body] {
    options->has_momentum = momentum->count() > 0;
    body = [options] {
      return with_report(options->common.json, "omniconv-train/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
