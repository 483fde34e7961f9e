#include "operations/batch/reference/element.h"

#include "core/convert.h"

namespace omniconv::reference {

double batch_element(const BatchProblem& problem, const BatchData& data, const operations::BatchNumbers& numbers,
                     std::int64_t at) {
  const auto& [type, layout, gathered, flip, m, n, c, h, w, shift, name] = problem;
  const std::int64_t i = at / (c * h * w), inside = at % (c * h * w);
  const bool is_nhwc = layout == Layout::nhwc;
  const std::int64_t k = is_nhwc ? inside % c : inside / (h * w), p = is_nhwc ? inside / (w * c) : inside / w % h,
                     q = is_nhwc ? inside / c % w : inside % w;
  const auto [place, number] = operations::image_of(problem, data.order, numbers, i);
  std::int64_t pixel = 0;
  if (place >= 0) {
    const operations::ImageDraw draw = operations::draw_of(problem, numbers, number);
    const std::int64_t row = p + draw.rows, column = (draw.mirrored ? w - 1 - q : q) + draw.columns;
    if (row >= 0 && row < h && column >= 0 && column < w)
      pixel = std::to_integer<std::int64_t>(data.images[((place * c + k) * h + row) * w + column]);
  }
  return load_element(DataType::f32, data.table + (k * 256 + pixel) * size_of(DataType::f32));
}

double batch_class(const BatchProblem& problem, const BatchData& data, const operations::BatchNumbers& numbers,
                   std::int64_t i) {
  const std::int64_t place = operations::image_of(problem, data.order, numbers, i).place;
  return place < 0 ? -1 : std::to_integer<int>(data.labels[place]);
}

}  // namespace omniconv::reference
