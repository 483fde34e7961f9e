// Checkpoints: a trained network, and where its training is, in two files of a folder,
//
//   step-00004690.safetensors   the tensors (github.com/huggingface/safetensors), f32
//   step-00004690.json          the model's text, the set's classes, how its pixels are standardised, the progress, and
//                               the checksum of the other file: omniconv-checkpoint/1
//
// Each of them appears whole or not at all, and a checkpoint is there when its JSON is. Files are taken for hostile
// when they are read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "omniconv/model.h"
#include "omniconv/training.h"

namespace omniconv {

struct Checkpoint {
  Model model;
  std::string dataset;               // its name
  std::vector<std::string> classes;  // their names
  Standard standard;
  std::map<std::string, std::string> options;  // of the training, as the caller wants to find them again
  std::map<std::string, std::string> solvers;  // of each problem of a step
  TrainingProgress progress = {};
  std::vector<NamedTensor> tensors = {};
};

// Makes the folder where it is missing: true if it was. Throws bad_input where no checkpoint can be written there, so
// that a training finds that out before it begins.
bool make_checkpoint_folder(const std::string& folder);

// Makes the folder where it is missing, and removes all checkpoints there but the last `kept`, this one among them.
// Returns the path of its JSON.
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, int kept = 2);

// The paths of a folder's checkpoints (their JSON), the last one first; none where there is no such folder.
std::vector<std::string> find_checkpoints(const std::string& folder);

// From a checkpoint's JSON, or from the last one of a folder. Throws bad_input for one that is damaged, or of which a
// file is missing, and names the one before it, if there is one.
Checkpoint load_checkpoint(const std::string& path);

// A network of a checkpoint's model and parameters: of batches for outputs alone, or, with options.trains, as its
// training left it.
Network network_of(const Context& context, const Checkpoint& checkpoint, const NetworkOptions& options);

// Files of tensors alone.
void write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors);
std::vector<NamedTensor> read_tensors(const std::string& path);

}  // namespace omniconv
