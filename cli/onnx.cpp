// export and import: trained networks as ONNX files.
#include "omniconv/onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "common.h"
#include "omniconv/checkpoint.h"
#include "omniconv/error.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct ExportOptions {
  std::string checkpoint, onnx, json;
  bool quiet = false;
};

struct ImportOptions {
  std::string onnx, folder, json;
  std::vector<std::string> classes;
  std::vector<double> mean, deviation;
  bool quiet = false;
};

void add_report(CLI::App& command, std::string& json, bool& quiet) {
  command.add_option("--json", json, "write the result as JSON to FILE (- for stdout)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--quiet,-q", quiet, "print nothing but errors");
}

int run(const ExportOptions& options, Json& json) {
  const Checkpoint checkpoint = load_checkpoint(options.checkpoint);
  export_onnx(checkpoint, options.onnx);
  json["model"] = checkpoint.model.name, json["parameters"] = checkpoint.model.parameters();
  json["onnx"] = options.onnx;
  if (options.quiet || options.json == "-") return 0;
  fmt::print("{}: {} parameters, trained for {} steps, in {}\n", checkpoint.model.name, checkpoint.model.parameters(),
             checkpoint.progress.updates, options.onnx);
  return 0;
}

// As many as the model's channels, of which the file says nothing or something else.
void replace(std::vector<double>& of, const std::vector<double>& given, const char* option) {
  if (given.empty()) return;
  if (given.size() != of.size())
    throw bad_input(fmt::format("{} {}: the network has {} channels, and a number of each is expected", option,
                                fmt::join(given, ","), of.size()));
  of = given;
}

int run(const ImportOptions& options, Json& json) {
  if (!find_checkpoints(options.folder).empty())
    throw bad_input(fmt::format("{}: checkpoints lie there already: name another folder", options.folder));
  Checkpoint checkpoint = import_onnx(options.onnx);
  if (!options.classes.empty()) {
    if (std::ssize(options.classes) > checkpoint.model.classes())
      throw bad_input(fmt::format("--classes has {} names, and the network {} outputs", options.classes.size(),
                                  checkpoint.model.classes()));
    checkpoint.classes = options.classes;
  }
  replace(checkpoint.standard.mean, options.mean, "--mean");
  replace(checkpoint.standard.deviation, options.deviation, "--deviation");
  const std::string path = save_checkpoint(options.folder, checkpoint);
  json["model"] = checkpoint.model.name, json["parameters"] = checkpoint.model.parameters();
  json["layers"] = to_text(checkpoint.model), json["classes"] = checkpoint.classes;
  json["mean"] = checkpoint.standard.mean, json["deviation"] = checkpoint.standard.deviation;
  json["checkpoint"] = path;
  if (options.quiet || options.json == "-") return 0;
  fmt::print("{}: {} parameters, {} classes, in {}\n\n{}", one_line(checkpoint.model.name),
             checkpoint.model.parameters(), checkpoint.classes.size(), path, to_text(checkpoint.model));
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("export", "write a trained network as an ONNX file");
  command->footer(
      "Examples:\n"
      "  omniconv export run1 --onnx net.onnx\n"
      "docs/training.md says what the file has.");
  const auto options = std::make_shared<ExportOptions>();
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "a folder of checkpoints, of which the last is taken, or one's JSON")
      ->required()
      ->check(not_empty());
  command->add_option("--onnx", options->onnx, "the file that is written")
      ->type_name("FILE")
      ->required()
      ->check(not_empty());
  add_report(*command, options->json, options->quiet);
  command->callback([options, &body] {
    body = [options] {
      return with_report(options->json, "omniconv-export/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

void add_import(CLI::App& app, Body& body) {
  CLI::App* const command = app.add_subcommand("import", "make a checkpoint of a network in an ONNX file");
  command->footer(
      "Examples:\n"
      "  omniconv import net.onnx -o run2\n"
      "  omniconv import resnet.onnx -o run3 --mean 0.491,0.482,0.447 --deviation 0.247,0.243,0.262\n"
      "docs/training.md says which networks are taken.");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("ONNX", options->onnx, "the file")->required()->check(not_empty());
  command->add_option("--output,-o", options->folder, "the folder in which the checkpoint is saved")
      ->type_name("DIR")
      ->required()
      ->check(not_empty());
  command->add_option("--classes", options->classes, "the names of the classes, in the order of the outputs")
      ->type_name("NAMES")
      ->delimiter(',');
  command->add_option("--mean", options->mean, "what is taken from pixels of 0 to 1: a number of each channel")
      ->type_name("NUMBERS")
      ->delimiter(',')
      ->check(finite_number());
  command->add_option("--deviation", options->deviation, "by what they are then divided")
      ->type_name("NUMBERS")
      ->delimiter(',')
      ->check(finite_number());
  add_report(*command, options->json, options->quiet);
  command->callback([options, &body] {
    body = [options] {
      return with_report(options->json, "omniconv-import/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
