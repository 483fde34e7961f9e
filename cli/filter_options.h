// What `filter` was asked, and doing it.
#pragma once

#include <string>

#include "common.h"
#include "filter_files.h"
#include "image/pipeline.h"
#include "problems.h"

namespace omniconv::cli {

struct FilterOptions {
  Common common;
  ChoiceInput choice;
  FileOptions files;
  image::FilterJob job;
  std::string kernel, border = "replicate", anchor, depth, alpha = "premultiply", memory = "1G", device_memory;
  bool correlate = false, convolve = false, normalize = false;
  bool list_kernels = false, print_kernel = false, explain = false, dry_run = false;
};

// The named kernels, or one's weights: what needs no image. Returns the exit status.
int run_list(const FilterOptions& options);
// complete(), then the filtering.
int run_filter(FilterOptions& options);
// The options' texts become the job; throws for what they cannot mean.
void complete(FilterOptions& options);

}  // namespace omniconv::cli
