// How an output is cut into strips of rows, and what these take in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "choice/filter2d.h"
#include "omniconv/filter2d.h"

namespace omniconv {

struct Strip {
  std::int64_t output_first = 0, output_rows = 0;
  RowSpan input;

  std::int64_t input_rows() const { return input.last - input.first; }
};

// Each is computed when it is needed, however many there are. The task must outlive them.
class Strips {
 public:
  Strips() = default;
  Strips(const Filter2dTask& task, std::int64_t strip_rows);

  std::int64_t count() const { return count_; }
  std::int64_t rows() const { return strip_rows_; }

  // Input rows only ever stream in: no strip begins before its predecessor or ends behind its successor. Near the top
  // and bottom a border may send a strip to rows that otherwise the first or last one alone would need.
  Strip operator[](std::int64_t i) const;
  // Of the largest strip.
  std::int64_t most_input_rows() const;

 private:
  Strip cut(std::int64_t i) const;

  const Filter2dTask* task_ = nullptr;
  std::int64_t strip_rows_ = 0, count_ = 0;
  Strip first_, last_;
};

// Strips in memory, their rows packed; on a device so many at a time, if there are so many, each in a slot with buffers
// and a workspace of its own.
class StripLayout {
 public:
  StripLayout() = default;
  StripLayout(const Filter2dPlan& plan, std::int64_t strip_rows, int most_slots);

  const Strips& strips() const { return strips_; }
  int slots() const { return static_cast<int>(std::min<std::int64_t>(most_slots_, strips_.count())); }
  std::int64_t input_row_bytes() const { return input_row_bytes_; }
  std::int64_t output_row_bytes() const { return output_row_bytes_; }
  // Of the largest strip.
  std::int64_t input_bytes() const { return input_bytes_; }
  std::int64_t output_bytes() const { return output_bytes_; }
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  std::int64_t largest_buffer_bytes() const;
  // Of all slots.
  std::int64_t device_bytes() const;
  // To half the rows or one slot less, whichever repeats fewer input rows; false where one row in one slot is left.
  bool shrink();
  // What a strip is made of, for errors: "one output row of 3 bytes, ...".
  std::string describe() const;

 private:
  void lay_out(std::int64_t strip_rows);

  std::optional<Filter2dPlan> plan_;  // strips point to its task
  Strips strips_;
  int most_slots_ = 1;
  std::int64_t input_row_bytes_ = 0, output_row_bytes_ = 0, input_bytes_ = 0, output_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace omniconv
