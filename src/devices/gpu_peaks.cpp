#include "devices/gpu_peaks.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "devices/best_rate.h"
#include "devices/sequence.h"
#include "embedded/peaks.kernel.h"

namespace omniconv::devices {

namespace {

constexpr std::int64_t chains = 8;

std::int64_t group_of(const Device& device) {
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(device.facts().max_group_items, 1, 256))));
}
std::shared_ptr<Program> program_of(Device& device, int lanes) {
  const Definition definitions[] = {{"VECTOR", std::to_string(lanes)}, {"CHAINS", std::to_string(chains)}};
  return device.build(peaks_kernel, definitions);
}

// As a step of a training is run: recorded. Launches that a device lets overlap take less.
double seconds_of_launch(Device& device, const std::shared_ptr<Program>& program, Queue& queue, double budget) {
  constexpr int launches = 200;
  const std::shared_ptr<Buffer> number = device.allocate(sizeof(std::int32_t));
  const std::int32_t zero = 0;
  queue.upload(number, 0, &zero, sizeof zero).wait();
  const auto sequence = std::make_shared<Sequence>();
  const KernelArgument arguments[] = {number.get()};
  for (int i = 0; i < launches; ++i) sequence->launch(program, "add_one", Grid{{1, 1}, {1, 1}}, arguments);
  const std::shared_ptr<const Recording> recording = device.record(sequence);
  const double rate = best_rate(budget, [&] {
    Event event = queue.replay(recording);
    event.wait();
    return Done{launches, event.seconds()};
  });
  return rate > 0 ? 1 / rate : 0;
}

}  // namespace

std::shared_ptr<const Sequence> gpu_busy_work(Device& device, int lanes, double seconds) {
  const std::int64_t group = group_of(device);
  const std::shared_ptr<Program> program = program_of(device, lanes);
  const std::shared_ptr<Queue> queue = device.make_queue();
  const std::shared_ptr<Buffer> result = device.allocate(group * lanes * static_cast<std::int64_t>(sizeof(float)));
  constexpr std::int64_t most_rounds = std::int64_t{1} << 24;
  std::shared_ptr<Sequence> sequence;
  for (std::int64_t rounds = 1024; rounds < most_rounds; rounds *= 2) {
    sequence = std::make_shared<Sequence>();
    const KernelArgument arguments[] = {result.get(), 0.5f, 1.0f, rounds};
    sequence->launch(program, "multiply_add", Grid{{group, 1}, {group, 1}}, arguments);
    queue->submit(sequence).wait();  // some drivers compile here
    Event event = queue->submit(sequence);
    event.wait();
    if (event.seconds() >= seconds) break;
  }
  return sequence;
}

Device::Peaks measure_gpu_peaks(Device& device, int lanes, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  seconds *= 0.8;  // a launch may last longer than those before it promised
  const DeviceInfo& info = device.info();
  const std::int64_t group = group_of(device);
  const std::shared_ptr<Program> program = program_of(device, lanes);
  const std::shared_ptr<Queue> queue = device.make_queue();
  const auto timed = [&](const char* kernel, const Grid& grid, std::span<const KernelArgument> arguments) {
    Event event = queue->launch(program, kernel, grid, arguments);
    event.wait();
    return event.seconds();
  };
  Device::Peaks peaks;
  const std::int64_t items = group * 32 * std::max(info.compute_units, 1);
  const std::shared_ptr<Buffer> result = device.allocate(items * lanes * static_cast<std::int64_t>(sizeof(float)));
  const auto multiply_add = [&](std::int64_t rounds) {
    const KernelArgument arguments[] = {result.get(), 0.5f, 1.0f, rounds};
    return timed("multiply_add", Grid{{items, 1}, {group, 1}}, arguments);
  };
  multiply_add(1);  // some drivers compile here
  std::int64_t rounds = 16;
  double last = multiply_add(rounds);
  const double half = std::max(seconds_since(start), 0.5 * (seconds + seconds_since(start)));
  while (last < 0.01 * seconds && seconds_since(start) < half) last = multiply_add(rounds *= 2);
  const double operations = 2 * static_cast<double>(items * lanes) * static_cast<double>(rounds * chains);
  peaks.tflops = 1e-12 * best_rate(half - seconds_since(start), [&] { return Done{operations, multiply_add(rounds)}; });

  // Far above the caches, and a small part of the device.
  const std::int64_t largest = std::int64_t{info.is_gpu ? 256 : 128} << 20;
  const std::int64_t bytes =
      std::max<std::int64_t>(std::min({largest, info.max_buffer_bytes, info.memory_bytes / 16}) / 4096 * 4096, 4096);
  const std::shared_ptr<Buffer> from = device.allocate(bytes), to = device.allocate(bytes);
  const auto copy = [&](const Buffer& target, const Buffer& source) {
    const KernelArgument arguments[] = {&target, &source};
    return timed("copy", Grid{{bytes / 16, 1}, {group, 1}}, arguments);
  };
  copy(*from, *to);  // memory that was never written may be one page of zeros
  peaks.gbps = 1e-9 * best_rate(0.9 * seconds - seconds_since(start), [&] {
                 return Done{2 * static_cast<double>(bytes), copy(*to, *from)};
               });
  peaks.launch_seconds = seconds_of_launch(device, program, *queue, seconds - seconds_since(start));
  return peaks;
}

}  // namespace omniconv::devices
