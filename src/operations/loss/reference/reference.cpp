// The reference as a solver.
#include <cstring>

#include "core/convert.h"
#include "operations/loss/host_plan.h"
#include "operations/loss/loss.h"
#include "operations/loss/reference/row.h"

namespace omniconv::operations {
namespace {

// The loss is rounded to its type before it is added to what is there.
void store_loss(const LossProblem& problem, const LossRows& rows, std::int64_t i, double loss) {
  const DataType type = loss_type(problem);
  std::byte* const y = rows.y + i * size_of(type);
  const double before = problem.sums ? load_element(type, y) : 0;
  store_element(type, loss, y);
  if (problem.sums) store_element(type, before + load_element(type, y), y);
}

void softmax(const LossProblem& problem, const LossRows& rows, std::int64_t i) {
  const DataType type = problem.type;
  const std::byte* const x = rows.x + i * problem.c * size_of(type);
  std::int32_t label = 0;
  std::memcpy(&label, rows.target + i * size_of(DataType::s32), sizeof label);
  const reference::SoftmaxRow row = reference::softmax_row(type, x, problem.c);
  if (has_losses(problem)) store_loss(problem, rows, i, reference::softmax_loss(row, type, x, problem.c, label).value);
  for (std::int64_t j = 0; problem.backward && j < problem.c; ++j)
    store_element(type, reference::softmax_gradient(row, type, x, problem.c, label, j, rows.scale).value,
                  rows.dx + (i * problem.c + j) * size_of(type));
}

void squared(const LossProblem& problem, const LossRows& rows, std::int64_t i) {
  const DataType type = problem.type;
  const std::int64_t begin = i * problem.c * size_of(type), end = begin + problem.c * size_of(type);
  if (has_losses(problem))
    store_loss(problem, rows, i, reference::squared_loss(type, rows.x + begin, rows.target + begin, problem.c));
  for (std::int64_t at = begin; problem.backward && at < end; at += size_of(type))
    store_element(type,
                  reference::squared_gradient(load_element(type, rows.x + at), load_element(type, rows.target + at),
                                              problem.c, rows.scale),
                  rows.dx + at);
}

void compute(const LossProblem& problem, const LossRows& rows) {
  for (std::int64_t i = 0; i < rows.rows; ++i)
    problem.loss == Loss::softmax ? softmax(problem, rows, i) : squared(problem, rows, i);
}

class LossReference final : public LossSolver {
 public:
  std::string_view id() const override { return "loss/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const LossProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(elements_of(problem))},
        .bound = loss_bound(problem, static_cast<double>(problem.c), 0),
        .plan = [=] { return loss_on_host(problem, device, compute); },
    };
  }
};

}  // namespace

const LossSolver& loss_reference() {
  static const LossReference solver;
  return solver;
}

}  // namespace omniconv::operations
