// Direct convolution on the CPU: tiles of 8 channels by 64 columns of the output, whose sums stay on the stack.
#include <algorithm>
#include <array>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"
#include "operations/host_operand.h"
#include "vector/matrix/conv_rows.h"

namespace omniconv::operations {
namespace {

using kernels::tile_channels;
using kernels::tile_columns;

template <typename Real>
using Row = std::array<Real, tile_columns>;
template <typename Real>
using Sums = std::array<Real, tile_channels * tile_columns>;

// A stored array, its elements widened one by one.
template <typename Real>
class Stored {
 public:
  Stored(DataType type, std::byte* data) : type_(type), size_(size_of(type)), data_(data) {}

  Real operator[](std::int64_t at) const {
    if (type_ == DataType::f32) {
      float value;
      std::memcpy(&value, data_ + at * 4, 4);
      return value;
    }
    return static_cast<Real>(load_element(type_, data_ + at * size_));
  }
  void set(std::int64_t at, Real value) const { store_element(type_, value, data_ + at * size_); }

 private:
  DataType type_;
  std::int64_t size_;
  std::byte* data_;
};

// What a tile's outputs share: where it begins, and how much of it is there.
struct RowTile {
  std::int64_t channel, channels, column, columns;
};

template <typename Real>
class Passes {
 public:
  Passes(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dRun& run)
      : problem_(problem),
        g_(shape),
        x_(problem.type, host(run.x)),
        w_(problem.type, host(run.w)),
        y_(problem.type, host(run.y)),
        bias_(problem.type, host(run.bias)) {}

  // Row p of image n: `tile` of channels of a group's, and of columns.
  void forward(std::int64_t n, std::int64_t p, std::int64_t group, const RowTile& tile) const {
    Sums<Real> sums{};
    Row<Real> row{};
    std::array<Real, tile_channels> weights;
    const std::int64_t k0 = group * g_.k_group + tile.channel;
    for (std::int64_t r = 0; r < g_.r; ++r) {
      const std::int64_t h = g_.row_of(p, r);
      if (h < 0 || h >= g_.h) continue;
      for (std::int64_t s = 0; s < g_.s; ++s)
        for (std::int64_t c = 0; c < g_.c_group; ++c) {
          const std::int64_t from = g_.x_at(n, group * g_.c_group + c, h, 0), step = g_.nhwc ? g_.c : 1;
          for (std::int64_t j = 0; j < tile.columns; ++j) {
            const std::int64_t w = g_.column_of(tile.column + j, s);
            row[static_cast<std::size_t>(j)] = w >= 0 && w < g_.w ? x_[from + w * step] : Real{0};
          }
          for (std::int64_t i = 0; i < tile.channels; ++i)
            weights[static_cast<std::size_t>(i)] = w_[g_.w_at(k0 + i, c, r, s)];
          kernels::add_scaled_row(tile.channels, weights.data(), row.data(), sums.data());
        }
    }
    for (std::int64_t i = 0; i < tile.channels; ++i)
      for (std::int64_t j = 0; j < tile.columns; ++j) {
        Real sum = sum_of(sums, i, j);
        if (problem_.bias) sum += bias_[k0 + i];
        store(y_, g_.y_at(n, k0 + i, p, tile.column + j), sum);
      }
  }

  // Row h of image n.
  void backward_data(std::int64_t n, std::int64_t h, std::int64_t group, const RowTile& tile) const {
    Sums<Real> sums{};
    Row<Real> row{};
    std::array<Real, tile_channels> weights;
    for (std::int64_t r = 0; r < g_.r; ++r) {
      const std::int64_t down = h - g_.row_of(0, r), p = down / g_.stride_h;
      if (down < 0 || down % g_.stride_h != 0 || p >= g_.p) continue;
      for (std::int64_t s = 0; s < g_.s; ++s) {
        const std::int64_t offset = tile.column - g_.column_of(0, s);
        for (std::int64_t k = group * g_.k_group; k < (group + 1) * g_.k_group; ++k) {
          const std::int64_t from = g_.y_at(n, k, p, 0), step = g_.nhwc ? g_.k : 1;
          for (std::int64_t j = 0; j < tile.columns; ++j) {
            const std::int64_t along = offset + j, q = along / g_.stride_w;
            const bool meets = along >= 0 && along % g_.stride_w == 0 && q < g_.q;
            row[static_cast<std::size_t>(j)] = meets ? y_[from + q * step] : Real{0};
          }
          for (std::int64_t i = 0; i < tile.channels; ++i)
            weights[static_cast<std::size_t>(i)] = w_[g_.w_at(k, tile.channel + i, r, s)];
          kernels::add_scaled_row(tile.channels, weights.data(), row.data(), sums.data());
        }
      }
    }
    for (std::int64_t i = 0; i < tile.channels; ++i)
      for (std::int64_t j = 0; j < tile.columns; ++j)
        store(x_, g_.x_at(n, group * g_.c_group + tile.channel + i, h, tile.column + j), sum_of(sums, i, j));
  }

  // w[.., c, r, s] of `channels` filters from k on: a sum for each of 64 columns of y in turn, added up at the end.
  void backward_filter(std::int64_t k, std::int64_t channels, std::int64_t c, std::int64_t r, std::int64_t s) const {
    Sums<Real> sums{}, gradients{};
    Row<Real> row{};
    const std::int64_t x_step = g_.nhwc ? g_.c : 1, y_step = g_.nhwc ? g_.k : 1,
                       x_channel = k / g_.k_group * g_.c_group + c;
    for (std::int64_t n = 0; n < g_.n; ++n)
      for (std::int64_t p = 0; p < g_.p; ++p) {
        const std::int64_t h = g_.row_of(p, r);
        if (h < 0 || h >= g_.h) continue;
        for (std::int64_t q0 = 0; q0 < g_.q; q0 += tile_columns) {
          const std::int64_t columns = std::min(tile_columns, g_.q - q0), from = g_.x_at(n, x_channel, h, 0);
          for (std::int64_t j = 0; j < tile_columns; ++j) {
            const std::int64_t w = g_.column_of(q0 + j, s);
            row[static_cast<std::size_t>(j)] = j < columns && w >= 0 && w < g_.w ? x_[from + w * x_step] : Real{0};
          }
          for (std::int64_t i = 0; i < channels; ++i) {
            const std::int64_t of_y = g_.y_at(n, k + i, p, q0);
            Real* const to = gradients.data() + i * tile_columns;
            for (std::int64_t j = 0; j < columns; ++j) to[j] = y_[of_y + j * y_step];
            std::fill(to + columns, to + tile_columns, Real{0});
          }
          kernels::add_products(channels, row.data(), gradients.data(), sums.data());
        }
      }
    for (std::int64_t i = 0; i < channels; ++i) {
      Real sum = 0;
      for (std::int64_t j = 0; j < tile_columns; ++j) sum += sum_of(sums, i, j);
      store(w_, g_.w_at(k + i, c, r, s), sum);
    }
  }

 private:
  static Real sum_of(const Sums<Real>& sums, std::int64_t i, std::int64_t j) {
    return sums[static_cast<std::size_t>(i * tile_columns + j)];
  }

  void store(const Stored<Real>& to, std::int64_t at, Real sum) const {
    if (problem_.accumulate) sum += to[at];
    to.set(at, problem_.relu && sum < 0 ? Real{0} : sum);
  }

  const Conv2dProblem& problem_;
  const Conv2dShape& g_;
  Stored<Real> x_, w_, y_, bias_;
};

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device)
      : Conv2dPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), shape_(problem) {}
  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] {
      if (problem().type == DataType::f64)
        execute<double>(run);
      else
        execute<float>(run);
    }));
  }

 private:
  template <typename Real>
  void execute(const Conv2dRun& run) const {
    const Conv2dProblem& problem = this->problem();
    const Passes<Real> passes(problem, shape_, run);
    const Conv2dShape& g = shape_;
    if (problem.pass == Pass::backward_filter) {
      const std::int64_t blocks = divide_up(g.k_group, tile_channels), taps = g.c_group * g.r * g.s;
      cpu_.parallel_for(g.groups * blocks * taps, [&](std::int64_t i, int) {
        const std::int64_t tap = i % taps, first = i / taps % blocks * tile_channels;
        passes.backward_filter(i / taps / blocks * g.k_group + first, std::min(tile_channels, g.k_group - first),
                               tap / (g.r * g.s), tap / g.s % g.r, tap % g.s);
      });
      return;
    }
    const bool forward = problem.pass == Pass::forward;
    const std::int64_t of_group = forward ? g.k_group : g.c_group, rows = forward ? g.p : g.h,
                       width = forward ? g.q : g.w, blocks = divide_up(of_group, tile_channels);
    cpu_.parallel_for(g.n * g.groups * blocks * rows, [&](std::int64_t i, int) {
      const std::int64_t row = i % rows, first = i / rows % blocks * tile_channels,
                         group = i / rows / blocks % g.groups, n = i / rows / blocks / g.groups;
      for (std::int64_t column = 0; column < width; column += tile_columns) {
        const RowTile tile{first, std::min(tile_channels, of_group - first), column,
                           std::min(tile_columns, width - column)};
        if (forward)
          passes.forward(n, row, group, tile);
        else
          passes.backward_data(n, row, group, tile);
      }
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Conv2dShape shape_;
};

class DirectCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/direct/cpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    return Offer{
        .cost = {cost(problem)},
        .bound = bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }

 private:
  // Of the filter, each of 64 columns has a sum of its own, and these are added. A product is rounded by itself where
  // the processor has no fused multiply-add, which the constant holds.
  static ErrorBound bound(const Conv2dProblem& problem) {
    if (problem.pass != Pass::backward_filter) return conv2d_bound(problem, longest_sum(problem), 3);
    const auto rows = static_cast<double>(problem.n) * static_cast<double>(P(problem)) *
                      static_cast<double>(divide_up(Q(problem), tile_columns));
    return conv2d_bound(problem, rows + static_cast<double>(tile_columns), 3);
  }
  static double cost(const Conv2dProblem& problem) {
    const Conv2dShape g(problem);
    const std::int64_t of_group = problem.pass == Pass::backward_data ? g.c_group : g.k_group,
                       width = problem.pass == Pass::backward_data ? g.w : g.q;
    // A step of a tile takes this many multiply-adds' time for each of its channels, and for each column it gathers; of
    // the filter, for each element of y too. A tile takes so many beside its steps.
    constexpr double channel = 3.5 * tile_columns, gathered = 160, of_tile = 4e4;
    const double channels = static_cast<double>(std::min(of_group, tile_channels));
    const double columns = static_cast<double>(std::min(width, tile_columns));
    const bool filter = problem.pass == Pass::backward_filter;
    const double step = channel * channels + gathered * columns * (filter ? 1 + channels : 1);
    const double useful = channels * columns;
    const double rows = static_cast<double>(problem.n) *
                        static_cast<double>(problem.pass == Pass::backward_data ? g.h : g.p) *
                        static_cast<double>(divide_up(width, tile_columns)),
                 tiles = rows * static_cast<double>(g.groups * divide_up(of_group, tile_channels));
    return of_tile * tiles + multiply_adds(problem) *
                                 (problem.pass == Pass::backward_data ? static_cast<double>(g.stride_w) : 1) * step /
                                 useful;
  }
};

}  // namespace

const Conv2dSolver& conv2d_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
