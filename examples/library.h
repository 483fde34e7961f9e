// A library's functions by their names, found at run time, so that these examples build where it is not installed. A
// program of yours includes its header, and links to it.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

class Library {
 public:
  explicit Library(const char* file) : handle_(dlopen(file, RTLD_NOW)) {
    if (!handle_) throw std::runtime_error(std::string("cannot open ") + file);
  }
  // Becomes a pointer to a function of any type.
  struct Symbol {
    void* address;
    template <typename Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  Symbol operator[](const char* name) const {
    void* const found = dlsym(handle_, name);
    if (!found) throw std::runtime_error(std::string("the library has no ") + name);
    return {found};
  }

 private:
  void* handle_;
};
