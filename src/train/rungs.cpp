#include "train/rungs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "omniconv/error.h"

namespace omniconv {

std::string_view name(Rung rung) {
  constexpr std::string_view names[] = {"naive", "tiled", "work-per-thread", "own", "vendor"};
  return names[static_cast<std::size_t>(rung)];
}

namespace training {
namespace {

// Those that have a solver OPERATION/rungs.
constexpr std::array<std::string_view, 6> operations_with_rungs = {"conv2d",     "bias_add", "loss",
                                                                   "activation", "update",   "add"};

}  // namespace

void require_rung(const Context& context, const NetworkOptions& options) {
  const Rung rung = options.rungs.rung;
  if (rung > Rung::vendor) throw bad_input(fmt::format("rung is number {}: there are 5", static_cast<int>(rung)));
  if (rung >= Rung::own) return;
  if (context.device().id.starts_with("cpu"))
    throw bad_input(
        fmt::format("the rung {} is kernels of OpenCL and CUDA devices, and {} is neither: choose the device "
                    "opencl",
                    name(rung), context.device().id));
  if (options.precision != Precision::f32)
    throw bad_input(fmt::format("the rung {} is kernels of f32: choose the precision f32", name(rung)));
}

bool is_unfused(const RungOptions& rungs) {
  return rungs.rung != Rung::own;
}

RungSolver solver_on(const RungOptions& rungs, std::string_view operation) {
  if (rungs.rung == Rung::vendor) return {operation == "conv2d" ? "conv2d/cudnn/gpu.1" : "", ""};
  const bool has_rungs =
      std::find(operations_with_rungs.begin(), operations_with_rungs.end(), operation) != operations_with_rungs.end();
  if (rungs.rung == Rung::own || !has_rungs) return {};
  const std::string solver = fmt::format("{}/rungs/gpu.1", operation);
  if (rungs.rung == Rung::naive) return {solver, ""};
  const bool is_last = rungs.rung == Rung::work_per_thread;
  return {solver, fmt::format("rung={} tile_m={} tile_n={} work={}", is_last ? 3 : 2, rungs.tile_rows,
                              rungs.tile_columns, is_last ? rungs.work_per_thread : 1)};
}

}  // namespace training
}  // namespace omniconv
