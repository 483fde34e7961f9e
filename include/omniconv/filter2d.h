// filter2d: an image filtered by one kernel. Problem -> plan -> run, on the caller's memory.
//
//   y[p, q, ch] = convert(scale * sum over r, s of x[p + r - anchor_y, q + s - anchor_x, ch] * w[r, s] + bias)
//
// with x continued outside the image by the problem's border; or, of a pair of kernels, with sqrt(gx^2 + gy^2) of their
// two sums in place of the sum. docs/arithmetic.md says which bits are promised.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// 2-D filtering of an image x[h, w, c] (interleaved channels) by one r x s kernel, the same for every channel.
struct Filter2dProblem {
  DataType input = DataType::u8;
  DataType output = DataType::u8;
  std::int64_t h = 0, w = 0, c = 1, r = 0, s = 0;
  Border border = {};
  bool flip = false;  // true convolution: r and s reversed
  // The channel that holds opacity, by which colours are multiplied while they are filtered (docs/arithmetic.md, rule
  // 8); -1: all channels alike.
  std::int64_t alpha_channel = -1;
  std::string kernel = "random";  // what the weights are like: random, integer, rank1, equal, or a named kernel
  std::string name = {};          // no part of equality

  bool operator==(const Filter2dProblem& other) const;
};
const operations::Operation& operation_of(const Filter2dProblem*);

// Extents of the output: rows P and columns Q.
std::int64_t P(const Filter2dProblem& problem);
std::int64_t Q(const Filter2dProblem& problem);

// The weights of a filter, row-major, r x s of the problem. The anchor is floor(size / 2) by default; under `flip` both
// weights and anchor are mirrored. With the border `valid` the anchor has no effect.
struct Filter {
  std::vector<double> weights = {};
  std::optional<std::int64_t> anchor_y = {}, anchor_x = {};
  double scale = 1, bias = 0;
  // The stored values of full opacity, where the problem has an alpha channel; 0: the type's highest, 1 for floats.
  double opaque_input = 0, opaque_output = 0;
  // Empty, or r x s as well: then the result is the magnitude of the pair, `weights` of x and these of y. The anchor,
  // the scale and the bias serve both.
  std::vector<double> second_weights = {};
};

// Where one run reads and writes. Rows are of the whole image; a run may serve a part of it (a strip). Input rows are
// [input_first, input_first + input_rows); they may reach outside the image where the caller has put the border's rows
// there itself (wrap). A row that the filter needs and that is not there is taken where the border says, and must be
// there. Strides are in bytes, multiples of the element size; 0 means packed.
struct Filter2dRun {
  Buffer input = {}, output = {},
         workspace = {};  // at least workspace_bytes(output_rows), for this run alone; at a multiple of 64 bytes
  std::int64_t input_offset_bytes = 0, output_offset_bytes = 0;  // of the first row given
  std::int64_t input_stride_bytes = 0, output_stride_bytes = 0;
  std::int64_t input_first = 0, input_rows = -1;    // -1: all rows of the image
  std::int64_t output_first = 0, output_rows = -1;  // -1: all rows of the output
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class Filter2dPlan {
 public:
  using Options = SolverOptions;
  Filter2dPlan(const Context& context, const Filter2dProblem& problem, const Filter& filter,
               const Options& options = {});

  const Filter2dProblem& problem() const;
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  std::int64_t workspace_bytes(std::int64_t output_rows) const;       // of runs of at most so many: strips
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const Filter2dRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const Filter2dRun& run) const;

  const Plan& plan() const { return plan_; }
  explicit Filter2dPlan(Plan plan);  // throws where it is another operation's

 private:
  void append_checked(devices::Sequence& sequence, const Filter2dRun& run) const;

  Plan plan_;
};

// The applicable ones first, in the order of choice: the first is what `auto` runs.
std::vector<Candidate> explain(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                               const SolverOptions& options = {});

// The input rows [first, last) that output rows [output_first, output_first + output_rows) read, after the border's
// mapping (for wrap possibly outside [0, h), counted on past the edge).
struct RowSpan {
  std::int64_t first = 0, last = 0;
};
RowSpan input_rows_for(const Filter2dProblem& problem, const Filter& filter, std::int64_t output_first,
                       std::int64_t output_rows);

}  // namespace omniconv
