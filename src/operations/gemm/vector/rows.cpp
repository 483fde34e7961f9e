#include "operations/gemm/vector/rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/gemm/vector/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type>
constexpr std::int64_t bytes_of = type == DataType::f64                             ? 8
                                  : type == DataType::f16 || type == DataType::bf16 ? 2
                                                                                    : 4;

// R rows from `row` on.
template <DataType type, int R, typename Real>
HWY_INLINE void multiply_together(const VectorRows& p, std::int64_t row, Real* sums) {
  const hn::ScalableTag<Real> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr int V = row_chains / static_cast<int>(lanes);
  constexpr std::int64_t size = bytes_of<type>, bytes = lanes * size;
  const std::int64_t pitch = p.pitch * size;
  const std::byte *a = p.rows + row * pitch, *x = p.vector;
  hn::Vec<decltype(d)> of_chains[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) of_chains[r][v] = hn::Zero(d);
  std::int64_t left = p.steps;
  for (; left >= row_chains; left -= row_chains, a += V * bytes, x += V * bytes)
    for (int v = 0; v < V; ++v) {
      const auto factor = load_stored<type>(d, x + v * bytes);
      for (int r = 0; r < R; ++r)
        of_chains[r][v] = hn::MulAdd(load_stored<type>(d, a + r * pitch + v * bytes), factor, of_chains[r][v]);
    }
  for (int v = 0; v < V && left > 0; ++v, left -= lanes, a += bytes, x += bytes) {
    const std::int64_t count = std::min(left, lanes);
    const auto factor = load_stored<type>(d, x, count);
    for (int r = 0; r < R; ++r)
      of_chains[r][v] = hn::MulAdd(load_stored<type>(d, a + r * pitch, count), factor, of_chains[r][v]);
  }
  for (int r = 0; r < R; ++r) {
    for (int half = V / 2; half > 0; half /= 2)
      for (int v = 0; v < half; ++v) of_chains[r][v] = hn::Add(of_chains[r][v], of_chains[r][v + half]);
    sums[r] = hn::GetLane(hn::SumOfLanes(d, of_chains[r][0]));
  }
}

template <DataType type, typename Real>
void multiply(const VectorRows& p, std::int64_t first, std::int64_t end, Real* sums) {
  // As many rows at once as make eight chains of vectors, which an addition's time needs.
  constexpr int V = row_chains / static_cast<int>(hn::MaxLanes(hn::ScalableTag<Real>())), together = std::max(8 / V, 1);
  std::int64_t row = first;
  for (; row + together <= end; row += together) multiply_together<type, together>(p, row, sums + (row - first));
  for (; row < end; ++row) multiply_together<type, 1>(p, row, sums + (row - first));
}

void MultiplyF32(const VectorRows& p, std::int64_t first, std::int64_t end, float* sums) {
  switch (p.type) {
    case DataType::f16: return multiply<DataType::f16>(p, first, end, sums);
    case DataType::bf16: return multiply<DataType::bf16>(p, first, end, sums);
    default: return multiply<DataType::f32>(p, first, end, sums);
  }
}
void MultiplyF64(const VectorRows& p, std::int64_t first, std::int64_t end, double* sums) {
  multiply<DataType::f64>(p, first, end, sums);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MultiplyF32);
HWY_EXPORT(MultiplyF64);

void multiply_rows(const VectorRows& rows, std::int64_t first, std::int64_t end, float* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyF32)(rows, first, end, sums);
}
void multiply_rows(const VectorRows& rows, std::int64_t first, std::int64_t end, double* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyF64)(rows, first, end, sums);
}

}  // namespace omniconv::kernels
#endif
