// Matrix products on OpenCL and CUDA devices by tiles: through local memory, then registers.
#include "embedded/tiled.kernel.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gemm/tiled/tiles.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, devices::Device& device, const GemmChoice& choice)
      : GemmPlanBody(product),
        choice_(choice),
        groups_(tiles_of(product.problem, choice.tile.m, choice.tile.n) * choice.parts) {
    std::vector<devices::Definition> definitions = gemm_definitions(product);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("TILE_M", choice.tile.m);
    add("TILE_N", choice.tile.n);
    add("TILE_K", choice.tile.k);
    add("QUADS_M", choice.tile.quads_m);
    add("QUADS_N", choice.tile.quads_n);
    add("RESIDENT", choice.tile.resident);
    add("A_ALONG_K", product.problem.transpose_a ? 0 : 1);
    add("B_ALONG_K", product.problem.transpose_b ? 1 : 0);
    add("PARTS", choice.parts);
    definitions.push_back({"PART_K", fmt::format("{}L", choice.part_k)});
    program_ = device.build(
        std::string(kernels::gemm_elements()) + std::string(kernels::register_tiles()) + std::string(tiled_kernel),
        definitions, {.occupancy = {choice.tile.resident, choice.tile.group()}});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    const bool splits = choice_.parts > 1;
    const Operand& parts = splits ? arrays.workspace : arrays.c;  // which is not used then
    const std::int64_t group = choice_.tile.group(), parts_offset = parts.offset_bytes / 16;
    launch_batches(task().problem.batch, groups_, [&](std::int64_t first, std::int64_t batches) {
      sequence.launch(program_, "tiled", {{groups_ * batches * group, 1}, {group, 1}},
                      gemm_arguments(task(), arrays, parts.buffer.impl().get(), parts_offset, first),
                      {.overlaps = true});
    });
    if (splits) combine(sequence, arrays);
  }

 private:
  void combine(devices::Sequence& sequence, const GemmArrays& arrays) const {
    const auto all = gemm_arguments(task(), arrays, arrays.workspace.buffer.impl().get(),
                                    arrays.workspace.offset_bytes / 16, task().problem.batch);
    const std::int64_t items = choice_.workspace_bytes / 16 / choice_.parts;
    sequence.launch(program_, "combine", {{round_up(items, combine_group), 1}, {combine_group, 1}},
                    std::span(all).subspan(4), {.overlaps = true});  // but for a and b
  }

  GemmChoice choice_;
  std::int64_t groups_;  // for each matrix
  std::shared_ptr<devices::Program> program_;
};

class TiledGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/tiled/gpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = refusal(task, *device); !reason.empty()) return reason;
    GemmChoice choice;
    if (request.tuning.empty()) {
      choice = choose_tiles(task, *device, request.max_workspace_bytes);
    } else {
      auto asked_for = tuned(Tuning::parse(request.tuning), work_of(task), *device, request.max_workspace_bytes);
      if (std::string* const reason = std::get_if<std::string>(&asked_for)) return *reason;
      choice = std::get<GemmChoice>(asked_for);
    }
    const std::int64_t tiles = tiles_of(task.problem, choice.tile.m, choice.tile.n);
    if (tiles > most_groups / part_limit)
      return fmt::format("a launch has at most {} tiles, not {}", most_groups / part_limit, tiles);
    const double cost = device->info().is_gpu ? choice.cost : cpu_multiply_add * multiply_adds(task.problem);
    return Offer{
        .cost = {launched(*device, choice.parts > 1 ? 2 : 1, launch_cost(*device) + cost)},
        // The whole chain; parts of it are shorter, and there are fewer of them than products of one.
        .bound = gemm_bound(task, static_cast<double>(task.problem.k)),
        .workspace_bytes = choice.workspace_bytes,
        .tuning = tuning_of(choice),
        .plan = [=] { return plan_of_tiles(task, *device, choice); },
    };
  }

  std::span<const Tunable> tunables() const override { return tile_tunables(); }

 private:
  static std::string refusal(const GemmTask& task, const devices::Device& device) {
    if (std::string reason = gemm_gpu_refusal(task, device); !reason.empty()) return reason;
    // One tile has both the fewest work items and the least local memory.
    const GemmTile& least =
        *std::min_element(gemm_tiles().begin(), gemm_tiles().end(),
                          [](const auto& a, const auto& b) { return a.local_bytes() < b.local_bytes(); });
    if (std::string reason = local_memory_refusal(device, least.local_bytes()); !reason.empty()) return reason;
    return group_refusal(device, least.group());
  }

  static constexpr std::int64_t part_limit = 64;  // of tiles.cpp
  static constexpr double cpu_multiply_add = 15;  // PoCL: work items take turns at every barrier
};

}  // namespace

std::shared_ptr<const GemmPlanBody> plan_of_tiles(const GemmTask& task, devices::Device& device,
                                                  const GemmChoice& choice) {
  return std::make_shared<Plan>(task, device, choice);
}

const GemmSolver& gemm_tiled_gpu() {
  static const TiledGpu solver;
  return solver;
}

}  // namespace omniconv::operations
