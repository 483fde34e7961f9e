#include "solvers/gemm/packed/blocking.h"

#include "core/checked.h"

namespace omniconv::solvers {
namespace {

// Bytes that a step of a tile takes of the nearest cache bound the steps of a block; more of them mean fewer additions
// to c.
constexpr std::int64_t most_steps_f32 = 512, most_steps_f64 = 256;
// Packed elements of a, and of b, of one block of steps: the outer caches hold them while they are used.
constexpr std::int64_t packed_elements = std::int64_t{1} << 20;
constexpr std::int64_t most_lines = std::int64_t{1} << 16;
// What may be kept for a whole batch, in elements.
constexpr std::int64_t kept_elements = std::int64_t{1} << 23;
// Multiply-adds that make a phase of a run long against its beginning and end; small matrices share one.
constexpr double phase_products = 2e7;

DataType sums_of(DataType type) {
  return type == DataType::f64 ? DataType::f64 : DataType::f32;
}

std::int64_t step_blocks_of(const GemmTask& task) {
  return divide_up(task.problem.k, sums_of(task.problem.type) == DataType::f64 ? most_steps_f64 : most_steps_f32);
}

// Blocks as even as can be, whole panels each.
std::int64_t block_lines(std::int64_t lines, std::int64_t most, std::int64_t panel) {
  if (lines <= most) return lines;
  return round_up(divide_up(lines, divide_up(lines, std::max(most, panel))), panel);
}

}  // namespace

PanelCut PanelCut::even(std::int64_t lines, std::int64_t most) {
  const std::int64_t panels = divide_up(lines, most);
  return {lines, panels, lines / panels, lines % panels};
}

PanelCut PanelCut::full(std::int64_t lines, std::int64_t most) {
  return {lines, divide_up(lines, most), most, 0};
}

GemmBlocking::GemmBlocking(const GemmTask& task, std::int64_t workspace_limit) {
  const GemmProblem& problem = task.problem;
  sums = sums_of(problem.type);
  tile = kernels::gemm_tile(sums);
  step_blocks = step_blocks_of(task);
  k = divide_up(problem.k, step_blocks);
  in_place = sums_of(task.output) == sums && size_of(task.output) == size_of(sums);
  sums_apart = !in_place && step_blocks > 1;
  shares_a = problem.batch == 1 || task.batch_a == 0;
  shares_b = problem.batch == 1 || task.batch_b == 0;

  const std::int64_t most = std::min(packed_elements / k, most_lines);
  m = block_lines(problem.m, most, tile.rows);
  n = block_lines(problem.n, most, tile.columns);
  while (sums_apart && m * n > packed_elements && shrink()) {
  }
  if (m == problem.m && n == problem.n && problem.batch > 1) {
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const auto wanted = static_cast<std::int64_t>(phase_products / products) + 1;
    const std::int64_t largest = std::max({a_elements(), b_elements(), sums_elements()});
    matrices = std::min({problem.batch, wanted, std::max<std::int64_t>(packed_elements / largest, 1)});
    const auto keeps = [&](std::int64_t elements, bool shared) {
      return shared && problem.batch > matrices && elements <= kept_elements / step_blocks;
    };
    keep_a = keeps(a_elements(), shares_a);
    keep_b = keeps(b_elements(), shares_b);
  }
  if (workspace_limit < 0) return;
  const auto passes_limit = [&] { return workspace_bytes() > workspace_limit; };
  if (passes_limit()) keep_a = keep_b = false;
  while (passes_limit() && matrices > 1) matrices = divide_up(matrices, 2);
  while (passes_limit() && shrink()) {
  }
}

// Half the rows or the columns, whichever are more, but never less than a panel.
bool GemmBlocking::shrink() {
  const auto halved = [](std::int64_t lines, std::int64_t panel) {
    return std::min(lines, std::max(round_up(divide_up(lines, 2), panel), panel));
  };
  const std::int64_t less_m = halved(m, tile.rows), less_n = halved(n, tile.columns);
  if (less_m == m && less_n == n) return false;
  if (less_n < n && (n >= m || less_m == m))
    n = less_n;
  else
    m = less_m;
  return true;
}

std::int64_t GemmBlocking::a_elements() const {
  return round_up(m * k, 64);
}
std::int64_t GemmBlocking::b_elements() const {
  return round_up(round_up(n, tile.lanes) * k, 64);
}

std::int64_t GemmBlocking::workspace_bytes() const {
  return (a_slots() * a_elements() + b_slots() * b_elements() + matrices * round_up(sums_elements(), 64)) *
         size_of(sums);
}

double gemm_chain(const GemmTask& task) {
  const std::int64_t blocks = step_blocks_of(task);
  return static_cast<double>(divide_up(task.problem.k, blocks) + blocks - 1);
}

}  // namespace omniconv::solvers
