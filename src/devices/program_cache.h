// Compiled programs, kept on disk from one process to the next: a file for each, named after a hash of what the program
// was made from. The file holds that in whole as well, with a checksum, so that no program is mistaken for another.
//
// Files appear whole or not at all, for their owner alone to read. One that is damaged or somebody else's is removed
// and never used. Whatever goes wrong, the caller only compiles again; the user is told once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "omniconv/context.h"

namespace omniconv::devices {

class ProgramCache {
 public:
  static constexpr std::int64_t usual_limit_bytes = std::int64_t{256} << 20;

  // The folder is made where something is to be stored and it is missing. `warn` may be empty.
  ProgramCache(std::string folder, std::function<void(const std::string&)> warn,
               std::int64_t limit_bytes = usual_limit_bytes);

  // What a program is made from: kernel text, options, compiler, device. Equal keys, equal programs.
  static std::string key(std::span<const std::string_view> parts);

  // Nothing where there is no such program. Methods may be called from any thread, and by several processes at once.
  std::optional<std::string> find(std::string_view key);
  // Removes the programs that were used least recently where all together pass the limit.
  void store(std::string_view key, std::string_view program);
  // For a program that its driver does not take, whatever the checksum says.
  void discard(std::string_view key, std::string_view reason);

 private:
  std::string path_of(std::string_view key) const;
  void make_room();
  void warn(const std::string& message);

  const std::string folder_;
  const std::function<void(const std::string&)> warn_;
  const std::int64_t limit_bytes_;
  std::atomic_flag has_warned_;
};

// Null where the options name no folder.
std::shared_ptr<ProgramCache> make_program_cache(const ContextOptions& options);

}  // namespace omniconv::devices
