// add, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include <algorithm>

#include "omniconv/add.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The arrays of a pass by what they are for: result = base + a part of `other`, where there is one. Forward y, x and s,
// backward ds, d and dy.
struct AddArrays {
  Operand result, base, other;
};

// The task is the problem itself.
class AddPlanBody : public PlanBody {
 public:
  explicit AddPlanBody(const AddProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked. The result and the base may be the same memory.
  virtual void append(devices::Sequence& sequence, const AddArrays& run) const = 0;
  const AddProblem& problem() const { return problem_; }

 private:
  AddProblem problem_;
};

using AddSolver = SolverOf<AddProblem>;

// Extents of the result and of the array of which a part is added to it, and where that part is.
struct AddShape {
  struct Extents {
    std::int64_t channels = 0, rows = 0, columns = 0;
    std::int64_t of_image() const { return channels * rows * columns; }
  };
  struct Place {
    std::int64_t channel = 0, row = 0, column = 0;
  };
  static constexpr std::int64_t none = -1;

  bool backward, nhwc;
  std::int64_t stride, before;  // before: the channels of y in front of those of s
  Extents result, other;

  explicit AddShape(const AddProblem& p)
      : backward(p.backward), nhwc(p.layout == Layout::nhwc), stride(p.stride), before((p.k - p.c) / 2) {
    const Extents s{p.c, p.h, p.w}, y{p.k, P(p), Q(p)};
    result = backward ? s : y, other = backward ? y : s;
  }
  // Every element of the result has one of the other array, at its own place.
  bool is_plain() const { return stride == 1 && result.channels == other.channels; }

  // Where in the other array what is added to a channel, row or column of the result lies; `none` where that is
  // nothing.
  std::int64_t other_channel(std::int64_t channel) const {
    if (backward) return channel + before;
    return channel >= before && channel - before < other.channels ? channel - before : none;
  }
  std::int64_t other_line(std::int64_t line) const {
    if (!backward) return line * stride;
    return line % stride == 0 ? line / stride : none;
  }
  // Of an element of the result.
  std::int64_t other_element(std::int64_t element) const {
    const std::int64_t image = element / result.of_image(), in_image = element % result.of_image();
    const Place at = nhwc ? Place{in_image % result.channels, in_image / result.channels / result.columns,
                                  in_image / result.channels % result.columns}
                          : Place{in_image / (result.rows * result.columns), in_image / result.columns % result.rows,
                                  in_image % result.columns};
    const std::int64_t channel = other_channel(at.channel), row = other_line(at.row), column = other_line(at.column);
    if (channel == none || row == none || column == none) return none;
    const std::int64_t place = nhwc ? (row * other.columns + column) * other.channels + channel
                                    : (channel * other.rows + row) * other.columns + column;
    return image * other.of_image() + place;
  }
};

inline std::int64_t elements_of_result(const AddProblem& problem) {
  return problem.n * AddShape(problem).result.of_image();
}
// Of every array once, of the other one what is read.
double least_bytes(const AddProblem& problem);

// The bits are defined: README.md of add/direct.
ErrorBound add_bound(const AddProblem& problem);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> add_solvers();

const AddSolver& add_direct_cpu();
const AddSolver& add_direct_gpu();
const AddSolver& add_rungs_gpu();
const AddSolver& add_reference();

}  // namespace omniconv::operations
