// NVRTC, NVIDIA's compiler of CUDA C as a library: found at run time, and usable without a device or a driver.
//
// Names, values and signatures are those of NVIDIA's NVRTC manual (11.2 and newer).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/cuda/parse_turns.h"
#include "devices/device.h"

namespace omniconv::devices::cuda {

// 90 for compute capability 9.0.
using Capability = int;

class Nvrtc {
 public:
  // The newest that is not newer than the driver's CUDA (`driver_major`, as in 12), else the oldest: older drivers do
  // not load what newer compilers write. Null where there is none, with the reason in `why_not`.
  static const Nvrtc* find(int driver_major, std::string* why_not);

  std::string version() const;  // "13.0"
  // Why there is no code for the device; empty if there is.
  std::string refusal(Capability device) const;
  // Whether code for the capability, or a newer one, can be made. Else a device of it gets that of an older one.
  bool knows(Capability capability) const { return !capabilities_.empty() && capabilities_.back() >= capability; }

  struct Code {
    std::string image;    // for cuModuleLoadData
    bool is_ptx = false;  // else code of the device itself
    std::string log;      // what the compiler says all the same
  };
  // Quick code has the bits of the optimised one, takes 0.6 of its time to compile, and up to a hundred
  // times its time to run.
  enum class Effort { full, quick };
  bool has_quick_code() const;
  // Kernel text without its prelude, for a device and a target that are not refused. Throws with the first lines of the
  // log. Of texts that wait for each other those that are expected to take longest are first.
  Code compile(std::string_view text, std::span<const Definition> definitions, Capability device,
               const std::string& target = {}, Effort effort = Effort::full, double expected_seconds = 0) const;
  // The options that `compile` gives, to tell one program from another.
  std::vector<std::string> options(std::span<const Definition> definitions, Capability device,
                                   const std::string& target = {}) const;
  // Why there is no code of this target (sm_90a; empty: of the device itself) that the device runs; empty if there is.
  std::string target_refusal(std::string_view target, Capability device) const;

 private:
  struct Functions;
  Nvrtc() = default;
  static const Nvrtc* open(const char* name, std::string* why_not);

  const Functions* functions_ = nullptr;
  mutable ParseTurns turns_;
  int major_ = 0, minor_ = 0;
  std::vector<Capability> capabilities_;  // that it compiles for, rising
};

// What `compile` puts before a kernel text.
std::string_view prelude();

}  // namespace omniconv::devices::cuda
