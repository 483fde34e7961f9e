#include "checking/strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "choice/plan_record.h"
#include "omniconv/error.h"
#include "omniconv/filter2d.h"
#include "operations/filter2d/weights.h"

namespace omniconv::checking {

std::vector<std::byte> run_in_strips(Transfers& transfers, const Plan& plan, std::span<const std::byte> image,
                                     std::int64_t strip_rows, VerifyResult& result) {
  if (!plan.problem().is<Filter2dProblem>())
    throw bad_input(fmt::format("{}: strips are of filter2d problems alone", to_text(plan.problem())));
  const Filter2dPlan filter(plan);
  const auto& task = plan.record().task.as<Filter2dTask>();
  const Filter2dProblem& problem = task.problem;
  const std::int64_t row_in = problem.w * problem.c * size_of(problem.input);
  const std::int64_t row_out = Q(problem) * problem.c * size_of(problem.output);
  const Buffer workspace = transfers.put_before_guard(plan.workspace_bytes());
  std::vector<std::byte> output;
  for (std::int64_t first = 0; first < P(problem); first += strip_rows) {
    const std::int64_t rows = std::min(strip_rows, P(problem) - first);
    const RowSpan span = input_rows_for(task, first, rows);
    // Rows outside the image (wrap) are put there as copies, as a strip reader does.
    std::vector<std::byte> given(static_cast<std::size_t>((span.last - span.first) * row_in));
    for (std::int64_t row = span.first; row < span.last; ++row)
      std::memcpy(given.data() + (row - span.first) * row_in,
                  image.data() + ((row % problem.h) + problem.h) % problem.h * row_in,
                  static_cast<std::size_t>(row_in));
    const Buffer input = transfers.put(given.data(), static_cast<std::int64_t>(given.size()), guard_bytes);
    const Buffer strip = transfers.put(nullptr, rows * row_out, guard_bytes);
    filter
        .run(transfers.queue(), {.input = input,
                                 .output = strip,
                                 .workspace = workspace,
                                 .input_offset_bytes = guard_bytes,
                                 .output_offset_bytes = guard_bytes,
                                 .input_first = span.first,
                                 .input_rows = span.last - span.first,
                                 .output_first = first,
                                 .output_rows = rows})
        .wait();
    if (!transfers.are_guards_intact(strip)) {
      result.status = Status::failed;
      result.reason = fmt::format("wrote outside its output rows {} to {}", first, first + rows - 1);
    }
    const std::vector<std::byte> made = transfers.get(strip, guard_bytes, rows * row_out);
    output.insert(output.end(), made.begin(), made.end());
  }
  if (!transfers.is_end_intact(workspace)) {
    result.status = Status::failed;
    result.reason = "wrote behind the workspace";
  }
  return output;
}

}  // namespace omniconv::checking
