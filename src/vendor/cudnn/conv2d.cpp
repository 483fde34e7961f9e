// conv2d by cuDNN: the fastest of all its ways, found by timing each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "operations/conv2d/conv2d.h"
#include "vendor/cudnn/convolution.h"
#include "vendor/handles.h"
#include "vendor/vendor.h"

namespace omniconv::vendor::cudnn {
namespace {

using operations::Answer;
using operations::DevicePointer;
namespace cuda = devices::cuda;

CudnnHandle& handle_of(const devices::Device& device, int number = 0) {
  return vendor::handle_of<cudnnHandle_t>(
      device,
      [] {
        cudnnHandle_t made = nullptr;
        check("cudnnCreate", api().Create(&made));
        return made;
      },
      number);
}

// What was fastest, of how many.
struct Found {
  std::shared_ptr<const Convolution> convolution;
  double seconds = 0;
  int tried = 0;
};

// Times everything on arrays of its own.
class Search {
 public:
  Search(const Conv2dProblem& problem, const DevicePointer& device, std::int64_t most_workspace)
      : problem_(problem), device_(device), most_workspace_(most_workspace) {
    const Conv2dElements elements = elements_of(problem);
    const std::int64_t size = size_of(problem.type);
    for (const std::int64_t count : {elements.x, elements.w, elements.y})
      buffers_.push_back(device->allocate(count * size));
    cuda::check("cuStreamCreate", cuda::api().StreamCreate(&stream_, cuda::CU_STREAM_NON_BLOCKING));
    for (cuda::CUevent& event : events_)
      cuda::check("cuEventCreate", cuda::api().EventCreate(&event, cuda::CU_EVENT_DEFAULT));
    // Bytes that are small numbers in every type: data decide how fast a GPU's clock runs, but for all ways alike.
    for (const std::shared_ptr<devices::Buffer>& buffer : buffers_)
      cuda::check("cuMemsetD8Async",
                  cuda::api().MemsetD8Async(address(buffer), 0x3B, static_cast<std::size_t>(buffer->bytes()), stream_));
  }
  ~Search() {
    for (const cuda::CUevent event : events_)
      if (event != nullptr) cuda::api().EventDestroy(event);
    cuda::api().StreamDestroy(stream_);
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  Found run() {
    for (const auto& convolution : engines()) {
      if (is_past(most_seconds)) break;
      try_out(convolution);
    }
    if (is_past(most_seconds)) return best_;
    reserve(most_workspace_ / 2);
    for (const auto& convolution :
         best_algorithm_for(problem_, handle_of(*device_), stream_, arrays(), workspace_ ? workspace_->bytes() : 0))
      try_out(convolution);
    return best_;
  }

 private:
  static constexpr double most_seconds = 5;
  static constexpr int repetitions = 5;
  static constexpr int most_threads = 8;  // each has a handle, which takes memory of the device

  bool is_past(double seconds) const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count() > seconds;
  }

  // In the order of the heuristics, which list the fastest first. Several threads make them at once, and nothing is
  // timed meanwhile.
  Convolutions engines() const {
    std::map<std::size_t, std::shared_ptr<const Convolution>> made;
    std::mutex mutex;
    std::atomic<std::size_t> next = 0;
    const auto work = [&](int number) {
      try {
        const cuda::Current current(static_cast<const cuda::CudaDevice&>(*device_).context()->get());
        const std::vector<MakeConvolution> all = engines_for(problem_, handle_of(*device_, number));
        for (std::size_t i = next++; i < all.size() && !is_past(most_seconds / 2); i = next++)
          if (const auto convolution = all[i](most_workspace_)) {
            const std::lock_guard lock(mutex);
            made[i] = convolution;
          }
      } catch (const std::exception&) {  // no handle: the others make what this thread would have made
      }
    };
    {
      std::vector<std::jthread> threads;
      const int count = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most_threads);
      for (int number = 1; number < count; ++number) threads.emplace_back(work, number);
      work(0);
    }
    Convolutions in_order;
    for (const auto& [place, convolution] : made) in_order.push_back(convolution);
    return in_order;
  }

  static cuda::CUdeviceptr address(const std::shared_ptr<devices::Buffer>& buffer) {
    return buffer ? buffer->place().address : 0;
  }
  Arrays arrays() const {
    const auto at = [](const std::shared_ptr<devices::Buffer>& buffer) {
      return reinterpret_cast<void*>(address(buffer));
    };
    return {at(buffers_[0]), at(buffers_[1]), at(buffers_[2]), at(workspace_)};
  }
  // A workspace of so much, or of what there is.
  void reserve(std::int64_t bytes) {
    if (bytes <= 0 || (workspace_ && workspace_->bytes() >= bytes)) return;
    workspace_.reset();
    try {
      workspace_ = device_->allocate(bytes);
    } catch (const Error&) {
    }
  }

  // One that is half as slow again as the best is given up after its second run.
  void try_out(const std::shared_ptr<const Convolution>& convolution) {
    reserve(convolution->workspace_bytes());
    if (convolution->workspace_bytes() > (workspace_ ? workspace_->bytes() : 0)) return;
    ++best_.tried;
    Run run;
    try {
      run = convolution->on(arrays());
    } catch (const Error&) {
      return;
    }
    double least = 1e30;
    for (int i = 0; i <= repetitions; ++i) {
      const double seconds = time(run);
      if (seconds < 0) return;
      if (i > 0) least = std::min(least, seconds);
      if (best_.convolution != nullptr && least > 1.5 * best_.seconds && i > 0) return;
    }
    if (best_.convolution == nullptr || least < best_.seconds) {
      best_.convolution = convolution;
      best_.seconds = least;
    }
  }
  // Negative where it fails.
  double time(const Run& run) const {
    const cuda::Api& driver = cuda::api();
    float milliseconds = 0;
    if (driver.EventRecord(events_[0], stream_) != cuda::CUDA_SUCCESS) return -1;
    const cudnnStatus_t status = run(stream_);
    cuda::check("cuEventRecord", driver.EventRecord(events_[1], stream_));
    cuda::check("cuEventSynchronize", driver.EventSynchronize(events_[1]));
    cuda::check("cuEventElapsedTime", driver.EventElapsedTime(&milliseconds, events_[0], events_[1]));
    return status == CUDNN_STATUS_SUCCESS ? milliseconds * 1e-3 : -1;
  }

  const Conv2dProblem& problem_;
  DevicePointer device_;
  std::int64_t most_workspace_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  cuda::CUstream stream_ = nullptr;
  std::array<cuda::CUevent, 2> events_{};
  std::vector<std::shared_ptr<devices::Buffer>> buffers_;
  std::shared_ptr<devices::Buffer> workspace_;
  Found best_;
};

// Each problem is searched once in a process, for each limit of the workspace (negative: none).
Found search(const Conv2dProblem& problem, const DevicePointer& device, std::int64_t workspace_limit) {
  static std::mutex mutex;
  static std::map<std::string, Found> known;
  const std::lock_guard lock(mutex);
  Conv2dProblem nameless = problem;
  nameless.name.clear();
  const std::string key = fmt::format("{} {} {}", device->info().id, workspace_limit, to_text(Problem(nameless)));
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const cuda::Current current(static_cast<const cuda::CudaDevice&>(*device).context()->get());
  const std::int64_t most = device->free_bytes() / 4;
  const std::int64_t most_workspace = workspace_limit < 0 ? most : std::min(workspace_limit, most);
  return known[key] = Search(nameless, device, most_workspace).run();
}

class Plan final : public operations::Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, std::shared_ptr<const Convolution> convolution, DevicePointer device)
      : Conv2dPlanBody(problem), convolution_(std::move(convolution)), device_(std::move(device)) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const Arrays arrays = {address_of(run.x), address_of(run.w), address_of(run.y), address_of({run.workspace, 0})};
    for (const void* const address : {arrays.x, arrays.w, arrays.y})
      if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
        throw bad_input("cuDNN reads and writes arrays at multiples of 16 bytes: place them so");
    const cuda::Current current(static_cast<const cuda::CudaDevice&>(*device_).context()->get());
    sequence.call_native(
        devices::NativeCall([self = shared_from_this(), held = run, ready = convolution_->on(arrays)](void* stream) {
          check("a convolution of cuDNN", ready(static_cast<CUstream>(stream)));
        }),
        true);
  }

 private:
  std::shared_ptr<const Convolution> convolution_;
  DevicePointer device_;
};

class Solver final : public operations::Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/cudnn/gpu.1"; }
  operations::SolverRole role() const override { return operations::SolverRole::vendor; }

  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (!is_cuda(*device)) return "cuDNN is for CUDA devices";
    if (problem.type == DataType::f64) return "is not asked for f64";
    if (problem.bias || problem.relu) return "is compared without bias and relu";
    std::string why_not;
    if (find_api(&why_not) == nullptr) return why_not + "; cuDNN 9 is needed";
    Found found;
    try {
      found = search(problem, device, request.max_workspace_bytes);
    } catch (const Error& error) {
      return fmt::format("cuDNN failed: {}", error.what());
    }
    if (found.convolution == nullptr) return fmt::format("cuDNN has no way to compute it ({} tried)", found.tried);
    return operations::Offer{
        .cost = {operations::multiply_adds(problem)},
        .bound = unstated_bound(),
        .workspace_bytes = found.convolution->workspace_bytes(),
        .uses_only_fma = false,
        .is_deterministic = found.convolution->is_deterministic(),
        .tuning = found.convolution->name(),
        .plan = [=] { return std::make_shared<Plan>(problem, found.convolution, device); },
    };
  }
};

}  // namespace
}  // namespace omniconv::vendor::cudnn

namespace omniconv::vendor {

std::string cudnn_version() {
  std::string why_not;
  const cudnn::Api* const api = cudnn::find_api(&why_not);
  if (api == nullptr) return {};
  const std::size_t version = api->GetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

const operations::Solver& cudnn_conv2d() {
  static const cudnn::Solver solver;
  return solver;
}

}  // namespace omniconv::vendor
