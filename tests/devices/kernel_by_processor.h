// Words of kernel text for a processor, which then runs it without a device: those of prelude.cuda, and some of
// tensor_units.kernel. Groups follow each other; a group's work items are threads, and what they share is static. To be
// included last, since it defines the words that the text is written in.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/convert.h"
#include "omniconv/types.h"

namespace omniconv::by_processor {

using uchar = unsigned char;
using uint = std::uint32_t;
using ushort = std::uint16_t;
using ulong = std::uint64_t;
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
struct uint2 {
  uint x, y;
};
struct uint4 {
  uint x, y, z, w;
};
struct half_t {
  ushort bits;
};

inline thread_local int this_item = 0;
inline thread_local long this_group = 0;
struct Groups {
  int x;
};
inline Groups gridDim;
using Barriers = std::vector<std::unique_ptr<std::barrier<>>>;
inline std::unique_ptr<std::barrier<>> of_group;
inline Barriers of_warps, of_warpgroups;
inline std::array<uint, 32 * 16> exchanged;

inline void launch(int groups, int items, const std::function<void()>& kernel) {
  gridDim.x = groups;
  of_group = std::make_unique<std::barrier<>>(items);
  of_warps.clear(), of_warpgroups.clear();
  for (int i = 0; i < items; i += 32) of_warps.push_back(std::make_unique<std::barrier<>>(32));
  for (int i = 0; i < items; i += 128) of_warpgroups.push_back(std::make_unique<std::barrier<>>(128));
  std::vector<std::thread> threads;
  for (int i = 0; i < items; ++i)
    threads.emplace_back([&, i] {
      this_item = i;
      for (this_group = 0; this_group < groups; ++this_group) {
        kernel();
        of_group->arrive_and_wait();
      }
    });
  for (std::thread& each : threads) each.join();
}
inline void meet_warp() {
  of_warps[static_cast<std::size_t>(this_item / 32)]->arrive_and_wait();
}
inline void meet_warpgroup() {
  of_warpgroups[static_cast<std::size_t>(this_item / 128)]->arrive_and_wait();
}
inline uint largest_of_warp(uint value) {
  exchanged[static_cast<std::size_t>(this_item)] = value;
  meet_warp();
  const auto first = exchanged.begin() + this_item / 32 * 32;
  const uint largest = *std::max_element(first, first + 32);
  meet_warp();
  return largest;
}

inline void raise_to(uint* at, uint value) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  *at = std::max(*at, value);
}

inline float widened(DataType type, ushort bits) {
  return static_cast<float>(load_element(type, reinterpret_cast<const std::byte*>(&bits)));
}
inline ushort narrowed(DataType type, float value) {
  ushort bits;
  store_element(type, value, reinterpret_cast<std::byte*>(&bits));
  return bits;
}

inline int is_any(int is_so) {
  exchanged[static_cast<std::size_t>(this_item)] = static_cast<uint>(is_so);
  meet_warpgroup();
  const std::size_t first = static_cast<std::size_t>(this_item / 128 * 128);
  const bool any =
      std::any_of(exchanged.begin() + static_cast<std::ptrdiff_t>(first),
                  exchanged.begin() + static_cast<std::ptrdiff_t>(first + 128), [](uint one) { return one != 0; });
  meet_warpgroup();
  return any;
}

inline void begin_launch_behind() {}
inline void await_launch_before() {}

template <typename T>
T min(T a, T b) {
  return std::min(a, b);
}
template <typename T>
T max(T a, T b) {
  return std::max(a, b);
}

}  // namespace omniconv::by_processor

#define DEVICE inline
#define KERNEL_OF(items, resident) inline
#define GLOBAL
#define LOCAL static
#define LOCAL_MEMORY
#define UNROLL
#define ROLLED
#define __grid_constant__
#define GROUP_ID_X this_group
#define LOCAL_ID_X this_item
#define BARRIER of_group->arrive_and_wait()
#define FMA(a, b, c) std::fma((a), (b), (c))
#define FLOAT_TO_BITS(value) std::bit_cast<int>(value)
#define BITS_TO_FLOAT(bits) std::bit_cast<float>(bits)
#define UINT4(a, b, c, d) (uint4{(a), (b), (c), (d)})
#define HALF_BITS_TO_FLOAT(value) widened(DataType::f16, value)
#define STORE_HALF(value, pointer, i) ((pointer)[i] = half_t{narrowed(DataType::f16, value)})
#define PACK_F16(a, b) (uint{narrowed(DataType::f16, a)} | uint{narrowed(DataType::f16, b)} << 16)
#define __clz(value) std::countl_zero(static_cast<uint>(value))
#define __reduce_max_sync(mask, value) largest_of_warp(value)
#define __syncwarp() meet_warp()
