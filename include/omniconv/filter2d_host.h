// filter2d from host memory to host memory, on any device: on a GPU in strips, several of which are on their way at the
// same time, so that an image may be larger than the device's memory and copies in both directions overlap with work.
//
//   HostFilter2d filter(context, Filter2dPlan(context, problem, weights));
//   filter.run(input, 0, output, 0);
#pragma once

#include <cstdint>
#include <memory>

#include "omniconv/filter2d.h"

namespace omniconv {

// How pixels reach a GPU. staged: through page-locked memory, by threads of the host; direct: the driver copies from
// and to the caller's memory, which is slower unless that is page-locked itself (packed rows, and no border `wrap`:
// others are staged).
enum class HostCopies : std::uint8_t { staged, direct };

// Of devices other than the CPU, which works in place.
struct HostFilter2dOptions {
  std::int64_t device_memory_bytes = 0;  // that strips take at most; 0: what is free. Strips shrink to fit
  std::int64_t strip_rows = 0;           // of the output, at most; 0: chosen
  int in_flight = 4;                     // strips on the device at a time
  HostCopies copies = HostCopies::staged;
  int copy_threads = 0;  // of the host, in each direction; 0: nearly half of them
};

struct HostFilter2dReport {
  std::int64_t strip_rows = 0, strips = 0;
  std::int64_t device_bytes = 0;  // that strips and workspaces take; 0 on the CPU
  bool page_locked = false;       // whether what was staged was page-locked
  // While a strip was being copied into staging, from there to the device, filtered, and back again. They overlap.
  double stage_in_seconds = 0, upload_seconds = 0, kernel_seconds = 0, download_seconds = 0, stage_out_seconds = 0;
  double total_seconds = 0;
};

// Takes the memory of the device and the staging when it is made; each run uses them again. One run at a time. After a
// device failed it is of no more use.
class HostFilter2d {
 public:
  using Options = HostFilter2dOptions;
  // The plan is of this context. Throws bad_input where the limit is too small for one strip of one row, and an
  // environment error where the device has no room for that.
  HostFilter2d(const Context& context, const Filter2dPlan& plan, const Options& options = {});
  ~HostFilter2d();
  HostFilter2d(HostFilter2d&&) noexcept;
  HostFilter2d& operator=(HostFilter2d&&) noexcept;

  // Whole images, which must not overlap; returns when the output is there. Strides are in bytes, multiples of the
  // element size; 0 means packed.
  HostFilter2dReport run(const void* input, std::int64_t input_stride_bytes, void* output,
                         std::int64_t output_stride_bytes);

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace omniconv
