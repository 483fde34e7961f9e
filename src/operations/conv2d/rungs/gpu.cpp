// Convolutions as the classic study makes them, on OpenCL and CUDA devices: columns, products, and columns back.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "embedded/rung_columns.kernel.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"
#include "operations/gpu_limits.h"
#include "operations/rungs/products.h"
#include "operations/workspace_limit.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

std::string problem_refusal(const Conv2dProblem& problem) {
  if (std::string reason = rung_type_refusal(problem.type); !reason.empty()) return reason;
  if (problem.layout != Layout::nchw) return "the study's images are nchw";
  if (problem.groups != 1 || problem.dilation_h != 1 || problem.dilation_w != 1 || problem.flip)
    return "the study's filters have no groups, no dilation, and are not turned";
  if (problem.bias || problem.relu || problem.accumulate)
    return "the study computes a bias, relu or sum by a launch of its own";
  return {};
}

// Fully connected: filters as large as the images, so that these are rows of a matrix as they lie.
bool is_dense(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  return g.p == 1 && g.q == 1 && g.r == g.h && g.s == g.w && g.pad_top == 0 && g.pad_left == 0;
}

// Images whose columns are in the workspace at once.
struct Parts {
  std::int64_t images = 1, image_bytes = 0;

  Parts(const Conv2dProblem& problem, std::int64_t limit) {
    const Conv2dShape g(problem);
    images = g.n;
    if (is_dense(problem)) return;
    constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
    const char* const what = "the columns of an image";
    image_bytes = checked_multiply(checked_multiply(g.c * g.r, g.s * 4, what), g.p * g.q, what);
    keep_to_limit(
        limit < 0 ? most_bytes : std::min(limit, most_bytes), g.n, [&](std::int64_t some) { images = some; },
        [&] { return bytes(); });
  }
  std::int64_t bytes() const { return checked_multiply(images, image_bytes, "the columns of a part"); }
  std::int64_t count(const Conv2dProblem& problem) const { return divide_up(problem.n, images); }
};

RungProduct dense_product(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  const std::int64_t taps = g.c * g.r * g.s;
  RungProduct product;
  switch (problem.pass) {
    case Pass::forward:  // y[n, k] = x[n, taps] * w[k, taps]'
      product.transpose_b = true;
      product.m = g.n, product.n = g.k, product.k = taps;
      product.lda = taps, product.ldb = taps, product.ldc = g.k;
      break;
    case Pass::backward_data:  // x[n, taps] = y[n, k] * w[k, taps]
      product.m = g.n, product.n = taps, product.k = g.k;
      product.lda = g.k, product.ldb = taps, product.ldc = taps;
      break;
    case Pass::backward_filter:  // w[k, taps] = y[n, k]' * x[n, taps]
      product.transpose_a = true;
      product.m = g.k, product.n = taps, product.k = g.n;
      product.lda = g.k, product.ldb = taps, product.ldc = taps;
      break;
  }
  return product;
}

// Of the columns of so many images.
RungProduct product_of(const Conv2dProblem& problem, std::int64_t images, bool is_first) {
  const Conv2dShape g(problem);
  const std::int64_t taps = g.c * g.r * g.s, pixels = g.p * g.q;
  RungProduct product;
  switch (problem.pass) {
    case Pass::forward:  // y[k, pixels] = w[k, taps] * columns[taps, pixels], of each image
      product.m = g.k, product.n = pixels, product.k = taps;
      product.lda = taps, product.ldb = pixels, product.ldc = pixels;
      product.batch = images, product.batch_b = taps * pixels, product.batch_c = g.k * pixels;
      break;
    case Pass::backward_data:  // columns[taps, pixels] = w[k, taps]' * y[k, pixels], of each image
      product.transpose_a = true;
      product.m = taps, product.n = pixels, product.k = g.k;
      product.lda = taps, product.ldb = pixels, product.ldc = pixels;
      product.batch = images, product.batch_b = g.k * pixels, product.batch_c = taps * pixels;
      break;
    case Pass::backward_filter:  // w[k, taps] = sum over images of y[k, pixels] * columns[taps, pixels]'
      product.transpose_b = true;
      product.m = g.k, product.n = taps, product.k = pixels;
      product.lda = pixels, product.ldb = pixels, product.ldc = taps;
      product.depth = images, product.depth_a = g.k * pixels, product.depth_b = taps * pixels;
      product.accumulates = !is_first;
      break;
  }
  return product;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const RungTile& tile, const Parts& parts)
      : Conv2dPlanBody(problem), shape_(problem), tile_(tile), parts_(parts) {
    const RungProduct product = is_dense(problem) ? dense_product(problem) : product_of(problem, 1, true);
    products_ = std::make_unique<RungProducts>(device, tile, product.transpose_a, product.transpose_b);
    if (is_dense(problem)) return;
    std::vector<devices::Definition> definitions = tile.definitions();
    for (const auto& [name, value] : {std::pair("R", shape_.r), std::pair("S", shape_.s),
                                      std::pair("STRIDE_H", shape_.stride_h), std::pair("STRIDE_W", shape_.stride_w)})
      definitions.push_back({name, std::to_string(value)});
    columns_ = device.build(std::string(kernels::rung_tiles()) + std::string(rung_columns_kernel), definitions);
  }
  double compile_seconds() const override {
    return products_->compile_seconds() + (columns_ ? columns_->compile_seconds() : 0);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    if (!columns_) return append_product(sequence, dense_product(problem()), run.x, run.w, run.y);
    for (std::int64_t n = 0; n < shape_.n; n += parts_.images) {
      const std::int64_t images = std::min(parts_.images, shape_.n - n);
      const Operand x{run.x.buffer, run.x.offset_bytes + shape_.x_at(n, 0, 0, 0) * 4},
          y{run.y.buffer, run.y.offset_bytes + shape_.y_at(n, 0, 0, 0) * 4}, columns{run.workspace};
      const RungProduct product = product_of(problem(), images, n == 0);
      if (problem().pass != Pass::backward_data) append_columns(sequence, "rung_im2col", images, x, columns);
      append_product(sequence, product, columns, run.w, y);
      if (problem().pass == Pass::backward_data) append_columns(sequence, "rung_col2im", images, columns, x);
    }
  }

 private:
  // x are images that are rows, or their columns.
  void append_product(devices::Sequence& sequence, const RungProduct& product, const Operand& x, const Operand& w,
                      const Operand& y) const {
    const bool rows = !columns_;
    switch (problem().pass) {
      case Pass::forward: return products_->append(sequence, product, rows ? x : w, rows ? w : x, y);
      case Pass::backward_data: return products_->append(sequence, product, rows ? y : w, rows ? w : y, x);
      case Pass::backward_filter: return products_->append(sequence, product, y, x, w);
    }
  }

  void append_columns(devices::Sequence& sequence, const char* kernel, std::int64_t images, const Operand& from,
                      const Operand& to) const {
    const Conv2dShape& g = shape_;
    const bool is_back = problem().pass == Pass::backward_data;
    const std::int64_t planes = images * g.c, rows = is_back ? g.h : g.p, columns = is_back ? g.w : g.q,
                       of_plane = divide_up(rows, tile_.m) * divide_up(columns, tile_.n),
                       results = planes * rows * columns * (is_back ? 1 : g.r * g.s),
                       all = tile_.is_naive() ? divide_up(results, tile_.group()) : planes * of_plane;
    launch_groups(all, [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 12> arguments = {from.buffer.impl().get(),
                                                                 from.offset_bytes / 4,
                                                                 to.buffer.impl().get(),
                                                                 to.offset_bytes / 4,
                                                                 planes,
                                                                 g.h,
                                                                 g.w,
                                                                 g.p,
                                                                 g.q,
                                                                 g.pad_top,
                                                                 g.pad_left,
                                                                 first};
      sequence.launch(columns_, kernel, {{groups * tile_.group()}, {tile_.group()}}, arguments);
    });
  }

  Conv2dShape shape_;
  RungTile tile_;
  Parts parts_;
  std::unique_ptr<RungProducts> products_;
  std::shared_ptr<devices::Program> columns_;  // none of fully connected layers
};

// Of what is larger: a product's tiles, or the patch of x that a tile of pixels reads.
std::int64_t local_bytes(const Conv2dProblem& problem, const RungTile& tile) {
  if (tile.is_naive()) return 0;
  const std::int64_t products = rung_product_bytes(tile);
  if (is_dense(problem) || problem.pass == Pass::backward_data) return products;
  const char* const what = "the patch of a tile";
  const std::int64_t rows = checked_multiply(tile.m - 1, problem.stride_h, what) + problem.r,
                     columns = checked_multiply(tile.n - 1, problem.stride_w, what) + problem.s;
  return std::max(products, checked_multiply(checked_multiply(rows, columns, what), 4, what));
}

// README.md derives them: dependent additions.
double chain_of(const Conv2dProblem& problem, const Parts& parts) {
  const double products = problem.pass == Pass::backward_data ? static_cast<double>(problem.k) : longest_sum(problem);
  if (is_dense(problem)) return products;
  const double taps = static_cast<double>(problem.r) * static_cast<double>(problem.s);
  return problem.pass == Pass::backward_data     ? products + taps
         : problem.pass == Pass::backward_filter ? products + static_cast<double>(parts.count(problem))
                                                 : products;
}

class RungsGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/rungs/gpu.1"; }
  SolverRole role() const override { return SolverRole::study; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (std::string reason = problem_refusal(problem); !reason.empty()) return reason;
    const RungTile tile = rung_tile_of(request);
    if (std::string reason = rung_refusal(*device, tile, local_bytes(problem, tile)); !reason.empty()) return reason;
    const Parts parts(problem, request.max_workspace_bytes);
    const double columns = 2 * static_cast<double>(parts.image_bytes) * static_cast<double>(problem.n),
                 launches = is_dense(problem) ? 1 : 2 * static_cast<double>(parts.count(problem));
    return Offer{
        .cost = rung_cost(*device, least_bytes(problem) + columns, rung_product_cost(tile) * multiply_adds(problem),
                          launches),
        .bound = conv2d_bound(problem, chain_of(problem, parts)),
        .workspace_bytes = parts.image_bytes > 0 ? parts.bytes() : 0,
        .tuning = tile.tuning(),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile, parts); },
    };
  }
  std::span<const Tunable> tunables() const override { return rung_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
