// Sizes are checked before they are multiplied: these throw instead of overflowing.
#pragma once

#include <cstdint>
#include <string_view>

#include "omniconv/error.h"

namespace omniconv {

// `what` names the quantity in the error.
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw bad_input(std::string(what) + " is too large: " + std::to_string(a) + " times " + std::to_string(b) +
                    " passes 2^63");
  return result;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw bad_input(std::string(what) + " is too large: " + std::to_string(a) + " plus " + std::to_string(b) +
                    " passes 2^63");
  return result;
}

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
inline std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return divide_up(a, multiple) * multiple;
}

}  // namespace omniconv
