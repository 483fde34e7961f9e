// How a product is cut: blocks of rows, columns and steps, of which the panels of a and b are packed into the
// workspace, and the tiles within them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/gemm_tiles.h"
#include "solvers/gemm/gemm.h"

namespace omniconv::solvers {

// Lines in panels: panel p holds lines [start(p), start(p + 1)).
struct PanelCut {
  std::int64_t lines, panels, height, taller;  // the first `taller` panels hold one line more than the others
  std::int64_t start(std::int64_t p) const { return std::min(p * height + std::min(p, taller), lines); }

  // Panels of at most so many lines, as even as can be: the rows of a tile cost what they are.
  static PanelCut even(std::int64_t lines, std::int64_t most);
  // All full but the last: whole vectors cost alike, whatever they hold.
  static PanelCut full(std::int64_t lines, std::int64_t most);
};

struct GemmBlocking {
  // What a plan takes under a workspace limit (negative: none), or the least that will do. The steps of a block, and so
  // the sums, do not depend on the limit.
  GemmBlocking(const GemmTask& task, std::int64_t workspace_limit);

  DataType sums;  // f32 or f64
  kernels::GemmTile tile;
  std::int64_t m, n, k;                 // the largest block's rows, columns and steps
  std::int64_t step_blocks;             // in all of the problem's k
  std::int64_t matrices = 1;            // of the batch at once; more than one only where a block holds all of m and n
  bool keep_a = false, keep_b = false;  // one for the whole batch: packed once, in all its steps
  bool in_place;                        // sums are kept in c itself
  bool sums_apart;                      // in the workspace, from one block of steps to the next

  // Elements of one matrix's part of the workspace.
  std::int64_t a_elements() const;
  std::int64_t b_elements() const;
  std::int64_t sums_elements() const { return sums_apart ? m * n : 0; }
  // How many of them there are.
  std::int64_t a_slots() const { return keep_a ? step_blocks : shares_a ? 1 : matrices; }
  std::int64_t b_slots() const { return keep_b ? step_blocks : shares_b ? 1 : matrices; }
  std::int64_t workspace_bytes() const;

  bool shares_a, shares_b;  // all matrices of the batch have the same

 private:
  bool shrink();
};

// L of the bound: the longest chain in registers, and the sums of blocks that are added.
double gemm_chain(const GemmTask& task);

}  // namespace omniconv::solvers
