#include "streaming/strips.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checked.h"
#include "operations/filter2d/filter2d.h"

namespace omniconv {

Strips::Strips(const Filter2dTask& task, std::int64_t strip_rows)
    : task_(&task), strip_rows_(strip_rows), count_(divide_up(P(task.problem), strip_rows)) {
  first_ = cut(0);
  last_ = cut(count_ - 1);
}

Strip Strips::operator[](std::int64_t i) const {
  Strip strip = cut(i);
  strip.input.first = std::min(strip.input.first, last_.input.first);
  strip.input.last = std::max(strip.input.last, first_.input.last);
  return strip;
}

// Only strips whose windows come near the top or the bottom differ from those in the middle.
std::int64_t Strips::most_input_rows() const {
  const std::int64_t near = 2 * task_->problem.r / strip_rows_ + 2;
  std::int64_t most = 0;
  const auto consider = [&](std::int64_t i) { most = std::max(most, (*this)[i].input_rows()); };
  for (std::int64_t i = 0; i < std::min(near, count_); ++i) consider(i);
  for (std::int64_t i = std::max<std::int64_t>(count_ - near, 0); i < count_; ++i) consider(i);
  consider(count_ / 2);
  return most;
}

Strip Strips::cut(std::int64_t i) const {
  const std::int64_t first = i * strip_rows_, rows = std::min(strip_rows_, P(task_->problem) - first);
  return {first, rows, input_rows_for(*task_, first, rows)};
}

StripLayout::StripLayout(const Filter2dPlan& plan, std::int64_t strip_rows, int most_slots)
    : plan_(plan), most_slots_(most_slots) {
  const Filter2dProblem& problem = plan.problem();
  const auto row_bytes = [&](std::int64_t pixels, DataType type) {
    return checked_multiply(checked_multiply(pixels, problem.c, "a row"), size_of(type), "a row");
  };
  input_row_bytes_ = row_bytes(problem.w, problem.input);
  output_row_bytes_ = row_bytes(Q(problem), problem.output);
  lay_out(std::min(strip_rows, P(problem)));
}

void StripLayout::lay_out(std::int64_t strip_rows) {
  strips_ = Strips(choice::task_of(*plan_), strip_rows);
  input_bytes_ = checked_multiply(strips_.most_input_rows(), input_row_bytes_, "a strip");
  output_bytes_ = checked_multiply(strip_rows, output_row_bytes_, "a strip");
  workspace_bytes_ = plan_->workspace_bytes(strip_rows);
}

std::int64_t StripLayout::largest_buffer_bytes() const {
  return std::max({input_bytes_, output_bytes_, workspace_bytes_});
}

std::int64_t StripLayout::device_bytes() const {
  const std::int64_t strip = checked_add(input_bytes_, output_bytes_, "a strip");
  return checked_multiply(checked_add(strip, workspace_bytes_, "a strip and its workspace"), slots(), "the strips");
}

bool StripLayout::shrink() {
  const std::int64_t rows = strips_.rows();
  if (slots() > 1 && rows <= plan_->problem().r) {
    most_slots_ = slots() - 1;
    return true;
  }
  if (rows == 1) return false;
  lay_out(rows / 2);
  return true;
}

std::string StripLayout::describe() const {
  return fmt::format("{} output row{} of {} bytes, the {} input rows of {} bytes for {}, and a workspace of {} bytes",
                     strips_.rows(), strips_.rows() == 1 ? "" : "s", output_row_bytes_,
                     input_bytes_ / std::max<std::int64_t>(input_row_bytes_, 1), input_row_bytes_,
                     strips_.rows() == 1 ? "it" : "them", workspace_bytes_);
}

}  // namespace omniconv
