// What stands between the arrays and the matrix products: columns, one for each output pixel, of the elements of x that
// its sum reads.
//
//   nchw   for each image, c x r x s rows of rows x Q columns, by output pixel
//   nhwc   for each output pixel of each image, groups x r x s x (c / groups) elements
//
// Gathered from x they have its type; as gradients, to be added up into x, the accumulating one.
#pragma once

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations {

// What has its columns in the workspace at once: `images` images from n on, whole, or `rows` output rows of one from p
// on.
struct ColumnPart {
  std::int64_t n = 0, images = 1, p = 0, rows = 0;
};

// Lives as long as the sequences that it was appended to.
class Columns : public std::enable_shared_from_this<Columns> {
 public:
  virtual ~Columns() = default;
  virtual double compile_seconds() const { return 0; }
  virtual void gather(devices::Sequence& sequence, const Operand& x, const Operand& columns,
                      const ColumnPart& part) const = 0;
  // x, or its sum with what it held, from the columns of whole images.
  virtual void scatter(devices::Sequence& sequence, const Operand& columns, const Operand& x,
                       const ColumnPart& part) const = 0;
  // w, or its sum with what it held, from `count` partial sums, one after the other in the accumulating type.
  virtual void reduce(devices::Sequence& sequence, const Operand& partials, std::int64_t count,
                      const Operand& w) const = 0;
};

}  // namespace omniconv::operations
