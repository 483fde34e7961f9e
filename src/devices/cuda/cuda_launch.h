// Launches as the driver takes them.
#pragma once

#include <array>

#include "devices/cuda/cuda_device.h"
#include "devices/sequence.h"

namespace omniconv::devices::cuda {

// Of a device of this capability, with this process's driver.
bool has_launch_attributes(Capability capability);
bool has_tensor_maps(Capability capability);

// What the driver reads at the call: where each argument lies. Scalars are those of this moment, tensor maps are
// encoded.
class LaunchValues {
 public:
  LaunchValues(const Sequence& sequence, const Sequence::Launch& launch);
  LaunchValues(const LaunchValues&) = delete;
  LaunchValues& operator=(const LaunchValues&) = delete;
  void** pointers() { return pointers_.data(); }
  std::span<const std::size_t> sizes() const { return std::span(sizes_).first(count_); }
  // Of an argument that is a scalar.
  float scalar(std::size_t argument) const { return words_[argument].scalar; }

 private:
  static constexpr std::size_t most = Sequence::most_arguments;
  std::size_t count_ = 0;
  std::array<void*, most> pointers_;
  std::array<std::size_t, most> sizes_;
  union Word {
    CUdeviceptr address;
    float scalar;
  };
  std::array<Word, most> words_;
  std::array<CUtensorMap, Sequence::most_tensor_maps> maps_;
};

// Groups and work items of a group, of a launch that was checked.
struct Shape {
  std::array<unsigned, 3> groups, local;
};
Shape shape_of(const Grid& grid);

// Throws bad_input where a launch, or what it is given, cannot be of the context's device.
void check_launch(const Sequence& sequence, const Sequence::Launch& launch, const SharedContext& context,
                  const std::string& device_id);

// A launch's kernel, of the code that its program has now.
CUfunction function_of(const Sequence::Launch& launch, const LaunchValues& values);

// Of a launch that is not empty, on a stream of the context, which is current.
void enqueue(const Sequence::Launch& launch, LaunchValues& values, const SharedContext& context, CUstream stream);

}  // namespace omniconv::devices::cuda
