#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "operations/conv2d/reference/element.h"

namespace omniconv::reference {
namespace {

class Sums {
 public:
  Sums(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dData& data)
      : type_(problem.type), size_(size_of(problem.type)), g_(shape), data_(data) {}

  DoubleSum forward(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) const {
    DoubleSum sum;
    for (std::int64_t c = 0; c < g_.c_group; ++c)
      for (std::int64_t r = 0; r < g_.r; ++r)
        for (std::int64_t s = 0; s < g_.s; ++s)
          add(sum, x(n, k / g_.k_group * g_.c_group + c, g_.row_of(p, r), g_.column_of(q, s)), w(k, c, r, s));
    return sum;
  }

  DoubleSum backward_data(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w_column) const {
    const std::int64_t group = c / g_.c_group;
    DoubleSum sum;
    for (std::int64_t k = group * g_.k_group; k < (group + 1) * g_.k_group; ++k)
      for (std::int64_t r = 0; r < g_.r; ++r)
        for (std::int64_t s = 0; s < g_.s; ++s) {
          // The output that this tap carries x[n, c, h, w] to, if there is one.
          const std::int64_t down = h - g_.row_of(0, r), along = w_column - g_.column_of(0, s);
          if (down < 0 || along < 0 || down % g_.stride_h != 0 || along % g_.stride_w != 0) continue;
          const std::int64_t p = down / g_.stride_h, q = along / g_.stride_w;
          if (p < g_.p && q < g_.q) add(sum, y(n, k, p, q), w(k, c - group * g_.c_group, r, s));
        }
    return sum;
  }

  DoubleSum backward_filter(std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) const {
    DoubleSum sum;
    for (std::int64_t n = 0; n < g_.n; ++n)
      for (std::int64_t p = 0; p < g_.p; ++p)
        for (std::int64_t q = 0; q < g_.q; ++q)
          add(sum, x(n, k / g_.k_group * g_.c_group + c, g_.row_of(p, r), g_.column_of(q, s)), y(n, k, p, q));
    return sum;
  }

 private:
  static void add(DoubleSum& sum, double a, double b) {
    sum.value += a * b;
    sum.magnitude += std::fabs(a * b);
  }
  double x(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w_column) const {
    if (h < 0 || h >= g_.h || w_column < 0 || w_column >= g_.w) return 0;
    return load_element(type_, data_.x + g_.x_at(n, c, h, w_column) * size_);
  }
  double w(std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) const {
    return load_element(type_, data_.w + g_.w_at(k, c, r, s) * size_);
  }
  double y(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) const {
    return load_element(type_, data_.y + g_.y_at(n, k, p, q) * size_);
  }

  DataType type_;
  std::int64_t size_;
  const Conv2dShape& g_;
  const Conv2dData& data_;
};

}  // namespace

Indices indices_of(std::int64_t index, bool nhwc, std::int64_t b, std::int64_t y, std::int64_t x) {
  const auto take = [&](std::int64_t extent) {
    const std::int64_t rest = index % extent;
    index /= extent;
    return rest;
  };
  Indices indices{};
  if (nhwc) {
    indices.b = take(b);
    indices.x = take(x);
    indices.y = take(y);
  } else {
    indices.x = take(x);
    indices.y = take(y);
    indices.b = take(b);
  }
  indices.a = index;
  return indices;
}

DoubleSum conv2d_element(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dData& data,
                         std::int64_t index) {
  const Sums sums(problem, shape, data);
  if (problem.pass == Pass::forward) {
    const auto [n, k, p, q] = indices_of(index, shape.nhwc, shape.k, shape.p, shape.q);
    return sums.forward(n, k, p, q);
  }
  if (problem.pass == Pass::backward_data) {
    const auto [n, c, h, w] = indices_of(index, shape.nhwc, shape.c, shape.h, shape.w);
    return sums.backward_data(n, c, h, w);
  }
  const auto [k, c, r, s] = indices_of(index, shape.nhwc, shape.c_group, shape.r, shape.s);
  return sums.backward_filter(k, c, r, s);
}

}  // namespace omniconv::reference
