// What the studies of GPUs share: their device, and plans that no solver offers.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "choice/plan_record.h"
#include "devices/device.h"
#include "omniconv/context.h"
#include "omniconv/error.h"
#include "omniconv/plan.h"

namespace omniconv::bench {

// Of cuda[:I] or opencl[:PLATFORM.DEVICE].
inline Context open_gpu(const std::string& id) {
  const std::string kind = id.substr(0, id.find(':'));
  if (kind != "cuda" && kind != "opencl")
    throw bad_input(
        fmt::format("--device {}: must be cuda[:I] or opencl[:PLATFORM.DEVICE], as in --device cuda:0", id));
  return Context({.device = id});
}

// A plan around a body, which runs as those of solvers do.
inline Plan plan_around(const Context& context, const Problem& problem, const operations::AnyTask& task,
                        const std::string& solver, std::int64_t workspace_bytes,
                        std::shared_ptr<const operations::PlanBody> body) {
  const operations::Offer offer{.workspace_bytes = workspace_bytes, .plan = [body = std::move(body)] { return body; }};
  return Plan(choice::record_of(context, problem, task, solver, offer));
}

// The plan of what a solver offers.
inline Plan plan_of(const Context& context, const Problem& problem, const operations::AnyTask& task,
                    const operations::Solver& solver) {
  const operations::Answer answer = solver.offer_any(task, context.impl(), {});
  if (answer.offer() == nullptr) throw bad_input(fmt::format("{}: {}", solver.id(), answer.refusal()));
  return Plan(choice::record_of(context, problem, task, solver.id(), *answer.offer()));
}

}  // namespace omniconv::bench
