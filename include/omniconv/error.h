// Errors of omniconv. Every function that can fail throws Error and says which.
#pragma once

#include <stdexcept>
#include <string>

namespace omniconv {

// Who can mend it: the caller (bad input), or whoever keeps the machine (environment). out_of_memory is the
// environment's too: the host or a device lacks memory, and less of it may be had. A lost device is no such lack.
enum class ErrorKind { bad_input, environment, interrupted, out_of_memory };

// One line: the thing, its value, the rule, and the mend where there is one.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

inline Error bad_input(const std::string& message) {
  return Error(ErrorKind::bad_input, message);
}
inline Error environment_error(const std::string& message) {
  return Error(ErrorKind::environment, message);
}
inline Error out_of_memory(const std::string& message) {
  return Error(ErrorKind::out_of_memory, message);
}

}  // namespace omniconv
