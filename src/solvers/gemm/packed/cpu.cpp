#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "kernels/cpu/gemm_panels.h"
#include "solvers/gemm/packed/blocking.h"

namespace omniconv::solvers {
namespace {

using devices::CpuDevice;

// Of the panels that one item of work reads again and again: half of a second-level cache of 1 MiB holds either.
constexpr std::int64_t item_bytes = std::int64_t{1} << 19;
// Items for each thread, so that all end at nearly the same time, but none of fewer multiply-adds: to begin one takes
// time too.
constexpr std::int64_t items_per_thread = 6;
constexpr double least_item_products = 4e5;

// Where the matrices lie in memory.
struct Memory {
  const std::byte *a, *b, *bias;
  std::byte *c, *workspace;
};

// One block of steps of one block of c, in one or several matrices of the batch.
struct Phase {
  std::int64_t matrix, matrices;
  std::int64_t i, m, j, n, t, k;
  std::int64_t step_block;
  PanelCut rows, columns;
  bool pack_a, pack_b;
};

// Panels of a phase that are multiplied one after the other by one thread.
struct Item {
  std::int64_t matrix;                                          // of the phase
  std::int64_t first_row, last_row, first_column, last_column;  // panels
};

// The cut of a phase into items.
struct Items {
  std::int64_t rows, columns, row_blocks, column_blocks, matrices;

  std::int64_t count() const { return row_blocks * column_blocks * matrices; }
  Item operator[](std::int64_t i) const {
    const std::int64_t row = i % row_blocks, column = i / row_blocks % column_blocks;
    return {i / (row_blocks * column_blocks), row * rows / row_blocks, (row + 1) * rows / row_blocks,
            column * columns / column_blocks, (column + 1) * columns / column_blocks};
  }
};

template <typename Real>
class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& the_task, CpuDevice& cpu, std::int64_t workspace_limit)
      : cpu_(cpu), blocking_(the_task, workspace_limit) {}

  std::int64_t workspace_bytes() const override { return blocking_.workspace_bytes(); }

  Event run(devices::Queue& queue, const GemmArrays& arrays) const override {
    return submit(queue, devices::HostTask([self = shared_from_this(), this, arrays] { execute(arrays); }));
  }

 private:
  void execute(const GemmArrays& arrays) const;
  void run_phase(const Phase& phase, const Memory& memory) const;
  void pack_rows(const Phase& phase, const Memory& memory, std::int64_t panel) const;
  void pack_columns(const Phase& phase, const Memory& memory, std::int64_t panel) const;
  Items items_of(const Phase& phase) const;
  void multiply(const Phase& phase, const Memory& memory, const Item& item) const;
  void multiply_tile(const Phase& phase, const Memory& memory, std::int64_t matrix, std::int64_t p,
                     std::int64_t q) const;

  Real* packed_a(const Phase& phase, const Memory& memory, std::int64_t matrix) const {
    const std::int64_t slot = blocking_.keep_a ? phase.step_block : blocking_.shares_a ? 0 : matrix;
    return reinterpret_cast<Real*>(memory.workspace) + slot * blocking_.a_elements();
  }
  Real* packed_b(const Phase& phase, const Memory& memory, std::int64_t matrix) const {
    const std::int64_t slot = blocking_.keep_b ? phase.step_block : blocking_.shares_b ? 0 : matrix;
    return reinterpret_cast<Real*>(memory.workspace) + blocking_.a_slots() * blocking_.a_elements() +
           slot * blocking_.b_elements();
  }
  Real* sums_apart(const Memory& memory, std::int64_t matrix) const {
    return reinterpret_cast<Real*>(memory.workspace) + blocking_.a_slots() * blocking_.a_elements() +
           blocking_.b_slots() * blocking_.b_elements() + matrix * round_up(blocking_.sums_elements(), 64);
  }

  CpuDevice& cpu_;
  GemmBlocking blocking_;
};

template <typename Real>
void Plan<Real>::execute(const GemmArrays& arrays) const {
  const auto host = [](const Operand& operand) {
    return operand.buffer ? operand.buffer.impl()->host() + operand.offset_bytes : nullptr;
  };
  const Memory memory{host(arrays.a), host(arrays.b), host(arrays.bias), host(arrays.c), host(arrays.workspace)};
  const GemmProblem& problem = task.problem;
  const GemmBlocking& cut = blocking_;
  Phase phase{};
  for (phase.matrix = 0; phase.matrix < problem.batch; phase.matrix += cut.matrices) {
    phase.matrices = std::min(cut.matrices, problem.batch - phase.matrix);
    for (phase.i = 0; phase.i < problem.m; phase.i += cut.m) {
      phase.m = std::min(cut.m, problem.m - phase.i);
      phase.rows = PanelCut::even(phase.m, cut.tile.rows);
      for (phase.j = 0; phase.j < problem.n; phase.j += cut.n) {
        phase.n = std::min(cut.n, problem.n - phase.j);
        phase.columns = PanelCut::full(phase.n, cut.tile.columns);
        for (phase.t = 0, phase.step_block = 0; phase.t < problem.k; phase.t += cut.k, ++phase.step_block) {
          phase.k = std::min(cut.k, problem.k - phase.t);
          phase.pack_a = !cut.keep_a || phase.matrix == 0;
          phase.pack_b = !cut.keep_b || phase.matrix == 0;
          run_phase(phase, memory);
        }
      }
    }
  }
}

template <typename Real>
void Plan<Real>::run_phase(const Phase& phase, const Memory& memory) const {
  const std::int64_t panels_a = phase.pack_a ? (blocking_.shares_a ? 1 : phase.matrices) * phase.rows.panels : 0;
  const std::int64_t panels_b = phase.pack_b ? (blocking_.shares_b ? 1 : phase.matrices) * phase.columns.panels : 0;
  cpu_.parallel_for(panels_a + panels_b, [&](std::int64_t i, int) {
    if (i < panels_a)
      pack_rows(phase, memory, i);
    else
      pack_columns(phase, memory, i - panels_a);
  });
  const Items items = items_of(phase);
  cpu_.parallel_for(items.count(), [&](std::int64_t i, int) { multiply(phase, memory, items[i]); });
}

// Panels are counted through all matrices of the phase.
template <typename Real>
void Plan<Real>::pack_rows(const Phase& phase, const Memory& memory, std::int64_t panel) const {
  const std::int64_t matrix = panel / phase.rows.panels, p = panel % phase.rows.panels;
  const std::int64_t start = phase.rows.start(p), count = phase.rows.start(p + 1) - start;
  const GemmProblem& problem = task.problem;
  const std::int64_t i = phase.i + start, size = size_of(problem.type);
  const std::int64_t at =
      (phase.matrix + matrix) * task.batch_a + (problem.transpose_a ? phase.t * task.lda + i : i * task.lda + phase.t);
  const kernels::GemmLines lines{memory.a + at * size, problem.type, task.lda, !problem.transpose_a};
  kernels::pack_panel(lines, count, count, phase.k, packed_a(phase, memory, matrix) + start * phase.k);
}

template <typename Real>
void Plan<Real>::pack_columns(const Phase& phase, const Memory& memory, std::int64_t panel) const {
  const std::int64_t matrix = panel / phase.columns.panels, q = panel % phase.columns.panels;
  const std::int64_t start = phase.columns.start(q), count = phase.columns.start(q + 1) - start;
  const GemmProblem& problem = task.problem;
  const std::int64_t j = phase.j + start, size = size_of(problem.type);
  const std::int64_t at =
      (phase.matrix + matrix) * task.batch_b + (problem.transpose_b ? j * task.ldb + phase.t : phase.t * task.ldb + j);
  const kernels::GemmLines lines{memory.b + at * size, problem.type, task.ldb, problem.transpose_b};
  kernels::pack_panel(lines, count, round_up(count, blocking_.tile.lanes), phase.k,
                      packed_b(phase, memory, matrix) + start * phase.k);
}

template <typename Real>
Items Plan<Real>::items_of(const Phase& phase) const {
  const kernels::GemmTile& tile = blocking_.tile;
  const std::int64_t step_bytes = phase.k * size_of(blocking_.sums);
  const auto blocks = [&](std::int64_t panels, std::int64_t width) {
    return divide_up(panels, std::max<std::int64_t>(item_bytes / (width * step_bytes), 1));
  };
  Items items{phase.rows.panels, phase.columns.panels, blocks(phase.rows.panels, tile.rows),
              blocks(phase.columns.panels, tile.columns), phase.matrices};
  const double products = static_cast<double>(phase.matrices) * static_cast<double>(phase.m) *
                          static_cast<double>(phase.n) * static_cast<double>(phase.k);
  while (items.count() < items_per_thread * cpu_.threads() &&
         products > 2 * least_item_products * static_cast<double>(items.count())) {
    const bool wide = items.columns * tile.columns * items.row_blocks >= items.rows * tile.rows * items.column_blocks;
    if (items.column_blocks < items.columns && (wide || items.row_blocks == items.rows))
      items.column_blocks = std::min(2 * items.column_blocks, items.columns);
    else if (items.row_blocks < items.rows)
      items.row_blocks = std::min(2 * items.row_blocks, items.rows);
    else
      break;
  }
  return items;
}

template <typename Real>
void Plan<Real>::multiply(const Phase& phase, const Memory& memory, const Item& item) const {
  for (std::int64_t q = item.first_column; q < item.last_column; ++q)
    for (std::int64_t p = item.first_row; p < item.last_row; ++p) multiply_tile(phase, memory, item.matrix, p, q);
}

template <typename Real>
void Plan<Real>::multiply_tile(const Phase& phase, const Memory& memory, std::int64_t matrix, std::int64_t p,
                               std::int64_t q) const {
  const std::int64_t row = phase.rows.start(p), column = phase.columns.start(q);
  const std::int64_t i = phase.i + row, j = phase.j + column, size = size_of(task.problem.type);
  std::byte* const c = memory.c + ((phase.matrix + matrix) * task.batch_c + i * task.ldc + j) * size_of(task.output);
  alignas(64) Real here[kernels::most_tile_elements];
  kernels::GemmPanels<Real> panels{.a = packed_a(phase, memory, matrix) + row * phase.k,
                                   .b = packed_b(phase, memory, matrix) + column * phase.k,
                                   .steps = phase.k,
                                   .rows = phase.rows.start(p + 1) - row,
                                   .columns = phase.columns.start(q + 1) - column,
                                   .sums = here,
                                   .ld = blocking_.tile.columns,
                                   .add = phase.step_block > 0};
  if (blocking_.in_place) {
    panels.sums = reinterpret_cast<Real*>(c);
    panels.ld = task.ldc;
    panels.add = panels.add || task.accumulate;
  } else if (blocking_.sums_apart) {
    panels.sums = sums_apart(memory, matrix) + row * phase.n + column;
    panels.ld = phase.n;
  }
  kernels::multiply_panels(panels);

  const bool finished = blocking_.in_place && task.bias == BiasAlong::none && !task.relu;
  if (finished || phase.step_block + 1 < blocking_.step_blocks) return;
  const kernels::GemmFinish finish{.type = task.problem.type,
                                   .output = task.output,
                                   .row_bias = task.bias == BiasAlong::rows ? memory.bias + i * size : nullptr,
                                   .column_bias = task.bias == BiasAlong::columns ? memory.bias + j * size : nullptr,
                                   .accumulate = task.accumulate && !blocking_.in_place,
                                   .relu = task.relu};
  kernels::finish_tile(finish, panels.sums, panels.ld, panels.rows, panels.columns, c, task.ldc);
}

class Solver final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/packed/cpu.1"; }
  std::string refusal(const GemmTask&, const devices::Device& device) const override {
    return device.kind() == devices::DeviceKind::cpu ? "" : "runs on the CPU alone";
  }
  MatrixBound bound(const GemmTask& task, const devices::Device&) const override { return {.chain = gemm_chain(task)}; }
  double cost(const GemmTask& task, const devices::Device& device) const override;
  std::int64_t workspace_bytes(const GemmTask& task, const devices::Device&, std::int64_t limit) const override {
    return GemmBlocking(task, limit).workspace_bytes();
  }
  std::unique_ptr<GemmPlanBody> plan(const GemmTask& task, const std::shared_ptr<devices::Device>& device,
                                     std::int64_t workspace_limit) const override {
    auto& cpu = dynamic_cast<CpuDevice&>(*device);
    if (task.problem.type == DataType::f64) return std::make_unique<Plan<double>>(task, cpu, workspace_limit);
    return std::make_unique<Plan<float>>(task, cpu, workspace_limit);
  }
};

// Whole vectors of columns at the rate that was measured, and every matrix once through memory.
double Solver::cost(const GemmTask& task, const devices::Device& device) const {
  constexpr double efficiency = 0.9, begin = 2e6;  // of a run: its phases begin and end
  const GemmProblem& problem = task.problem;
  const kernels::GemmTile tile = kernels::gemm_tile(problem.type);
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double m = real(problem.m), n = real(problem.n), k = real(problem.k), batch = real(problem.batch);
  const double size = real(size_of(problem.type)), size_c = real(size_of(task.output));
  const double products = batch * m * k * real(round_up(problem.n, tile.lanes)) / efficiency;
  const double bytes = (task.batch_a == 0 ? 1 : batch) * m * k * size + (task.batch_b == 0 ? 1 : batch) * k * n * size +
                       batch * m * n * size_c * (task.accumulate ? 2 : 1);
  return begin + products * (problem.type == DataType::f64 ? 2 : 1) + bytes * byte_cost(device);
}

}  // namespace

const GemmSolver& gemm_packed_cpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
