#include "devices/cuda/cuda_steps.h"

#include <fmt/format.h>

#include "devices/cuda/cuda_launch.h"
#include "devices/cuda/cuda_program.h"

namespace omniconv::devices::cuda {
namespace {

CUdeviceptr address_of(const Buffer& buffer, std::int64_t offset_bytes) {
  return static_cast<const CudaBuffer&>(buffer).memory()->address + static_cast<CUdeviceptr>(offset_bytes);
}

void enqueue(const Sequence& sequence, const Sequence::Launch& launch, const SharedContext& context, CUstream stream) {
  if (launch.is_empty()) return;
  LaunchValues values(sequence, launch);
  enqueue(launch, values, context, stream);
}

void enqueue(const Sequence::Copy& copy, CUstream stream) {
  if (copy.bytes == 0) return;
  check("cuMemcpyAsync",
        api().MemcpyAsync(address_of(*copy.to, copy.to_offset_bytes), address_of(*copy.from, copy.from_offset_bytes),
                          static_cast<std::size_t>(copy.bytes), stream));
}

void enqueue(const Sequence::Fill& fill, CUstream stream) {
  if (fill.bytes == 0) return;
  check("cuMemsetD8Async", api().MemsetD8Async(address_of(*fill.buffer, fill.offset_bytes), fill.value,
                                               static_cast<std::size_t>(fill.bytes), stream));
}

}  // namespace

void check_steps(const Sequence& sequence, const SharedContext& context, const std::string& device_id) {
  const auto check_buffer = [&](const char* what, const Buffer& buffer) {
    if (buffer.context() != context.get())
      throw bad_input(fmt::format("{}: a buffer is none of the queue's device {}", what, device_id));
  };
  for (const Sequence::Step& step : sequence.steps()) {
    if (const auto* const launch = std::get_if<Sequence::Launch>(&step)) {
      check_launch(sequence, *launch, context, device_id);
    } else if (const auto* const copy = std::get_if<Sequence::Copy>(&step)) {
      check_buffer("a copy", *copy->to);
      check_buffer("a copy", *copy->from);
    } else if (const auto* const fill = std::get_if<Sequence::Fill>(&step)) {
      check_buffer("a fill", *fill->buffer);
    } else if (std::holds_alternative<Sequence::Call>(step)) {
      throw bad_input(foreign_host_task);
    }
  }
}

void prepare_programs(const Sequence& sequence, const SharedContext& context) {
  std::uint64_t number = 0;
  for (const Sequence::Step& step : sequence.steps()) {
    const auto* const launch = std::get_if<Sequence::Launch>(&step);
    if (!launch) continue;
    const auto& program = static_cast<const CudaProgram&>(*launch->program);
    if (program.is_optimised()) continue;
    if (number == 0) number = context.next_submission();
    program.prepare(number);
  }
}

void await_optimised(const Sequence& sequence) {
  for (const Sequence::Step& step : sequence.steps())
    if (const auto* const launch = std::get_if<Sequence::Launch>(&step))
      static_cast<const CudaProgram&>(*launch->program).await_optimised();
}

void enqueue_step(const Sequence& sequence, const Sequence::Step& step, const SharedContext& context, CUstream stream) {
  if (const auto* const launch = std::get_if<Sequence::Launch>(&step))
    enqueue(sequence, *launch, context, stream);
  else if (const auto* const copy = std::get_if<Sequence::Copy>(&step))
    enqueue(*copy, stream);
  else if (const auto* const fill = std::get_if<Sequence::Fill>(&step))
    enqueue(*fill, stream);
  else if (const auto* const native = std::get_if<Sequence::Native>(&step))
    native->call(stream);
}

}  // namespace omniconv::devices::cuda
