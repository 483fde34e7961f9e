// What this CPU reaches: independent fp32 multiply-adds in registers, a copy from memory to memory, and steps of a
// sequence.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/checked.h"
#include "devices/best_rate.h"
#include "devices/cpu/cpu_device.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "devices/cpu/cpu_peaks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::devices::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Multiply-adds on 12 independent vectors, enough to cover the latency of two units; returns how many were done.
double multiply_adds(std::int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  constexpr int chains = 12;
  hn::Vec<decltype(d)> sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  for (std::int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < chains; ++i) sums[i] = hn::MulAdd(sums[i], factor, term);
  auto total = sums[0];
  for (int i = 1; i < chains; ++i) total = hn::Add(total, sums[i]);
  hn::StoreU(total, d, sink);
  return static_cast<double>(rounds) * chains * static_cast<double>(hn::Lanes(d));
}

}  // namespace omniconv::devices::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::devices {

HWY_EXPORT(multiply_adds);

namespace {

// The wall clock's seconds of `work`, which returns how many units it did.
template <typename Work>
Done timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  const double units = work();
  return {units, seconds_since(start)};
}

// Of each of two arrays, of which the last cache keeps nothing from one copy to the next: it has room for one at most.
std::int64_t bytes_past_caches(std::int64_t memory_bytes) {
  constexpr std::int64_t least = std::int64_t{128} << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const std::int64_t last_cache = sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or less: not known
#else
  const std::int64_t last_cache = 0;
#endif
  return std::max(least, std::min(last_cache, memory_bytes / 16));
}

// Of host tasks that add 1 to a number. What it costs to share a task out to the crew's threads is no part of it: small
// tasks are done without.
double seconds_of_step(CpuDevice& device, double budget) {
  constexpr int steps = 1000;
  std::int64_t number = 0;
  const auto sequence = std::make_shared<Sequence>();
  for (int i = 0; i < steps; ++i) sequence->call(HostTask([&number] { ++number; }));
  const std::shared_ptr<Queue> queue = device.make_queue({.begins_at_wait = true});
  const std::shared_ptr<const Recording> recording = device.record(sequence);
  const double rate = best_rate(budget, [&] {
    Event event = queue->replay(recording);
    event.wait();
    return Done{steps, event.seconds()};
  });
  return rate > 0 ? 1 / rate : 0;
}

}  // namespace

Device::Peaks CpuDevice::measure_peaks(double seconds) {
  constexpr std::int64_t rounds = 1 << 20;
  const auto multiply = [&] {
    std::vector<double> done(static_cast<std::size_t>(threads()), 0);
    parallel_for(threads(), [&](std::int64_t i, int) {
      alignas(64) float sink[64];
      done[static_cast<std::size_t>(i)] = HWY_DYNAMIC_DISPATCH(multiply_adds)(rounds, sink);
    });
    double total = 0;
    for (const double d : done) total += d;
    return total;
  };
  const double rate = best_rate(0.3 * seconds, [&] { return timed(multiply); });

  constexpr std::int64_t piece = std::int64_t{1} << 20;
  const std::int64_t bytes = round_up(bytes_past_caches(info().memory_bytes), piece);
  const auto from = allocate(bytes), to = allocate(bytes);
  const auto for_pieces = [&](const auto& body) {
    parallel_for(bytes / piece, [&](std::int64_t i, int) { body(i * piece); });
  };
  for_pieces([&](std::int64_t at) {
    std::memset(from->host() + at, 1, piece);
    std::memset(to->host() + at, 2, piece);
  });
  const auto copy = [&] {
    for_pieces([&](std::int64_t at) { std::memcpy(to->host() + at, from->host() + at, piece); });
    return 2.0 * static_cast<double>(bytes);
  };
  const double bandwidth = best_rate(0.3 * seconds, [&] { return timed(copy); });
  return {.tflops = 2 * rate / 1e12, .gbps = bandwidth / 1e9, .launch_seconds = seconds_of_step(*this, 0.02 * seconds)};
}

}  // namespace omniconv::devices
#endif
