// train's rungs: which kernels compute, and a training on each of them.
#pragma once

#include <cstdint>
#include <string>

#include "common.h"
#include "omniconv/training.h"
#include "report.h"

namespace omniconv::cli {

// As the command has them; empty and 0: not given.
struct RungWords {
  std::string rung, tile;
  std::int64_t work = 0;
  bool ladder = false;
};
void add_rungs(CLI::App& command, RungWords& words);
RungOptions parse_rungs(const RungWords& words);
// As --rung and what may stand behind it: "tiled --tile 16x16".
std::string print(const RungOptions& options);

struct Ladder {
  const Context& context;
  const Model& model;
  const Dataset& dataset;
  NetworkOptions network;
  TrainingOptions training;
  std::uint64_t seed = 1;
  bool prints = true;
};
// A network anew on each rung from the same seed, then all of them side by side; rungs that the device does not have
// with the reason.
void climb(const Ladder& ladder, Json& json);

}  // namespace omniconv::cli
