#include "devices/cpu/cpu_device.h"

#include <fmt/format.h>
#include <hwy/targets.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
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

int most_threads() {
  return std::max(256, usable_cores());
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
  info.driver = hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets());  // the best of them
  info.compute_units = threads;
  info.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  info.max_buffer_bytes = info.memory_bytes;
  return info;
}

void list(DeviceListing& listing) {
  listing.found.push_back(describe(usable_cores()));
}

std::shared_ptr<Device> open(std::string_view rest, const ContextOptions& options) {
  if (!rest.empty()) throw bad_input(fmt::format("unknown device cpu:{}: there is one CPU device, cpu", rest));
  if (options.threads < 0 || options.threads > most_threads())
    throw bad_input(fmt::format("threads={} is out of range: it must be from 1 to {}, or 0 for one per core",
                                options.threads, most_threads()));
  return std::make_shared<CpuDevice>(options.threads > 0 ? options.threads : usable_cores());
}

}  // namespace

CpuDevice::CpuDevice(int threads) : Device({.kind = DeviceKind::cpu, .info = describe(threads)}), crew_(threads) {}

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

const Backend& cpu_backend() {
  static constexpr Backend backend{DeviceKind::cpu, "cpu", list, open};
  return backend;
}

}  // namespace omniconv::devices
