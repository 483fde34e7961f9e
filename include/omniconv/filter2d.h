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
#include "omniconv/problem.h"

namespace omniconv {

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

struct Filter2dOptions {
  std::string solver = "auto";            // or a solver's id
  std::int64_t max_workspace_bytes = -1;  // a hard limit; negative: none
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

namespace solvers {
class Filter2dPlanBody;
}

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class Filter2dPlan {
 public:
  using Options = Filter2dOptions;
  Filter2dPlan(const Context& context, const Filter2dProblem& problem, const Filter& filter,
               const Options& options = {});

  const Filter2dProblem& problem() const;
  const std::string& solver() const;
  std::int64_t workspace_bytes() const;
  std::int64_t workspace_bytes(std::int64_t output_rows) const;  // of runs of at most so many: strips
  double compile_seconds() const;                                // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const Filter2dRun& run) const;

  explicit Filter2dPlan(std::shared_ptr<const solvers::Filter2dPlanBody> body) : body_(std::move(body)) {}
  const std::shared_ptr<const solvers::Filter2dPlanBody>& impl() const { return body_; }

 private:
  std::shared_ptr<const solvers::Filter2dPlanBody> body_;
};

// One candidate's answer: yes, or no with the reason.
struct Filter2dCandidate {
  std::string solver;
  bool applicable = false;
  std::string reason;                // of a refusal
  std::int64_t workspace_bytes = 0;  // the rest of an applicable one
  double operations = 0;             // per output element, in multiply-adds: the cost by which it is chosen
  std::string bound;                 // in words: "bit-exact", or the formula of its error bound
};
// The applicable ones first, in the order of choice: the first is what `auto` runs.
std::vector<Filter2dCandidate> explain(const Context& context, const Filter2dProblem& problem, const Filter& filter);

// The input rows [first, last) that output rows [output_first, output_first + output_rows) read, after the border's
// mapping (for wrap possibly outside [0, h), counted on past the edge).
struct RowSpan {
  std::int64_t first = 0, last = 0;
};
RowSpan input_rows_for(const Filter2dProblem& problem, const Filter& filter, std::int64_t output_first,
                       std::int64_t output_rows);

}  // namespace omniconv
