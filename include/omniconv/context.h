// Devices, memory and queues, as the caller sees them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace omniconv {

namespace devices {
class Buffer;
class Device;
class Queue;
class Recording;
class Sequence;
}  // namespace devices

namespace choice {
class PlanMemory;
}

struct DeviceInfo {
  std::string id;    // cpu, cuda:0, opencl:0.0
  std::string name;  // as its vendor calls it
  std::string driver;
  int compute_units = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t local_memory_bytes = 0;
  std::int64_t max_buffer_bytes = 0;
  bool is_gpu = false;
  std::vector<std::string> peers = {};  // of a CUDA device: the ids of those whose memory it reaches directly
};

// What was found, and what was looked for and not found, with the reason.
struct DeviceListing {
  std::vector<DeviceInfo> found;
  struct Missing {
    std::string id, reason;
  };
  std::vector<Missing> missing;
};
DeviceListing list_devices();

// Memory that a device can use. A handle: copies share it. Work that was submitted keeps it alive.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::shared_ptr<devices::Buffer> impl) : impl_(std::move(impl)) {}
  explicit operator bool() const { return impl_ != nullptr; }
  std::int64_t bytes() const;
  const std::shared_ptr<devices::Buffer>& impl() const { return impl_; }

 private:
  std::shared_ptr<devices::Buffer> impl_;
};

// A moment in a queue. wait() returns when all work up to it is done, and throws the first error of that work.
class Event {
 public:
  Event() = default;
  Event(std::shared_ptr<devices::Queue> queue, std::uint64_t token);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();
  void wait();
  // Seconds that the device spent on the submission that returned this event; call after wait(). Throws bad_input where
  // the queue was made without timing.
  double seconds() const;
  // Of these seconds, those after the end of an earlier submission to this queue or another one of the same device, so
  // that the time of work that overlaps can be added up; call after wait() of both.
  double seconds_after(const Event& other) const;
  const std::shared_ptr<devices::Queue>& queue() const { return queue_; }
  std::uint64_t token() const { return token_; }

 private:
  std::shared_ptr<devices::Queue> queue_;
  std::uint64_t token_ = 0;
};

// A number that a run is given, such as a filter's bias. One that is `changing` may be set anew without planning again:
// its copies share it, and work reads it when it is submitted or replayed.
class Scalar {
 public:
  Scalar(double value = 0) : value_(value) {}  // implicit: most are plain numbers
  static Scalar changing(double value);
  // 1 - the other one, in double precision. Where that is changing, this one changes with it, and cannot be set itself.
  static Scalar complement(const Scalar& other);
  double value() const {
    const double value = cell_ ? cell_->load() : value_;
    return is_complement_ ? 1 - value : value;
  }
  bool is_changing() const { return cell_ != nullptr; }
  // Of a changing one; throws for others.
  void set(double value);

 private:
  double value_;
  bool is_complement_ = false;
  std::shared_ptr<std::atomic<double>> cell_;
};

class Queue;

// Work in order that plans append to, before a queue runs it: once (Queue::submit), or again and again
// (Context::record). It keeps the buffers that it uses alive. One thread at a time fills it. Moved, never copied: what
// takes it, takes it whole.
class Sequence {
 public:
  Sequence() = default;
  Sequence(std::shared_ptr<devices::Device> device, std::shared_ptr<devices::Sequence> impl)
      : device_(std::move(device)), impl_(std::move(impl)) {}
  Sequence(Sequence&&) noexcept = default;
  Sequence& operator=(Sequence&&) noexcept = default;
  explicit operator bool() const { return impl_ != nullptr; }
  const std::shared_ptr<devices::Device>& device() const { return device_; }
  const std::shared_ptr<devices::Sequence>& impl() const { return impl_; }

 private:
  std::shared_ptr<devices::Device> device_;
  std::shared_ptr<devices::Sequence> impl_;
};

// A sequence that runs again and again, on CUDA as a graph. A handle: copies share it. It keeps the buffers that it
// uses alive; scalars that are changing are read at each replay.
class Recording {
 public:
  Recording() = default;
  explicit Recording(std::shared_ptr<const devices::Recording> impl) : impl_(std::move(impl)) {}
  explicit operator bool() const { return impl_ != nullptr; }
  // Runs it once, as one submission to a queue of the device that it was recorded for; other queues are refused. The
  // runs of two queues may overlap, as all of their work may: then they need buffers of their own.
  Event replay(Queue& queue) const;
  const std::shared_ptr<const devices::Recording>& impl() const { return impl_; }

 private:
  std::shared_ptr<const devices::Recording> impl_;
};

struct QueueOptions {
  bool timing = true;  // of what is submitted (Event::seconds); without, submitting costs less
  // On the CPU work begins when somebody waits for it, on that thread: for small work that its submitter waits for at
  // once, which waking another thread would outlast.
  bool begins_at_wait = false;
};

// Runs what is submitted to it in order, asynchronously.
class Queue {
 public:
  Queue() = default;
  explicit Queue(std::shared_ptr<devices::Queue> impl) : impl_(std::move(impl)) {}
  // Host memory to buffer, and back. The host memory must stay valid until the event.
  Event upload(const Buffer& to, std::int64_t offset_bytes, const void* from, std::int64_t bytes);
  Event download(void* to, const Buffer& from, std::int64_t offset_bytes, std::int64_t bytes);
  // Buffer to buffer, at least one of them of this queue's device; of one buffer, parts that do not overlap. Starts
  // after all that was submitted to this queue, and after `after`, of any queue: where one buffer is of another device,
  // or another queue works on it, that is the event of this work. CUDA devices copy from one to another by their
  // driver, directly where they can (DeviceInfo::peers). Between other devices the copy goes through page-locked memory
  // of the host; it is done then when this returns, and its errors are thrown by it.
  Event copy(const Buffer& to, std::int64_t to_offset_bytes, const Buffer& from, std::int64_t from_offset_bytes,
             std::int64_t bytes, const Event& after = {});
  // Runs what was appended to it, as one submission.
  Event submit(Sequence sequence);
  // Waits for everything submitted; throws the first error.
  void finish();
  const std::shared_ptr<devices::Queue>& impl() const { return impl_; }

 private:
  std::shared_ptr<devices::Queue> impl_;
};

struct ContextOptions {
  std::string device = "auto";  // auto, cpu, gpu (the first), cuda[:I], opencl[:PLATFORM.DEVICE]
  int threads = 0;              // of the CPU device; 0 means one per core
  // A folder where compiled programs of GPU devices are kept from one process to the next, 256 MiB at most; it is made
  // where it is missing. Empty: nowhere.
  std::string program_cache = {};
  // Called at most once for each context, with one line, where that folder or what is in it cannot be used and programs
  // are compiled again; from any thread that makes plans, and from those that compile behind a quick start. Empty:
  // nobody is told.
  std::function<void(const std::string&)> warn = {};
  // On CUDA, by NVRTC 12.6 and newer: a plan that is made by itself, of a convolution or matrix product whose programs
  // take long to compile, has its first run earlier, in about 0.6 of the time. The first submission of a program runs
  // code that was compiled quickly, and takes up to a hundred times as long as later ones, some 20 ms, while the
  // optimised code is compiled beside it. Later submissions wait for that, of another plan with the same program too,
  // and so do recordings. Results have the same bits. Compiling takes 1.6 times the processor's work, and what gives up
  // a program waits for it, as does the end of the process. Programs that are built while several plans are being made,
  // as by make_plans, start as usual: together they are ready sooner. Not set: where the processor has four hardware
  // threads or more.
  std::optional<bool> quick_start = {};
};

// Owns a device, and remembers the plans that were made last. Copies share both. Passed explicitly; there is no global
// state.
class Context {
 public:
  using Options = ContextOptions;
  explicit Context(const Options& options = {});
  explicit Context(std::shared_ptr<devices::Device> device);
  // Moving copies, so that none is ever empty.
  Context(const Context&) = default;
  Context& operator=(const Context&) = default;

  const DeviceInfo& device() const;
  Queue make_queue(const QueueOptions& options = {}) const;
  // An empty one, for this device's plans.
  Sequence make_sequence() const;
  // Refuses a sequence that is empty, was moved from, or was made for another device.
  Recording record(Sequence sequence) const;
  Buffer allocate(std::int64_t bytes) const;
  // The caller's own host memory, used in place by the CPU, and through the driver by GPUs. It must outlive the buffer
  // and the work that uses it. What a run reads and does not write may be constant: cast it.
  Buffer borrow(void* memory, std::int64_t bytes) const;
  template <typename T>
  Buffer borrow(std::span<T> array) const {
    return borrow(array.data(), static_cast<std::int64_t>(array.size_bytes()));
  }
  const std::shared_ptr<devices::Device>& impl() const { return device_; }
  choice::PlanMemory& plans() const { return *plans_; }

 private:
  std::shared_ptr<devices::Device> device_;
  std::shared_ptr<choice::PlanMemory> plans_;
};

}  // namespace omniconv
