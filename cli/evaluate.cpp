// evaluate: what a checkpoint's network finds in a set's images for the test.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <string>

#include "common.h"
#include "labelled.h"
#include "omniconv/checkpoint.h"
#include "omniconv/error.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct EvaluateOptions {
  Common common;
  DataOptions data;
  std::string checkpoint;
  std::int64_t batch = 64, chunk = 0;
};

// How many images its training kept apart for the test; -1: the set has its own.
std::int64_t kept_apart_by(const Checkpoint& checkpoint, const std::string& path) {
  const auto found = checkpoint.options.find("test-size");
  if (found == checkpoint.options.end()) return -1;
  const std::string& text = found->second;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1)
    throw bad_input(fmt::format("{}: the checkpoint is damaged: its test-size is '{}'", path, text));
  return count;
}

// Images that are kept apart of others must be those that the training kept apart, if it did.
void require_not_learnt(const Dataset& dataset, const Checkpoint& checkpoint, const std::string& path) {
  const auto kept = checkpoint.options.find("kept-apart");
  if (dataset.kept_apart.empty() || kept == checkpoint.options.end() || kept->second == dataset.kept_apart) return;
  throw bad_input(
      fmt::format("{}: the training of {} kept {} images apart for the test, and they are not those here, which it may "
                  "have learnt: --test-size {}, or a folder test with images of each class",
                  dataset.origin, path, kept_apart_by(checkpoint, path), kept_apart_by(checkpoint, path)));
}

// As many, and where both have names that are more than numbers, the same.
void require_same_classes(const Dataset& dataset, const Checkpoint& checkpoint, const std::string& path) {
  const std::vector<std::string>&own = dataset.classes, &other = checkpoint.classes;
  if (own.size() != other.size())
    throw bad_input(
        fmt::format("{} has {} classes, and the checkpoint {}: {}", dataset.name, own.size(), other.size(), path));
  for (std::size_t i = 0; i < own.size(); ++i)
    if (const std::string number = std::to_string(i); own[i] != other[i] && own[i] != number && other[i] != number)
      throw bad_input(fmt::format("{}: class {} is '{}', and the checkpoint's is '{}': {}", dataset.name, i, own[i],
                                  other[i], path));
}

int run(const EvaluateOptions& options, Json& json) {
  require_chunk(options.chunk, options.batch);
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint);
  DataOptions data = options.data;
  if (data.dataset.empty()) data.dataset = checkpoint.dataset;
  data.train_images = 0;
  const std::int64_t kept_apart =
      data.dataset == checkpoint.dataset ? kept_apart_by(checkpoint, options.checkpoint) : -1;
  if (data.test_images < 0) data.test_images = kept_apart;
  Dataset dataset = labelled_images(data, checkpoint.model, !options.common.quiet && options.common.json != "-");
  if (!dataset.kept_apart.empty() && kept_apart >= 0 && dataset.test.count != kept_apart)
    throw bad_input(fmt::format(
        "--test-size {}, and the checkpoint's training kept {} images apart for the test: it may have learnt "
        "others: leave --test-size out",
        dataset.test.count, kept_apart));
  require_not_learnt(dataset, checkpoint, options.checkpoint);
  require_same_classes(dataset, checkpoint, options.checkpoint);
  dataset.standard = checkpoint.standard;
  const Context context(context_options(options.common));
  Network network = network_of(context, checkpoint, {.batch = options.batch, .trains = false});
  const Evaluation result = evaluate(network, dataset, dataset.test, options.chunk);
  json["device"] = describe(context.device());
  json["model"] = checkpoint.model.name, json["parameters"] = checkpoint.model.parameters();
  json["steps"] = checkpoint.progress.updates;
  json["dataset"] = describe(dataset, false);
  json["chunk"] = chunk_images(network, dataset.test, options.chunk);
  json["test"] = describe(result);
  if (options.common.quiet || options.common.json == "-") return 0;
  fmt::print("{}: {} parameters, trained for {} steps, on {}\n{}\n{}", checkpoint.model.name,
             checkpoint.model.parameters(), checkpoint.progress.updates, context.device().id, print(dataset, false),
             print_chunk(json["chunk"]));
  print_evaluation(dataset, result);
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("evaluate", "test a trained network on labelled images");
  command->footer(
      "Examples:\n"
      "  omniconv evaluate run1\n"
      "  omniconv evaluate run1 --data ~/data\n"
      "  omniconv evaluate run2 --data ~/flowers\n"
      "  omniconv evaluate run1/step-00004685.json --data ~/data --device cuda --batch 1000\n"
      "  omniconv evaluate run3 --data ~/photos --chunk 10000\n"
      "docs/training.md says what a checkpoint is.");
  const auto options = std::make_shared<EvaluateOptions>();
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "a folder of checkpoints, of which the last is taken, or one's JSON")
      ->required()
      ->check(not_empty());
  add_data(*command, options->data);
  command->add_option("--batch", options->batch, "images at a time")
      ->type_name("N")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  add_chunk(*command, options->chunk);
  add_common(*command, options->common);
  command->callback([options, &body] {
    body = [options] {
      return with_report(options->common.json, "omniconv-evaluate/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
