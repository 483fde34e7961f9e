// evaluate: what a checkpoint's network finds in a set's images for the test.
#include <fmt/format.h>

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
  std::int64_t batch = 64;
};

int run(const EvaluateOptions& options, Json& json) {
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint);
  DataOptions data = options.data;
  if (data.dataset.empty()) data.dataset = checkpoint.dataset;
  data.train_images = 0;
  Dataset dataset = labelled_images(data, checkpoint.model);
  if (dataset.classes.size() != checkpoint.classes.size())
    throw bad_input(fmt::format("{} has {} classes, and the checkpoint {}: {}", dataset.name, dataset.classes.size(),
                                checkpoint.classes.size(), options.checkpoint));
  dataset.standard = checkpoint.standard;
  const Context context(context_options(options.common));
  Network network = network_of(context, checkpoint, {.batch = options.batch, .trains = false});
  const Evaluation result = evaluate(network, dataset, dataset.test);
  json["device"] = describe(context.device());
  json["model"] = checkpoint.model.name, json["parameters"] = checkpoint.model.parameters();
  json["steps"] = checkpoint.progress.updates;
  json["dataset"] = describe(dataset, false);
  json["test"] = describe(result);
  if (options.common.quiet || options.common.json == "-") return 0;
  fmt::print("{}: {} parameters, trained for {} steps, on {}\n{}\n", checkpoint.model.name,
             checkpoint.model.parameters(), checkpoint.progress.updates, context.device().id, print(dataset, false));
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
      "  omniconv evaluate run1/step-00004685.json --data ~/data --device cuda --batch 1000\n"
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
  add_common(*command, options->common);
  command->callback([options, &body] {
    body = [options] {
      return with_report(options->common.json, "omniconv-evaluate/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
