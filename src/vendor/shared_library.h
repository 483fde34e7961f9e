// A library of another vendor, found at run time.
#pragma once

#include <span>
#include <string>
#include <type_traits>

namespace omniconv::vendor {

// Stays open for good: such libraries leave threads and handlers behind that run in them.
class SharedLibrary {
 public:
  // The first of these names that the loader finds.
  explicit SharedLibrary(std::span<const char* const> names);
  // Empty: every function that was asked for is there.
  const std::string& why_not() const { return why_not_; }
  const std::string& name() const { return name_; }

  template <typename Function>
  void bind(const char* name, Function& function) {
    function = reinterpret_cast<Function>(find(name));
  }

 private:
  void* find(const char* function);

  void* library_ = nullptr;
  std::string name_, why_not_;
};

}  // namespace omniconv::vendor
