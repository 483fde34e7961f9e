// Convolution as matrix products over columns, for any device: how it is cut into parts, and its steps.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "solvers/conv2d/im2col_gemm/columns.h"
#include "solvers/gemm/gemm.h"

namespace omniconv::solvers {

// How large parts are made where no limit is set.
struct PartSizes {
  std::int64_t column_bytes = 0;  // of a part, about
  bool images_side_by_side =
      false;                     // backward_filter: the images of a part have sums of their own, added up at the end
  std::int64_t image_bytes = 0;  // of a part of padded images, about; 0 where products read columns alone
};

// How the work is cut. `bytes` are of the workspace: columns, then partial filters, then what the products need.
struct Parting {
  bool has_columns = true;    // 1 x 1 filters at every pixel read x as it is
  bool reads_images = false;  // columns are packed out of x, or instead of columns there are padded images
  std::int64_t images = 1, rows = 0, partials = 0;
  std::int64_t columns_bytes = 0, partials_bytes = 0, gemm_bytes = 0;

  std::int64_t bytes() const { return columns_bytes + partials_bytes + gemm_bytes; }
};

Parting parting_for(const Conv2dProblem& problem, const devices::Device& device, const PartSizes& sizes,
                    std::int64_t limit);

// Of one group, or of all groups of an image as a batch, over a part's columns.
GemmTask product_for(const Conv2dProblem& problem, const Parting& parting, const Part& part, bool accumulate);

class Im2colPlan : public Conv2dPlanBody {
 public:
  Im2colPlan(const Conv2dProblem& the_problem, const std::shared_ptr<devices::Device>& the_device,
             const Parting& parting, std::int64_t limit, std::shared_ptr<const Columns> columns);

  std::int64_t workspace_bytes() const override { return parting_.bytes(); }
  double compile_seconds() const override;
  Event run(devices::Queue& queue, const Conv2dRun& run) const override;

 private:
  using Product = std::tuple<std::int64_t, std::int64_t, bool>;  // images, rows, accumulate

  Product key(std::size_t part) const;
  GemmArrays arrays(const Conv2dRun& run, const Part& part, std::int64_t group) const;

  Conv2dShape shape_;
  Parting parting_;
  std::shared_ptr<const Columns> columns_;
  std::vector<Part> parts_;
  std::map<Product, std::shared_ptr<const GemmPlanBody>> products_;
};

// The bound of the products, and of what is added up after them.
MatrixBound im2col_bound(const Conv2dProblem& problem, const devices::Device& device, const PartSizes& sizes);
// The products', and the columns' way to memory and back.
double im2col_cost(const Conv2dProblem& problem, const devices::Device& device, const PartSizes& sizes);

}  // namespace omniconv::solvers
