#include "operations/conv2d/reference/tile_norms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/convert.h"

namespace omniconv::reference {

TileNorms::TileNorms(const Conv2dProblem& problem, const Conv2dData& data, std::int64_t tile_rows,
                     std::int64_t tile_columns)
    : problem_(problem), g_(problem), data_(data), tile_rows_(tile_rows), tile_columns_(tile_columns) {}

double TileNorms::at(std::int64_t index) {
  if (problem_.pass == Pass::forward) {
    const auto [n, k, p, q] = indices_of(index, g_.nhwc, g_.k, g_.p, g_.q);
    return of_tile(n, k, p, q);
  }
  if (problem_.pass == Pass::backward_data) {
    const auto [n, c, h, w] = indices_of(index, g_.nhwc, g_.c, g_.h, g_.w);
    return of_tile(n, c, h, w);
  }
  const auto [k, c, r, s] = indices_of(index, g_.nhwc, g_.c_group, g_.r, g_.s);
  return of_gradient(k, c);
}

const std::vector<double>& TileNorms::kept(Kept& all, std::int64_t key,
                                           const std::function<std::vector<double>()>& find) const {
  auto found = all.find(key);
  if (found == all.end()) found = all.emplace(key, find()).first;
  return found->second;
}

void TileNorms::visit(bool of_x, std::int64_t n, std::int64_t channel, const Rectangle& part,
                      const std::function<void(double)>& see) const {
  const std::int64_t rows = of_x ? g_.h : g_.p, columns = of_x ? g_.w : g_.q, size = size_of(problem_.type);
  for (std::int64_t i = std::max<std::int64_t>(part.row, 0); i < std::min(part.row + part.rows, rows); ++i)
    for (std::int64_t j = std::max<std::int64_t>(part.column, 0); j < std::min(part.column + part.columns, columns);
         ++j)
      see(std::fabs(load_element(problem_.type, of_x ? data_.x + g_.x_at(n, channel, i, j) * size
                                                     : data_.y + g_.y_at(n, channel, i, j) * size)));
}
double TileNorms::largest(bool of_x, std::int64_t n, std::int64_t channel, const Rectangle& part) const {
  double found = 0;
  visit(of_x, n, channel, part, [&](double value) { found = std::max(found, value); });
  return found;
}
double TileNorms::sum(std::int64_t n, std::int64_t k, const Rectangle& part) const {
  double all = 0;
  visit(false, n, k, part, [&](double value) { all += value; });
  return all;
}
double TileNorms::taps(std::int64_t k, std::int64_t c) const {
  double all = 0;
  for (std::int64_t r = 0; r < g_.r; ++r)
    for (std::int64_t s = 0; s < g_.s; ++s)
      all += std::fabs(load_element(problem_.type, data_.w + g_.w_at(k, c, r, s) * size_of(problem_.type)));
  return all;
}

double TileNorms::of_tile(std::int64_t n, std::int64_t channel, std::int64_t row, std::int64_t column) {
  const bool forward = problem_.pass == Pass::forward;
  const std::int64_t targets = forward ? g_.k_group : g_.c_group, sources = forward ? g_.c_group : g_.k_group,
                     group = channel / targets, height = forward ? g_.p : g_.h, width = forward ? g_.q : g_.w,
                     top = forward ? g_.pad_top : g_.r - 1 - g_.pad_top,
                     left = forward ? g_.pad_left : g_.s - 1 - g_.pad_left;
  const std::int64_t tile_row = row / tile_rows_, tile_column = column / tile_columns_;
  const Rectangle read{tile_row * tile_rows_ - top, tile_rows_ + g_.r - 1, tile_column * tile_columns_ - left,
                       tile_columns_ + g_.s - 1};
  const std::int64_t tile = (n * height + tile_row) * width + tile_column;
  const auto& largest_of = kept(largest_, tile * g_.groups + group, [&] {
    std::vector<double> all;
    for (std::int64_t i = 0; i < sources; ++i) all.push_back(largest(forward, n, group * sources + i, read));
    return all;
  });
  const auto& sums_of = kept(sums_, channel, [&] {
    std::vector<double> all;
    for (std::int64_t i = 0; i < sources; ++i)
      all.push_back(forward ? taps(channel, i) : taps(group * sources + i, channel - group * targets));
    return all;
  });
  return std::inner_product(largest_of.begin(), largest_of.end(), sums_of.begin(), 0.0);
}

std::vector<double> TileNorms::of_all_tiles(bool of_x, std::int64_t channel) const {
  std::vector<double> all;
  for (std::int64_t n = 0; n < g_.n; ++n)
    for (std::int64_t row = 0; row < g_.p; row += tile_rows_)
      for (std::int64_t column = 0; column < g_.q; column += tile_columns_) {
        const Rectangle written{row, tile_rows_, column, tile_columns_},
            read{row - g_.pad_top, written.rows + g_.r - 1, column - g_.pad_left, written.columns + g_.s - 1};
        all.push_back(of_x ? largest(true, n, channel, read) : sum(n, channel, written));
      }
  return all;
}
double TileNorms::of_gradient(std::int64_t k, std::int64_t c) {
  const std::int64_t channel = k / g_.k_group * g_.c_group + c;
  const auto& largest_of = kept(largest_, channel, [&] { return of_all_tiles(true, channel); });
  const auto& sums_of = kept(sums_, k, [&] { return of_all_tiles(false, k); });
  return std::inner_product(largest_of.begin(), largest_of.end(), sums_of.begin(), 0.0);
}

}  // namespace omniconv::reference
