#include "devices/opencl/opencl_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/build_info.h"
#include "devices/buffer_size.h"
#include "devices/definitions.h"
#include "devices/gpu_peaks.h"
#include "devices/matrix_units.h"
#include "devices/opencl/opencl_queue.h"
#include "devices/opencl/opencl_steps.h"
#include "embedded/prelude.opencl.h"

namespace omniconv::devices::opencl {
namespace {

Owned<cl_context> make_context(cl_platform_id platform, cl_device_id device) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform),
                                              0};
  cl_int code = CL_SUCCESS;
  Owned<cl_context> context(api().CreateContext(properties, 1, &device, nullptr, nullptr, &code));
  check("clCreateContext", code);
  return context;
}

Owned<cl_context> retain_context(cl_context context) {
  check("clRetainContext", api().RetainContext(context));
  return Owned<cl_context>(context);
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  if (api().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS)
    return "no log";
  std::string log(size, '\0');
  if (api().GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) != CL_SUCCESS)
    return "no log";
  return log;
}

// As the driver gives it for the one device of the context; empty where it gives none.
std::string binary_of(cl_program program) {
  std::size_t size = 0;
  if (api().GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS) return {};
  std::string binary(size, '\0');
  char* bytes = binary.data();
  if (api().GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  return binary;
}

// 10 times the major plus the minor compute capability; 0 of other vendors' devices.
int nvidia_capability(cl_device_id device, const std::string& extensions) {
  if (extensions.find("cl_nv_device_attribute_query") == std::string::npos) return 0;
  return static_cast<int>(10 * fact<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV) +
                          fact<cl_uint>(device, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
}

DeviceFacts facts_of(DeviceInfo info, cl_device_id device) {
  const std::string extensions = text(device, CL_DEVICE_EXTENSIONS);
  DeviceFacts facts;
  facts.kind = DeviceKind::opencl;
  facts.info = std::move(info);
  facts.has_denormals = (fact<cl_bitfield>(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM) != 0;
  facts.compute_capability = nvidia_capability(device, extensions);
  facts.has_byte_dots = facts.compute_capability >= 61;
  facts.matrix_units = matrix_units_of(facts.compute_capability);
  facts.takes_occupancy =
      facts.compute_capability > 0 && extensions.find("cl_nv_compiler_options") != std::string::npos;
  facts.max_group_items = static_cast<std::int64_t>(fact<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  facts.most_local_memory_bytes = facts.info.local_memory_bytes;
  return facts;
}

class MappedMemory final : public HostMemory {
 public:
  MappedMemory(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue, Owned<cl_mem> memory,
               std::int64_t bytes)
      : device_(std::move(device)), queue_(std::move(queue)), memory_(std::move(memory)), bytes_(bytes) {
    cl_int code = CL_SUCCESS;
    mapped_ = api().EnqueueMapBuffer(queue_.get(), memory_.get(), 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                     static_cast<std::size_t>(bytes), 0, nullptr, nullptr, &code);
    check("clEnqueueMapBuffer", code);
  }
  ~MappedMemory() override {
    if (api().EnqueueUnmapMemObject(queue_.get(), memory_.get(), mapped_, 0, nullptr, nullptr) == CL_SUCCESS)
      api().Finish(queue_.get());
  }
  std::byte* data() override { return static_cast<std::byte*>(mapped_); }
  std::int64_t bytes() const override { return bytes_; }
  bool is_page_locked() const override { return true; }

 private:
  std::shared_ptr<OpenClDevice> device_;
  Owned<cl_command_queue> queue_;
  Owned<cl_mem> memory_;
  std::int64_t bytes_;
  void* mapped_ = nullptr;
};

}  // namespace

OpenClDevice::OpenClDevice(DeviceInfo info, cl_platform_id platform, cl_device_id device,
                           std::shared_ptr<ProgramCache> cache)
    : Device(facts_of(std::move(info), device)),
      device_(device),
      context_(make_context(platform, device)),
      cache_(std::move(cache)) {}

OpenClDevice::OpenClDevice(DeviceInfo info, cl_context context, cl_device_id device)
    : Device(facts_of(std::move(info), device)), device_(device), context_(retain_context(context)) {}

std::shared_ptr<Buffer> OpenClDevice::create(cl_bitfield flags, void* memory, std::int64_t bytes) {
  check_buffer_size(bytes, info());
  cl_int code = CL_SUCCESS;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));  // OpenCL knows no empty buffers
  Owned<cl_mem> buffer(api().CreateBuffer(context_.get(), flags, size, memory, &code));
  if (code != CL_SUCCESS)
    throw call_error(fmt::format("device {}: clCreateBuffer of {} bytes", info().id, bytes), code);
  return std::make_shared<OpenClBuffer>(self(), std::move(buffer), bytes, memory);
}

std::shared_ptr<Buffer> OpenClDevice::allocate(std::int64_t bytes) {
  return create(CL_MEM_READ_WRITE, nullptr, bytes);
}

std::shared_ptr<Buffer> OpenClDevice::borrow(void* memory, std::int64_t bytes) {
  if (bytes == 0) return allocate(0);
  if (!memory && bytes > 0) throw bad_input(fmt::format("borrowing {} bytes of host memory at a null pointer", bytes));
  return create(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory, bytes);
}

std::shared_ptr<HostMemory> OpenClDevice::allocate_host(std::int64_t bytes) {
  if (bytes <= 0) return Device::allocate_host(bytes);
  if (bytes > info().max_buffer_bytes)
    throw environment_error(fmt::format("device {} locks at most {} bytes of host memory in one piece, not {}",
                                        info().id, info().max_buffer_bytes, bytes));
  cl_int code = CL_SUCCESS;
  Owned<cl_mem> memory(api().CreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                          static_cast<std::size_t>(bytes), nullptr, &code));
  if (code != CL_SUCCESS)
    throw call_error(fmt::format("device {}: clCreateBuffer of {} bytes of host memory", info().id, bytes), code);
  Owned<cl_command_queue> queue(api().CreateCommandQueue(context_.get(), device_, 0, &code));
  check("clCreateCommandQueue", code);
  return std::make_shared<MappedMemory>(self(), std::move(queue), std::move(memory), bytes);
}

std::shared_ptr<Queue> OpenClDevice::make_queue(const QueueOptions& options) {
  cl_int code = CL_SUCCESS;
  const cl_bitfield properties = options.timing ? CL_QUEUE_PROFILING_ENABLE : 0;
  Owned<cl_command_queue> queue(api().CreateCommandQueue(context_.get(), device_, properties, &code));
  check("clCreateCommandQueue", code);
  return std::make_shared<OpenClQueue>(self(), std::move(queue), options);
}

std::shared_ptr<const Recording> OpenClDevice::record(std::shared_ptr<const Sequence> sequence) {
  if (sequence) check_steps(*sequence, *this);
  return std::make_shared<Recording>(std::move(sequence), info().id, context_.get());
}

std::string OpenClDevice::driver_options(const Occupancy& occupancy) const {
  if (!facts_.takes_occupancy) return {};
  if (occupancy.groups == 0) return " -cl-nv-verbose";
  constexpr std::int64_t granule = 8, most = 255;  // of a work item
  const std::int64_t all = fact<cl_uint>(device_, CL_DEVICE_REGISTERS_PER_BLOCK_NV);
  const std::int64_t share = all / (occupancy.groups * occupancy.group_items) / granule * granule;
  return fmt::format(" -cl-nv-verbose -cl-nv-maxrregcount={}", std::clamp(share, granule, most));
}

std::shared_ptr<Program> OpenClDevice::build(std::string_view kernel_text, std::span<const Definition> definitions,
                                             const BuildOptions& build_options) {
  if (!build_options.target.empty())
    throw bad_input(fmt::format("device {}: a program for the target {}: OpenCL's compilers know no targets", info().id,
                                build_options.target));
  const std::string own_options = driver_options(build_options.occupancy);
  const Occupancy asked_for = own_options.empty() ? Occupancy{} : build_options.occupancy;
  std::string options = "-cl-std=CL1.2" + own_options;
  if (const int capability = facts_.compute_capability) options += fmt::format(" -DNVIDIA_CAPABILITY={}", capability);
  if (asked_for.groups > 0) options += " -DREGISTERS_ARE_LIMITED=1";
  for (const std::string& option : definition_options(definitions)) options += " " + option;
  const std::string key = key_of(kernel_text, options);
  const std::string with_occupancy = fmt::format("{} {} {}", asked_for.groups, asked_for.group_items, key);
  return programs_.find_or_build(with_occupancy,
                                 [&] { return build_anew(kernel_text, options, own_options, asked_for, key); });
}

std::shared_ptr<Program> OpenClDevice::build_anew(std::string_view kernel_text, const std::string& options,
                                                  const std::string& own_options, const Occupancy& asked_for,
                                                  const std::string& key) {
  if (cache_)
    if (const std::optional<std::string> entry = cache_->find(key)) {
      const std::size_t line = entry->starts_with(' ') || entry->starts_with('\n') ? entry->find('\n') : entry->npos;
      if (line != entry->npos)
        if (Owned<cl_program> program = load(entry->substr(line + 1), own_options))
          return std::make_shared<OpenClProgram>(self(), std::move(program), 0, entry->substr(0, line), asked_for);
      cache_->discard(key, fmt::format("device {} does not take it", info().id));
    }
  const auto start = std::chrono::steady_clock::now();
  Owned<cl_program> program = compile(kernel_text, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const std::string registers = own_options.empty() ? "" : registers_of_kernels(build_log(program.get(), device_));
  if (cache_)
    if (const std::string binary = binary_of(program.get()); !binary.empty())
      cache_->store(key, registers + "\n" + binary);
  return std::make_shared<OpenClProgram>(self(), std::move(program), seconds.count(), registers, asked_for);
}

Owned<cl_program> OpenClDevice::compile(std::string_view kernel_text, const std::string& options) const {
  // Lines in the log count from the start of the text itself.
  constexpr std::string_view own_lines = "\n#line 1\n";
  const char* parts[] = {prelude_opencl.data(), own_lines.data(), kernel_text.data()};
  const std::size_t sizes[] = {prelude_opencl.size(), own_lines.size(), kernel_text.size()};
  cl_int code = CL_SUCCESS;
  Owned<cl_program> program(api().CreateProgramWithSource(context_.get(), 3, parts, sizes, &code));
  check("clCreateProgramWithSource", code);
  code = api().BuildProgram(program.get(), 1, &device_, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS)
    throw environment_error(fmt::format("device {}: clBuildProgram failed: {}: {}", info().id, error_name(code),
                                        first_lines(build_log(program.get(), device_))));
  return program;
}

Owned<cl_program> OpenClDevice::load(const std::string& binary, const std::string& own_options) const {
  const std::size_t size = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  Owned<cl_program> program(api().CreateProgramWithBinary(context_.get(), 1, &device_, &size, &bytes, &status, &code));
  if (code != CL_SUCCESS || status != CL_SUCCESS ||
      api().BuildProgram(program.get(), 1, &device_, own_options.c_str(), nullptr, nullptr) != CL_SUCCESS)
    return nullptr;
  return program;
}

std::string OpenClDevice::key_of(std::string_view kernel_text, const std::string& options) const {
  const std::string version = text(device_, CL_DEVICE_VERSION), driver = text(device_, CL_DRIVER_VERSION);
  const char* const pocl_adds = std::getenv("POCL_EXTRA_BUILD_FLAGS");  // and does not say so in its binaries
  const std::string_view parts[] = {"omniconv",     build_version(), "OpenCL", info().name,
                                    version,        driver,          options,  pocl_adds ? pocl_adds : "",
                                    prelude_opencl, kernel_text};
  return ProgramCache::key(parts);
}

Owned<cl_kernel> OpenClProgram::make_kernel(const char* name) const {
  cl_int code = CL_SUCCESS;
  Owned<cl_kernel> kernel(api().CreateKernel(program_.get(), name, &code));
  if (code != CL_SUCCESS) throw call_error(fmt::format("clCreateKernel ({})", name), code);
  return kernel;
}

std::int64_t OpenClProgram::resident_groups(const char* kernel, std::int64_t group_items,
                                            std::int64_t local_memory_bytes) const {
  const int capability = device_->facts().compute_capability;
  const std::string word = fmt::format(" {}=", kernel);
  const std::size_t at = registers_.find(word);
  std::int64_t groups = group_items == asked_for_.group_items ? asked_for_.groups : 0;
  if (at != std::string::npos)
    groups = groups_by_registers(fact<cl_uint>(device_->device(), CL_DEVICE_REGISTERS_PER_BLOCK_NV),
                                 std::atoll(registers_.c_str() + at + word.size()), group_items, capability);
  if (groups == 0) return 0;
  const Owned<cl_kernel> own = make_kernel(kernel);
  cl_ulong of_text = 0;
  check("clGetKernelWorkGroupInfo", api().GetKernelWorkGroupInfo(own.get(), device_->device(), CL_KERNEL_LOCAL_MEM_SIZE,
                                                                 sizeof of_text, &of_text, nullptr));
  return std::min(groups, groups_by_local_memory(static_cast<std::int64_t>(of_text) + local_memory_bytes, capability));
}

std::string registers_of_kernels(std::string_view build_log) {
  constexpr std::string_view entry = "Compiling entry function '", used = "Used ";
  std::string registers;
  for (std::size_t at = build_log.find(entry); at != std::string_view::npos; at = build_log.find(entry, at)) {
    at += entry.size();
    const std::string_view rest = build_log.substr(at, build_log.find(entry, at) - at);
    const std::size_t name_end = rest.find('\''), count = rest.find(used);
    if (name_end == std::string_view::npos || count == std::string_view::npos) continue;
    const std::string_view number = rest.substr(count + used.size());
    const std::string_view digits = number.substr(0, number.find_first_not_of("0123456789"));
    if (!digits.empty()) registers += fmt::format(" {}={}", rest.substr(0, name_end), digits);
  }
  return registers;
}

std::int64_t groups_by_registers(std::int64_t all_registers, std::int64_t of_an_item, std::int64_t group_items,
                                 int capability) {
  // CUDA C++ Programming Guide, "Technical specifications per compute capability".
  constexpr std::int64_t warp = 32, granule = 8, quarters = 4, most_groups = 32;
  const std::int64_t most_items = capability == 75                                            ? 1024
                                  : (capability > 80 && capability < 90) || capability >= 110 ? 1536
                                                                                              : 2048;
  if (of_an_item <= 0) return 0;
  const std::int64_t of_a_warp = (of_an_item + granule - 1) / granule * granule * warp;
  const std::int64_t warps = all_registers / quarters / of_a_warp * quarters;
  return std::min({warps / ((group_items + warp - 1) / warp), most_items / group_items, most_groups});
}

std::int64_t groups_by_local_memory(std::int64_t bytes, int capability) {
  // As above: of a multiprocessor, and what each group takes besides.
  constexpr std::int64_t kilobyte = 1024, most_groups = 32;
  const std::int64_t granule = capability >= 80 ? 128 : 256;
  const auto all = [capability]() -> std::int64_t {
    switch (capability) {
      case 52:
      case 61:
      case 70:
      case 72: return 96;
      case 75: return 64;
      case 80:
      case 87: return 164;
      case 86:
      case 89: return 100;
      default: return capability < 70 ? 64 : capability < 120 ? 228 : 100;
    }
  }();
  const std::int64_t besides = capability >= 80 ? kilobyte : 0;
  const std::int64_t of_a_group = (bytes + granule - 1) / granule * granule + besides;
  return of_a_group == 0 ? most_groups : std::min(all * kilobyte / of_a_group, most_groups);
}

Device::Peaks OpenClDevice::measure_peaks(double seconds) {
  int lanes = 4;
  for (const cl_uint width : {1u, 2u, 8u, 16u})
    if (fact<cl_uint>(device_, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) == width) lanes = static_cast<int>(width);
  return measure_gpu_peaks(*this, lanes, seconds);
}
std::shared_ptr<const Sequence> OpenClDevice::busy_work(double seconds) {
  return info().is_gpu ? gpu_busy_work(*this, 1, seconds) : nullptr;
}

std::shared_ptr<Buffer> OpenClDevice::borrow_buffer(cl_mem buffer) {
  if (!buffer) throw bad_input("borrowing a cl_mem: the handle is null");
  cl_uint type = 0;
  std::size_t size = 0, origin = 0;
  cl_bitfield flags = 0;
  cl_context context = nullptr;
  cl_mem whole = nullptr;
  const auto ask = [buffer](cl_uint what, auto& value) {
    check("clGetMemObjectInfo", api().GetMemObjectInfo(buffer, what, sizeof value, &value, nullptr));
  };
  ask(CL_MEM_TYPE, type), ask(CL_MEM_SIZE, size), ask(CL_MEM_CONTEXT, context);
  ask(CL_MEM_ASSOCIATED_MEMOBJECT, whole), ask(CL_MEM_OFFSET, origin), ask(CL_MEM_FLAGS, flags);
  if (type != CL_MEM_OBJECT_BUFFER) throw bad_input("borrowing a cl_mem: it is no buffer (images cannot be used)");
  if (context != context_.get()) throw bad_input("borrowing a cl_mem: it belongs to another cl_context");
  const Access access{.read = (flags & CL_MEM_WRITE_ONLY) == 0, .write = (flags & CL_MEM_READ_ONLY) == 0};
  return std::make_shared<OpenClBuffer>(self(), retain(buffer), static_cast<std::int64_t>(size), whole, origin, access);
}

std::shared_ptr<Queue> OpenClDevice::borrow_queue(cl_command_queue queue) {
  if (!queue) throw bad_input("borrowing a cl_command_queue: the handle is null");
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_bitfield properties = 0;
  const auto ask = [queue](cl_uint what, auto& value) {
    check("clGetCommandQueueInfo", api().GetCommandQueueInfo(queue, what, sizeof value, &value, nullptr));
  };
  ask(CL_QUEUE_CONTEXT, context);
  ask(CL_QUEUE_DEVICE, device);
  ask(CL_QUEUE_PROPERTIES, properties);
  if (context != context_.get() || device != device_)
    throw bad_input("borrowing a cl_command_queue: it belongs to another cl_context or device");
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    throw bad_input("borrowing a cl_command_queue: it runs out of order; make one that runs in order");
  check("clRetainCommandQueue", api().RetainCommandQueue(queue));
  return std::make_shared<OpenClQueue>(self(), Owned<cl_command_queue>(queue), QueueOptions{});
}

}  // namespace omniconv::devices::opencl
