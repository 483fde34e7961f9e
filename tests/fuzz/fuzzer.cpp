// What libFuzzer calls; OMNICONV_FUZZ_TARGET is one of targets.h. An exception that leaves it ends the process, which
// libFuzzer reports with the input.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  omniconv::fuzz::OMNICONV_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
