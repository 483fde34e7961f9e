// OpenCL devices: a platform's device, its context, its memory, its programs.
#pragma once

#include <map>

#include "devices/built_programs.h"
#include "devices/device.h"
#include "devices/opencl/opencl_api.h"
#include "devices/program_cache.h"

namespace omniconv::devices::opencl {

class OpenClDevice final : public Device {
 public:
  // A context of its own, or the caller's (of which it takes a reference). `cache` may be null.
  OpenClDevice(DeviceInfo info, cl_platform_id platform, cl_device_id device, std::shared_ptr<ProgramCache> cache);
  OpenClDevice(DeviceInfo info, cl_context context, cl_device_id device);

  std::shared_ptr<Buffer> allocate(std::int64_t bytes) override;
  // The driver may copy: the device sees the memory as it is now, and later changes of either side only by an upload
  // from, or a download to, the same memory.
  std::shared_ptr<Buffer> borrow(void* memory, std::int64_t bytes) override;
  std::shared_ptr<Queue> make_queue(const QueueOptions& options = {}) override;
  std::shared_ptr<const Recording> record(std::shared_ptr<const Sequence> sequence) override;
  std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions,
                                 const BuildOptions& options) override;
  Peaks measure_peaks(double seconds) override;
  std::shared_ptr<const Sequence> busy_work(double seconds) override;
  // Memory of the driver's own, mapped: what drivers of GPUs lock into place.
  std::shared_ptr<HostMemory> allocate_host(std::int64_t bytes) override;

  // The caller's objects; they must be of this device's context.
  std::shared_ptr<Buffer> borrow_buffer(cl_mem buffer);
  std::shared_ptr<Queue> borrow_queue(cl_command_queue queue);

  cl_context context() const { return context_.get(); }
  cl_device_id device() const { return device_; }

 private:
  // What makes the driver's compiler say what registers kernels take, and keep to an occupancy; empty where that cannot
  // be asked for.
  std::string driver_options(const Occupancy& occupancy) const;
  std::shared_ptr<Buffer> create(cl_bitfield flags, void* memory, std::int64_t bytes);
  std::shared_ptr<Program> build_anew(std::string_view text, const std::string& options, const std::string& own_options,
                                      const Occupancy& asked_for, const std::string& key);
  Owned<cl_program> compile(std::string_view text, const std::string& options) const;
  // Null where the driver does not take it. The binary may be of a kind that is compiled further: by these options.
  Owned<cl_program> load(const std::string& binary, const std::string& own_options) const;
  // What a program is made from, whole.
  std::string key_of(std::string_view text, const std::string& options) const;
  std::shared_ptr<OpenClDevice> self() { return std::static_pointer_cast<OpenClDevice>(shared_from_this()); }

  cl_device_id device_;
  Owned<cl_context> context_;
  std::shared_ptr<ProgramCache> cache_;
  BuiltPrograms programs_;
};

class OpenClBuffer final : public Buffer {
 public:
  OpenClBuffer(std::shared_ptr<OpenClDevice> device, Owned<cl_mem> memory, std::int64_t bytes, void* borrowed)
      : device_(std::move(device)),
        memory_(std::move(memory)),
        bytes_(bytes),
        borrowed_(static_cast<std::byte*>(borrowed)) {}
  // A cl_mem of the caller's: of `whole` from byte `origin` on, which is the memory itself unless it is a sub-buffer.
  OpenClBuffer(std::shared_ptr<OpenClDevice> device, Owned<cl_mem> memory, std::int64_t bytes, cl_mem whole,
               std::size_t origin, Access access)
      : device_(std::move(device)),
        memory_(std::move(memory)),
        bytes_(bytes),
        whole_(whole),
        origin_(origin),
        access_(access) {}
  std::int64_t bytes() const override { return bytes_; }
  cl_mem memory() const { return memory_.get(); }
  std::shared_ptr<Device> device() const override { return device_; }
  Place place() const override {
    if (borrowed_) return {nullptr, reinterpret_cast<std::uintptr_t>(borrowed_)};
    return {whole_ ? whole_ : memory_.get(), origin_};
  }
  Access access() const override { return access_; }
  const void* context() const override { return device_->context(); }
  std::byte* borrowed() const { return borrowed_; }  // the host memory behind it, or null

 private:
  std::shared_ptr<OpenClDevice> device_;
  Owned<cl_mem> memory_;
  std::int64_t bytes_;
  std::byte* borrowed_ = nullptr;
  cl_mem whole_ = nullptr;
  std::size_t origin_ = 0;
  Access access_;
};

class OpenClProgram final : public Program {
 public:
  // `registers` are the words NAME=COUNT of its kernels, as far as they are known: drivers that find a program in a
  // cache of their own say nothing. `asked_for` is what the compiler was told, if it listens.
  OpenClProgram(std::shared_ptr<OpenClDevice> device, Owned<cl_program> program, double seconds, std::string registers,
                Occupancy asked_for)
      : device_(std::move(device)),
        program_(std::move(program)),
        compile_seconds_(seconds),
        registers_(std::move(registers)),
        asked_for_(asked_for) {}
  double compile_seconds() const override { return compile_seconds_; }
  std::int64_t resident_groups(const char* kernel, std::int64_t group_items,
                               std::int64_t local_memory_bytes = 0) const override;
  Owned<cl_kernel> make_kernel(const char* name) const;
  const void* context() const override { return device_->context(); }

 private:
  std::shared_ptr<OpenClDevice> device_;
  Owned<cl_program> program_;
  double compile_seconds_;
  std::string registers_;
  Occupancy asked_for_;
};

// From what NVIDIA's compiler says of the kernels of a program: " NAME=COUNT" of each.
std::string registers_of_kernels(std::string_view build_log);
// How many groups fit on a multiprocessor of this compute capability, by the registers of a work item and by the bytes
// of local memory of a group.
std::int64_t groups_by_registers(std::int64_t all_registers, std::int64_t of_an_item, std::int64_t group_items,
                                 int capability);
std::int64_t groups_by_local_memory(std::int64_t bytes, int capability);

// Facts of platforms and devices.
std::string text(cl_platform_id platform, cl_uint what);
std::string text(cl_device_id device, cl_uint what);
template <typename Value>
Value fact(cl_device_id device, cl_uint what) {
  Value value{};
  check("clGetDeviceInfo", api().GetDeviceInfo(device, what, sizeof value, &value, nullptr));
  return value;
}
DeviceInfo describe(cl_device_id device, std::string id, const std::string& platform_name);
// Why the device cannot be used; empty if it can.
std::string unusable(cl_device_id device);

}  // namespace omniconv::devices::opencl
