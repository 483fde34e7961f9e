// Biases on the CPU: pieces of a channel's elements, over the device's threads, that do not depend on how many these
// are.
#include <algorithm>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/bias_add/bias_add.h"
#include "operations/bias_add/direct/elements.h"
#include "operations/host_operand.h"
#include "vector/relu.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t of_piece = 1 << 16;  // elements, some microseconds
constexpr std::int64_t most_columns = 1024;

// How a channel's sum is cut: so many pieces of so many positions (planes of one element: rows).
struct Cut {
  std::int64_t pieces = 1, positions = 0, columns = 1;  // columns of a task

  Cut(const BiasAddProblem& p, std::int64_t workspace_limit) {
    constexpr std::int64_t most_pieces = 64;
    const ChannelPlanes planes(p);
    if (planes.inner == 1) columns = std::min(p.c, most_columns);
    const auto cut_into = [&](std::int64_t wanted) {
      positions = divide_up(planes.positions(), wanted), pieces = divide_up(planes.positions(), positions);
    };
    cut_into(std::clamp<std::int64_t>(divide_up(planes.positions(), std::max<std::int64_t>(of_piece / columns, 1)), 1,
                                      most_pieces));
    if (workspace_limit >= 0 && workspace_bytes(p) > workspace_limit) cut_into(1);
  }
  static std::int64_t sum_bytes(const BiasAddProblem& p) { return p.type == DataType::f64 ? 8 : 4; }
  std::int64_t workspace_bytes(const BiasAddProblem& p) const { return pieces > 1 ? pieces * p.c * sum_bytes(p) : 0; }
  // README.md, "Bound".
  std::int64_t chain(const BiasAddProblem& p) const {
    constexpr std::int64_t most_lanes = 64;
    const ChannelPlanes planes(p);
    if (planes.inner == 1) {
      const bool may_be_few = p.c < kernels::most_few;
      const std::int64_t of_rows =
          may_be_few ? positions : std::min(positions, kernels::most_rows) + positions / kernels::most_rows + 1;
      return of_rows + kernels::most_few + pieces;
    }
    const std::int64_t runs = positions / planes.inner + 2;
    const std::int64_t additions = std::min(positions, positions / 4 + 4 * runs);
    return std::min(additions, kernels::most_chain + 3) + 2 + additions / kernels::most_chain + 1 + most_lanes + pieces;
  }
};

class Plan final : public BiasAddPlanBody {
 public:
  Plan(const BiasAddProblem& problem, const DevicePointer& device, const Cut& cut)
      : BiasAddPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), cut_(cut) {}

  void append(devices::Sequence& sequence, const BiasAddRun& run, const Operand& workspace) const override {
    sequence.call(devices::HostTask(
        [self = shared_from_this(), this, run, workspace] { problem().backward ? sum(run, workspace) : add(run); }));
  }

 private:
  void add(const BiasAddRun& run) const {
    const BiasAddProblem& p = problem();
    const ChannelPlanes planes(p);
    // Rows of all channels where these lie side by side, else lines of one.
    const bool has_rows = planes.inner == 1;
    const std::int64_t line = has_rows ? p.c : planes.inner, lines = has_rows ? planes.planes : planes.planes * p.c,
                       size = size_of(p.type), at_once = std::max<std::int64_t>(of_piece / line, 1);
    cpu_.parallel_for(divide_up(lines, at_once), [&](std::int64_t i, int) {
      const std::int64_t first = i * at_once, count = std::min(at_once, lines - first);
      const std::byte* const x = host(run.x) + first * line * size;
      std::byte* const y = host(run.y) + first * line * size;
      if (has_rows)
        kernels::add_to_rows(p.type, x, host(run.b), y, count, p.c);
      else
        kernels::add_to_lines(p.type, x, host(run.b), y, count, planes.inner, first % p.c, p.c);
      if (p.relu) kernels::pass_positive(p.type, y, y, y, count * line);
    });
  }

  void sum(const BiasAddRun& run, const Operand& workspace) const {
    const BiasAddProblem& p = problem();
    const ChannelPlanes planes(p);
    const std::int64_t size = size_of(p.type), sum_bytes = Cut::sum_bytes(p), blocks = divide_up(p.c, cut_.columns);
    const std::byte* const summed = host(p.relu ? run.x : run.y);
    const auto count_of = [&](std::int64_t piece) {
      return std::min(cut_.positions, planes.positions() - piece * cut_.positions);
    };
    cpu_.parallel_for(cut_.pieces * blocks, [&](std::int64_t task, int) {
      const std::int64_t piece = task / blocks, c = task % blocks * cut_.columns, first = piece * cut_.positions;
      alignas(64) std::byte own[most_columns * 8];
      std::byte* const sums = cut_.pieces > 1 ? host(workspace) + (piece * p.c + c) * sum_bytes : own;
      const std::int64_t columns = std::min(cut_.columns, p.c - c);
      if (planes.inner == 1) {
        if (p.relu) pass_rows(run, first * p.c + c, count_of(piece), columns);
        kernels::sum_columns(p.type, summed + (first * p.c + c) * size, count_of(piece), columns, p.c, sums);
      } else {
        const std::int64_t k = first % planes.inner, begin = (first / planes.inner * p.c + c) * planes.inner + k;
        const kernels::Positions positions{planes.inner - k, count_of(piece), planes.inner, p.c * planes.inner};
        if (p.relu) pass_positions(run, begin, positions);
        kernels::sum_positions(p.type, summed + begin * size, positions, sums);
      }
      if (cut_.pieces == 1) finish(sums, 1, 0, columns, host(run.b) + c * size);
    });
    if (cut_.pieces > 1) finish(host(workspace), cut_.pieces, p.c, p.c, host(run.b));
  }

  // dx of `count` elements from `first` on.
  void pass(const BiasAddRun& run, std::int64_t first, std::int64_t count) const {
    const std::int64_t at = first * size_of(problem().type);
    kernels::pass_positive(problem().type, host(run.output) + at, host(run.y) + at, host(run.x) + at, count);
  }
  void pass_rows(const BiasAddRun& run, std::int64_t first, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t stride = problem().c;
    if (columns == stride) return pass(run, first, rows * stride);
    for (std::int64_t row = 0; row < rows; ++row) pass(run, first + row * stride, columns);
  }
  void pass_positions(const BiasAddRun& run, std::int64_t first, const kernels::Positions& positions) const {
    std::int64_t at = first, length = std::min(positions.first, positions.count), left = positions.count;
    std::int64_t next = first + positions.first + positions.stride - positions.inner;
    for (; left > 0; at = next, next += positions.stride) {
      pass(run, at, length);
      left -= length, length = std::min(positions.inner, left);
    }
  }

  // Stores the sums of so many sums of each channel, `stride` channels from one to the next.
  void finish(const std::byte* sums, std::int64_t pieces, std::int64_t stride, std::int64_t channels,
              std::byte* to) const {
    const BiasAddProblem& p = problem();
    const auto finish_as = [&]<typename Real>(const Real* from) {
      for (std::int64_t c = 0; c < channels; ++c) {
        Real sum = from[c];
        for (std::int64_t piece = 1; piece < pieces; ++piece) sum += from[piece * stride + c];
        store_element(p.type, static_cast<double>(sum), to + c * size_of(p.type));
      }
    };
    if (p.type == DataType::f64)
      finish_as(reinterpret_cast<const double*>(sums));
    else
      finish_as(reinterpret_cast<const float*>(sums));
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Cut cut_;
};

class DirectCpu final : public BiasAddSolver {
 public:
  std::string_view id() const override { return "bias_add/direct/cpu.1"; }
  Answer offer(const BiasAddProblem& problem, const DevicePointer& device,
               const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const Cut cut(problem, request.max_workspace_bytes);
    if (std::string reason = long_chain_refusal(cut.chain(problem)); problem.backward && !reason.empty()) return reason;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem), 2 * static_cast<double>(elements_of(problem)))},
        .bound = bias_add_bound(problem, cut.chain(problem)),
        .workspace_bytes = problem.backward ? cut.workspace_bytes(problem) : 0,
        .plan = [=] { return std::make_shared<Plan>(problem, device, cut); },
    };
  }
};

}  // namespace

const BiasAddSolver& bias_add_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
