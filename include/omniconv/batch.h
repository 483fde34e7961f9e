// batch: the images of one step of a training, out of a whole data set that lies in the device's memory as bytes. They
// are gathered in a given order, turned into numbers by a table, and, where the problem says so, mirrored and shifted
// by chance. Problem -> plan -> run, on the caller's memory.
//
//   y[i,k,p,q] = table[k][images[order[first + i], k, p + dp, q' + dq]]          classes[i] = labels[order[first + i]]
//
// Where images are gathered those of the order lie in the order's order, as a part of a set that is on its way does:
//
//   y[i,k,p,q] = table[k][images[first + i, k, p + dp, q' + dq]]                 classes[i] = labels[first + i]
//
// q' is q, or, of an image that is mirrored, w - 1 - q; a pixel outside of the image counts as 0. The bits are
// promised, those of chance too, the same on every device. docs/notation.md has the text and the draws.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

struct BatchProblem {
  // Positions in the order are whole numbers of fp32, so that recorded runs may change them.
  static constexpr std::int64_t most_images = std::int64_t{1} << 24;

  DataType type = DataType::f32;  // of y: f32, f64, f16 or bf16
  Layout layout = Layout::nchw;   // of y
  bool gathered = false;          // images and labels lie in the order's order
  bool flip = false;              // one image of two, by chance, is mirrored
  std::int64_t m = 0;             // images of the set, most_images at most
  std::int64_t n = 0;             // of the batch
  std::int64_t c = 0, h = 0, w = 0;
  std::int64_t shift = 0;  // dp and dq are from -shift to shift, by chance: a crop of the image with so much padding
  std::string name = {};   // no part of equality

  bool operator==(const BatchProblem& other) const;
};
const operations::Operation& operation_of(const BatchProblem*);

// Packed. An entry of the order that names no image of the set (where images are gathered: that is less than 0), and a
// position behind its end, stand for an image whose pixels are all 0, of the class -1.
struct BatchRun {
  Operand images = {};  // u8, m x c x h x w
  Operand labels = {};  // u8, m
  Operand order = {};   // s32, m: which image is where in the epoch; its number is what draws depend on
  Operand table = {};   // f32, c x 256: what a pixel of a channel becomes
  // What is written: of the problem's type and layout, n x c x h x w; and s32, n.
  Operand y = {}, classes = {};

  Scalar first = 0;  // the position of the batch's first image in the order
  // Of flip and shift: what an image's draw depends on, beside its place in the set. The epoch is a whole number, 2^24
  // at most.
  std::uint64_t seed = 0;
  Scalar epoch = 0;
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// A seed as the scalars seed0, seed1 and seed2 of a run by names: its bits 0 to 23, 24 to 47 and 48 to 63.
std::array<double, 3> seed_scalars(std::uint64_t seed);

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class BatchPlan {
 public:
  BatchPlan(const Context& context, const BatchProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const BatchProblem& problem() const { return *plan_.problem().get_if<BatchProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const BatchRun& run) const;
  // The same work at the end of a sequence of the plan's context. Recorded, each replay is a batch: `first` and `epoch`
  // may be changing scalars that are set between.
  void append(Sequence& sequence, const BatchRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
