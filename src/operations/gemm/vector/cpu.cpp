// A matrix times a vector on the CPU: rows are read where they lie, once, each by one thread.
#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/vector/rows.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_tiles.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

// c is a column: rows of a times b. Else it is a row: rows of b, which is stored transposed, times a.
bool is_column(const GemmTask& task) {
  return task.problem.n == 1 && !task.problem.transpose_a && (task.problem.transpose_b || task.ldb == 1);
}
bool is_row(const GemmTask& task) {
  return task.problem.m == 1 && task.problem.transpose_b && (!task.problem.transpose_a || task.lda == 1);
}

template <typename Real>
class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, const DevicePointer& device)
      : GemmPlanBody(product), device_(device), cpu_(dynamic_cast<CpuDevice&>(*device)) {
    // As much for each thread, in parts of which each lasts longer than it takes to begin one.
    constexpr std::int64_t fewest_bytes = 1 << 14, most_bytes = 1 << 22;
    const GemmProblem& p = product.problem;
    rows_ = is_column(product) ? p.m : p.n;
    const double row_bytes = static_cast<double>(p.k) * static_cast<double>(size_of(p.type)),
                 all_bytes = static_cast<double>(p.batch) * static_cast<double>(rows_) * row_bytes,
                 part_bytes = std::clamp<double>(all_bytes / cpu_.threads(), fewest_bytes, most_bytes);
    part_ = round_up(static_cast<std::int64_t>(std::clamp(part_bytes / row_bytes, 1.0, static_cast<double>(rows_))),
                     at_once);
  }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, arrays](std::span<const double> scalars) {
                    execute(arrays, scalars[0]);
                  }),
                  std::span(&arrays.alpha, 1));
  }

 private:
  // Rows that go by side by side, or fewer; rows whose sums are kept before they are stored.
  static constexpr std::int64_t at_once = 8, together = 64;

  void execute(const GemmArrays& arrays, double alpha) const {
    const GemmProblem& p = task().problem;
    const std::int64_t of_matrix = divide_up(rows_, part_);
    cpu_.parallel_for(p.batch * of_matrix, [&](std::int64_t i, int) {
      const std::int64_t first = i % of_matrix * part_, end = std::min(rows_, first + part_);
      for (std::int64_t row = first; row < end; row += together)
        multiply(arrays, alpha, i / of_matrix, row, std::min(end, row + together));
    });
  }

  void multiply(const GemmArrays& arrays, double alpha, std::int64_t matrix, std::int64_t first,
                std::int64_t end) const {
    const GemmTask& t = task();
    const bool column = is_column(t);
    const std::int64_t size = size_of(t.problem.type), count = end - first;
    const std::byte *const a = host(arrays.a) + matrix * t.batch_a * size, *const b = host(arrays.b) +
                                                                                      matrix * t.batch_b * size;
    const kernels::VectorRows rows{.rows = column ? a : b,
                                   .vector = column ? b : a,
                                   .type = t.problem.type,
                                   .pitch = column ? t.lda : t.ldb,
                                   .steps = t.problem.k};
    Real sums[together];
    kernels::multiply_rows(rows, first, end, sums);
    if (alpha != 1)
      for (std::int64_t i = 0; i < count; ++i) sums[i] *= static_cast<Real>(alpha);
    // One row of the results where they lie side by side, else one column of them.
    const std::int64_t apart = column ? t.ldc : 1;
    const bool has_own_bias = t.bias == (column ? BiasAlong::rows : BiasAlong::columns);
    const std::byte* const bias =
        t.bias == BiasAlong::none ? nullptr : host(arrays.bias) + (has_own_bias ? first * size : 0);
    const bool is_by_column = has_own_bias == (apart == 1);
    const kernels::GemmFinish finish{.type = t.problem.type,
                                     .output = t.output,
                                     .row_bias = is_by_column ? nullptr : bias,
                                     .column_bias = is_by_column ? bias : nullptr,
                                     .accumulate = t.accumulate,
                                     .relu = t.relu};
    std::byte* const c = host(arrays.c) + (matrix * t.batch_c + first * apart) * size_of(t.output);
    if (apart == 1)
      kernels::finish_tile(finish, sums, count, 1, count, c, count);
    else
      kernels::finish_tile(finish, sums, 1, count, 1, c, apart);
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  std::int64_t rows_, part_;  // of a matrix, and of what a thread takes at a time
};

class VectorCpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/vector/cpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    if (!is_column(task) && !is_row(task))
      return "multiplies rows as they lie with one vector: n is 1, or m is 1 and b is transposed";
    if (task.images) return "multiplies stored matrices";
    if (!task.is_whole) return "is no part of a product whose other parts have more columns";
    if (task.prepared_a || task.prepared_b) return "reads matrices as they lie";
    // Bytes pass while they are multiplied.
    constexpr double begin = 1e5, of_byte = 4, of_row = 30;
    const GemmProblem& p = task.problem;
    const double rows = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n),
                 bytes = rows * static_cast<double>(p.k) * static_cast<double>(size_of(p.type));
    return Offer{
        .cost = {begin + of_row * rows + of_byte * bytes},
        .bound = gemm_bound(task, static_cast<double>(divide_up(p.k, kernels::row_chains)) + 5),  // 5 halves of 32 sums
        .plan = [=]() -> std::shared_ptr<const PlanBody> {
          if (task.problem.type == DataType::f64) return std::make_shared<Plan<double>>(task, device);
          return std::make_shared<Plan<float>>(task, device);
        },
    };
  }
};

}  // namespace

const GemmSolver& gemm_vector_cpu() {
  static const VectorCpu solver;
  return solver;
}

}  // namespace omniconv::operations
