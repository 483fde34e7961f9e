// What a plan's handle stands for.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "omniconv/plan.h"
#include "operations/operation.h"

namespace omniconv::choice {

struct PlanRecord {
  Problem problem;
  operations::AnyTask task;
  std::string solver;  // its id
  operations::DevicePointer device;
  std::vector<ArraySpec> arrays;
  std::vector<operations::ScalarSpec> scalars;
  std::int64_t workspace_bytes = 0;
  operations::ErrorBound bound;
  operations::Tuning tuning;
  std::vector<std::shared_ptr<const PreparedFormat>> formats;  // of the arrays; null: as the problem says
  std::shared_ptr<const operations::PlanBody> body;
};

// The cheapest solver's plan, or that of the options' solver.
std::shared_ptr<const PlanRecord> make_record(const Context& context, const Problem& problem,
                                              const operations::AnyTask& task, const SolverOptions& options);
// Of what a solver, of this id, offers.
std::shared_ptr<const PlanRecord> record_of(const Context& context, const Problem& problem,
                                            const operations::AnyTask& task, std::string_view solver,
                                            const operations::Offer& offer);
// The cheapest's, of what the problem's text says alone; remembered by the context.
std::shared_ptr<const PlanRecord> remembered_record(const Context& context, const Problem& problem,
                                                    const SolverOptions& options);

// All that decides a plan of a problem's text.
std::string key_of(const Problem& problem, const SolverOptions& options);

// Plans of a context by what they were asked for: those used last, a bounded number.
class PlanMemory {
 public:
  std::shared_ptr<const PlanRecord> find(const std::string& key);
  void store(const std::string& key, std::shared_ptr<const PlanRecord> record);

 private:
  static constexpr std::size_t most = 512;
  using Entry = std::pair<std::string, std::shared_ptr<const PlanRecord>>;

  std::mutex mutex_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

// What the context remembers under the key; `make` is called where it is nothing.
template <typename Make>
std::shared_ptr<const PlanRecord> remembered(const Context& context, const std::string& key, const Make& make) {
  if (std::shared_ptr<const PlanRecord> known = context.plans().find(key)) return known;
  std::shared_ptr<const PlanRecord> made = make();
  context.plans().store(key, made);
  return made;
}

}  // namespace omniconv::choice
