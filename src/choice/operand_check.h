// The memory of a run, before it is submitted.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "devices/device.h"
#include "omniconv/plan.h"

namespace omniconv {

// A buffer, or a part of it, by the name that a run has for it.
struct NamedRange {
  const char* name;
  const Buffer& buffer;
  std::int64_t offset_bytes = 0, bytes = 0;
};

// Throws where it is empty.
devices::Queue& present(Queue& queue);
// Throws where it is empty, was moved from, or was made for another device.
devices::Sequence& present(Sequence& sequence, const devices::Device& device);
// Throws where the host cannot touch it and the plan is of the CPU. Of other devices the queue looks at what it is
// given.
void check_device(const char* name, const Buffer& buffer, const devices::Device& device);
// Throws where its first byte is at no multiple of an element's size.
void check_alignment(const char* name, const Buffer& buffer, std::int64_t element_bytes);
// Throws where kernels may not do with it what a run does.
void check_access(const char* name, const Buffer& buffer, devices::Access needed);
// Throws, naming the array, for a missing, misaligned or too small one, one of another device, or memory that may not
// be read or written, and where what is written overlaps what is read or written, unless both are the same memory and
// may be: an output and an input by their places.
// A prepared one has the format of the same place in `formats`, that `solver` takes.
using MayBeSame = std::function<bool(std::size_t output, std::size_t input)>;
void check_arrays(std::span<const ArraySpec> specs, std::span<const Operand> operands,
                  std::span<const std::shared_ptr<const PreparedFormat>> formats, const std::string& solver,
                  const devices::Device& device, const MayBeSame& may_be_same);
// The same of one array, as the problem says it, and of the memory that it is prepared into.
void check_preparation(const ArraySpec& array, const Operand& from, const Buffer& to, const PreparedFormat& format,
                       const devices::Device& device);
// Throws where it is smaller than the solver needs, misaligned or of another device, or overlaps one of the others.
void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::span<const NamedRange> others);
void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::span<const ArraySpec> specs,
                     std::span<const Operand> operands);

}  // namespace omniconv
