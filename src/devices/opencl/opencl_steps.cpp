#include "devices/opencl/opencl_steps.h"

#include <fmt/format.h>

namespace omniconv::devices::opencl {
namespace {

void check_launch(const Sequence& sequence, const Sequence::Launch& launch, const OpenClDevice& device) {
  const std::string& device_id = device.info().id;
  const auto refuse = [&](std::string_view reason) {
    throw bad_input(fmt::format("launch of {}: {}", launch.kernel, reason));
  };
  if (launch.program->context() != device.context())
    refuse(fmt::format("its program was not built for the queue's device {}", device_id));
  const Dimensions& cluster = launch.options.cluster;
  if (cluster.x * cluster.y * cluster.z != 1)
    refuse(fmt::format("device {} knows no clusters of groups: take a CUDA device", device_id));
  if (launch.options.meets)
    refuse(fmt::format("device {} may run some groups after others, which cannot meet: take a CUDA device", device_id));
  if (launch.options.local_memory_bytes > 0)
    refuse(fmt::format("device {} takes local memory that the text declares, and not {} bytes more: declare them",
                       device_id, launch.options.local_memory_bytes));
  for (const Sequence::Argument& argument : sequence.arguments_of(launch)) {
    if (std::holds_alternative<Sequence::Map>(argument.value))
      refuse(fmt::format("device {} knows no tensor maps: take a CUDA device", device_id));
    const auto* const buffer = std::get_if<std::shared_ptr<const Buffer>>(&argument.value);
    if (!buffer) continue;
    const std::int64_t bytes = own_buffer(**buffer, device, launch.kernel).bytes(),
                       most = device.info().max_buffer_bytes;
    if (bytes > most)
      refuse(fmt::format("a buffer of {} bytes is larger than {} takes ({} bytes); use smaller parts", bytes, device_id,
                         most));
  }
}

}  // namespace

const OpenClBuffer& own_buffer(const Buffer& buffer, const OpenClDevice& device, const char* call) {
  if (buffer.context() != device.context())
    throw bad_input(fmt::format("{}: a buffer is none of the queue's device {}", call, device.info().id));
  return static_cast<const OpenClBuffer&>(buffer);
}

void check_steps(const Sequence& sequence, const OpenClDevice& device) {
  for (const Sequence::Step& step : sequence.steps()) {
    if (const auto* const launch = std::get_if<Sequence::Launch>(&step)) {
      check_launch(sequence, *launch, device);
    } else if (const auto* const copy = std::get_if<Sequence::Copy>(&step)) {
      own_buffer(*copy->to, device, "a copy");
      own_buffer(*copy->from, device, "a copy");
    } else if (const auto* const fill = std::get_if<Sequence::Fill>(&step)) {
      own_buffer(*fill->buffer, device, "a fill");
    } else if (std::holds_alternative<Sequence::Call>(step)) {
      throw bad_input(foreign_host_task);
    }
  }
}

}  // namespace omniconv::devices::opencl
