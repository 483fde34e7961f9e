// A gemm or conv2d problem as its checks and timings see it: arrays in, one array out, and what its elements should be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omniconv/conv2d.h"
#include "omniconv/gemm.h"
#include "reference/matrix.h"
#include "solvers/matrix_solver.h"

namespace omniconv {

// A plan of either, its arrays in the order of MatrixWork.
class MatrixPlan {
 public:
  virtual ~MatrixPlan() = default;
  virtual std::string solver() const = 0;
  virtual std::int64_t workspace_bytes() const = 0;
  virtual double compile_seconds() const = 0;
  virtual Event run(Queue& queue, const std::vector<Operand>& inputs, const Operand& output,
                    const Buffer& workspace) const = 0;
};

struct MatrixArray {
  std::string name;
  std::int64_t elements = 0;
};

class MatrixWork {
 public:
  virtual ~MatrixWork() = default;

  DataType type = DataType::f32;  // of all arrays
  std::vector<MatrixArray> inputs;
  MatrixArray output;
  bool accumulates = false, has_relu = false;
  double longest_sum = 0, multiply_adds = 0;  // of the definition

  virtual std::string text() const = 0;
  virtual std::unique_ptr<MatrixPlan> plan(const Context& context, const SolverOptions& options) const = 0;
  // All candidates, refused ones last.
  virtual std::vector<Candidate> explain(const Context& context, const SolverOptions& options) const = 0;
  virtual std::vector<std::string> solvers() const = 0;
  virtual solvers::MatrixBound bound(const std::string& solver, const devices::Device& device) const = 0;
  // Of an output element, before accumulation, relu and rounding; `data` are the inputs.
  virtual reference::DoubleSum expected(const std::vector<const std::byte*>& data, std::int64_t index) const = 0;
};

std::unique_ptr<MatrixWork> make_work(const GemmProblem& problem);
std::unique_ptr<MatrixWork> make_work(const Conv2dProblem& problem);

// Each input read once, the output written once, and read where it is added to.
double array_bytes(const MatrixWork& work);

}  // namespace omniconv
