// Kernels with faults made on purpose, so that the check that finds none elsewhere is known to find these:
//
//   oclgrind_faults none|stray-write|stray-read|race|uninitialized
//
// runs one on the OpenCL device. To be run under Oclgrind (scripts/oclgrind.sh), which reports; here nothing is judged.
#include <cstdio>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/error.h"

namespace {

using namespace omniconv;

constexpr std::int64_t items = 64;

constexpr std::string_view kernels = R"(
KERNEL void none(GLOBAL const int* RESTRICT x, GLOBAL int* RESTRICT y) { y[GLOBAL_ID_X] = x[GLOBAL_ID_X]; }
KERNEL void stray_write(GLOBAL const int* RESTRICT x, GLOBAL int* RESTRICT y) { y[GLOBAL_ID_X + 1] = x[GLOBAL_ID_X]; }
KERNEL void stray_read(GLOBAL const int* RESTRICT x, GLOBAL int* RESTRICT y) { y[GLOBAL_ID_X] = x[GLOBAL_ID_X - 1]; }
KERNEL void race(GLOBAL const int* RESTRICT x, GLOBAL int* RESTRICT y) { y[GLOBAL_ID_X / 2] = x[GLOBAL_ID_X]; }
KERNEL void uninitialized(GLOBAL const int* RESTRICT x, GLOBAL int* RESTRICT y) {
  if (y[GLOBAL_ID_X] > 0) y[GLOBAL_ID_X] = x[GLOBAL_ID_X];
}
)";

int run(std::string name) {
  for (char& letter : name)
    if (letter == '-') letter = '_';
  const Context context({.device = "opencl"});
  const auto program = context.impl()->build(kernels, {});
  Queue queue = context.make_queue();
  const Buffer x = context.allocate(items * 4), y = context.allocate(items * 4);
  std::vector<std::int32_t> numbers;
  for (std::int32_t i = 0; i < items; ++i) numbers.push_back(i);
  queue.upload(x, 0, numbers.data(), items * 4).wait();
  const devices::KernelArgument arguments[] = {x.impl().get(), y.impl().get()};
  queue.impl()->launch(program, name.c_str(), {{items, 1}, {16, 1}}, arguments).wait();
  queue.download(numbers.data(), y, 0, items * 4).wait();
  std::printf("%s ran on %s\n", name.c_str(), context.device().name.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: oclgrind_faults none|stray-write|stray-read|race|uninitialized\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const Error& error) {
    std::fprintf(stderr, "oclgrind_faults: error: %s\n", error.what());
    return 3;
  }
}
