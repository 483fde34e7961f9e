// Filters an image file of any size: strips with halos, reading, computing and writing at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "omniconv/filter2d.h"
#include "operations/filter2d/kernels.h"

namespace omniconv::image {

class PagedOutput;

// What becomes of an opacity channel. premultiply: colours count by their opacity while they are filtered, and opacity
// is filtered too (rule 8 of docs/arithmetic.md; copied, where the weights sum to zero or less); ignore: it is copied,
// and colours are filtered as they are; filter: it is filtered like any other channel, and so it is under premultiply
// where the file says that its colours are already multiplied by opacity; drop: it is left out, colours as they are. A
// format without opacity gets an image whose opacity is full everywhere without it, and no other.
enum class Alpha : std::uint8_t { premultiply, ignore, filter, drop };

struct FilterJob {
  std::string input, output;
  Kernel kernel;
  Border border;
  bool convolve = false;
  double scale = 1, bias = 0;     // in stored pixel values
  std::optional<DataType> depth;  // of the output; the input's by default
  bool rescale = false;           // map white to white when the depth changes
  Alpha alpha = Alpha::premultiply;
  std::int64_t max_memory_bytes = std::int64_t{1} << 30;  // of strips, codecs and workspace; not the program itself
  std::int64_t strip_rows = 0;                            // of the output; 0: chosen
  std::int64_t device_memory_bytes = 0;                   // that strips take of a device's memory; 0: what is free
  int page = 0;                                           // 0: the only one
  int quality = 0;                                        // of the output, and its compression: WriteOptions
  std::string compression = {};
  PagedOutput* pages = nullptr;  // the file that the result is the next page of
  SolverOptions solver = {};
};

struct FilterReport {
  Filter2dProblem problem;
  Filter filter;  // as it ran, --rescale included
  std::string solver, tuning;
  std::int64_t strip_rows = 0, strips = 0;
  std::int64_t planned_bytes = 0;                // what strips, codecs and workspace take at most
  std::int64_t device_bytes = 0;                 // what strips and workspaces take of a device's own memory
  double plan_seconds = 0, compile_seconds = 0;  // of making the plan, and of that in the compiler of device text
  double read_seconds = 0, compute_seconds = 0, write_seconds = 0, total_seconds = 0;  // reading to writing overlap
  // While at least one strip was being copied to the device, filtered there, and copied back; they overlap, too.
  double upload_seconds = 0, kernel_seconds = 0, download_seconds = 0;
};

// Opens the input, plans, and checks that the output can be written, without writing anything.
FilterReport plan_filter(const Context& context, const FilterJob& job);

// Called between strips with the output rows that are written, all rows, and the columns; returns false to stop
// (ErrorKind::interrupted).
using Progress = std::function<bool(std::int64_t rows_done, std::int64_t rows, std::int64_t columns)>;

// The output file appears whole or not at all; it may be the input itself.
FilterReport filter_file(const Context& context, const FilterJob& job, const Progress& progress);

}  // namespace omniconv::image
