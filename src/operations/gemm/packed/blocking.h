// How a product is cut. Blocks of c, and of steps along k, are taken one after the other: their lines of a and b are
// packed into panels, of one chunk of steps after the other. Items of a block, which threads take, are some of its
// panels; tiles are the products of two panels.
#pragma once

#include <cstdint>

#include "operations/gemm/gemm.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/panel_cut.h"

namespace omniconv::operations {

using kernels::PanelCut;

// Panels are packed before a block's items begin, and shared by them; or each item packs its own rows of a, or its own
// columns of b, which saves their way through memory where no other item needs them.
enum class Packing : std::uint8_t { shared, own_a, own_b };

class GemmBlocking {
 public:
  // What a plan takes under a workspace limit (negative: none), or the least that will do. Chunks, and so the sums,
  // depend on the problem alone.
  GemmBlocking(const GemmTask& task, int threads, std::int64_t workspace_limit);

  DataType sums;  // f32 or f64
  kernels::RegisterTile tile;
  std::int64_t terms;         // of a sum in an element of a panel: 2 where they are pairs of bf16
  std::int64_t chunk;         // steps that a tile adds up in registers
  std::int64_t m, n, k;       // of the largest block; k in whole chunks, or all of the problem's
  std::int64_t matrices = 1;  // of the batch in one block; several only where it holds all of m and n
  bool in_place;              // sums are kept in c itself
  bool sums_apart;            // or in the workspace, from one chunk to the next
  Packing packing = Packing::shared;
  std::int64_t item_panels = 0;           // of an item that packs for itself
  bool shares_a, shares_b;                // all matrices of the batch have the same
  bool keeps_a = false, keeps_b = false;  // it is packed once for the batch, with a slot for each block of steps
  bool prepared_a, prepared_b;            // it comes packed, all of it
  bool is_a_in_place = false;             // own rows are read where they are
  bool is_last_alone;                     // the last column is a panel by itself

  // Of a block's columns.
  PanelCut columns_of(std::int64_t first, std::int64_t count) const {
    return is_last_alone && first + count == all_columns_ ? PanelCut::full_and_one(count, tile.columns)
                                                          : PanelCut::full(count, tile.columns);
  }
  // A line's elements in a panel of so many steps.
  std::int64_t elements_of(std::int64_t steps) const { return (steps + terms - 1) / terms; }
  // Elements of one slot of packed panels, of how many there are, and of one matrix's sums.
  std::int64_t a_elements() const { return round_64(m * elements_of(k)); }
  std::int64_t b_elements() const;
  std::int64_t a_slots() const;
  std::int64_t b_slots() const;
  std::int64_t sums_elements() const { return sums_apart ? round_64(m * n) : 0; }
  std::int64_t shared_elements() const { return a_slots() * a_elements() + b_slots() * b_elements(); }
  std::int64_t own_elements() const;  // of the panels that a thread packs for itself
  std::int64_t workspace_bytes() const;
  // Of one matrix that comes packed: chunk after chunk of one block of lines after the other.
  std::int64_t prepared_elements(const GemmProblem& problem, bool of_a) const;
  PreparedFormat format(const GemmProblem& problem, bool of_a) const;  // as a problem of that product stores it

 private:
  static std::int64_t round_64(std::int64_t elements) { return (elements + 63) / 64 * 64; }
  void set_steps(const GemmTask& task, std::int64_t most);
  void choose_packing(const GemmTask& task);
  void choose_item_panels(const GemmTask& task);
  void join_matrices(const GemmTask& task);
  bool shrink();

  int threads_;
  std::int64_t step_blocks_, all_columns_;
};

// L of the bound: the longest chain in registers, and the sums of chunks that are added.
double gemm_chain(const GemmTask& task);

}  // namespace omniconv::operations
