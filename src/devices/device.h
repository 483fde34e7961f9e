// What every kind of device offers: memory, queues, programs. Knows no operation.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/buffer.h"
#include "devices/device_facts.h"
#include "devices/host_task.h"
#include "devices/recording.h"
#include "devices/sequence.h"
#include "omniconv/context.h"

namespace omniconv::devices {

class Device;

// Memory of the host that a device copies from and to fastest, asynchronously where it is page-locked.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual std::byte* data() = 0;
  virtual std::int64_t bytes() const = 0;
  virtual bool is_page_locked() const { return false; }
};

// Device text compiled for one device. Kernels are found by name.
class Program {
 public:
  virtual ~Program() = default;
  // Of the one time that it was compiled, however many share it; 0 where it was found on disk.
  virtual double compile_seconds() const = 0;
  // How many groups of so many work items of this kernel a compute unit holds at once, by the registers (CUDA: and
  // the memory, which its text declares and which its launch asks for) that they take; 0 where that is not known.
  virtual std::int64_t resident_groups(const char*, std::int64_t /*group_items*/,
                                       std::int64_t /*local_memory_bytes*/ = 0) const {
    return 0;
  }
  // The CUcontext or cl_context that it was built for; null elsewhere.
  virtual const void* context() const { return nullptr; }
};

// In order. Methods may be called from any thread. After an error everything later is skipped, and every wait for the
// work that failed or for later work throws it.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  virtual ~Queue() = default;
  virtual Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) = 0;
  virtual Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) = 0;
  // Where this queue's device and its driver cannot do it, copy_through_host does.
  virtual Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                     std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) = 0;
  // An empty sequence to be filled and submitted, which is used again when nobody holds it any more.
  virtual std::shared_ptr<Sequence> take_sequence();
  // All steps of the sequence, as one submission, which keeps it alive until it is done. Steps that cannot be of this
  // queue's device are refused before anything is submitted.
  virtual Event submit(const std::shared_ptr<const Sequence>& sequence) = 0;
  // The same of a recording of this queue's device, which is kept alive, too.
  virtual Event replay(const std::shared_ptr<const Recording>& recording);
  virtual void finish() = 0;

  // What an Event asks of its queue.
  virtual void wait(std::uint64_t token) = 0;
  virtual double seconds(std::uint64_t token) = 0;
  // Of these seconds, those after the end of a submission of another queue of the device. Queues that cannot tell
  // answer with all of them.
  virtual double seconds_after(std::uint64_t token, Queue& other, std::uint64_t other_token);
  virtual void release(std::uint64_t token) noexcept = 0;

  // A sequence of one launch.
  Event launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
               std::span<const KernelArgument> arguments);
  // From the start of `first` to the end of `last`, both of this queue and submitted in this order.
  virtual Event span(Event first, Event last) = 0;
};
// A sequence of one host function, for the CPU's queue.
Event submit(Queue& queue, HostTask task);

// A text constant of a program: -DNAME=VALUE.
struct Definition {
  std::string name, value;
};

// So many groups of so many work items are to share a compute unit by their registers. 0: as the compiler likes.
struct Occupancy {
  std::int64_t groups = 0, group_items = 0;
};

struct BuildOptions {
  Occupancy occupancy = {};
  // Of CUDA's compiler, such as sm_90a: what this very capability has; empty: the device's usual.
  std::string target = {};
  // What compiling takes, roughly, on a core by itself: of programs that wait for the compiler those that take longest
  // are first.
  double expected_seconds = 0;
  // A context of quick starts (ContextOptions) compiles it quickly, too, at the same time.
  bool starts_quickly = false;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = default;
  const DeviceFacts& facts() const { return facts_; }
  DeviceKind kind() const { return facts_.kind; }
  const DeviceInfo& info() const { return facts_.info; }
  virtual std::shared_ptr<Buffer> allocate(std::int64_t bytes) = 0;
  virtual std::shared_ptr<Buffer> borrow(void* memory, std::int64_t bytes) = 0;
  virtual std::shared_ptr<Queue> make_queue(const QueueOptions& options = {}) = 0;
  // The sequence does not change any more. Refused where a step cannot be this device's.
  virtual std::shared_ptr<const Recording> record(std::shared_ptr<const Sequence> sequence);
  // `text` is kernel text without the prelude of its language, which the device puts before it. For
  // compilers that take an occupancy as an option: that of the kernels (KERNEL_OF states it to the others), where it is
  // to bind. Any thread may build. What equals a program that somebody holds is that program, and what another thread
  // is building is waited for.
  virtual std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions,
                                         const BuildOptions& options) = 0;
  std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions) {
    return build(text, definitions, {});
  }
  struct Source {
    std::string_view text;
    std::span<const Definition> definitions;
    BuildOptions options;
  };
  // Does what builds programs, side by side where that takes less time: here one after the other. All have ended when
  // this returns, or throws the error of one. The seconds that it took.
  double do_builds(std::span<const std::function<void()>> builds) {
    const auto start = std::chrono::steady_clock::now();
    run_builds(builds);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  // The programs of several texts.
  std::vector<std::shared_ptr<Program>> build_all(std::span<const Source> sources) {
    std::vector<std::shared_ptr<Program>> programs(sources.size());
    std::vector<std::function<void()>> builds;
    for (std::size_t i = 0; i < sources.size(); ++i)
      builds.push_back([this, &programs, source = sources[i], i] {
        programs[i] = build(source.text, source.definitions, source.options);
      });
    do_builds(builds);
    return programs;
  }
  // Measured fp32 multiply-add rate (TFLOP/s, two operations each), copy bandwidth (GB/s, read + write), and the time
  // from one step of a recording to the next that depends on it, where they do next to nothing (0: not known), within
  // `seconds` in all.
  struct Peaks {
    double tflops = 0, gbps = 0, launch_seconds = 0;
  };
  virtual Peaks measure_peaks(double seconds) = 0;
  // Work of so many seconds, or up to twice as many, that leaves most of the device idle: what is submitted behind it
  // is there when it begins, and takes the device's time alone. None, where submissions do not wait for the host.
  virtual std::shared_ptr<const Sequence> busy_work(double seconds);
  // Of its memory, now: what other programs hold is not free. Devices that cannot tell answer with all of it.
  virtual std::int64_t free_bytes() { return info().memory_bytes; }
  // Page-locked where the device can do that, else ordinary memory.
  virtual std::shared_ptr<HostMemory> allocate_host(std::int64_t bytes);

  // Held by who makes a plan. Where there are others, programs that compile for long are compiled once: quick starts
  // gain nothing then.
  class PlanUnderWay {
   public:
    explicit PlanUnderWay(Device& device) : count_(device.plans_under_way_) { ++count_; }
    ~PlanUnderWay() { --count_; }
    PlanUnderWay(const PlanUnderWay&) = delete;
    PlanUnderWay& operator=(const PlanUnderWay&) = delete;

   private:
    std::atomic<int>& count_;
  };

  // Finds out on the device, once, whether its matrix units add up as its facts say. Any thread may ask.
  void probe_matrix_units();
  bool has_probed_matrix_units() const;
  // Why solvers that rest on these facts must not serve, as the probe found; empty where it did not, or has not been
  // asked for.
  std::string matrix_units_refusal() const;

 protected:
  explicit Device(DeviceFacts facts) : facts_(std::move(facts)) {}
  virtual void run_builds(std::span<const std::function<void()>> builds) {
    for (const std::function<void()>& one : builds) one();
  }
  bool makes_several_plans() const { return plans_under_way_ > 1; }

  DeviceFacts facts_;

 private:
  std::atomic<int> plans_under_way_ = 0;
  std::once_flag probes_;
  mutable std::mutex probe_mutex_;
  bool has_probed_ = false;
  std::string matrix_units_refusal_;
};

// One kind of device: what is there, and why the rest is not. A kind that was not built is a stub of these functions.
struct Backend {
  DeviceKind kind;
  std::string_view prefix;  // of its ids
  void (*list)(DeviceListing& listing);
  // `rest` is what follows "prefix:" in an id, empty for the first device. Throws, listing those that exist.
  std::shared_ptr<Device> (*open)(std::string_view rest, const ContextOptions& options);
};
const Backend& cpu_backend();
const Backend& cuda_backend();
const Backend& opencl_backend();

}  // namespace omniconv::devices
