// Convolution as matrix products over columns, for any device: how it is cut into parts, and its steps.
#pragma once

#include <functional>

#include "operations/conv2d/im2col_gemm/columns.h"
#include "operations/gemm/gemm.h"

namespace omniconv::operations {

// How large parts are made where no limit is set.
struct PartSizes {
  std::int64_t column_bytes = 0;  // of a part, about
  bool images_side_by_side =
      false;                     // backward_filter: the images of a part have sums of their own, added up at the end
  std::int64_t image_bytes = 0;  // of a part of padded images, about; 0 where products read columns alone
  bool has_prepared_filters = false;  // the products take w in a form of their own
};

// How the work is cut. `bytes` are of the workspace: columns, then partial filters, then what the products need.
struct Parting {
  bool has_columns = true;            // 1 x 1 filters at every pixel read x as it is
  bool reads_images = false;          // columns are packed out of x, or instead of columns there are padded images
  bool has_prepared_filters = false;  // runs give w as the products take it
  std::int64_t images = 1, rows = 0, partials = 0;
  std::int64_t columns_bytes = 0, partials_bytes = 0, gemm_bytes = 0;

  std::int64_t bytes() const { return columns_bytes + partials_bytes + gemm_bytes; }
};

// Of one group, or of all groups of an image as a batch, over a part's columns.
GemmTask product_for(const Conv2dProblem& problem, const Parting& parting, const ColumnPart& part, bool accumulate);

// What a device's solver offers, tuned as its products are ("gemm.tile_m=128"), that makes its columns by
// `make_columns`.
using MakeColumns = std::function<std::shared_ptr<const Columns>(const Parting&)>;
Answer im2col_offer(const Conv2dProblem& problem, const DevicePointer& device, PartSizes sizes,
                    const SolverOptions& request, const MakeColumns& make_columns);

}  // namespace omniconv::operations
