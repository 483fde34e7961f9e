#include "devices/cpu/cpu_device.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>

#include "devices/cpu/cpu_queue.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

constexpr std::size_t alignment = 4096;
// Of x86 and most others. Large buffers ask for them: matrices are read along lines that are thousands of bytes apart,
// each on a page of its own if these are small.
constexpr std::size_t huge_page = std::size_t{2} << 20;

// All CPU devices ask oneTBB for the same number, since it grants the least that any of them asks for.
int most_threads() {
  return std::max(256, tbb::info::default_concurrency());
}

void check_size(std::int64_t bytes) {
  if (bytes < 0) throw bad_input(fmt::format("a buffer of {} bytes: the size must be at least 0", bytes));
}

class OwnedBuffer final : public Buffer {
 public:
  explicit OwnedBuffer(std::int64_t bytes) : bytes_(bytes) {
    const auto size = (static_cast<std::size_t>(bytes) + alignment) / alignment * alignment;
    const bool large = size >= huge_page;
    void* memory = nullptr;
    if (posix_memalign(&memory, large ? huge_page : alignment, size) != 0)
      throw out_of_memory(fmt::format("the CPU has no {} bytes of memory left for a buffer", bytes));
    if (large) static_cast<void>(madvise(memory, size, MADV_HUGEPAGE));  // no more than a wish
    memory_ = static_cast<std::byte*>(memory);
  }
  OwnedBuffer(const OwnedBuffer&) = delete;
  OwnedBuffer& operator=(const OwnedBuffer&) = delete;
  ~OwnedBuffer() override { std::free(memory_); }
  std::int64_t bytes() const override { return bytes_; }
  std::byte* host() const override { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  std::int64_t bytes_;
};

class BorrowedBuffer final : public Buffer {
 public:
  BorrowedBuffer(void* memory, std::int64_t bytes) : memory_(static_cast<std::byte*>(memory)), bytes_(bytes) {}
  std::int64_t bytes() const override { return bytes_; }
  std::byte* host() const override { return memory_; }

 private:
  std::byte* memory_;
  std::int64_t bytes_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      const auto colon = line.find(':');
      if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
    }
  return "CPU";
}

DeviceInfo describe(int threads) {
  DeviceInfo info;
  info.id = "cpu";
  info.name = processor_name();
  info.driver = "oneTBB " + std::to_string(TBB_runtime_interface_version());
  info.compute_units = threads;
  info.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  info.max_buffer_bytes = info.memory_bytes;
  return info;
}

void list(DeviceListing& listing) {
  listing.found.push_back(describe(tbb::info::default_concurrency()));
}

std::shared_ptr<Device> open(std::string_view rest, const ContextOptions& options) {
  if (!rest.empty()) throw bad_input(fmt::format("unknown device cpu:{}: there is one CPU device, cpu", rest));
  if (options.threads < 0 || options.threads > most_threads())
    throw bad_input(fmt::format("threads={} is out of range: it must be from 1 to {}, or 0 for one per core",
                                options.threads, most_threads()));
  return std::make_shared<CpuDevice>(options.threads > 0 ? options.threads : tbb::info::default_concurrency());
}

}  // namespace

// Out of the header, since oneTBB's headers take half a second to read.
struct CpuDevice::Workers {
  explicit Workers(int threads)
      : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(most_threads())),
        arena(threads, 1) {}

  tbb::global_control limit;  // more threads than cores, where asked for
  tbb::task_arena arena;
};

CpuDevice::CpuDevice(int threads)
    : Device({.kind = DeviceKind::cpu, .info = describe(threads)}), workers_(std::make_unique<Workers>(threads)) {}

CpuDevice::~CpuDevice() = default;

std::shared_ptr<Buffer> CpuDevice::allocate(std::int64_t bytes) {
  check_size(bytes);
  if (bytes > info().memory_bytes)
    throw out_of_memory(
        fmt::format("a buffer of {} bytes passes the machine's memory of {} bytes", bytes, info().memory_bytes));
  return std::make_shared<OwnedBuffer>(bytes);
}

std::shared_ptr<Buffer> CpuDevice::borrow(void* memory, std::int64_t bytes) {
  check_size(bytes);
  if (memory == nullptr && bytes > 0)
    throw bad_input(fmt::format("borrowed memory of {} bytes is a null pointer", bytes));
  return std::make_shared<BorrowedBuffer>(memory, bytes);
}

std::shared_ptr<Queue> CpuDevice::make_queue(const QueueOptions& options) {
  return std::make_shared<CpuQueue>(std::static_pointer_cast<CpuDevice>(shared_from_this()), options);
}

std::shared_ptr<const Recording> CpuDevice::record(std::shared_ptr<const Sequence> sequence) {
  if (sequence) check_cpu_steps(*sequence);
  return Device::record(std::move(sequence));
}

std::shared_ptr<Program> CpuDevice::build(std::string_view, std::span<const Definition>, const BuildOptions&) {
  throw environment_error("the CPU device runs host functions and compiles no device text");
}

namespace {

// What the items of one parallel_for share. oneTBB orders its own memory, out of sight of a thread sanitizer that did
// not instrument it: the counter says the same again, at three atomic operations an item. A slot passes from a thread
// that leaves to one that comes within one parallel_for, so that an item comes after all that ended before it began.
class Items {
 public:
  Items(void (*body)(const void*, std::int64_t, int), const void* context) : body_(body), context_(context) {
    running_.store(0, std::memory_order_release);
  }
  ~Items() {
    while (running_.load(std::memory_order_acquire) != 0) {
    }
  }

  [[gnu::noinline]] void run(std::int64_t i) {
    static_cast<void>(
        running_.load(std::memory_order_acquire));  // the sanitizer looks at an addition before it orders it
    running_.fetch_add(1, std::memory_order_acq_rel);
    const Running running{running_};
    body_(context_, i, tbb::this_task_arena::current_thread_index());
  }

 private:
  struct Running {
    std::atomic<std::int64_t>& count;
    ~Running() { count.fetch_sub(1, std::memory_order_acq_rel); }
  };

  void (*body_)(const void*, std::int64_t, int);
  const void* context_;
  std::atomic<std::int64_t> running_{0};
};

// Reads the pointer that oneTBB's task holds, which no counter can order, and nothing else.
struct RunItem {
  Items* items;
  [[gnu::no_sanitize_thread]] void operator()(std::int64_t i) const { items->run(i); }
};

// The same of what an arena is given: where it is full, one of its threads takes it for the caller, who waits.
struct RunItems {
  Items* items;
  std::int64_t count;
  [[gnu::no_sanitize_thread]] void operator()() const {
    tbb::parallel_for(std::int64_t{0}, count, RunItem{items}, tbb::simple_partitioner());
  }
};

}  // namespace

void CpuDevice::parallel_for(std::int64_t count, void (*body)(const void*, std::int64_t, int), const void* context) {
  Items items(body, context);
  workers_->arena.execute(RunItems{&items, count});
}

const Backend& cpu_backend() {
  static constexpr Backend backend{DeviceKind::cpu, "cpu", list, open};
  return backend;
}

}  // namespace omniconv::devices
