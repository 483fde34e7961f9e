// gemm by cuBLAS, as it chooses itself. Names, values and signatures are those of NVIDIA's cuBLAS reference, versions
// 12 and 13, declared by ourselves so that nothing of it is needed to build.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "operations/gemm/gemm.h"
#include "vendor/handles.h"
#include "vendor/shared_library.h"
#include "vendor/vendor.h"

namespace omniconv::vendor::cublas {
namespace {

using devices::cuda::CUstream;
using operations::Answer;
using operations::DevicePointer;
using operations::GemmArrays;
using operations::GemmTask;
using cublasHandle_t = struct cublasContext*;
using cublasStatus_t = int;

constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;
constexpr int CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14,
              CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_GEMM_DEFAULT = -1;

// The functions, named without their prefix "cublas".
struct Api {
  cublasStatus_t (*Create)(cublasHandle_t*);
  cublasStatus_t (*SetStream)(cublasHandle_t, CUstream);
  const char* (*GetStatusString)(cublasStatus_t);
  cublasStatus_t (*GetProperty)(int, int*);
  cublasStatus_t (*GemmStridedBatchedEx)(cublasHandle_t, int, int, int, int, int, const void*, const void*, int, int,
                                         long long, const void*, int, int, long long, const void*, void*, int, int,
                                         long long, int, int, int);
};

struct Loader {
  Api api{};
  std::string why_not;  // empty: usable
};

const Loader& loader() {
  static const Loader loaded = [] {
    static constexpr const char* names[] = {"libcublas.so.13", "libcublas.so.12"};
    SharedLibrary library(names);
    Loader loader;
    library.bind("cublasCreate_v2", loader.api.Create);
    library.bind("cublasSetStream_v2", loader.api.SetStream);
    library.bind("cublasGetStatusString", loader.api.GetStatusString);
    library.bind("cublasGetProperty", loader.api.GetProperty);
    library.bind("cublasGemmStridedBatchedEx", loader.api.GemmStridedBatchedEx);
    loader.why_not = library.why_not();
    return loader;
  }();
  return loaded;
}

void check(const char* call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw environment_error(fmt::format("{} failed: {} ({})", call, loader().api.GetStatusString(status), status));
}

Handle<cublasHandle_t>& handle_of(const devices::Device& device) {
  return vendor::handle_of<cublasHandle_t>(device, [] {
    cublasHandle_t made = nullptr;
    check("cublasCreate", loader().api.Create(&made));
    return made;
  });
}

int stored_type(DataType type) {
  return type == DataType::f16 ? CUDA_R_16F : type == DataType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

class Plan final : public operations::GemmPlanBody {
 public:
  Plan(const GemmTask& task, DevicePointer device) : GemmPlanBody(task), device_(std::move(device)) {}

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    sequence.call_native(
        devices::NativeCall([self = std::static_pointer_cast<const Plan>(shared_from_this()), arrays](void* stream) {
          self->multiply(arrays, static_cast<CUstream>(stream));
        }),
        !arrays.alpha.is_changing());
  }

 private:
  // cuBLAS reads matrices by columns: what is stored by rows is their transpose, and c' = b' a'.
  void multiply(const GemmArrays& arrays, CUstream stream) const {
    const GemmProblem& p = task().problem;
    const auto alpha = static_cast<float>(arrays.alpha.value()), beta = task().accumulate ? 1.0F : 0.0F;
    const int type = stored_type(p.type);
    Handle<cublasHandle_t>& handle = handle_of(*device_);
    const std::lock_guard one_at_a_time(handle.mutex);
    check("cublasSetStream", loader().api.SetStream(handle.raw, stream));
    check("cublasGemmStridedBatchedEx",
          loader().api.GemmStridedBatchedEx(
              handle.raw, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
              static_cast<int>(p.n), static_cast<int>(p.m), static_cast<int>(p.k), &alpha, address_of(arrays.b), type,
              static_cast<int>(task().ldb), task().batch_b, address_of(arrays.a), type, static_cast<int>(task().lda),
              task().batch_a, &beta, address_of(arrays.c), type, static_cast<int>(task().ldc), task().batch_c,
              static_cast<int>(p.batch), p.type == DataType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
              CUBLAS_GEMM_DEFAULT));
  }

  DevicePointer device_;
};

class Solver final : public operations::GemmSolver {
 public:
  std::string_view id() const override { return "gemm/cublas/gpu.1"; }
  operations::SolverRole role() const override { return operations::SolverRole::vendor; }

  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (!is_cuda(*device)) return "cuBLAS is for CUDA devices";
    const GemmProblem& p = task.problem;
    if (p.type == DataType::f64) return "is not asked for f64";
    if (task.bias != operations::BiasAlong::none || task.relu || task.images || task.prepared_a || task.prepared_b ||
        (task.output != p.type && p.type != DataType::tf32))
      return "is compared on plain products";
    for (const std::int64_t extent : {p.m, p.n, p.k, p.batch, task.lda, task.ldb, task.ldc})
      if (extent > std::numeric_limits<int>::max()) return fmt::format("{} is more than cuBLAS takes here", extent);
    if (!loader().why_not.empty()) return loader().why_not + "; cuBLAS 12 or 13 is needed";
    return operations::Offer{
        .cost = {operations::multiply_adds(p)},
        .bound = unstated_bound(),
        .uses_only_fma = false,
        .plan = [=] { return std::make_shared<Plan>(task, device); },
    };
  }
};

}  // namespace
}  // namespace omniconv::vendor::cublas

namespace omniconv::vendor {

std::string cublas_version() {
  if (!cublas::loader().why_not.empty()) return {};
  std::array<int, 3> parts{};
  for (int i = 0; i < 3; ++i)
    if (cublas::loader().api.GetProperty(i, &parts[static_cast<std::size_t>(i)]) != cublas::CUBLAS_STATUS_SUCCESS)
      return {};
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

const operations::Solver& cublas_gemm() {
  static const cublas::Solver solver;
  return solver;
}

}  // namespace omniconv::vendor
