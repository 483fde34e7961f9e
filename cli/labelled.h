// Labelled images for the commands that train and test networks.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "common.h"
#include "omniconv/dataset.h"
#include "omniconv/training.h"
#include "report.h"

namespace omniconv::cli {

struct DataOptions {
  std::string data, dataset;
  std::int64_t train_images = -1, test_images = -1;
};
void add_data(CLI::App& command, DataOptions& options);

// --chunk, as chunk_images() takes it; and what a report says of what it gave: nothing where all images are on the
// device.
void add_chunk(CLI::App& command, std::int64_t& chunk);
// Before any work: what train() and evaluate() would refuse.
void require_chunk(std::int64_t chunk, std::int64_t batch);
std::string print_chunk(std::int64_t images);

// --solver, as NetworkOptions::solvers has them.
void add_solvers(CLI::App& command, std::vector<std::string>& solvers);
std::map<std::string, std::string> parse_solvers(const std::vector<std::string>& given);

std::string print(const ModelShape& shape);

// The set that the model's input fits, of those in the folder; as much of it as is asked for. Folders of images fit
// every model, and are taken where nothing else does, or by their name. Without a folder one that is installed, comes
// with omniconv, or is made. Many files show how far they are.
Dataset labelled_images(const DataOptions& options, const Model& model, bool shows_progress);
// What a report says of it, and the line that says which it is.
Json describe(const Dataset& dataset, bool with_training);
std::string print(const Dataset& dataset, bool with_training);

// What was found in its images for the test, as a report has it and as a table.
Json describe(const Evaluation& result);
void print_evaluation(const Dataset& dataset, const Evaluation& result);

}  // namespace omniconv::cli
