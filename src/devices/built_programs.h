// The programs of a device that somebody holds, so that equal ones are built once.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace omniconv::devices {

class Program;

class BuiltPrograms {
 public:
  using Built = std::shared_ptr<Program>;

  // The program that was built by this key and still lives; else what `build` gives. Of several threads that ask for
  // one key at once, one builds, and the others wait for its program or its error; different keys are built side by
  // side.
  Built find_or_build(const std::string& key, const std::function<Built()>& build);

 private:
  struct Entry {
    std::weak_ptr<Program> program;
    std::shared_future<Built> under_way;  // of the thread that builds it
  };

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace omniconv::devices
