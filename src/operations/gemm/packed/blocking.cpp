#include "operations/gemm/packed/blocking.h"

#include <fmt/format.h>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

// A chunk's steps of one panel stay in the nearest cache; more of them mean fewer additions to c.
constexpr std::int64_t most_chunk_f32 = 512, most_chunk_f64 = 256;
// Packed bytes of a, and of b, in a block of one chunk: the outer caches hold them while they are used. Several chunks
// share a block of no more than twice as much, so that an item's part of c is read and written once for all of them:
// with four times as much panels come back from memory, which costs more. Of one side alone, where items take it piece
// by piece, there may be more.
constexpr std::int64_t packed_bytes = std::int64_t{4} << 20, near_bytes = std::int64_t{8} << 20,
                       packed_alone_bytes = std::int64_t{16} << 20;
constexpr std::int64_t most_lines = std::int64_t{1} << 16;
// Sums in the workspace, which are nowhere else.
constexpr std::int64_t sums_apart_bytes = std::int64_t{4} << 20;
// What may be kept for a whole batch.
constexpr std::int64_t kept_bytes = std::int64_t{32} << 20;
// Multiply-adds that make a block long against its beginning and end; small matrices share one.
constexpr double block_products = 4e7;
// Panels of rows, and of columns, that an item can hold: the second-level cache has room for a chunk of either.
constexpr std::int64_t item_rows = 20, item_columns = 8;
// Of those that an item packs for itself, of one chunk: a part of that cache. One alone where it is read only once, and
// may then still be in the first.
constexpr std::int64_t own_bytes = std::int64_t{1} << 18, most_own_panels = 32;
// Items that pack for themselves, for each thread: that it pays, and that all end at nearly the same time.
constexpr std::int64_t least_own_items = 4, own_items = 8;
// Panels of columns, and steps, with which to read rows where they are takes less than to pack them, unless their lines
// are whole pages apart, of which the first cache keeps few.
constexpr std::int64_t in_place_columns = 2, in_place_steps = 128, page_bytes = 4096;
// A column is alone behind so many others, or multiples of it, that are whole vectors on every instruction set; and
// where its sums have as many steps, since it ends with the additions of 16 chains a row.
constexpr std::int64_t before_alone = 16, alone_steps = 64;

DataType sums_of(DataType type) {
  return type == DataType::f64 ? DataType::f64 : DataType::f32;
}

// Pairs of bf16, where the processor multiplies these; what is read out of images is widened before.
std::int64_t terms_of(const GemmTask& task) {
  const bool pairs =
      task.problem.type == DataType::bf16 && task.may_pair && !task.images && kernels::has_pair_products();
  return pairs ? kernels::pair_terms : 1;
}

// The steps of a chunk: whole elements of panels.
std::int64_t chunk_of(const GemmTask& task) {
  const std::int64_t k = task.problem.k, terms = terms_of(task),
                     most = terms * (sums_of(task.problem.type) == DataType::f64 ? most_chunk_f64 : most_chunk_f32),
                     chunks = divide_up(k, most);
  return chunks == 1 ? k : round_up(divide_up(k, chunks), terms);
}

// Blocks as even as can be, whole pieces each.
std::int64_t even_blocks(std::int64_t extent, std::int64_t most, std::int64_t piece) {
  if (extent <= most) return extent;
  return round_up(divide_up(extent, divide_up(extent, std::max(most, piece))), piece);
}

}  // namespace

GemmBlocking::GemmBlocking(const GemmTask& task, int threads, std::int64_t workspace_limit)
    : threads_(threads), all_columns_(task.problem.n) {
  const GemmProblem& problem = task.problem;
  sums = sums_of(problem.type);
  tile = kernels::register_tile(sums, problem.m);
  terms = terms_of(task);
  chunk = chunk_of(task);
  in_place = sums_of(task.output) == sums && size_of(task.output) == size_of(sums);
  sums_apart = !in_place && chunk < problem.k;
  shares_a = problem.batch == 1 || task.batch_a == 0;
  shares_b = problem.batch == 1 || task.batch_b == 0;
  prepared_a = task.prepared_a, prepared_b = task.prepared_b;
  is_last_alone = task.may_set_last_apart && terms == 1 && problem.n % before_alone == 1 && problem.k >= alone_steps;

  const std::int64_t most = std::min(packed_bytes / size_of(sums) / elements_of(chunk), most_lines);
  m = even_blocks(problem.m, most, tile.rows);
  n = even_blocks(problem.n, most, tile.columns);
  set_steps(task, terms * near_bytes / size_of(sums) / std::max(m, n));
  while (sums_apart && m * n * size_of(sums) > sums_apart_bytes && shrink()) {
  }
  choose_packing(task);
  if (m == problem.m && n == problem.n && problem.batch > 1) join_matrices(task);
  choose_item_panels(task);
  if (workspace_limit < 0) return;

  const auto passes_limit = [&] { return workspace_bytes() > workspace_limit; };
  if (passes_limit()) keeps_a = keeps_b = false;
  while (passes_limit() && matrices > 1) matrices = divide_up(matrices, 2);
  while (passes_limit() && item_panels > 1) --item_panels;
  if (passes_limit()) packing = Packing::shared, is_a_in_place = false;
  while (passes_limit() && k > chunk) set_steps(task, k / 2);
  while (passes_limit() && shrink()) {
  }
}

// Whole chunks, at least one.
void GemmBlocking::set_steps(const GemmTask& task, std::int64_t most) {
  k = std::min(task.problem.k, std::max(most / chunk, std::int64_t{1}) * chunk);
  step_blocks_ = divide_up(task.problem.k, k);
}

// Where an item can hold all panels of one side, no panel of the other is needed by two.
void GemmBlocking::choose_packing(const GemmTask& task) {
  const GemmProblem& problem = task.problem;
  if (sums_apart) return;
  // What comes packed needs neither a place nor a thread for it.
  const auto own = [&](std::int64_t panels, std::int64_t other_panels, std::int64_t most_others, bool shared) {
    if (other_panels > most_others || (shared && problem.batch > 1)) return false;
    return panels * problem.batch >= least_own_items * threads_;
  };
  const std::int64_t rows = divide_up(problem.m, tile.rows), columns = divide_up(problem.n, tile.columns);
  if (!prepared_b && problem.n >= problem.m && own(columns, rows, item_rows, shares_b)) {
    packing = Packing::own_b;
    n = problem.n;
    set_steps(task, terms * packed_alone_bytes / size_of(sums) / m);
  } else if (problem.m > problem.n && own(rows, columns, item_columns, shares_a)) {
    packing = Packing::own_a;
    m = problem.m;
    set_steps(task, terms * packed_alone_bytes / size_of(sums) / n);
    is_a_in_place = !prepared_a && columns <= in_place_columns && chunk >= in_place_steps &&
                    size_of(problem.type) == size_of(sums) && task.lda * size_of(sums) % page_bytes != 0;
  }
}

void GemmBlocking::choose_item_panels(const GemmTask& task) {
  if (packing == Packing::shared) return;
  const bool of_b = packing == Packing::own_b;
  const std::int64_t panels = of_b ? divide_up(n, tile.columns) : divide_up(m, tile.rows);
  const std::int64_t panel_bytes = (of_b ? tile.columns : tile.rows) * elements_of(chunk) * size_of(sums);
  const bool read_once = of_b ? task.problem.m <= tile.rows : task.problem.n <= tile.columns;
  const std::int64_t most = read_once ? 1 : std::clamp<std::int64_t>(own_bytes / panel_bytes, 1, most_own_panels);
  item_panels = std::clamp<std::int64_t>(panels * matrices / (own_items * threads_), 1, most);
}

void GemmBlocking::join_matrices(const GemmTask& task) {
  const GemmProblem& problem = task.problem;
  const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto wanted = static_cast<std::int64_t>(block_products / products) + 1;
  const std::int64_t largest =
      std::max({packing == Packing::own_a || prepared_a ? 0 : a_elements(),
                packing == Packing::own_b || prepared_b ? 0 : b_elements(), sums_elements(), std::int64_t{1}});
  matrices = std::min({problem.batch, wanted, std::max<std::int64_t>(packed_bytes / size_of(sums) / largest, 1)});
  const auto keeps = [&](std::int64_t elements, bool shared) {
    return shared && problem.batch > matrices && elements <= kept_bytes / size_of(sums) / step_blocks_;
  };
  keeps_a = keeps(a_elements(), shares_a);
  keeps_b = keeps(b_elements(), shares_b);
}

// Half the rows or the columns, whichever are more, but never less than a panel.
bool GemmBlocking::shrink() {
  const auto halved = [](std::int64_t lines, std::int64_t panel) {
    return std::min(lines, round_up(divide_up(lines, 2), panel));
  };
  const std::int64_t less_m = halved(m, tile.rows), less_n = halved(n, tile.columns);
  if (less_m == m && less_n == n) return false;
  if (less_n < n && (n >= m || less_m == m))
    n = less_n;
  else
    m = less_m;
  return true;
}

std::int64_t GemmBlocking::b_elements() const {
  return round_64(round_up(n, tile.lanes) * elements_of(k));
}
std::int64_t GemmBlocking::a_slots() const {
  if (packing == Packing::own_a || prepared_a) return 0;
  return keeps_a ? step_blocks_ : shares_a ? 1 : matrices;
}
std::int64_t GemmBlocking::b_slots() const {
  if (packing == Packing::own_b || prepared_b) return 0;
  return keeps_b ? step_blocks_ : shares_b ? 1 : matrices;
}
std::int64_t GemmBlocking::own_elements() const {
  if (packing == Packing::shared || is_a_in_place || (packing == Packing::own_a && prepared_a)) return 0;
  return round_64(item_panels * (packing == Packing::own_b ? tile.columns : tile.rows) * elements_of(chunk));
}

std::int64_t GemmBlocking::workspace_bytes() const {
  return (shared_elements() + matrices * sums_elements() + threads_ * own_elements()) * size_of(sums);
}

std::int64_t GemmBlocking::prepared_elements(const GemmProblem& problem, bool of_a) const {
  const std::int64_t lines = of_a ? problem.m : round_up(problem.n, tile.lanes);
  return round_64(checked_multiply(lines, elements_of(problem.k), "a prepared operand"));
}

PreparedFormat GemmBlocking::format(const GemmProblem& problem, bool of_a) const {
  const std::int64_t matrices_there = (of_a ? shares_a : shares_b) ? 1 : problem.batch;
  const bool is_transposed = of_a ? problem.transpose_a : problem.transpose_b;
  return {fmt::format("{} of {}{}, {} x {} lines of {} {} in panels of {}{}, by {} steps, in blocks of {} lines",
                      of_a ? "a" : "b", name(problem.type), is_transposed ? ", transposed" : "", matrices_there,
                      of_a ? problem.m : problem.n, problem.k, terms == 1 ? name(sums) : "pairs",
                      of_a ? tile.rows : tile.columns, !of_a && is_last_alone ? " and one" : "", chunk, of_a ? m : n),
          checked_multiply(matrices_there * size_of(sums), prepared_elements(problem, of_a), "a prepared operand")};
}

double gemm_chain(const GemmTask& task) {
  const std::int64_t chunk = chunk_of(task);
  return static_cast<double>(chunk + divide_up(task.problem.k, chunk) - 1);
}

}  // namespace omniconv::operations
