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

// Calls with(c, left) for the first column of each vector of a row, and how many columns there are from it on.
template <typename With>
HWY_INLINE void for_columns(std::int64_t columns, std::int64_t lanes, const With& with) {
  for (std::int64_t c = 0; c < columns; c += lanes) with(c, columns - c);
}

// Rows are read as they lie in memory, with a sum for each column in the nearest cache.
void moments_of_rows_any(DataType any_type, const std::byte* x, const ChannelRows& rows, const std::byte* pivots,
                         double* means, double* squares) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    constexpr auto real_size = static_cast<std::int64_t>(sizeof(Real<type>));
    HWY_ALIGN Real<type> mean[most_columns + hn::MaxLanes(d)], square[most_columns + hn::MaxLanes(d)];
    std::fill(means, means + rows.columns, 0), std::fill(squares, squares + rows.columns, 0);
    for (std::int64_t first = 0; first < rows.rows; first += block_rows) {
      const std::int64_t count = std::min(block_rows, rows.rows - first);
      std::fill(mean, mean + rows.columns + lanes, Real<type>{0}),
          std::fill(square, square + rows.columns + lanes, Real<type>{0});
      const auto distance = [&](std::int64_t row, std::int64_t c, std::int64_t left) HWY_ATTR {
        return hn::Sub(load_stored<type>(d, x + ((first + row) * rows.stride + c) * size, left),
                       load_stored<real_type<type>>(d, pivots + c * real_size, left));
      };
      for (std::int64_t row = 0; row < count; ++row)
        for_columns(rows.columns, lanes, [&](std::int64_t c, std::int64_t left) HWY_ATTR {
          hn::StoreU(hn::Add(hn::LoadU(d, mean + c), distance(row, c, left)), d, mean + c);
        });
      for (std::int64_t c = 0; c < rows.columns; ++c) mean[c] /= static_cast<Real<type>>(count);
      for (std::int64_t row = 0; row < count; ++row)
        for_columns(rows.columns, lanes, [&](std::int64_t c, std::int64_t left) HWY_ATTR {
          const auto deviation = hn::Sub(distance(row, c, left), hn::LoadU(d, mean + c));
          hn::StoreU(hn::MulAdd(deviation, deviation, hn::LoadU(d, square + c)), d, square + c);
        });
      const double share = static_cast<double>(count) / static_cast<double>(first + count),
                   weight = static_cast<double>(first) * share;
      for (std::int64_t c = 0; c < rows.columns; ++c) {
        const double difference = static_cast<double>(mean[c]) - means[c];
        means[c] += difference * share;
        squares[c] += static_cast<double>(square[c]) + difference * difference * weight;
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
    HWY_ALIGN Real<type> of_g[most_columns + hn::MaxLanes(d)], of_products[most_columns + hn::MaxLanes(d)];
    std::fill(g, g + rows.columns, 0), std::fill(products, products + rows.columns, 0);
    for (std::int64_t first = 0; first < rows.rows; first += block_rows) {
      const std::int64_t count = std::min(block_rows, rows.rows - first);
      std::fill(of_g, of_g + rows.columns + lanes, Real<type>{0});
      std::fill(of_products, of_products + rows.columns + lanes, Real<type>{0});
      for (std::int64_t row = 0; row < count; ++row)
        for_columns(rows.columns, lanes, [&](std::int64_t c, std::int64_t left) HWY_ATTR {
          const auto own = [&](const std::byte* array)
                               HWY_ATTR { return load_stored<real_type<type>>(d, array + c * real_size, left); };
          const std::int64_t at = ((first + row) * rows.stride + c) * size;
          const auto of_x = load_stored<type>(d, x + at, left), mean = own(factors.mean);
          const auto one =
              passed(d, of_x, load_stored<type>(d, dy + at, left), mean, own(factors.scale), own(factors.beta), relu);
          hn::StoreU(hn::Add(hn::LoadU(d, of_g + c), one), d, of_g + c);
          hn::StoreU(hn::MulAdd(one, hn::Sub(of_x, mean), hn::LoadU(d, of_products + c)), d, of_products + c);
        });
      for (std::int64_t c = 0; c < rows.columns; ++c)
        g[c] += static_cast<double>(of_g[c]), products[c] += static_cast<double>(of_products[c]);
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
