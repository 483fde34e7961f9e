#include "devices/built_programs.h"

#include "devices/device.h"

namespace omniconv::devices {

BuiltPrograms::Built BuiltPrograms::find_or_build(const std::string& key, const std::function<Built()>& build) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    if (Built program = found->second.program.lock()) return program;
    if (const std::shared_future<Built> awaited = found->second.under_way; awaited.valid()) {
      lock.unlock();
      return awaited.get();
    }
  }
  std::erase_if(entries_,
                [](const auto& item) { return item.second.program.expired() && !item.second.under_way.valid(); });
  std::promise<Built> promise;
  entries_[key].under_way = promise.get_future().share();
  lock.unlock();
  Built program;
  std::exception_ptr error;
  try {
    program = build();
    promise.set_value(program);
  } catch (...) {
    error = std::current_exception();
    promise.set_exception(error);
  }
  lock.lock();
  entries_[key] = {program, {}};
  lock.unlock();
  if (error) std::rethrow_exception(error);
  return program;
}

}  // namespace omniconv::devices
