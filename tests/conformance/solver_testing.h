// Single solvers and their plans, without the choice among them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "omniconv/error.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Why the solver does not serve the task; empty if it does.
template <typename Task>
std::string refusal_of(const SolverOf<Task>& solver, const Task& task, const DevicePointer& device,
                       const SolverOptions& request = {}) {
  const Answer answer = solver.offer(task, device, request);
  return answer.offer() != nullptr ? "" : answer.refusal();
}

template <typename Task>
Offer offer_by(const SolverOf<Task>& solver, const Task& task, const DevicePointer& device,
               std::int64_t workspace_limit = -1) {
  const Answer answer = solver.offer(task, device, {.max_workspace_bytes = workspace_limit});
  if (answer.offer() != nullptr) return *answer.offer();
  ADD_FAILURE() << solver.id() << ": " << answer.refusal();
  throw bad_input(answer.refusal());
}

template <typename Body>
std::shared_ptr<const Body> body_of(const Offer& offer) {
  return std::static_pointer_cast<const Body>(offer.plan());
}

// One run, submitted.
template <typename Body, typename Run>
Event submit_run(devices::Queue& queue, const Body& body, const Run& run) {
  const std::shared_ptr<devices::Sequence> sequence = queue.take_sequence();
  body.append(*sequence, run);
  return queue.submit(sequence);
}

}  // namespace omniconv::operations
