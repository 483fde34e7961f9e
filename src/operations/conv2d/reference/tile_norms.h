// Norms of bounds that are of blocks of outputs, not of an output's own products.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "operations/conv2d/reference/element.h"

namespace omniconv::reference {

// Of problems of strides and dilations of 1, whose outputs are cut into tiles of so many rows and columns. Forward, and
// to the data: the sum over channels of the sum of |w| over the taps, times the largest |x| (|dy|) that the element's
// tile reads. To the filter: the sum over all tiles of the sum of |dy| over the tile, times the largest |x| that it
// reads.
class TileNorms {
 public:
  TileNorms(const Conv2dProblem& problem, const Conv2dData& data, std::int64_t tile_rows, std::int64_t tile_columns);

  // Of element `index` of the array that the pass writes.
  double at(std::int64_t index);

 private:
  // Of each channel of a tile, or each tile of a channel: kept, since many elements share them.
  using Kept = std::map<std::int64_t, std::vector<double>>;
  struct Rectangle {
    std::int64_t row, rows, column, columns;
  };

  const std::vector<double>& kept(Kept& all, std::int64_t key, const std::function<std::vector<double>()>& find) const;
  // Of |x|, or |y|, where the rectangle lies in it.
  double largest(bool of_x, std::int64_t n, std::int64_t channel, const Rectangle& part) const;
  double sum(std::int64_t n, std::int64_t k, const Rectangle& part) const;
  void visit(bool of_x, std::int64_t n, std::int64_t channel, const Rectangle& part,
             const std::function<void(double)>& see) const;
  double taps(std::int64_t k, std::int64_t c) const;
  double of_tile(std::int64_t n, std::int64_t channel, std::int64_t row, std::int64_t column);
  double of_gradient(std::int64_t k, std::int64_t c);
  std::vector<double> of_all_tiles(bool of_x, std::int64_t channel) const;

  const Conv2dProblem& problem_;
  Conv2dShape g_;
  Conv2dData data_;
  std::int64_t tile_rows_, tile_columns_;
  Kept largest_, sums_;
};

}  // namespace omniconv::reference
