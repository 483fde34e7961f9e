// Problems: what is to be computed, as plain values with a one-line text form (docs/notation.md). Each operation's is
// in its own header (activation.h, add.h, batch.h, batch_norm.h, bias_add.h, conv2d.h, dropout.h, filter2d.h, gemm.h,
// loss.h, norm.h, pool2d.h, update.h); Problem holds any of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/types.h"

namespace omniconv {

namespace operations {
class Operation;
}

enum class Layout : std::uint8_t { nchw, nhwc };

// Any operation's problem. A value: copies share what never changes.
class Problem {
 public:
  // Of a problem's own type, such as Conv2dProblem; implicit, since it loses nothing. It is not validated.
  template <typename T>
  requires requires(const T* type) { operation_of(type); }
  Problem(T problem)
      : operation_(&operation_of(static_cast<const T*>(nullptr))),
        value_(std::make_shared<const T>(std::move(problem))) {}

  // Moving copies, so that none is ever empty.
  Problem(const Problem&) = default;
  Problem& operator=(const Problem&) = default;

  // Null where it is another operation's.
  template <typename T>
  const T* get_if() const {
    return operation_ == &operation_of(static_cast<const T*>(nullptr)) ? static_cast<const T*>(value_.get()) : nullptr;
  }
  template <typename T>
  bool is() const {
    return get_if<T>() != nullptr;
  }
  std::string_view operation_name() const;  // "conv2d"
  const std::string& name() const;          // that the text gives it; no part of equality
  bool operator==(const Problem& other) const;

  const operations::Operation& operation() const { return *operation_; }
  const void* value() const { return value_.get(); }

 private:
  const operations::Operation* operation_;
  std::shared_ptr<const void> value_;
};

// The problem of one operation; throws where it is another's.
void refuse_other_operation(const Problem& problem, const operations::Operation& wanted);
template <typename T>
T get(const Problem& problem) {
  if (const T* const found = problem.get_if<T>()) return *found;
  refuse_other_operation(problem, operation_of(static_cast<const T*>(nullptr)));
  return {};
}

// Throws bad_input naming the field, its value and the rule. Parsing validates too.
void validate(const Problem& problem);

// One line to one problem. A bad line is refused with the column, what was found and what was expected.
Problem parse_problem(std::string_view line);
// A whole list: `#` comments and empty lines are skipped; errors begin with SOURCE:LINE.
std::vector<Problem> parse_problem_list(std::string_view text, std::string_view source);

// Canonical: defaults left out, fixed order, the shortest form, the name last.
std::string to_text(const Problem& problem);

}  // namespace omniconv
