// Rows one after the other, elements side by side in a vector.
#include "operations/loss/direct/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/loss/direct/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using operations::has_losses;

// What rows of a stored type are computed with.
template <DataType type>
struct Of {
  using Real = std::conditional_t<type == DataType::f64, double, float>;
  using D = hn::CappedTag<Real, loss_sums>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t size = type == DataType::f64 ? 8 : type == DataType::f32 ? 4 : 2;
};

// A row of an array: its elements, and where the array's last row ends, up to which vectors may be read.
struct Row {
  const std::byte* elements;
  const std::byte* array_end;
  std::int64_t length;
};

// The vector from element `at` on; `outside` behind the row's end.
template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_of_row(D d, const Row& row, std::int64_t at, hn::Vec<D> outside) {
  constexpr std::int64_t size = Of<type>::size;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t left = row.length - at;
  const std::byte* const from = row.elements + at * size;
  if (left >= lanes) return load_stored<type>(d, from);
  if (left <= 0) return outside;
  const auto loaded =
      row.array_end - from >= lanes * size ? load_stored<type>(d, from) : load_stored<type>(d, from, left);
  return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(left)), loaded, outside);
}

// The sum of term(at) over a row's vectors, each of whose elements is at, at + 1, ...: by 16 sums, added up a block at
// a time.
template <class D, typename Term>
HWY_INLINE hn::TFromD<D> sum_over(D d, std::int64_t length, const Term& term) {
  constexpr std::size_t vectors = static_cast<std::size_t>(loss_sums) / hn::MaxLanes(D());
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> totals[vectors];
  for (auto& total : totals) total = hn::Zero(d);
  for (std::int64_t block = 0; block < length; block += loss_block) {
    hn::Vec<D> sums[vectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    const std::int64_t end = std::min(block + loss_block, length);
    for (std::int64_t first = block; first < end; first += loss_sums)
      for (std::size_t v = 0; v < vectors; ++v) {
        const std::int64_t at = first + static_cast<std::int64_t>(v) * lanes;
        if (v == 0 || at < end) sums[v] = term(at, sums[v]);
      }
    for (std::size_t v = 0; v < vectors; ++v) totals[v] = hn::Add(totals[v], sums[v]);
  }
  for (std::size_t half = vectors / 2; half > 0; half /= 2)
    for (std::size_t v = 0; v < half; ++v) totals[v] = hn::Add(totals[v], totals[v + half]);
  return hn::GetLane(hn::SumOfLanes(d, totals[0]));
}

// NaN of NaN, which Highway's is not.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

// Of a row of logits: the sum of its exponentials is 1 + others, in units of that of the maximum. A maximum's own
// exponential is 1, and maxima are counted: no small sum is lost beside them. Where x less the maximum is NaN anywhere,
// so is `others`.
template <typename Real>
struct Softmax {
  Real maximum, others;
};

template <DataType type>
HWY_INLINE Softmax<typename Of<type>::Real> softmax_of(const Row& row) {
  using Real = typename Of<type>::Real;
  const typename Of<type>::D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto outside = hn::Set(d, -std::numeric_limits<Real>::infinity());
  auto most = outside, other = outside;
  for (std::int64_t at = 0; at < row.length; at += 2 * lanes) {
    most = hn::Max(most, load_of_row<type>(d, row, at, outside));
    other = hn::Max(other, load_of_row<type>(d, row, at + lanes, outside));
  }
  const auto maximum = hn::MaxOfLanes(d, hn::Max(most, other));
  std::int64_t maxima = 0;
  const Real sum = sum_over(d, row.length, [&](std::int64_t at, hn::Vec<decltype(d)> before) HWY_ATTR {
    const auto below = hn::Sub(load_of_row<type>(d, row, at, outside), maximum);
    const auto is_maximum = hn::Eq(below, hn::Zero(d));
    maxima += static_cast<std::int64_t>(hn::CountTrue(d, is_maximum));
    const auto e = exponential(d, below);
    return hn::Add(before, hn::IfThenZeroElse(is_maximum, e));
  });
  return {hn::GetLane(maximum), sum + static_cast<Real>(maxima - 1)};
}

// Logits by their labels, NaN where there is no such class.
template <DataType type>
HWY_INLINE typename Of<type>::Real labelled(const Row& row, std::int64_t label) {
  using Real = typename Of<type>::Real;
  if (label < 0 || label >= row.length) return std::numeric_limits<Real>::quiet_NaN();
  return static_cast<Real>(load_element(type, row.elements + label * Of<type>::size));
}

HWY_INLINE std::int64_t label_of(const LossRows& rows, std::int64_t i) {
  std::int32_t label = 0;
  std::memcpy(&label, rows.target + i * 4, sizeof label);
  return label;
}

HWY_INLINE Row row_of(const std::byte* array, const LossProblem& problem, const LossRows& rows, std::int64_t i,
                      std::int64_t size) {
  return {array + i * problem.c * size, array + rows.rows * problem.c * size, problem.c};
}

// Losses of up to 16 rows that follow each other, to y of the first one on, or in sums with it.
template <typename Real>
HWY_INLINE void store_losses(const LossProblem& problem, const LossRows& rows, std::int64_t first, std::int64_t count,
                             Real* losses) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(Real);
  std::byte* const y = rows.y + first * static_cast<std::int64_t>(sizeof(Real));
  if (problem.sums) {
    Real before[loss_sums];
    std::memcpy(before, y, bytes);
    for (std::int64_t i = 0; i < count; ++i) losses[i] += before[i];
  }
  std::memcpy(y, losses, bytes);
}

// log1p(others) + gap of each row.
template <class D, class Real = hn::TFromD<D>>
HWY_INLINE void store_softmax_losses(D d, const LossProblem& problem, const LossRows& rows, std::int64_t first,
                                     std::int64_t count, const Real* others, const Real* gaps) {
  HWY_ALIGN Real losses[loss_sums];
  for (std::size_t i = 0; i < static_cast<std::size_t>(loss_sums); i += hn::Lanes(d))
    hn::Store(hn::Add(hn::Log1p(d, hn::Load(d, others + i)), hn::Load(d, gaps + i)), d, losses + i);
  store_losses(problem, rows, first, count, losses);
}

// What exponentials of a row are multiplied by for its gradient.
template <typename Real>
HWY_INLINE Real share_of(const LossProblem& problem, const LossRows& rows, std::int64_t label, Real others) {
  const bool is_class = label >= 0 && label < problem.c;
  return is_class ? static_cast<Real>(rows.scale) / (1 + others) : std::numeric_limits<Real>::quiet_NaN();
}

// Of the label the difference from 1 is the sum of the others' shares where its logit is the maximum, and at least a
// half where it is not.
template <typename Real>
HWY_INLINE Real label_gradient(Real below, Real others, Real share) {
  return -(below == 0 ? others : 1 + others - std::exp(below)) * share;
}

// The gradient of row i.
template <DataType type, typename Real = typename Of<type>::Real>
HWY_INLINE void differentiate(const LossProblem& problem, const LossRows& rows, std::int64_t i, Real maximum,
                              Real others, Real gap) {
  const typename Of<type>::D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Row row = row_of(rows.x, problem, rows, i, Of<type>::size);
  std::byte* const to = rows.dx + i * problem.c * Of<type>::size;
  const std::int64_t label = label_of(rows, i);
  const Real share = share_of(problem, rows, label, others);
  const auto most = hn::Set(d, maximum), factor = hn::Set(d, share);
  for (std::int64_t at = 0; at < problem.c; at += lanes) {
    const auto e = hn::Exp(d, hn::Sub(load_of_row<type>(d, row, at, most), most));
    store_stored<type>(d, hn::Mul(e, factor), to + at * Of<type>::size, problem.c - at);
  }
  if (label >= 0 && label < problem.c)
    store_element(type, label_gradient(-gap, others, share), to + label * Of<type>::size);
}

// Logarithms of 16 rows at a time.
template <DataType type>
HWY_INLINE void long_softmax(const LossProblem& problem, const LossRows& rows) {
  using Real = typename Of<type>::Real;
  for (std::int64_t first = 0; first < rows.rows; first += loss_sums) {
    const std::int64_t count = std::min(loss_sums, rows.rows - first);
    HWY_ALIGN Real others[loss_sums] = {}, gaps[loss_sums] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      const Row row = row_of(rows.x, problem, rows, first + i, Of<type>::size);
      const auto softmax = softmax_of<type>(row);
      others[i] = softmax.others;
      gaps[i] = softmax.maximum - labelled<type>(row, label_of(rows, first + i));
      if (problem.backward) differentiate<type>(problem, rows, first + i, softmax.maximum, others[i], gaps[i]);
    }
    if (has_losses(problem)) store_softmax_losses(typename Of<type>::D(), problem, rows, first, count, others, gaps);
  }
}

// Sixteen short rows side by side, an element of each in a vector.
template <DataType type>
struct ShortRows {
  using Real = typename Of<type>::Real;
  HWY_ALIGN Real numbers[loss_short * loss_sums] = {};  // as they lie in memory
  HWY_ALIGN Real columns[loss_short * loss_sums] = {};  // column by column
  HWY_ALIGN Real maxima[loss_sums], others[loss_sums], shares[loss_sums] = {}, gaps[loss_sums] = {};

  // Calls with(elements that are left, their place in memory, in numbers) for vectors of `count` rows.
  template <typename With>
  HWY_INLINE void for_vectors(const LossProblem& problem, std::int64_t count, const With& with) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(typename Of<type>::D()));
    const std::int64_t elements = count * problem.c;
    for (std::int64_t at = 0; at < elements; at += lanes) with(elements - at, at * Of<type>::size, numbers + at);
  }

  HWY_INLINE void load(const LossProblem& problem, const std::byte* x, std::int64_t count) {
    const typename Of<type>::D d;
    for_vectors(problem, count, [&](std::int64_t left, std::int64_t place, Real* to) HWY_ATTR {
      hn::Store(load_stored<type>(d, x + place, left), d, to);
    });
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < problem.c; ++j) columns[j * loss_sums + i] = numbers[i * problem.c + j];
  }

  // As softmax_of.
  HWY_INLINE void sum_up(const LossProblem& problem) {
    const typename Of<type>::D d;
    for (std::int64_t i = 0; i < loss_sums; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto column = [&](std::int64_t j) HWY_ATTR { return hn::Load(d, columns + j * loss_sums + i); };
      const auto zero = hn::Zero(d), one = hn::Set(d, 1);
      auto most = column(0), sum = zero, count = zero;
      for (std::int64_t j = 1; j < problem.c; ++j) most = hn::Max(most, column(j));
      for (std::int64_t j = 0; j < problem.c; ++j) {
        const auto below = hn::Sub(column(j), most);
        const auto is_maximum = hn::Eq(below, zero);
        count = hn::Add(count, hn::IfThenElseZero(is_maximum, one));
        const auto e = exponential(d, below);
        sum = hn::Add(sum, hn::IfThenZeroElse(is_maximum, e));
      }
      hn::Store(most, d, maxima + i);
      hn::Store(hn::Add(sum, hn::Sub(count, one)), d, others + i);
    }
  }

  // Gradients in the place of the rows.
  HWY_INLINE void differentiate(const LossProblem& problem, std::int64_t count) {
    const typename Of<type>::D d;
    for (std::int64_t i = 0; i < loss_sums; i += static_cast<std::int64_t>(hn::Lanes(d))) {
      const auto most = hn::Load(d, maxima + i), share = hn::Load(d, shares + i);
      for (std::int64_t j = 0; j < problem.c; ++j) {
        Real* const at = columns + j * loss_sums + i;
        hn::Store(hn::Mul(hn::Exp(d, hn::Sub(hn::Load(d, at), most)), share), d, at);
      }
    }
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < problem.c; ++j) numbers[i * problem.c + j] = columns[j * loss_sums + i];
  }
};

template <DataType type>
HWY_INLINE void short_softmax(const LossProblem& problem, const LossRows& rows) {
  using Real = typename Of<type>::Real;
  const typename Of<type>::D d;
  ShortRows<type> block;
  for (std::int64_t first = 0; first < rows.rows; first += loss_sums) {
    const std::int64_t count = std::min(loss_sums, rows.rows - first);
    block.load(problem, rows.x + first * problem.c * Of<type>::size, count);
    block.sum_up(problem);
    for (std::int64_t i = 0; i < count; ++i) {
      const Row row = row_of(rows.x, problem, rows, first + i, Of<type>::size);
      const std::int64_t label = label_of(rows, first + i);
      block.gaps[i] = block.maxima[i] - labelled<type>(row, label);
      block.shares[i] = share_of(problem, rows, label, block.others[i]);
    }
    if (has_losses(problem)) store_softmax_losses(d, problem, rows, first, count, block.others, block.gaps);
    if (!problem.backward) continue;
    block.differentiate(problem, count);
    for (std::int64_t i = 0; i < count; ++i)
      if (const std::int64_t label = label_of(rows, first + i); label >= 0 && label < problem.c)
        block.numbers[i * problem.c + label] = label_gradient(-block.gaps[i], block.others[i], block.shares[i]);
    std::byte* const to = rows.dx + first * problem.c * Of<type>::size;
    block.for_vectors(problem, count, [&](std::int64_t left, std::int64_t place, const Real* from) HWY_ATTR {
      store_stored<type>(d, hn::Load(d, from), to + place, left);
    });
  }
}

template <DataType type>
HWY_INLINE void squared_losses(const LossProblem& problem, const LossRows& rows) {
  using Real = typename Of<type>::Real;
  const typename Of<type>::D d;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const Row x = row_of(rows.x, problem, rows, i, Of<type>::size),
              t = row_of(rows.target, problem, rows, i, Of<type>::size);
    const Real sum = sum_over(d, problem.c, [&](std::int64_t at, hn::Vec<decltype(d)> before) HWY_ATTR {
      const auto zero = hn::Zero(d);
      const auto difference = hn::Sub(load_of_row<type>(d, x, at, zero), load_of_row<type>(d, t, at, zero));
      return hn::MulAdd(difference, difference, before);
    });
    Real loss = sum / static_cast<Real>(problem.c);
    store_losses(problem, rows, i, 1, &loss);
  }
}

// Rows do not matter.
template <DataType type>
HWY_INLINE void squared_gradients(const LossProblem& problem, const LossRows& rows) {
  using Real = typename Of<type>::Real;
  const typename Of<type>::D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t elements = rows.rows * problem.c;
  const auto factor =
      hn::Set(d, static_cast<Real>(rows.scale) * static_cast<Real>(2.0 / static_cast<double>(problem.c)));
  for (std::int64_t at = 0; at < elements; at += lanes) {
    const std::int64_t byte = at * Of<type>::size, left = elements - at;
    const auto x = load_stored<type>(d, rows.x + byte, left), t = load_stored<type>(d, rows.target + byte, left);
    store_stored<type>(d, hn::Mul(factor, hn::Sub(x, t)), rows.dx + byte, left);
  }
}

template <DataType type>
HWY_INLINE void compute_type(const LossProblem& problem, const LossRows& rows) {
  if (problem.loss == Loss::softmax)
    return problem.c <= loss_short ? short_softmax<type>(problem, rows) : long_softmax<type>(problem, rows);
  if (problem.backward) squared_gradients<type>(problem, rows);
  if (has_losses(problem)) squared_losses<type>(problem, rows);
}

void compute_any(const LossProblem& problem, const LossRows& rows) {
  switch (problem.type) {
    case DataType::f64: return compute_type<DataType::f64>(problem, rows);
    case DataType::f16: return compute_type<DataType::f16>(problem, rows);
    case DataType::bf16: return compute_type<DataType::bf16>(problem, rows);
    default: return compute_type<DataType::f32>(problem, rows);
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(compute_any);

void compute_loss(const LossProblem& problem, const LossRows& rows) {
  HWY_DYNAMIC_DISPATCH(compute_any)(problem, rows);
}

}  // namespace omniconv::kernels
#endif
