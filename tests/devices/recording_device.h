// A device without hardware: it keeps the texts that solvers build, and runs nothing.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/matrix_units.h"
#include "omniconv/error.h"

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
    std::string target;
  };
  std::vector<Text> built;

  explicit RecordingDevice(DeviceKind kind)
      : Device({.kind = kind, .takes_occupancy = kind == DeviceKind::cuda, .most_local_memory_bytes = 48 << 10}) {
    DeviceInfo& info = facts_.info;
    info.id = "recording";
    info.compute_units = 1;
    info.memory_bytes = info.max_buffer_bytes = std::int64_t{1} << 40;
    info.local_memory_bytes = 48 << 10;
    info.is_gpu = true;
  }

  std::shared_ptr<Buffer> allocate(std::int64_t bytes) override { return std::make_shared<SizeAlone>(bytes); }
  std::shared_ptr<Buffer> borrow(void*, std::int64_t bytes) override { return allocate(bytes); }
  std::shared_ptr<Queue> make_queue(const QueueOptions&) override { return std::make_shared<NoQueue>(); }
  std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions,
                                 const BuildOptions& options) override {
    const std::lock_guard lock(building_);  // plans are made beside the probe of matrix units
    built.push_back({std::string(text), {definitions.begin(), definitions.end()}, options.target});
    return std::make_shared<NoProgram>();
  }
  Peaks measure_peaks(double) override { return {}; }
  std::shared_ptr<HostMemory> allocate_host(std::int64_t bytes) override {
    return std::make_shared<ClaimedMemory>(bytes, page_locks);
  }
  void be_of_capability_90() {
    set_capability(90);
    facts_.has_clusters = facts_.has_overlap = facts_.has_meetings = facts_.has_tensor_maps = true;
    facts_.most_local_memory_bytes = facts_.unit_local_memory_bytes = 227 << 10;
  }
  void set_compute_units(int units) { facts_.info.compute_units = units; }
  void set_capability(int capability) {
    facts_.compute_capability = capability;
    facts_.matrix_units = matrix_units_of(capability);
  }
  bool page_locks = false;
  bool& byte_dots = facts_.has_byte_dots;
  bool& has_meetings = facts_.has_meetings;
  std::int64_t& group_items = facts_.max_group_items;
  std::int64_t& local_memory_bytes = facts_.info.local_memory_bytes;

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
    Event submit(const std::shared_ptr<const Sequence>& sequence) override {
      for (const Sequence::Step& step : sequence->steps())
        if (std::holds_alternative<Sequence::Call>(step)) throw bad_input(foreign_host_task);
      return done();
    }
    Event span(Event, Event) override { return done(); }
    void finish() override {}
    void wait(std::uint64_t) override {}
    double seconds(std::uint64_t) override { return 0; }
    void release(std::uint64_t) noexcept override {}
  };

 private:
  std::mutex building_;
};

}  // namespace omniconv::devices
