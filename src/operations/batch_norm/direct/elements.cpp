// Elements side by side in a vector.
#include "operations/batch_norm/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/batch_norm/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type>
using Real = std::conditional_t<type == DataType::f64, double, float>;
template <DataType type>
constexpr DataType real_type = type == DataType::f64 ? DataType::f64 : DataType::f32;

// One of them for each type of element.
template <typename Body>
HWY_INLINE auto with_type(DataType type, const Body& body) {
  switch (type) {
    case DataType::f64: return body(std::integral_constant<DataType, DataType::f64>());
    case DataType::f16: return body(std::integral_constant<DataType, DataType::f16>());
    case DataType::bf16: return body(std::integral_constant<DataType, DataType::bf16>());
    default: return body(std::integral_constant<DataType, DataType::f32>());
  }
}

// Pieces of memory that a block of a channel's elements lies in, as offsets in elements.
struct Block {
  struct Piece {
    std::int64_t at, count;
  };
  Piece pieces[block_runs];
  int runs = 0;
  std::int64_t count = 0;
};

// Calls with(block) for one block after the other.
template <typename With>
HWY_INLINE void for_blocks(const ChannelRuns& runs, const With& with) {
  std::int64_t at = 0, left_of_run = std::min(runs.first, runs.count), left = runs.count;
  while (left > 0) {
    Block block;
    while (left > 0 && block.runs < block_runs && block.count < block_elements) {
      const std::int64_t count = std::min({left_of_run, left, block_elements - block.count});
      block.pieces[block.runs++] = {at, count};
      block.count += count, left -= count, left_of_run -= count, at += count;
      if (left_of_run == 0) at += runs.stride - runs.inner, left_of_run = runs.inner;
    }
    with(block);
  }
}

// Calls four(k) where four vectors are whole, one(k) where one is, and last(k, count) for what is left.
template <typename Four, typename One, typename Last>
HWY_INLINE void for_vectors(const Block::Piece& piece, std::int64_t lanes, const Four& four, const One& one,
                            const Last& last) {
  const std::int64_t end = piece.at + piece.count;
  std::int64_t k = piece.at;
  for (; k + 4 * lanes <= end; k += 4 * lanes) four(k);
  for (; k + lanes <= end; k += lanes) one(k);
  if (k < end) last(k, end - k);
}

template <class D>
HWY_INLINE double sum_of(D d, hn::Vec<D> vector) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(vector, d, lanes);
  double sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) sum += static_cast<double>(lanes[i]);
  return sum;
}

Moments moments_of_runs_any(DataType any_type, const std::byte* x, const ChannelRuns& runs, double pivot) {
  return with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    const auto from = hn::Set(d, static_cast<Real<type>>(pivot));
    Moments all;
    double counted = 0;
    for_blocks(runs, [&](const Block& block) HWY_ATTR {
      const auto distance = [&](std::int64_t k) HWY_ATTR { return hn::Sub(load_stored<type>(d, x + k * size), from); };
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      for (int i = 0; i < block.runs; ++i)
        for_vectors(
            block.pieces[i], lanes,
            [&](std::int64_t k) HWY_ATTR {
              s0 = hn::Add(s0, distance(k)), s1 = hn::Add(s1, distance(k + lanes));
              s2 = hn::Add(s2, distance(k + 2 * lanes)), s3 = hn::Add(s3, distance(k + 3 * lanes));
            },
            [&](std::int64_t k) HWY_ATTR { s0 = hn::Add(s0, distance(k)); },
            [&](std::int64_t k, std::int64_t count) HWY_ATTR {
              const auto some = hn::FirstN(d, static_cast<std::size_t>(count));
              s0 = hn::Add(s0, hn::IfThenElseZero(some, hn::Sub(load_stored<type>(d, x + k * size, count), from)));
            });
      const auto count = static_cast<double>(block.count);
      const auto mean = static_cast<Real<type>>(sum_of(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))) / count);
      const auto middle = hn::Set(d, mean);
      const auto deviation = [&](std::int64_t k) HWY_ATTR { return hn::Sub(distance(k), middle); };
      const auto add_square = [&](auto& sum, auto value) HWY_ATTR { sum = hn::MulAdd(value, value, sum); };
      s0 = s1 = s2 = s3 = hn::Zero(d);
      for (int i = 0; i < block.runs; ++i)
        for_vectors(
            block.pieces[i], lanes,
            [&](std::int64_t k) HWY_ATTR {
              add_square(s0, deviation(k)), add_square(s1, deviation(k + lanes));
              add_square(s2, deviation(k + 2 * lanes)), add_square(s3, deviation(k + 3 * lanes));
            },
            [&](std::int64_t k) HWY_ATTR { add_square(s0, deviation(k)); },
            [&](std::int64_t k, std::int64_t left) HWY_ATTR {
              const auto some = hn::FirstN(d, static_cast<std::size_t>(left));
              const auto last = hn::Sub(hn::Sub(load_stored<type>(d, x + k * size, left), from), middle);
              add_square(s0, hn::IfThenElseZero(some, last));
            });
      const double squares = sum_of(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
      const double difference = static_cast<double>(mean) - all.mean, share = count / (counted + count);
      all.mean += difference * share;
      all.squares += squares + difference * difference * (counted * share);
      counted += count;
    });
    return all;
  });
}

// The i-th vector of those side by side at `from`, of which `left` elements are there.
template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_of_row(D d, const std::byte* from, std::int64_t i, std::int64_t left) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (left <= i * lanes) return hn::Zero(d);
  return load_stored<type>(d, from + i * lanes * size_of(type), left - i * lanes);
}

template <class D>
HWY_INLINE void store_four(D d, hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2, hn::Vec<D> v3, hn::TFromD<D>* to) {
  const std::size_t lanes = hn::Lanes(d);
  hn::Store(v0, d, to), hn::Store(v1, d, to + lanes), hn::Store(v2, d, to + 2 * lanes),
      hn::Store(v3, d, to + 3 * lanes);
}

void moments_of_rows_any(DataType any_type, const std::byte* x, const ChannelRows& rows, const std::byte* pivots,
                         double* means, double* squares) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    constexpr auto real_size = static_cast<std::int64_t>(sizeof(Real<type>));
    HWY_ALIGN Real<type> mean[4 * hn::MaxLanes(d)], square[4 * hn::MaxLanes(d)];
    std::fill(means, means + rows.columns, 0), std::fill(squares, squares + rows.columns, 0);
    for (std::int64_t first = 0; first < rows.rows; first += block_rows) {
      const std::int64_t count = std::min(block_rows, rows.rows - first);
      const double share = static_cast<double>(count) / static_cast<double>(first + count),
                   weight = static_cast<double>(first) * share;
      for (std::int64_t c = 0; c < rows.columns; c += 4 * lanes) {
        const std::int64_t left = rows.columns - c;
        const auto pivot = [&](std::int64_t i)
                               HWY_ATTR { return load_of_row<real_type<type>>(d, pivots + c * real_size, i, left); };
        const auto p0 = pivot(0), p1 = pivot(1), p2 = pivot(2), p3 = pivot(3);
        const auto load = [&](std::int64_t row, std::int64_t i) HWY_ATTR {
          return load_of_row<type>(d, x + ((first + row) * rows.stride + c) * size, i, left);
        };
        auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
        for (std::int64_t row = 0; row < count; ++row) {
          s0 = hn::Add(s0, hn::Sub(load(row, 0), p0)), s1 = hn::Add(s1, hn::Sub(load(row, 1), p1));
          s2 = hn::Add(s2, hn::Sub(load(row, 2), p2)), s3 = hn::Add(s3, hn::Sub(load(row, 3), p3));
        }
        const auto elements = hn::Set(d, static_cast<Real<type>>(count));
        const auto m0 = hn::Div(s0, elements), m1 = hn::Div(s1, elements), m2 = hn::Div(s2, elements),
                   m3 = hn::Div(s3, elements);
        const auto add_square = [](auto& sum, auto deviation) HWY_ATTR { sum = hn::MulAdd(deviation, deviation, sum); };
        s0 = s1 = s2 = s3 = hn::Zero(d);
        for (std::int64_t row = 0; row < count; ++row) {
          add_square(s0, hn::Sub(hn::Sub(load(row, 0), p0), m0)),
              add_square(s1, hn::Sub(hn::Sub(load(row, 1), p1), m1));
          add_square(s2, hn::Sub(hn::Sub(load(row, 2), p2), m2)),
              add_square(s3, hn::Sub(hn::Sub(load(row, 3), p3), m3));
        }
        store_four(d, m0, m1, m2, m3, mean), store_four(d, s0, s1, s2, s3, square);
        for (std::int64_t i = 0; i < std::min(left, 4 * lanes); ++i) {
          const double difference = static_cast<double>(mean[i]) - means[c + i];
          means[c + i] += difference * share;
          squares[c + i] += static_cast<double>(square[i]) + difference * difference * weight;
        }
      }
    }
  });
}

// y before relu, the same bits on every device: each operation rounds by itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normalised(D, V x, V mean, V scale, V beta) {
  return hn::Add(hn::Mul(hn::Sub(x, mean), scale), beta);
}

// What is below 0 becomes 0; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rectified(D d, V y, bool relu) {
  return relu ? hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Zero(d), y) : y;
}

// g of dy.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V passed(D d, V x, V dy, V mean, V scale, V beta, bool relu) {
  return relu ? hn::IfThenElseZero(hn::Gt(normalised(d, x, mean, scale, beta), hn::Zero(d)), dy) : dy;
}

void normalise_run_any(DataType any_type, const std::byte* x, std::byte* y, std::int64_t count,
                       const ChannelFactors& factors, bool relu) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<Real<type>>(value)); };
    const auto mean = set(factors.mean), scale = set(factors.scale), beta = set(factors.beta);
    for (std::int64_t k = 0; k < count; k += lanes) {
      const std::int64_t at = k * size, left = count - k;
      const auto made = normalised(d, load_stored<type>(d, x + at, left), mean, scale, beta);
      store_stored<type>(d, rectified(d, made, relu), y + at, left);
    }
  });
}

void normalise_rows_any(DataType any_type, const std::byte* x, std::byte* y, const ChannelRows& rows,
                        const FactorArrays& factors, bool relu) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    constexpr auto real_size = static_cast<std::int64_t>(sizeof(Real<type>));
    for (std::int64_t row = 0; row < rows.rows; ++row)
      for (std::int64_t c = 0; c < rows.columns; c += lanes) {
        const std::int64_t at = (row * rows.stride + c) * size, left = rows.columns - c;
        const auto own = [&](const std::byte* array)
                             HWY_ATTR { return load_stored<real_type<type>>(d, array + c * real_size, left); };
        const auto made =
            normalised(d, load_stored<type>(d, x + at, left), own(factors.mean), own(factors.scale), own(factors.beta));
        store_stored<type>(d, rectified(d, made, relu), y + at, left);
      }
  });
}

GradientSums sums_of_runs_any(DataType any_type, const std::byte* x, const std::byte* dy, const ChannelRuns& runs,
                              const ChannelFactors& factors, bool relu) {
  return with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<Real<type>>(value)); };
    const auto mean = set(factors.mean), scale = set(factors.scale), beta = set(factors.beta);
    GradientSums all;
    for_blocks(runs, [&](const Block& block) HWY_ATTR {
      auto g0 = hn::Zero(d), g1 = g0, g2 = g0, g3 = g0, p0 = g0, p1 = g0, p2 = g0, p3 = g0;
      const auto add = [&](auto& g, auto& product, auto of_x, auto of_dy) HWY_ATTR {
        const auto own = passed(d, of_x, of_dy, mean, scale, beta, relu);
        g = hn::Add(g, own);
        product = hn::MulAdd(own, hn::Sub(of_x, mean), product);
      };
      const auto add_at = [&](auto& g, auto& product, std::int64_t k) HWY_ATTR {
        add(g, product, load_stored<type>(d, x + k * size), load_stored<type>(d, dy + k * size));
      };
      for (int i = 0; i < block.runs; ++i)
        for_vectors(
            block.pieces[i], lanes,
            [&](std::int64_t k) HWY_ATTR {
              add_at(g0, p0, k), add_at(g1, p1, k + lanes), add_at(g2, p2, k + 2 * lanes),
                  add_at(g3, p3, k + 3 * lanes);
            },
            [&](std::int64_t k) HWY_ATTR { add_at(g0, p0, k); },
            [&](std::int64_t k, std::int64_t count) HWY_ATTR {
              add(g0, p0, load_stored<type>(d, x + k * size, count), load_stored<type>(d, dy + k * size, count));
            });
      all.g += sum_of(d, hn::Add(hn::Add(g0, g1), hn::Add(g2, g3)));
      all.product += sum_of(d, hn::Add(hn::Add(p0, p1), hn::Add(p2, p3)));
    });
    return all;
  });
}

void sums_of_rows_any(DataType any_type, const std::byte* x, const std::byte* dy, const ChannelRows& rows,
                      const FactorArrays& factors, bool relu, double* g, double* products) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    constexpr auto real_size = static_cast<std::int64_t>(sizeof(Real<type>));
    HWY_ALIGN Real<type> of_g[2 * hn::MaxLanes(d)], of_products[2 * hn::MaxLanes(d)];
    std::fill(g, g + rows.columns, 0), std::fill(products, products + rows.columns, 0);
    for (std::int64_t first = 0; first < rows.rows; first += block_rows) {
      const std::int64_t count = std::min(block_rows, rows.rows - first);
      for (std::int64_t c = 0; c < rows.columns; c += 2 * lanes) {
        const std::int64_t left = rows.columns - c;
        const auto own = [&](const std::byte* array, std::int64_t i)
                             HWY_ATTR { return load_of_row<real_type<type>>(d, array + c * real_size, i, left); };
        const auto m0 = own(factors.mean, 0), scale0 = own(factors.scale, 0), beta0 = own(factors.beta, 0),
                   m1 = own(factors.mean, 1), scale1 = own(factors.scale, 1), beta1 = own(factors.beta, 1);
        auto g0 = hn::Zero(d), g1 = g0, p0 = g0, p1 = g0;
        for (std::int64_t row = 0; row < count; ++row) {
          const std::int64_t at = ((first + row) * rows.stride + c) * size;
          const auto x0 = load_of_row<type>(d, x + at, 0, left), x1 = load_of_row<type>(d, x + at, 1, left);
          const auto passed0 = passed(d, x0, load_of_row<type>(d, dy + at, 0, left), m0, scale0, beta0, relu);
          const auto passed1 = passed(d, x1, load_of_row<type>(d, dy + at, 1, left), m1, scale1, beta1, relu);
          g0 = hn::Add(g0, passed0), p0 = hn::MulAdd(passed0, hn::Sub(x0, m0), p0);
          g1 = hn::Add(g1, passed1), p1 = hn::MulAdd(passed1, hn::Sub(x1, m1), p1);
        }
        hn::Store(g0, d, of_g), hn::Store(g1, d, of_g + lanes);
        hn::Store(p0, d, of_products), hn::Store(p1, d, of_products + lanes);
        for (std::int64_t i = 0; i < std::min(left, 2 * lanes); ++i)
          g[c + i] += static_cast<double>(of_g[i]), products[c + i] += static_cast<double>(of_products[i]);
      }
    }
  });
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gradient(D d, V x, V dy, V mean, V scale, V beta, V shift, V slope, bool relu) {
  const V g = passed(d, x, dy, mean, scale, beta, relu);
  return hn::Mul(scale, hn::Sub(g, hn::Add(shift, hn::Mul(hn::Sub(x, mean), slope))));
}

void differentiate_run_any(DataType any_type, const std::byte* x, const std::byte* dy, std::byte* dx,
                           std::int64_t count, const ChannelFactors& factors, bool relu) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<Real<type>>(value)); };
    const auto mean = set(factors.mean), scale = set(factors.scale), beta = set(factors.beta),
               shift = set(factors.shift), slope = set(factors.slope);
    for (std::int64_t k = 0; k < count; k += lanes) {
      const std::int64_t at = k * size, left = count - k;
      const auto made = gradient(d, load_stored<type>(d, x + at, left), load_stored<type>(d, dy + at, left), mean,
                                 scale, beta, shift, slope, relu);
      store_stored<type>(d, made, dx + at, left);
    }
  });
}

void differentiate_rows_any(DataType any_type, const std::byte* x, const std::byte* dy, std::byte* dx,
                            const ChannelRows& rows, const FactorArrays& factors, bool relu) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    constexpr auto real_size = static_cast<std::int64_t>(sizeof(Real<type>));
    for (std::int64_t row = 0; row < rows.rows; ++row)
      for (std::int64_t c = 0; c < rows.columns; c += lanes) {
        const std::int64_t at = (row * rows.stride + c) * size, left = rows.columns - c;
        const auto own = [&](const std::byte* array)
                             HWY_ATTR { return load_stored<real_type<type>>(d, array + c * real_size, left); };
        const auto made =
            gradient(d, load_stored<type>(d, x + at, left), load_stored<type>(d, dy + at, left), own(factors.mean),
                     own(factors.scale), own(factors.beta), own(factors.shift), own(factors.slope), relu);
        store_stored<type>(d, made, dx + at, left);
      }
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(moments_of_runs_any);
HWY_EXPORT(moments_of_rows_any);
HWY_EXPORT(normalise_run_any);
HWY_EXPORT(normalise_rows_any);
HWY_EXPORT(sums_of_runs_any);
HWY_EXPORT(sums_of_rows_any);
HWY_EXPORT(differentiate_run_any);
HWY_EXPORT(differentiate_rows_any);

Moments moments_of_runs(DataType type, const std::byte* x, const ChannelRuns& runs, double pivot) {
  return HWY_DYNAMIC_DISPATCH(moments_of_runs_any)(type, x, runs, pivot);
}
void moments_of_rows(DataType type, const std::byte* x, const ChannelRows& rows, const std::byte* pivots, double* means,
                     double* squares) {
  HWY_DYNAMIC_DISPATCH(moments_of_rows_any)(type, x, rows, pivots, means, squares);
}
void normalise_run(DataType type, const std::byte* x, std::byte* y, std::int64_t count, const ChannelFactors& factors,
                   bool relu) {
  HWY_DYNAMIC_DISPATCH(normalise_run_any)(type, x, y, count, factors, relu);
}
void normalise_rows(DataType type, const std::byte* x, std::byte* y, const ChannelRows& rows,
                    const FactorArrays& factors, bool relu) {
  HWY_DYNAMIC_DISPATCH(normalise_rows_any)(type, x, y, rows, factors, relu);
}
GradientSums sums_of_runs(DataType type, const std::byte* x, const std::byte* dy, const ChannelRuns& runs,
                          const ChannelFactors& factors, bool relu) {
  return HWY_DYNAMIC_DISPATCH(sums_of_runs_any)(type, x, dy, runs, factors, relu);
}
void sums_of_rows(DataType type, const std::byte* x, const std::byte* dy, const ChannelRows& rows,
                  const FactorArrays& factors, bool relu, double* g, double* products) {
  HWY_DYNAMIC_DISPATCH(sums_of_rows_any)(type, x, dy, rows, factors, relu, g, products);
}
void differentiate_run(DataType type, const std::byte* x, const std::byte* dy, std::byte* dx, std::int64_t count,
                       const ChannelFactors& factors, bool relu) {
  HWY_DYNAMIC_DISPATCH(differentiate_run_any)(type, x, dy, dx, count, factors, relu);
}
void differentiate_rows(DataType type, const std::byte* x, const std::byte* dy, std::byte* dx, const ChannelRows& rows,
                        const FactorArrays& factors, bool relu) {
  HWY_DYNAMIC_DISPATCH(differentiate_rows_any)(type, x, dy, dx, rows, factors, relu);
}

}  // namespace omniconv::kernels
#endif
