// Convolution as matrix products on the CPU.
#include <array>
#include <cstring>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/im2col_gemm/images.h"
#include "operations/conv2d/im2col_gemm/plan.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_panels.h"

namespace omniconv::operations {
namespace {

// Columns of a part stay in the second cache until they are multiplied.
// Padded images are as many as make the products long.
constexpr PartSizes part_sizes{
    .column_bytes = std::int64_t{1} << 20, .images_side_by_side = false, .image_bytes = std::int64_t{16} << 20};

// The output columns [first, last) that read x at q * stride + offset within its width.
struct Span {
  std::int64_t first, last;
};
Span inside(std::int64_t offset, std::int64_t stride, std::int64_t width, std::int64_t q) {
  const std::int64_t first = offset >= 0 ? 0 : divide_up(-offset, stride);
  const std::int64_t last = offset >= width ? 0 : (width - 1 - offset) / stride + 1;
  return {std::min(first, q), std::max(std::min(last, q), std::min(first, q))};
}

// `Word` holds an element's bits.
template <typename Word>
void gather_nchw(const Conv2dShape& g, const Word* x, Word* columns, const ColumnPart& part, std::int64_t image,
                 std::int64_t c) {
  const std::int64_t pixels = part.rows * g.q;
  for (std::int64_t r = 0; r < g.r; ++r)
    for (std::int64_t s = 0; s < g.s; ++s) {
      Word* to = columns + ((image * g.c + c) * g.r * g.s + r * g.s + s) * pixels;
      const std::int64_t offset = g.column_of(0, s);
      const auto [first, last] = inside(offset, g.stride_w, g.w, g.q);
      for (std::int64_t p = part.p; p < part.p + part.rows; ++p, to += g.q) {
        const std::int64_t h = g.row_of(p, r);
        if (h < 0 || h >= g.h || first == last) {
          std::fill_n(to, g.q, Word{0});
          continue;
        }
        const Word* const from = x + g.x_at(part.n + image, c, h, 0) + offset;
        std::fill(to, to + first, Word{0});
        if (g.stride_w == 1)
          std::copy(from + first, from + last, to + first);
        else
          for (std::int64_t q = first; q < last; ++q) to[q] = from[q * g.stride_w];
        std::fill(to + last, to + g.q, Word{0});
      }
    }
}

template <typename Word>
void gather_nhwc(const Conv2dShape& g, const Word* x, Word* columns, const ColumnPart& part, std::int64_t image,
                 std::int64_t p) {
  Word* to = columns + (image * part.rows + p - part.p) * g.q * g.c * g.r * g.s;
  for (std::int64_t q = 0; q < g.q; ++q)
    for (std::int64_t group = 0; group < g.groups; ++group)
      for (std::int64_t r = 0; r < g.r; ++r)
        for (std::int64_t s = 0; s < g.s; ++s, to += g.c_group) {
          const std::int64_t h = g.row_of(p, r), w = g.column_of(q, s);
          if (h < 0 || h >= g.h || w < 0 || w >= g.w)
            std::fill_n(to, g.c_group, Word{0});
          else
            std::copy_n(x + g.x_at(part.n + image, group * g.c_group, h, w), g.c_group, to);
        }
}

// Elements [0, count) of a stored row, a stride apart, in the sums' type. A row may be short: no calls where none are
// needed.
template <bool widens, typename Real>
void copy_row(DataType type, const std::byte* from, std::int64_t stride, std::int64_t count, Real* to) {
  if constexpr (widens) {
    if (stride == 1)
      kernels::pack_panel({from, type, count, false}, count, count, 1, to);
    else
      kernels::pack_panel({from, type, stride, false}, 1, 1, count, to);
  } else {
    const auto* const elements = reinterpret_cast<const Real*>(from);
    if (stride == 1)
      std::copy_n(elements, count, to);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = elements[i * stride];
  }
}

// The padded copy of channel c of image `image` of the part.
template <bool widens, typename Real>
void pad_channel(const Conv2dShape& g, const PaddedImages& copy, DataType type, const std::byte* x, Real* to,
                 const ColumnPart& part, std::int64_t image, std::int64_t c) {
  const PaddedAxis &down = copy.down, &along = copy.along;
  const std::int64_t size = size_of(type);
  to += (image * g.c + c) * copy.channel();
  for (std::int64_t phase_h = 0; phase_h < down.phases; ++phase_h)
    for (std::int64_t i = 0; i < down.length; ++i) {
      const std::int64_t h = down.begin(phase_h, part.p + i);
      for (std::int64_t phase_w = 0; phase_w < along.phases; ++phase_w, to += along.length) {
        const std::int64_t offset = along.begin(phase_w, 0);
        const auto [first, last] = h < 0 || h >= g.h ? Span{0, 0} : inside(offset, g.stride_w, g.w, along.length);
        std::fill(to, to + first, Real{0});
        if (first < last)
          copy_row<widens>(type, x + g.x_at(part.n + image, c, h, first * g.stride_w + offset) * size, g.stride_w,
                           last - first, to + first);
        std::fill(to + last, to + along.length, Real{0});
      }
    }
}

constexpr std::int64_t block = 256;  // elements that are added up at a time

// Row h of channel c of image `image` of the part.
template <typename Real, typename Store>
void scatter_nchw(const Conv2dShape& g, const Real* columns, const Store& store, const ColumnPart& part,
                  std::int64_t image, std::int64_t c, std::int64_t h) {
  for (std::int64_t w0 = 0; w0 < g.w; w0 += block) {
    std::array<Real, block> sum{};
    const std::int64_t end = std::min(w0 + block, g.w);
    for (std::int64_t r = 0; r < g.r; ++r) {
      const std::int64_t down = h - g.row_of(0, r), p = down / g.stride_h;
      if (down < 0 || down % g.stride_h != 0 || p >= g.p) continue;
      for (std::int64_t s = 0; s < g.s; ++s) {
        const Real* const from = columns + ((image * g.c + c) * g.r * g.s + r * g.s + s) * g.p * g.q + p * g.q;
        const std::int64_t offset = g.column_of(0, s);
        const auto [first, last] = inside(offset - w0, g.stride_w, end - w0, g.q);
        for (std::int64_t q = first; q < last; ++q)
          sum[static_cast<std::size_t>(q * g.stride_w + offset - w0)] += from[q];
      }
    }
    for (std::int64_t w = w0; w < end; ++w)
      store(g.x_at(part.n + image, c, h, w), sum[static_cast<std::size_t>(w - w0)]);
  }
}

// Channels of row h of the image.
template <typename Real, typename Store>
void scatter_nhwc(const Conv2dShape& g, const Real* columns, const Store& store, const ColumnPart& part,
                  std::int64_t image, std::int64_t h) {
  const std::int64_t taps = g.r * g.s * g.c_group;
  for (std::int64_t w = 0; w < g.w; ++w)
    for (std::int64_t group = 0; group < g.groups; ++group)
      for (std::int64_t c0 = 0; c0 < g.c_group; c0 += block) {
        std::array<Real, block> sum{};
        const std::int64_t count = std::min(block, g.c_group - c0);
        for (std::int64_t r = 0; r < g.r; ++r)
          for (std::int64_t s = 0; s < g.s; ++s) {
            const std::int64_t down = h - g.row_of(0, r), along = w - g.column_of(0, s);
            const std::int64_t p = down / g.stride_h, q = along / g.stride_w;
            if (down < 0 || along < 0 || down % g.stride_h != 0 || along % g.stride_w != 0 || p >= g.p || q >= g.q)
              continue;
            const Real* const from = columns + ((image * g.p + p) * g.q + q) * g.groups * taps + group * taps +
                                     (r * g.s + s) * g.c_group + c0;
            for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += from[i];
          }
        for (std::int64_t i = 0; i < count; ++i)
          store(g.x_at(part.n + image, group * g.c_group + c0 + i, h, w), sum[static_cast<std::size_t>(i)]);
      }
}

class CpuColumns final : public Columns {
 public:
  CpuColumns(const Conv2dProblem& problem, bool reads_images, const std::shared_ptr<devices::Device>& device)
      : shape_(problem),
        type_(problem.type),
        adds_(problem.accumulate),
        reads_images_(reads_images),
        filter_(elements_of(problem).w),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void gather(devices::Sequence& sequence, const Operand& x, const Operand& columns,
              const ColumnPart& part) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, x, columns, part] {
      if (reads_images_) return pad_images(host(x), host(columns), part);
      switch (size_of(type_)) {
        case 2: return gather_words<std::uint16_t>(host(x), host(columns), part);
        case 4: return gather_words<std::uint32_t>(host(x), host(columns), part);
        default: return gather_words<std::uint64_t>(host(x), host(columns), part);
      }
    }));
  }

  void scatter(devices::Sequence& sequence, const Operand& columns, const Operand& x,
               const ColumnPart& part) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, x, columns, part] {
      if (type_ == DataType::f64)
        scatter_reals<double>(host(columns), host(x), part);
      else
        scatter_reals<float>(host(columns), host(x), part);
    }));
  }

  void reduce(devices::Sequence& sequence, const Operand& partials, std::int64_t count,
              const Operand& w) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, partials, count, w] {
      if (type_ == DataType::f64)
        reduce_reals<double>(host(partials), count, host(w));
      else
        reduce_reals<float>(host(partials), count, host(w));
    }));
  }

 private:
  template <typename Word>
  void gather_words(const std::byte* x, std::byte* columns, const ColumnPart& part) const {
    const auto* const from = reinterpret_cast<const Word*>(x);
    auto* const to = reinterpret_cast<Word*>(columns);
    if (shape_.nhwc)
      cpu_.parallel_for(part.images * part.rows, [&](std::int64_t i, int) {
        gather_nhwc(shape_, from, to, part, i / part.rows, part.p + i % part.rows);
      });
    else
      cpu_.parallel_for(part.images * shape_.c,
                        [&](std::int64_t i, int) { gather_nchw(shape_, from, to, part, i / shape_.c, i % shape_.c); });
  }

  void pad_images(const std::byte* x, std::byte* to, const ColumnPart& part) const {
    const PaddedImages copy(shape_, part.rows);
    cpu_.parallel_for(part.images * shape_.c, [&](std::int64_t i, int) {
      const std::int64_t image = i / shape_.c, c = i % shape_.c;
      if (type_ == DataType::f64)
        pad_channel<false>(shape_, copy, type_, x, reinterpret_cast<double*>(to), part, image, c);
      else if (size_of(type_) == sizeof(float))
        pad_channel<false>(shape_, copy, type_, x, reinterpret_cast<float*>(to), part, image, c);
      else
        pad_channel<true>(shape_, copy, type_, x, reinterpret_cast<float*>(to), part, image, c);
    });
  }

  // What is stored for a sum.
  template <typename Real>
  auto store_into(std::byte* to) const {
    return [this, to, size = size_of(type_)](std::int64_t at, Real sum) {
      if (adds_) sum += static_cast<Real>(load_element(type_, to + at * size));
      store_element(type_, sum, to + at * size);
    };
  }

  template <typename Real>
  void scatter_reals(const std::byte* columns, std::byte* x, const ColumnPart& part) const {
    const auto* const from = reinterpret_cast<const Real*>(columns);
    const auto store = store_into<Real>(x);
    const Conv2dShape& g = shape_;
    if (g.nhwc)
      cpu_.parallel_for(part.images * g.h,
                        [&](std::int64_t i, int) { scatter_nhwc(g, from, store, part, i / g.h, i % g.h); });
    else
      cpu_.parallel_for(part.images * g.c, [&](std::int64_t i, int) {
        for (std::int64_t h = 0; h < g.h; ++h) scatter_nchw(g, from, store, part, i / g.c, i % g.c, h);
      });
  }

  template <typename Real>
  void reduce_reals(const std::byte* partials, std::int64_t count, std::byte* w) const {
    const auto* const from = reinterpret_cast<const Real*>(partials);
    const auto store = store_into<Real>(w);
    cpu_.parallel_for(divide_up(filter_, block), [&](std::int64_t i, int) {
      for (std::int64_t at = i * block; at < std::min(filter_, (i + 1) * block); ++at) {
        Real sum = from[at];
        for (std::int64_t part = 1; part < count; ++part) sum += from[part * filter_ + at];
        store(at, sum);
      }
    });
  }

  Conv2dShape shape_;
  DataType type_;
  bool adds_, reads_images_;
  std::int64_t filter_;
  std::shared_ptr<devices::Device> device_;
  devices::CpuDevice& cpu_;
};

class Im2colGemmCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/im2col_gemm/cpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    return im2col_offer(problem, device, part_sizes, request, [=](const Parting& parting) {
      return std::make_shared<CpuColumns>(problem, parting.reads_images, device);
    });
  }
};

}  // namespace

const Conv2dSolver& conv2d_im2col_gemm_cpu() {
  static const Im2colGemmCpu solver;
  return solver;
}

}  // namespace omniconv::operations
