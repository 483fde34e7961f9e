#include <type_traits>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/gemm/packed/blocking.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_panels.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

// Of one chunk of the panels that an item reads again and again: the second-level cache holds those of a and of b.
constexpr std::int64_t item_bytes = std::int64_t{1} << 19;
// Items for each thread, so that all end at nearly the same time, but none of fewer multiply-adds: to begin one takes
// time too.
constexpr std::int64_t items_per_thread = 8;
constexpr double least_item_products = 4e5;

constexpr double least_packed_elements = 2e4;

// Where the matrices lie.
struct Memory {
  std::byte *a, *b;
  const std::byte* bias;
  std::byte *c, *workspace;
  double alpha;
};

// A block of c and of the steps, in one or several matrices of the batch.
struct Block {
  std::int64_t matrix, matrices;
  std::int64_t i, m, j, n, t, k;
  std::int64_t step_block, chunks;
  PanelCut rows, columns;
};

double products_of(const Block& block) {
  return static_cast<double>(block.matrices) * static_cast<double>(block.m) * static_cast<double>(block.n) *
         static_cast<double>(block.k);
}

struct Chunk {
  std::int64_t t, k;  // from the block's first step on
};

// Panels of a block whose products one thread computes, one after the other.
struct Item {
  std::int64_t matrix;  // of the block
  std::int64_t first_row, last_row, first_column, last_column;
};

// The cut of a block into items.
struct Items {
  std::int64_t rows, columns, row_blocks, column_blocks, matrices;

  std::int64_t count() const { return row_blocks * column_blocks * matrices; }
  Item operator[](std::int64_t i) const {
    const std::int64_t row = i % row_blocks, column = i / row_blocks % column_blocks;
    return {i / (row_blocks * column_blocks), row * rows / row_blocks, (row + 1) * rows / row_blocks,
            column * columns / column_blocks, (column + 1) * columns / column_blocks};
  }
};

// A tile of c, and whether the chunk is the first of the sums, and the last.
struct ChunkTile {
  std::int64_t matrix, i, j, rows, columns;
  bool first, last;
};

// The columns of a tile, from one on, that lie side by side in c.
struct Piece {
  std::int64_t first, columns;
  std::byte* c;
};

// Panels of one chunk, where they were packed: panel p begins (start(p) - first) lines on.
template <typename Element>
struct Packed {
  Element* data;
  std::int64_t first;
};

template <typename Element>
class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, const DevicePointer& device, const GemmBlocking& cut)
      : GemmPlanBody(product), device_(device), cpu_(dynamic_cast<CpuDevice&>(*device)), cut_(cut) {}

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, arrays](std::span<const double> scalars) {
                    execute(arrays, scalars[0]);
                  }),
                  std::span(&arrays.alpha, 1));
  }

  void append_prepare(devices::Sequence& sequence, bool of_a, const Operand& from, const Operand& to) const override {
    sequence.call(
        devices::HostTask([self = shared_from_this(), this, of_a, from, to] { prepare(of_a, host(from), host(to)); }));
  }

 private:
  using Real = typename kernels::SumOf<Element>::Type;

  void prepare(bool of_a, std::byte* from, std::byte* to) const;
  void execute(const GemmArrays& arrays, double alpha) const;
  // body(i, slot) for i below count, several after each other where one is less than the least that is worth beginning.
  template <typename Body>
  void in_parallel(std::int64_t count, double work, double least_work, const Body& body) const {
    const std::int64_t most = std::max<std::int64_t>(count / (items_per_thread * cpu_.threads()), 1);
    const auto together = static_cast<std::int64_t>(
        std::clamp(least_work * static_cast<double>(count) / work, 1.0, static_cast<double>(most)));
    cpu_.parallel_for(divide_up(count, together), [&](std::int64_t i, int slot) {
      for (std::int64_t j = i * together; j < std::min((i + 1) * together, count); ++j) body(j, slot);
    });
  }
  void run_block(const Block& block, const Memory& memory) const;
  void pack_shared(const Block& block, const Memory& memory) const;
  void pack_rows(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk, std::int64_t p,
                 Packed<Element> to) const;
  void pack_columns(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk, std::int64_t q,
                    Packed<Element> to) const;
  Items items_of(const Block& block) const;
  void multiply(const Block& block, const Memory& memory, const Item& item, int slot) const;
  void multiply_tile(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk, std::int64_t p,
                     std::int64_t q, Packed<Element> a, Packed<Element> b) const;
  Piece piece_of(const ChunkTile& tile, const Memory& memory, std::int64_t first) const;
  void finish(const ChunkTile& tile, const Memory& memory, const Piece& piece, Real* sums, std::int64_t ld) const;

  Chunk chunk_of(const Block& block, std::int64_t i) const {
    return {i * cut_.chunk, std::min(cut_.chunk, block.k - i * cut_.chunk)};
  }
  // Of an operand that comes packed: the chunk of one of the block's matrices.
  Packed<Element> prepared_a(std::byte* a, const Block& block, std::int64_t matrix, Chunk chunk) const {
    const std::int64_t before = cut_.shares_a ? 0 : block.matrix + matrix, k = cut_.elements_of(task().problem.k);
    return {reinterpret_cast<Element*>(a) + before * cut_.prepared_elements(task().problem, true) + block.i * k +
                cut_.elements_of(block.t + chunk.t) * block.m,
            0};
  }
  Packed<Element> prepared_b(std::byte* b, const Block& block, std::int64_t matrix, Chunk chunk) const {
    const std::int64_t before = cut_.shares_b ? 0 : block.matrix + matrix, k = cut_.elements_of(task().problem.k);
    return {reinterpret_cast<Element*>(b) + before * cut_.prepared_elements(task().problem, false) + block.j * k +
                cut_.elements_of(block.t + chunk.t) * round_up(block.n, cut_.tile.lanes),
            0};
  }
  // Elements of a: where a row of the block begins, in a chunk, and to the next row and step.
  struct RowsInPlace {
    std::int64_t at, row, step;
  };
  RowsInPlace rows_in_place(const Block& block, std::int64_t matrix, std::int64_t row, Chunk chunk) const {
    const bool is_transposed = task().problem.transpose_a;
    const std::int64_t of_row = is_transposed ? 1 : task().lda, of_step = is_transposed ? task().lda : 1;
    return {(block.matrix + matrix) * task().batch_a + (block.i + row) * of_row + (block.t + chunk.t) * of_step, of_row,
            of_step};
  }
  // The workspace: slots of a, slots of b, sums of the matrices, and what threads pack for themselves.
  Packed<Element> shared_a(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk) const {
    if (cut_.prepared_a) return prepared_a(memory.a, block, matrix, chunk);
    const std::int64_t slot = cut_.keeps_a ? block.step_block : cut_.shares_a ? 0 : matrix;
    return {
        reinterpret_cast<Element*>(memory.workspace) + slot * cut_.a_elements() + cut_.elements_of(chunk.t) * block.m,
        0};
  }
  Packed<Element> shared_b(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk) const {
    if (cut_.prepared_b) return prepared_b(memory.b, block, matrix, chunk);
    const std::int64_t slot = cut_.keeps_b ? block.step_block : cut_.shares_b ? 0 : matrix;
    return {reinterpret_cast<Element*>(memory.workspace) + cut_.a_slots() * cut_.a_elements() +
                slot * cut_.b_elements() + cut_.elements_of(chunk.t) * round_up(block.n, cut_.tile.lanes),
            0};
  }
  Real* sums_apart(const Memory& memory, std::int64_t matrix) const {
    return reinterpret_cast<Real*>(memory.workspace) + cut_.shared_elements() + matrix * cut_.sums_elements();
  }
  Packed<Element> own(const Memory& memory, int slot, std::int64_t first) const {
    return {reinterpret_cast<Element*>(sums_apart(memory, cut_.matrices)) + slot * cut_.own_elements(), first};
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  GemmBlocking cut_;
};

template <typename Element>
void Plan<Element>::execute(const GemmArrays& arrays, double alpha) const {
  const Memory memory{host(arrays.a), host(arrays.b), host(arrays.bias), host(arrays.c), host(arrays.workspace), alpha};
  const GemmProblem& problem = task().problem;
  Block block{};
  for (block.matrix = 0; block.matrix < problem.batch; block.matrix += cut_.matrices) {
    block.matrices = std::min(cut_.matrices, problem.batch - block.matrix);
    for (block.i = 0; block.i < problem.m; block.i += cut_.m) {
      block.m = std::min(cut_.m, problem.m - block.i);
      block.rows = PanelCut::even(block.m, cut_.tile.rows);
      for (block.j = 0; block.j < problem.n; block.j += cut_.n) {
        block.n = std::min(cut_.n, problem.n - block.j);
        block.columns = cut_.columns_of(block.j, block.n);
        for (block.t = 0, block.step_block = 0; block.t < problem.k; block.t += cut_.k, ++block.step_block) {
          block.k = std::min(cut_.k, problem.k - block.t);
          block.chunks = divide_up(block.k, cut_.chunk);
          run_block(block, memory);
        }
      }
    }
  }
}

template <typename Element>
void Plan<Element>::prepare(bool of_a, std::byte* from, std::byte* to) const {
  const GemmProblem& problem = task().problem;
  const Memory memory{.a = from, .b = from, .bias = nullptr, .c = nullptr, .workspace = nullptr, .alpha = 1};
  const std::int64_t matrices = (of_a ? cut_.shares_a : cut_.shares_b) ? 1 : problem.batch;
  const std::int64_t blocks = of_a ? divide_up(problem.m, cut_.m) : divide_up(problem.n, cut_.n);
  const std::int64_t chunks = divide_up(problem.k, cut_.chunk);
  cpu_.parallel_for(matrices * blocks * chunks, [&](std::int64_t item, int) {
    Block block{};
    block.matrix = item / (blocks * chunks);
    block.k = problem.k;
    const Chunk chunk = chunk_of(block, item % chunks);
    const std::int64_t at = item / chunks % blocks;
    if (of_a) {
      block.i = at * cut_.m, block.m = std::min(cut_.m, problem.m - block.i);
      block.rows = PanelCut::even(block.m, cut_.tile.rows);
      const Packed<Element> panels = prepared_a(to, block, 0, chunk);
      for (std::int64_t p = 0; p < block.rows.panels; ++p) pack_rows(block, memory, 0, chunk, p, panels);
    } else {
      block.j = at * cut_.n, block.n = std::min(cut_.n, problem.n - block.j);
      block.columns = cut_.columns_of(block.j, block.n);
      const Packed<Element> panels = prepared_b(to, block, 0, chunk);
      for (std::int64_t q = 0; q < block.columns.panels; ++q) pack_columns(block, memory, 0, chunk, q, panels);
    }
  });
}

template <typename Element>
void Plan<Element>::run_block(const Block& block, const Memory& memory) const {
  pack_shared(block, memory);
  const Items items = items_of(block);
  in_parallel(items.count(), products_of(block), least_item_products,
              [&](std::int64_t i, int slot) { multiply(block, memory, items[i], slot); });
}

// Panels are counted through chunks, and these through matrices.
template <typename Element>
void Plan<Element>::pack_shared(const Block& block, const Memory& memory) const {
  const auto panels = [&](std::int64_t of_matrix, Packing own, bool shares, bool keeps) {
    if (cut_.packing == own || (keeps && block.matrix > 0)) return std::int64_t{0};
    return (shares ? 1 : block.matrices) * block.chunks * of_matrix;
  };
  const std::int64_t of_a =
      cut_.prepared_a ? 0 : panels(block.rows.panels, Packing::own_a, cut_.shares_a, cut_.keeps_a);
  const std::int64_t of_b =
      cut_.prepared_b ? 0 : panels(block.columns.panels, Packing::own_b, cut_.shares_b, cut_.keeps_b);
  if (of_a + of_b == 0) return;
  const std::int64_t panel = cut_.chunk * (of_b > 0 ? cut_.tile.columns : cut_.tile.rows);
  const double elements = static_cast<double>(of_a + of_b) * static_cast<double>(panel);
  in_parallel(of_a + of_b, elements, least_packed_elements, [&](std::int64_t i, int) {
    const std::int64_t at = i < of_a ? i : i - of_a;
    const std::int64_t of_matrix = i < of_a ? block.rows.panels : block.columns.panels;
    const std::int64_t matrix = at / (block.chunks * of_matrix), p = at % of_matrix;
    const Chunk chunk = chunk_of(block, at / of_matrix % block.chunks);
    if (i < of_a)
      pack_rows(block, memory, matrix, chunk, p, shared_a(block, memory, matrix, chunk));
    else
      pack_columns(block, memory, matrix, chunk, p, shared_b(block, memory, matrix, chunk));
  });
}

template <typename Element>
void Plan<Element>::pack_rows(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk,
                              std::int64_t p, Packed<Element> to) const {
  const GemmProblem& problem = task().problem;
  const std::int64_t start = block.rows.start(p), count = block.rows.start(p + 1) - start;
  const std::int64_t at = rows_in_place(block, matrix, start, chunk).at;
  kernels::pack_panel({memory.a + at * size_of(problem.type), problem.type, task().lda, !problem.transpose_a}, count,
                      count, chunk.k, to.data + (start - to.first) * cut_.elements_of(chunk.k));
}

template <typename Element>
void Plan<Element>::pack_columns(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk,
                                 std::int64_t q, Packed<Element> to) const {
  const GemmProblem& problem = task().problem;
  const std::int64_t start = block.columns.start(q), count = block.columns.start(q + 1) - start;
  const std::int64_t j = block.j + start, t = block.t + chunk.t,
                     width = block.columns.is_alone(q) ? 1 : round_up(count, cut_.tile.lanes);
  const std::int64_t of_matrix = (block.matrix + matrix) * task().batch_b;
  Element* const panel = to.data + (start - to.first) * cut_.elements_of(chunk.k);
  if constexpr (std::is_same_v<Element, Real>) {
    if (const ImageColumns* const images = task().images.get()) {
      const kernels::GemmImages<Real> lines{.from = reinterpret_cast<const Real*>(memory.b) + of_matrix,
                                            .steps = images->steps.data() + t,
                                            .pixels = images->pixels,
                                            .image_pitch = images->image_b,
                                            .run = images->run,
                                            .run_pitch = images->run_pitch};
      kernels::pack_images(lines, j, count, width, chunk.k, panel);
      return;
    }
  }
  const std::int64_t at = of_matrix + (problem.transpose_b ? j * task().ldb + t : t * task().ldb + j);
  kernels::pack_panel({memory.b + at * size_of(problem.type), problem.type, task().ldb, problem.transpose_b}, count,
                      width, chunk.k, panel);
}

template <typename Element>
Items Plan<Element>::items_of(const Block& block) const {
  Items items{block.rows.panels, block.columns.panels, 1, 1, block.matrices};
  if (cut_.packing == Packing::own_b) items.column_blocks = divide_up(items.columns, cut_.item_panels);
  if (cut_.packing == Packing::own_a) items.row_blocks = divide_up(items.rows, cut_.item_panels);
  if (cut_.packing != Packing::shared) return items;

  const kernels::RegisterTile& tile = cut_.tile;
  const std::int64_t step_bytes = cut_.elements_of(cut_.chunk) * size_of(cut_.sums);
  const auto blocks = [&](std::int64_t panels, std::int64_t width) {
    return divide_up(panels, std::max<std::int64_t>(item_bytes / (width * step_bytes), 1));
  };
  items.row_blocks = blocks(items.rows, tile.rows);
  items.column_blocks = blocks(items.columns, tile.columns);
  const double products = products_of(block);
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

// All chunks one after the other, so that the item's part of c stays in the caches.
template <typename Element>
void Plan<Element>::multiply(const Block& block, const Memory& memory, const Item& item, int slot) const {
  const auto multiply_row = [&](std::int64_t p, Chunk chunk, Packed<Element> a, Packed<Element> b) {
    for (std::int64_t q = item.first_column; q < item.last_column; ++q)
      multiply_tile(block, memory, item.matrix, chunk, p, q, a, b);
  };
  // Rows that are read where they are go by in one stream each. Where steps are apart, neighbouring panels share lines.
  if (cut_.is_a_in_place && !task().problem.transpose_a) {
    for (std::int64_t p = item.first_row; p < item.last_row; ++p)
      for (std::int64_t i = 0; i < block.chunks; ++i) {
        const Chunk chunk = chunk_of(block, i);
        multiply_row(p, chunk, {}, shared_b(block, memory, item.matrix, chunk));
      }
    return;
  }
  for (std::int64_t i = 0; i < block.chunks; ++i) {
    const Chunk chunk = chunk_of(block, i);
    Packed<Element> a, b;
    if (cut_.is_a_in_place) {
      a = {};
    } else if (cut_.packing == Packing::own_a && !cut_.prepared_a) {
      a = own(memory, slot, block.rows.start(item.first_row));
      for (std::int64_t p = item.first_row; p < item.last_row; ++p) pack_rows(block, memory, item.matrix, chunk, p, a);
    } else {
      a = shared_a(block, memory, item.matrix, chunk);
    }
    if (cut_.packing == Packing::own_b) {
      b = own(memory, slot, block.columns.start(item.first_column));
      for (std::int64_t q = item.first_column; q < item.last_column; ++q)
        pack_columns(block, memory, item.matrix, chunk, q, b);
    } else {
      b = shared_b(block, memory, item.matrix, chunk);
    }
    for (std::int64_t p = item.first_row; p < item.last_row; ++p) multiply_row(p, chunk, a, b);
  }
}

template <typename Element>
Piece Plan<Element>::piece_of(const ChunkTile& tile, const Memory& memory, std::int64_t first) const {
  Piece piece{first, tile.columns - first, nullptr};
  std::int64_t at = tile.matrix * task().batch_c + tile.i * task().ldc + tile.j + first;
  if (const ImageColumns* const images = task().images.get()) {
    const std::int64_t image = (tile.j + first) / images->pixels, pixel = (tile.j + first) % images->pixels;
    piece.columns = std::min(piece.columns, images->pixels - pixel);
    at += image * (images->image_c - images->pixels);
  }
  piece.c = memory.c + at * size_of(task().output);
  return piece;
}

template <typename Element>
void Plan<Element>::multiply_tile(const Block& block, const Memory& memory, std::int64_t matrix, Chunk chunk,
                                  std::int64_t p, std::int64_t q, Packed<Element> a, Packed<Element> b) const {
  const std::int64_t row = block.rows.start(p), column = block.columns.start(q);
  const ChunkTile tile{.matrix = block.matrix + matrix,
                       .i = block.i + row,
                       .j = block.j + column,
                       .rows = block.rows.start(p + 1) - row,
                       .columns = block.columns.start(q + 1) - column,
                       .first = block.t + chunk.t == 0,
                       .last = block.t + chunk.t + chunk.k == task().problem.k};
  alignas(64) Real here[kernels::most_tile_elements];
  const std::int64_t steps = cut_.elements_of(chunk.k);
  kernels::GemmPanels<Element> panels{.a = cut_.is_a_in_place ? nullptr : a.data + (row - a.first) * steps,
                                      .b = b.data + (column - b.first) * steps,
                                      .steps = steps,
                                      .rows = tile.rows,
                                      .columns = tile.columns,
                                      .sums = here,
                                      .ld = cut_.tile.columns,
                                      .add = false,
                                      .is_column = block.columns.is_alone(q)};
  if (cut_.is_a_in_place) {
    const auto [at, of_row, of_step] = rows_in_place(block, matrix, row, chunk);
    panels.a = reinterpret_cast<const Element*>(memory.a) + at, panels.a_row = of_row, panels.a_step = of_step;
  }
  Piece piece = piece_of(tile, memory, 0);
  if (cut_.in_place && piece.columns == tile.columns) {
    panels.sums = reinterpret_cast<Real*>(piece.c);
    panels.ld = task().ldc;
    panels.add = !tile.first || task().accumulate;
  } else if (cut_.sums_apart) {
    panels.sums = sums_apart(memory, matrix) + row * block.n + column;
    panels.ld = block.n;
    panels.add = !tile.first;
  }
  kernels::multiply_panels(panels);
  for (;;) {
    finish(tile, memory, piece, panels.sums, panels.ld);
    const std::int64_t next = piece.first + piece.columns;
    if (next == tile.columns) return;
    piece = piece_of(tile, memory, next);
  }
}

// A loop of its own: what finishes every tile would be slower with it.
template <typename Real>
void scale(Real alpha, Real* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) sums[i * ld + j] *= alpha;
}

// Of a piece whose sums begin at `sums`, unless they are in c.
template <typename Element>
void Plan<Element>::finish(const ChunkTile& tile, const Memory& memory, const Piece& piece, Real* sums,
                           std::int64_t ld) const {
  kernels::GemmFinish how{.type = task().problem.type, .output = task().output};
  sums += piece.first;
  if (cut_.in_place && reinterpret_cast<std::byte*>(sums) != piece.c) {
    how.accumulate = !tile.first || task().accumulate;
    kernels::finish_tile(how, sums, ld, tile.rows, piece.columns, piece.c, task().ldc);
    sums = reinterpret_cast<Real*>(piece.c), ld = task().ldc;
  }
  if (!tile.last) return;
  if (memory.alpha != 1) scale(static_cast<Real>(memory.alpha), sums, ld, tile.rows, piece.columns);
  const bool finished = cut_.in_place && task().bias == BiasAlong::none && !task().relu;
  if (finished) return;
  const std::int64_t size = size_of(task().problem.type);
  how.row_bias = task().bias == BiasAlong::rows ? memory.bias + tile.i * size : nullptr;
  how.column_bias = task().bias == BiasAlong::columns ? memory.bias + (tile.j + piece.first) * size : nullptr;
  how.accumulate = task().accumulate && !cut_.in_place;
  how.relu = task().relu;
  kernels::finish_tile(how, sums, ld, tile.rows, piece.columns, piece.c, task().ldc);
}

class PackedCpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/packed/cpu.1"; }
  Answer offer(const GemmTask& asked, const DevicePointer& device, const SolverOptions& request) const override {
    const auto* const cpu = dynamic_cast<const CpuDevice*>(device.get());
    if (cpu == nullptr) return "runs on the CPU alone";
    GemmTask task = asked;
    task.prepared_a |= prepares(request, "a");
    task.prepared_b |= prepares(request, "b");
    task.may_pair &= may_pair(request);
    if (task.prepared_b && task.images) return "columns that are read out of images have no prepared form";
    const GemmBlocking cut(task, cpu->threads(), request.max_workspace_bytes);
    std::map<std::size_t, PreparedFormat> prepared;
    if (task.prepared_a) prepared[0] = cut.format(task.problem, true);
    if (task.prepared_b) prepared[1] = cut.format(task.problem, false);
    return Offer{
        .cost = {cost(task, cut, *device)},
        .bound = gemm_bound(task, gemm_chain(task)),
        .workspace_bytes = cut.workspace_bytes(),
        .prepared = std::move(prepared),
        .plan = [=]() -> std::shared_ptr<const PlanBody> {
          if (task.problem.type == DataType::f64) return std::make_shared<Plan<double>>(task, device, cut);
          if (cut.terms == kernels::pair_terms) return std::make_shared<Plan<kernels::BfloatPair>>(task, device, cut);
          return std::make_shared<Plan<float>>(task, device, cut);
        },
    };
  }

 private:
  static double cost(const GemmTask& task, const GemmBlocking& cut, const devices::Device& device);
};

// Whole vectors of columns at the rate that was measured, and every matrix once through memory.
double PackedCpu::cost(const GemmTask& task, const GemmBlocking& cut, const devices::Device& device) {
  constexpr double efficiency = 0.9, begin = 2e6;  // of a run: its phases begin and end
  constexpr double steps_of_tile = 8;              // that it takes to begin and end a tile
  constexpr double byte_in_place = 4;              // which passes while it is multiplied, and is not written again
  const GemmProblem& problem = task.problem;
  const kernels::RegisterTile tile = kernels::register_tile(problem.type, problem.m);
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double m = real(problem.m), n = real(problem.n), k = real(problem.k), batch = real(problem.batch);
  const double size = real(size_of(problem.type)), size_c = real(size_of(task.output));
  const double products = batch * m * (real(cut.elements_of(problem.k)) + steps_of_tile) *
                          real(cut.is_last_alone ? problem.n : round_up(problem.n, tile.lanes)) / efficiency;
  const double of_a = (task.batch_a == 0 ? 1 : batch) * m * k * size,
               others =
                   (task.batch_b == 0 ? 1 : batch) * k * n * size + batch * m * n * size_c * (task.accumulate ? 2 : 1);
  return begin + products * (problem.type == DataType::f64 ? 2 : 1) +
         of_a * (cut.is_a_in_place ? byte_in_place : byte_cost(device)) + others * byte_cost(device);
}

}  // namespace

const GemmSolver& gemm_packed_cpu() {
  static const PackedCpu solver;
  return solver;
}

}  // namespace omniconv::operations
