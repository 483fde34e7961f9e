#include "devices/cuda/cuda_launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/cuda/cuda_program.h"

namespace omniconv::devices::cuda {
namespace {

constexpr Capability hopper = 90;  // the first with clusters, overlapping launches and tensor maps

// CUDA's limits of a grid, and of a group.
constexpr std::int64_t most_groups[3] = {2'147'483'647, 65'535, 65'535}, most_items[3] = {1024, 1024, 64};

template <typename Number, std::size_t count, std::size_t from>
std::array<Number, count> converted(const std::array<std::int64_t, from>& values) {
  std::array<Number, count> result;
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<Number>(values[i]);
  return result;
}

CUtensorMap encode(const TensorMap& map) {
  if (!map.buffer) return {};
  constexpr auto most = static_cast<std::size_t>(TensorMap::most_dimensions);
  const CUdeviceptr address = static_cast<const CudaBuffer&>(*map.buffer).memory()->address;
  void* const begin = reinterpret_cast<void*>(address + static_cast<CUdeviceptr>(map.offset_bytes));
  const auto rank = static_cast<unsigned>(map.rank);
  const auto extents = converted<std::uint64_t, most>(map.extents);
  const auto strides = converted<std::uint64_t, most - 1>(map.strides_bytes);
  const auto steps = converted<std::uint32_t, most>(map.element_strides);
  const int element = static_cast<int>(map.element), swizzle = static_cast<int>(map.swizzle),
            promotion = static_cast<int>(map.promotion), fill = map.fills_with_nan;
  CUtensorMap encoded;
  if (map.is_im2col) {
    const auto lower = converted<int, most - 2>(map.lower_corner), upper = converted<int, most - 2>(map.upper_corner);
    check("cuTensorMapEncodeIm2col",
          api().TensorMapEncodeIm2col(&encoded, element, rank, begin, extents.data(), strides.data(), lower.data(),
                                      upper.data(), static_cast<unsigned>(map.channels),
                                      static_cast<unsigned>(map.pixels), steps.data(), 0, swizzle, promotion, fill));
  } else {
    const auto box = converted<std::uint32_t, most>(map.box);
    check("cuTensorMapEncodeTiled",
          api().TensorMapEncodeTiled(&encoded, element, rank, begin, extents.data(), strides.data(), box.data(),
                                     steps.data(), 0, swizzle, promotion, fill));
  }
  return encoded;
}

bool has_cluster(const LaunchOptions& options) {
  return options.cluster.x * options.cluster.y * options.cluster.z != 1;
}

void check_grid(const char* kernel, const Grid& grid) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (grid.global[d] / grid.local[d] > most_groups[d])
      throw bad_input(fmt::format("launch of {}: {} groups in dimension {}: CUDA takes {} at most; launch parts of it",
                                  kernel, grid.global[d] / grid.local[d], d, most_groups[d]));
    if (grid.local[d] > most_items[d])
      throw bad_input(fmt::format("launch of {}: groups of {} work items in dimension {}: CUDA takes {} at most",
                                  kernel, grid.local[d], d, most_items[d]));
  }
}

}  // namespace

bool has_launch_attributes(Capability capability) {
  return capability >= hopper && api().LaunchKernelEx;
}

bool has_tensor_maps(Capability capability) {
  return capability >= hopper && api().TensorMapEncodeTiled && api().TensorMapEncodeIm2col;
}

LaunchValues::LaunchValues(const Sequence& sequence, const Sequence::Launch& launch) {
  std::size_t maps = 0;
  for (const Sequence::Argument& argument : sequence.arguments_of(launch)) {
    const std::size_t i = count_++;
    sizes_[i] = argument.bytes;
    pointers_[i] = &words_[i];
    if (const auto* const buffer = std::get_if<std::shared_ptr<const Buffer>>(&argument.value)) {
      words_[i].address = static_cast<const CudaBuffer&>(**buffer).memory()->address;
    } else if (const auto* const bytes = std::get_if<Sequence::Bytes>(&argument.value)) {
      pointers_[i] = const_cast<std::byte*>(sequence.bytes_of(*bytes));  // the driver only reads it
    } else if (const auto* const scalar = std::get_if<Scalar>(&argument.value)) {
      words_[i].scalar = static_cast<float>(scalar->value());
    } else {
      maps_[maps] = encode(sequence.map_of(std::get<Sequence::Map>(argument.value)));
      sizes_[i] = sizeof maps_[maps];
      pointers_[i] = &maps_[maps++];
    }
  }
}

Shape shape_of(const Grid& grid) {
  Shape shape;
  for (std::size_t d = 0; d < 3; ++d) {
    shape.groups[d] = static_cast<unsigned>(grid.global[d] / grid.local[d]);
    shape.local[d] = static_cast<unsigned>(grid.local[d]);
  }
  return shape;
}

void check_launch(const Sequence& sequence, const Sequence::Launch& launch, const SharedContext& context,
                  const std::string& device_id) {
  if (launch.program->context() != context.get())
    throw bad_input(
        fmt::format("launch of {}: its program was not built for the queue's device {}", launch.kernel, device_id));
  check_grid(launch.kernel, launch.grid);
  const bool has_groups_together = has_cluster(launch.options) || launch.options.meets;
  if (has_groups_together && !has_launch_attributes(context.capability()))
    throw bad_input(
        fmt::format("launch of {}: {} need compute capability 9.0 and a driver for CUDA 11.8 or newer, which device {} "
                    "has not",
                    launch.kernel, launch.options.meets ? "groups that meet" : "clusters", device_id));
  for (const Sequence::Argument& argument : sequence.arguments_of(launch)) {
    const Buffer* used = nullptr;
    if (const auto* const buffer = std::get_if<std::shared_ptr<const Buffer>>(&argument.value)) {
      used = buffer->get();
    } else if (const auto* const map = std::get_if<Sequence::Map>(&argument.value)) {
      if (!has_tensor_maps(context.capability()))
        throw bad_input(
            fmt::format("launch of {}: tensor maps need compute capability 9.0 and a driver for CUDA 12.0 or newer, "
                        "which device {} has not",
                        launch.kernel, device_id));
      used = sequence.map_of(*map).buffer;
    }
    if (used && used->context() != context.get())
      throw bad_input(fmt::format("{}: a buffer is none of the queue's device {}", launch.kernel, device_id));
  }
}

CUfunction function_of(const Sequence::Launch& launch, const LaunchValues& values) {
  const CudaCode& code = static_cast<const CudaProgram&>(*launch.program).code();
  return code.kernel(launch.kernel, values.sizes(), launch.options.local_memory_bytes);
}

void enqueue(const Sequence::Launch& launch, LaunchValues& values, const SharedContext& context, CUstream stream) {
  const CUfunction function = function_of(launch, values);
  const auto [groups, local] = shape_of(launch.grid);
  const auto local_memory = static_cast<unsigned>(launch.options.local_memory_bytes);
  CUlaunchAttribute attributes[3] = {};
  unsigned count = 0;
  if (has_cluster(launch.options)) {
    const Dimensions& cluster = launch.options.cluster;
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count++].value.clusterDim = {static_cast<unsigned>(cluster.x), static_cast<unsigned>(cluster.y),
                                            static_cast<unsigned>(cluster.z)};
  }
  if (launch.options.overlaps && context.has_overlap()) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.options.meets) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  CUresult code = CUDA_SUCCESS;
  if (count == 0) {
    code = api().LaunchKernel(function, groups[0], groups[1], groups[2], local[0], local[1], local[2], local_memory,
                              stream, values.pointers(), nullptr);
  } else {
    const CUlaunchConfig config{groups[0], groups[1],    groups[2], local[0],   local[1],
                                local[2],  local_memory, stream,    attributes, count};
    code = api().LaunchKernelEx(&config, function, values.pointers(), nullptr);
  }
  if (code != CUDA_SUCCESS)
    throw call_error(
        fmt::format("cuLaunchKernel ({}, groups of {} x {} x {})", launch.kernel, local[0], local[1], local[2]), code);
}

}  // namespace omniconv::devices::cuda
