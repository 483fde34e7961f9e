#include "devices/cuda/cuda_program.h"

#include <fmt/format.h>

namespace omniconv::devices::cuda {

CudaCode::CudaCode(std::shared_ptr<SharedContext> context, const std::string& image, std::string origin)
    : context_(std::move(context)), origin_(std::move(origin)) {
  if (const CUresult code = api().ModuleLoadData(&module_, image.c_str()); code != CUDA_SUCCESS)
    throw call_error(fmt::format("{}: cuModuleLoadData", origin_), code);
}

CudaCode::~CudaCode() {
  if (api().CtxPushCurrent(context_->get()) != CUDA_SUCCESS) return;
  CUcontext popped = nullptr;
  api().ModuleUnload(module_);
  api().CtxPopCurrent(&popped);
}

CUfunction CudaCode::kernel(const char* name, std::span<const std::size_t> arguments,
                            std::int64_t local_memory_bytes) const {
  const Kernel& kernel = find(name);
  allow_local_memory(kernel, local_memory_bytes);
  if (!kernel.parameters_known) return kernel.function;
  if (arguments.size() != kernel.parameters.size())
    throw environment_error(fmt::format("cuLaunchKernel ({}): it takes {} arguments, not {}", name,
                                        kernel.parameters.size(), arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] != kernel.parameters[i])
      throw environment_error(fmt::format("cuLaunchKernel ({}): argument {} has {} bytes, not {}", name, i,
                                          kernel.parameters[i], arguments[i]));
  return kernel.function;
}

void CudaCode::allow_local_memory(const Kernel& kernel, std::int64_t bytes) const {
  if (bytes <= kernel.local_memory_bytes) return;
  const std::lock_guard lock(mutex_);
  if (bytes <= kernel.local_memory_bytes) return;
  if (const CUresult code = api().FuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   static_cast<int>(bytes));
      code != CUDA_SUCCESS)
    throw call_error(fmt::format("cuFuncSetAttribute ({}, {} bytes of local memory)", kernel.name, bytes), code);
  kernel.local_memory_bytes = bytes;
}

std::int64_t CudaCode::resident_groups(const char* name, std::int64_t group_items,
                                       std::int64_t local_memory_bytes) const {
  const Current current(context_->get());
  const Kernel& kernel = find(name);
  allow_local_memory(kernel, local_memory_bytes);
  int groups = 0;
  check("cuOccupancyMaxActiveBlocksPerMultiprocessor",
        api().OccupancyMaxActiveBlocksPerMultiprocessor(&groups, kernel.function, static_cast<int>(group_items),
                                                        static_cast<std::size_t>(local_memory_bytes)));
  return groups;
}

const CudaCode::Kernel* CudaCode::find_known(const char* name) const {
  for (const Kernel* kernel = first_.load(std::memory_order_acquire); kernel; kernel = kernel->next.get())
    if (kernel->name == name) return kernel;
  return nullptr;
}

const CudaCode::Kernel& CudaCode::find(const char* name) const {
  if (const Kernel* const known = find_known(name)) return *known;
  const std::lock_guard lock(mutex_);
  if (const Kernel* const known = find_known(name)) return *known;
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->parameters_known = api().FuncGetParamInfo != nullptr;
  if (const CUresult code = api().ModuleGetFunction(&kernel->function, module_, name); code != CUDA_SUCCESS)
    throw call_error(fmt::format("cuModuleGetFunction ({})", name), code);
  for (std::size_t offset = 0, size = 0;
       kernel->parameters_known &&
       api().FuncGetParamInfo(kernel->function, kernel->parameters.size(), &offset, &size) == CUDA_SUCCESS;)
    kernel->parameters.push_back(size);
  kernel->next = std::move(owned_);
  owned_ = std::move(kernel);
  first_.store(owned_.get(), std::memory_order_release);
  return *owned_;
}

CudaProgram::CudaProgram(std::unique_ptr<const CudaCode> code, double seconds,
                         std::shared_future<std::string> optimised)
    : compile_seconds_(seconds),
      quick_or_only_(std::move(code)),
      code_(quick_or_only_.get()),
      image_(std::move(optimised)) {}

std::int64_t CudaProgram::resident_groups(const char* kernel, std::int64_t group_items,
                                          std::int64_t local_memory_bytes) const {
  await_optimised();
  return code().resident_groups(kernel, group_items, local_memory_bytes);
}

void CudaProgram::await_optimised() const {
  if (is_optimised()) return;
  const std::string& image = image_.get();
  const std::lock_guard lock(mutex_);
  if (is_optimised()) return;
  const std::shared_ptr<SharedContext>& context = quick_or_only_->context();
  const Current current(context->get());
  optimised_ = std::make_unique<const CudaCode>(context, image, quick_or_only_->origin());
  code_.store(optimised_.get(), std::memory_order_release);
}

void CudaProgram::prepare(std::uint64_t submission) const {
  if (is_optimised()) return;
  std::uint64_t first = 0;
  if (!first_submission_.compare_exchange_strong(first, submission) && first != submission) await_optimised();
}

}  // namespace omniconv::devices::cuda
