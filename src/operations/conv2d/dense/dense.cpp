// Convolutions that are products of matrices as they lie: by the best solver of gemm.
#include <fmt/format.h>

#include <optional>

#include "core/checked.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/shape.h"
#include "operations/gemm/gemm.h"

namespace omniconv::operations {
namespace {

// Why the arrays are no matrices: an output pixel must read what lies side by side, in the order of the filters.
std::string shape_refusal(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (g.groups > 1) return "multiplies whole matrices, not those of groups";
  const bool has_pads =
      problem.pad_top != 0 || problem.pad_bottom != 0 || problem.pad_left != 0 || problem.pad_right != 0;
  const bool is_one_tap = g.r == 1 && g.s == 1, reads_whole_images = g.p == 1 && g.q == 1 && g.r == g.h && g.s == g.w,
             reads_all_pixels = is_one_tap && g.p == g.h && g.q == g.w && g.nhwc;
  if (has_pads || (!reads_whole_images && !reads_all_pixels))
    return "multiplies where filters are as large as images, or have one tap and meet each pixel of nhwc";
  if (g.flip && !is_one_tap) return "multiplies filters as they lie, not turned";
  return {};
}

// Rows of x and y are output pixels.
GemmTask task_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  const std::int64_t rows = checked_multiply(checked_multiply(g.n, g.p, "the pixels"), g.q, "the pixels"),
                     terms = checked_multiply(checked_multiply(g.c, g.r, "the terms"), g.s, "the terms");
  GemmProblem product;
  product.type = problem.type;
  switch (problem.pass) {
    case Pass::forward: product.m = rows, product.n = g.k, product.k = terms, product.transpose_b = true; break;
    case Pass::backward_data: product.m = rows, product.n = terms, product.k = g.k; break;
    case Pass::backward_filter: product.m = g.k, product.n = terms, product.k = rows, product.transpose_a = true; break;
  }
  GemmTask task = task_for(product);
  task.bias = problem.bias ? BiasAlong::columns : BiasAlong::none;
  task.accumulate = problem.accumulate, task.relu = problem.relu;
  return task;
}

bool keeps_to(const SolverOptions& request, const Offer& offer) {
  return (request.units != Units::fma || offer.uses_only_fma) &&
         (offer.bound.exact || offer.bound.amplification <= request.max_error) &&
         (!request.relative_error || offer.bound.absolute == 0) && (!request.deterministic || offer.is_deterministic);
}

// Of what serves the product as the request asks, the one of the fewest bytes beyond the limit, then of least cost.
Answer best_product(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) {
  std::optional<Offer> best;
  const auto rank = [&](const Offer& offer) {
    const std::int64_t limit = request.max_workspace_bytes;
    return std::pair(limit < 0 ? 0 : std::max<std::int64_t>(offer.workspace_bytes - limit, 0),
                     offer.cost.multiply_adds);
  };
  for (const Solver* const solver : gemm_solvers()) {
    if (solver->role() != SolverRole::own) continue;
    const Answer answer = static_cast<const GemmSolver*>(solver)->offer(task, device, request);
    if (answer.offer() == nullptr) continue;
    if (keeps_to(request, *answer.offer()) && (!best || rank(*answer.offer()) < rank(*best))) best = *answer.offer();
  }
  if (!best) return "no product of matrices serves as is asked";
  return *std::move(best);
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, std::shared_ptr<const GemmPlanBody> product)
      : Conv2dPlanBody(problem), product_(std::move(product)) {}
  double compile_seconds() const override { return product_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    GemmArrays arrays;
    arrays.bias = run.bias, arrays.workspace = {run.workspace};
    switch (problem().pass) {
      case Pass::forward: arrays.a = run.x, arrays.b = run.w, arrays.c = run.y; break;
      case Pass::backward_data: arrays.a = run.y, arrays.b = run.w, arrays.c = run.x; break;
      case Pass::backward_filter: arrays.a = run.y, arrays.b = run.x, arrays.c = run.w; break;
    }
    product_->append(sequence, arrays);
  }

 private:
  std::shared_ptr<const GemmPlanBody> product_;
};

// Of devices of one kind: what it multiplies by are that kind's.
class Dense final : public Conv2dSolver {
 public:
  Dense(std::string_view id, bool is_for_cpu) : id_(id), is_for_cpu_(is_for_cpu) {}
  std::string_view id() const override { return id_; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (is_for_cpu_ && device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    // Pixels of nhwc are few columns for each thread's cache there, which others cut better.
    if (is_for_cpu_ && (problem.h != problem.r || problem.w != problem.s))
      return "multiplies where filters are as large as images";
    if (std::string reason = is_for_cpu_ ? "" : conv2d_gpu_refusal(problem, *device, 1); !reason.empty()) return reason;
    if (std::string reason = shape_refusal(problem); !reason.empty()) return reason;
    const Answer product = best_product(task_of(problem), device, request);
    if (product.offer() == nullptr) return product.refusal();
    Offer offer = *product.offer();
    // On the CPU others pack the columns of an image's one pixel by themselves, or begin a phase for each image, which
    // their costs do not count: with several images they take 1.1 to 30 times as long (README.md).
    constexpr double beside_others = 0.3;
    if (is_for_cpu_ && problem.n > 1) offer.cost.multiply_adds *= beside_others;
    offer.tuning = {};  // products of different solvers have different names
    offer.plan = [problem, product = *product.offer()] { return std::make_shared<Plan>(problem, plan_of(product)); };
    return offer;
  }

 private:
  std::string_view id_;
  bool is_for_cpu_;
};

}  // namespace

const Conv2dSolver& conv2d_dense_cpu() {
  static const Dense solver("conv2d/dense/cpu.1", true);
  return solver;
}
const Conv2dSolver& conv2d_dense_gpu() {
  static const Dense solver("conv2d/dense/gpu.1", false);
  return solver;
}

}  // namespace omniconv::operations
