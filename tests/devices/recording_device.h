// A device without hardware: it keeps the texts that solvers build, and runs nothing.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"

namespace omniconv::devices {

// Ordinary memory that says what it is told to say.
class ClaimedMemory final : public HostMemory {
 public:
  ClaimedMemory(std::int64_t bytes, bool locked) : bytes_(static_cast<std::size_t>(bytes)), locked_(locked) {}
  std::byte* data() override { return bytes_.data(); }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(bytes_.size()); }
  bool is_page_locked() const override { return locked_; }

 private:
  std::vector<std::byte> bytes_;
  bool locked_;
};

class RecordingDevice : public Device {
 public:
  struct Text {
    std::string text;
    std::vector<Definition> definitions;
  };
  std::vector<Text> built;

  explicit RecordingDevice(DeviceKind kind) : kind_(kind) {
    info_.id = "recording";
    info_.compute_units = 1;
    info_.memory_bytes = info_.max_buffer_bytes = std::int64_t{1} << 40;
    info_.local_memory_bytes = 48 << 10;
    info_.is_gpu = true;
  }

  DeviceKind kind() const override { return kind_; }
  const DeviceInfo& info() const override { return info_; }
  bool has_byte_dots() const override { return byte_dots; }
  std::int64_t max_group_items() const override { return group_items; }
  std::shared_ptr<Buffer> allocate(std::int64_t bytes) override { return std::make_shared<SizeAlone>(bytes); }
  std::shared_ptr<Buffer> borrow(void*, std::int64_t bytes) override { return allocate(bytes); }
  std::shared_ptr<Queue> make_queue(const QueueOptions&) override { return std::make_shared<NoQueue>(); }
  std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions,
                                 const BuildOptions&) override {
    built.push_back({std::string(text), {definitions.begin(), definitions.end()}});
    return std::make_shared<NoProgram>();
  }
  Peaks measure_peaks(double) override { return {}; }
  std::shared_ptr<HostMemory> allocate_host(std::int64_t bytes) override {
    return std::make_shared<ClaimedMemory>(bytes, page_locks);
  }
  void set_compute_units(int units) { info_.compute_units = units; }
  bool page_locks = false, byte_dots = false;
  std::int64_t group_items = 1024;

 protected:
  class SizeAlone final : public Buffer {
   public:
    explicit SizeAlone(std::int64_t bytes) : bytes_(bytes) {}
    std::int64_t bytes() const override { return bytes_; }

   private:
    std::int64_t bytes_;
  };
  struct NoProgram final : Program {
    double compile_seconds() const override { return 0; }
  };
  // Everything is done at once.
  struct NoQueue : Queue {
    Event done() { return Event(shared_from_this(), 1); }
    Event upload(std::shared_ptr<Buffer>, std::int64_t, const void*, std::int64_t) override { return done(); }
    Event download(void*, std::shared_ptr<Buffer>, std::int64_t, std::int64_t) override { return done(); }
    Event copy(std::shared_ptr<Buffer>, std::int64_t, std::shared_ptr<Buffer>, std::int64_t, std::int64_t,
               const Event&) override {
      return done();
    }
    Event submit(const std::shared_ptr<const Sequence>&) override { return done(); }
    Event span(Event, Event) override { return done(); }
    void finish() override {}
    void wait(std::uint64_t) override {}
    double seconds(std::uint64_t) override { return 0; }
    void release(std::uint64_t) noexcept override {}
  };

 private:
  DeviceKind kind_;
  DeviceInfo info_;
};

}  // namespace omniconv::devices
