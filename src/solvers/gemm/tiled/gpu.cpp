// Matrix products on OpenCL and CUDA devices by tiles: through local memory, then registers.
#include "embedded/tiled.kernel.h"
#include "solvers/gemm/gpu_text.h"
#include "solvers/gemm/tiled/tiles.h"
#include "solvers/gpu_limits.h"

namespace omniconv::solvers {
namespace {

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& the_task, devices::Device& the_device, const GemmChoice& choice)
      : choice_(choice), groups_(tiles_of(the_task.problem, choice.tile.m, choice.tile.n) * choice.parts) {
    std::vector<devices::Definition> definitions = gemm_definitions(the_task);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("TILE_M", choice.tile.m);
    add("TILE_N", choice.tile.n);
    add("TILE_K", choice.tile.k);
    add("QUADS_M", choice.tile.quads_m);
    add("QUADS_N", choice.tile.quads_n);
    add("RESIDENT", choice.tile.resident);
    add("PARTS", choice.parts);
    definitions.push_back({"PART_K", fmt::format("{}L", choice.part_k)});
    program_ = the_device.build(std::string(kernels::gemm_elements()) + std::string(tiled_kernel), definitions,
                                {choice.tile.resident, choice.tile.group()});
  }
  std::int64_t workspace_bytes() const override { return choice_.workspace_bytes; }
  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const GemmArrays& arrays) const override {
    const bool splits = choice_.parts > 1;
    const Operand& parts = splits ? arrays.workspace : arrays.c;  // which is not used then
    const std::int64_t group = choice_.tile.group(), parts_offset = parts.offset_bytes / 16;
    Event products = launch_batches(queue, task.problem.batch, groups_, [&](std::int64_t first, std::int64_t batches) {
      return queue.launch(program_, "tiled", {{groups_ * batches * group, 1}, {group, 1}},
                          gemm_arguments(task, arrays, parts.buffer.impl().get(), parts_offset, first));
    });
    return splits ? queue.span(std::move(products), combine(queue, arrays)) : std::move(products);
  }

 private:
  Event combine(devices::Queue& queue, const GemmArrays& arrays) const {
    const auto all = gemm_arguments(task, arrays, arrays.workspace.buffer.impl().get(),
                                    arrays.workspace.offset_bytes / 16, task.problem.batch);
    const std::int64_t items = choice_.workspace_bytes / 16 / choice_.parts;
    return queue.launch(program_, "combine", {{round_up(items, combine_group), 1}, {combine_group, 1}},
                        std::span(all).subspan(4));  // but for a and b
  }

  GemmChoice choice_;
  std::int64_t groups_;  // for each matrix
  std::shared_ptr<devices::Program> program_;
};

class Solver final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/tiled/gpu.1"; }
  std::string refusal(const GemmTask& task, const devices::Device& device) const override {
    if (const std::string reason = gemm_gpu_refusal(task, device); !reason.empty()) return reason;
    // One tile has both the fewest work items and the least local memory.
    const GemmTile& least =
        *std::min_element(gemm_tiles().begin(), gemm_tiles().end(),
                          [](const auto& a, const auto& b) { return a.local_bytes() < b.local_bytes(); });
    if (const std::string reason = local_memory_refusal(device, least.local_bytes()); !reason.empty()) return reason;
    if (const std::string reason = group_refusal(device, least.group()); !reason.empty()) return reason;
    const GemmChoice choice = choose_tiles(task, device, -1);
    const std::int64_t tiles = tiles_of(task.problem, choice.tile.m, choice.tile.n);
    if (tiles > most_gemm_groups / part_limit)
      return fmt::format("a launch has at most {} tiles, not {}", most_gemm_groups / part_limit, tiles);
    return {};
  }
  // The whole chain; parts of it are shorter, and there are fewer of them than products of one.
  MatrixBound bound(const GemmTask& task, const devices::Device&) const override {
    return {.chain = static_cast<double>(task.problem.k)};
  }
  double cost(const GemmTask& task, const devices::Device& device) const override {
    if (!device.info().is_gpu) return launch_cost(device) + cpu_multiply_add * multiply_adds(task.problem);
    return launch_cost(device) + choose_tiles(task, device, -1).cost;
  }
  std::int64_t workspace_bytes(const GemmTask& task, const devices::Device& device, std::int64_t limit) const override {
    return choose_tiles(task, device, limit).workspace_bytes;
  }
  std::unique_ptr<GemmPlanBody> plan(const GemmTask& task, const std::shared_ptr<devices::Device>& device,
                                     std::int64_t workspace_limit) const override {
    return plan_of_tiles(task, *device, choose_tiles(task, *device, workspace_limit));
  }

 private:
  static constexpr std::int64_t part_limit = 64;  // of tiles.cpp
  static constexpr double cpu_multiply_add = 15;  // PoCL: work items take turns at every barrier
};

}  // namespace

std::unique_ptr<GemmPlanBody> plan_of_tiles(const GemmTask& task, devices::Device& device, const GemmChoice& choice) {
  return std::make_unique<Plan>(task, device, choice);
}

const GemmSolver& gemm_tiled_gpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
