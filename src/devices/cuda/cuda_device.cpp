#include "devices/cuda/cuda_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>

#include "core/build_info.h"
#include "devices/buffer_size.h"
#include "devices/cuda/cuda_program.h"
#include "devices/cuda/cuda_queue.h"
#include "devices/cuda/cuda_recording.h"
#include "devices/cuda/cuda_steps.h"
#include "devices/gpu_peaks.h"

namespace omniconv::devices::cuda {
namespace {

struct DeviceMemory final : Memory {
  ~DeviceMemory() override {
    if (address != 0 && api().CtxPushCurrent(context->get()) == CUDA_SUCCESS) {
      CUcontext popped = nullptr;
      api().MemFree(address);
      api().CtxPopCurrent(&popped);
    }
  }
};

// The caller's host memory, page-locked unless it was so before.
struct MappedMemory final : Memory {
  ~MappedMemory() override {
    if (registered && api().CtxPushCurrent(context->get()) == CUDA_SUCCESS) {
      CUcontext popped = nullptr;
      api().MemHostUnregister(borrowed);
      api().CtxPopCurrent(&popped);
    }
  }
  bool registered = false;
};

class LockedMemory final : public HostMemory {
 public:
  LockedMemory(std::shared_ptr<SharedContext> context, void* memory, std::int64_t bytes)
      : context_(std::move(context)), memory_(static_cast<std::byte*>(memory)), bytes_(bytes) {}
  ~LockedMemory() override {
    if (api().CtxPushCurrent(context_->get()) != CUDA_SUCCESS) return;
    CUcontext popped = nullptr;
    api().MemFreeHost(memory_);
    api().CtxPopCurrent(&popped);
  }
  std::byte* data() override { return memory_; }
  std::int64_t bytes() const override { return bytes_; }
  bool is_page_locked() const override { return true; }

 private:
  std::shared_ptr<SharedContext> context_;
  std::byte* memory_;
  std::int64_t bytes_;
};

// Compilations behind quick starts.
class Background {
 public:
  // On a thread of its own, or by whoever waits for it where none is to be had.
  std::shared_future<std::string> begin(const std::function<std::string()>& compile) {
    const auto counted = [this, compile] {
      const std::shared_ptr<void> until_then(nullptr, [this](void*) { count(-1); });
      return compile();
    };
    count(1);
    try {
      return std::async(std::launch::async, counted).share();
    } catch (const std::exception&) {
      count(-1);
      return std::async(std::launch::deferred, compile).share();
    }
  }

  // From now on the end of the process waits for them, also for those of contexts that it never gives up, before what
  // the compiler registered so far is called: parts of NVRTC end, some of which it makes when it first compiles.
  void outlast_the_process() {
    static const int registered = std::atexit([] { background().await(); });
    static_cast<void>(registered);
  }
  static Background& background() {
    static auto& all = *new Background;  // which no end of the process takes from threads
    return all;
  }

 private:
  void count(int more) {
    const std::lock_guard lock(mutex_);
    under_way_ += more;
    changed_.notify_all();
  }

  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0 || ::getpid() != process_; });  // a fork has no such threads
  }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
};

}  // namespace

SharedContext::SharedContext(CUdevice device, const DeviceFacts& facts)
    : device_(device), capability_(facts.compute_capability), has_overlap_(facts.has_overlap) {
  check("cuDevicePrimaryCtxRetain", api().DevicePrimaryCtxRetain(&context_, device));
}

SharedContext::~SharedContext() {
  api().DevicePrimaryCtxRelease(device_);
}

void SharedContext::reach(const SharedContext& other) {
  const std::lock_guard lock(mutex_);
  if (std::find(reached_.begin(), reached_.end(), other.context_) != reached_.end()) return;
  reached_.push_back(other.context_);
  int can = 0;
  if (api().DeviceCanAccessPeer(&can, device_, other.device_) != CUDA_SUCCESS || can == 0) return;
  const Current current(context_);
  api().CtxEnablePeerAccess(other.context_, 0);  // refused where others did it before, or the hardware has no more room
}

CudaDevice::CudaDevice(DeviceFacts facts, CUdevice device, const Nvrtc& nvrtc, std::shared_ptr<ProgramCache> cache,
                       bool starts_quickly)
    : Device(std::move(facts)),
      nvrtc_(nvrtc),
      context_(std::make_shared<SharedContext>(device, facts_)),
      cache_(std::move(cache)),
      starts_quickly_(starts_quickly && nvrtc.has_quick_code()) {}

std::shared_ptr<Buffer> CudaDevice::allocate(std::int64_t bytes) {
  check_buffer_size(bytes, info());
  const Current current(context_->get());
  auto memory = std::make_shared<DeviceMemory>();
  memory->context = context_;
  // CUDA knows no empty buffers.
  const CUresult code = api().MemAlloc(&memory->address, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    throw out_of_memory(fmt::format(
        "device {} has no room for a buffer of {} bytes: {} of its {} bytes are free; use smaller parts, or "
        "end what else uses it",
        info().id, bytes, free_bytes(), info().memory_bytes));
  if (code != CUDA_SUCCESS) throw call_error(fmt::format("device {}: cuMemAlloc of {} bytes", info().id, bytes), code);
  return std::make_shared<CudaBuffer>(shared_from_this(), std::move(memory), bytes);
}

std::shared_ptr<Buffer> CudaDevice::borrow(void* memory, std::int64_t bytes) {
  check_buffer_size(bytes, info());
  if (bytes == 0) return allocate(0);
  if (!memory) throw bad_input(fmt::format("borrowing {} bytes of host memory at a null pointer", bytes));
  const Current current(context_->get());
  auto mapped = std::make_shared<MappedMemory>();
  mapped->context = context_;
  mapped->borrowed = static_cast<std::byte*>(memory);
  const CUresult code = api().MemHostRegister(memory, static_cast<std::size_t>(bytes),
                                              CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  mapped->registered = code == CUDA_SUCCESS;
  if (code != CUDA_SUCCESS && code != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    throw call_error(fmt::format("device {}: cuMemHostRegister of {} bytes", info().id, bytes), code);
  check("cuMemHostGetDevicePointer", api().MemHostGetDevicePointer(&mapped->address, memory, 0));
  return std::make_shared<CudaBuffer>(shared_from_this(), std::move(mapped), bytes);
}

std::shared_ptr<Queue> CudaDevice::make_queue(const QueueOptions& options) {
  return std::make_shared<CudaQueue>(info().id, context_, options);
}

std::shared_ptr<const Recording> CudaDevice::record(std::shared_ptr<const Sequence> sequence) {
  if (sequence) check_steps(*sequence, *context_, info().id);
  return std::make_shared<CudaRecording>(std::move(sequence), info().id, context_);
}

std::shared_ptr<Program> CudaDevice::build(std::string_view text, std::span<const Definition> definitions,
                                           const BuildOptions& options) {
  if (const std::string reason = nvrtc_.target_refusal(options.target, facts_.compute_capability); !reason.empty())
    throw bad_input(fmt::format("device {}: {}", info().id, reason));
  const std::string key = key_of(text, definitions, options.target);
  return programs_.find_or_build(key, [&] { return build_anew(text, definitions, options, key); });
}

void CudaDevice::run_builds(std::span<const std::function<void()>> builds) {
  std::vector<std::future<void>> under_way;  // whose destructors wait, so that no build outlives what it refers to
  for (const std::function<void()>& one : builds) under_way.push_back(std::async(std::launch::async, one));
  for (std::future<void>& one : under_way) one.get();
}

std::shared_ptr<Program> CudaDevice::build_anew(std::string_view text, std::span<const Definition> definitions,
                                                const BuildOptions& options, const std::string& key) {
  const Current current(context_->get());
  const std::string origin = fmt::format("device {}: code by NVRTC {}", info().id, nvrtc_.version());
  if (cache_)
    if (const std::optional<std::string> image = cache_->find(key)) {
      try {
        return std::make_shared<CudaProgram>(std::make_unique<const CudaCode>(context_, *image, origin), 0);
      } catch (const Error&) {
        cache_->discard(key, fmt::format("device {} does not take it", info().id));
      }
    }
  // Holds what it needs: it may be called when the device is gone.
  const auto compile = [nvrtc = &nvrtc_, id = info().id, text = std::string(text),
                        definitions = std::vector<Definition>(definitions.begin(), definitions.end()),
                        capability = facts_.compute_capability,
                        target = options.target](Nvrtc::Effort effort, double expected_seconds) {
    try {
      return nvrtc->compile(text, definitions, capability, target, effort, expected_seconds).image;
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("device {}: {}", id, error.what()));
    }
  };
  std::shared_future<std::string> optimised;
  if (starts_quickly_ && options.starts_quickly && !makes_several_plans())
    optimised = Background::background().begin([compile, cache = cache_, key] {
      std::string image = compile(Nvrtc::Effort::full, 0);  // nobody waits for it yet
      try {
        if (cache) cache->store(key, image);
      } catch (...) {  // of who is warned: the code is there all the same
      }
      return image;
    });
  const auto start = std::chrono::steady_clock::now();
  const std::string image =
      compile(optimised.valid() ? Nvrtc::Effort::quick : Nvrtc::Effort::full, options.expected_seconds);
  auto code = std::make_unique<const CudaCode>(context_, image, origin);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (optimised.valid())
    Background::background().outlast_the_process();
  else if (cache_)
    cache_->store(key, image);
  return std::make_shared<CudaProgram>(std::move(code), seconds.count(), std::move(optimised));
}

std::string CudaDevice::key_of(std::string_view text, std::span<const Definition> definitions,
                               const std::string& target) const {
  const std::string options =
      fmt::format("{}", fmt::join(nvrtc_.options(definitions, facts_.compute_capability, target), " "));
  // The driver's text names the compiler's version and the device's capability too.
  const std::string_view parts[] = {"omniconv",    build_version(), "CUDA",    info().name,
                                    info().driver, options,         prelude(), text};
  return ProgramCache::key(parts);
}

// Its registers hold one float each.
Device::Peaks CudaDevice::measure_peaks(double seconds) {
  return measure_gpu_peaks(*this, 1, seconds);
}
std::shared_ptr<const Sequence> CudaDevice::busy_work(double seconds) {
  return gpu_busy_work(*this, 1, seconds);
}

std::int64_t CudaDevice::free_bytes() {
  const Current current(context_->get());
  std::size_t free = 0, total = 0;
  check("cuMemGetInfo", api().MemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
}

std::shared_ptr<HostMemory> CudaDevice::allocate_host(std::int64_t bytes) {
  if (bytes < 0) throw bad_input(fmt::format("host memory of {} bytes: the size must be at least 0", bytes));
  const Current current(context_->get());
  void* memory = nullptr;
  const CUresult code =
      api().MemHostAlloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), CU_MEMHOSTALLOC_PORTABLE);
  if (code != CUDA_SUCCESS)
    throw call_error(fmt::format("device {}: cuMemHostAlloc of {} bytes", info().id, bytes), code);
  return std::make_shared<LockedMemory>(context_, memory, bytes);
}

}  // namespace omniconv::devices::cuda
