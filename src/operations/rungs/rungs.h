// The rungs of the classic study (docs/study.md), for the solvers of each operation that has them: how their kernels
// are spread over work items, as tunings.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "operations/solver.h"
#include "operations/tuning.h"

namespace omniconv::operations {

// rung_tiles.kernel has what these are.
struct RungTile {
  static constexpr std::int64_t naive = 1, tiled = 2, work_per_thread = 3;

  std::int64_t rung = naive, m = 16, n = 16, work = 1;

  std::int64_t group() const { return m / work * n; }  // work items
  bool is_naive() const { return rung == naive; }
  Tuning tuning() const { return {{"rung", rung}, {"tile_m", m}, {"tile_n", n}, {"work", work}}; }
  std::vector<devices::Definition> definitions() const;
};

std::span<const Tunable> rung_tunables();

// The request's, the naive one where it has none.
RungTile rung_tile_of(const SolverOptions& request);

// Why a device cannot hold groups of such tiles, which have so many bytes of local memory, or what does not go
// together; empty if it can. Of devices without such kernels, too.
std::string rung_refusal(const devices::Device& device, const RungTile& tile, std::int64_t local_bytes);

// The kernels are of f32 alone.
inline std::string rung_type_refusal(DataType type) {
  return type == DataType::f32 ? "" : "the study's kernels are of f32";
}

// A study's solver is for those who name it, so that its cost chooses nothing: bytes, and what is computed.
Cost rung_cost(const devices::Device& device, double bytes, double multiply_adds, double launches = 1);

// An operation's solver on the rungs: all but what is its own.
template <typename Task>
class RungSolver : public SolverOf<Task> {
 public:
  SolverRole role() const final { return SolverRole::study; }
  std::span<const Tunable> tunables() const final { return rung_tunables(); }
  Answer offer(const Task& task, const DevicePointer& device, const SolverOptions& request) const final {
    if (std::string reason = rung_type_refusal(task.type); !reason.empty()) return reason;
    if (std::string reason = task_refusal(task); !reason.empty()) return reason;
    const RungTile tile = rung_tile_of(request);
    if (std::string reason = rung_refusal(*device, tile, local_bytes(task, tile)); !reason.empty()) return reason;
    Offer made = offer_on(task, device, tile);
    made.tuning = tile.tuning();
    return made;
  }

 private:
  // Why the study has no kernel for it, but for its type; empty where it has one.
  virtual std::string task_refusal(const Task&) const { return {}; }
  virtual std::int64_t local_bytes(const Task& task, const RungTile& tile) const = 0;  // of a group
  virtual Offer offer_on(const Task& task, const DevicePointer& device, const RungTile& tile) const = 0;
};

}  // namespace omniconv::operations
