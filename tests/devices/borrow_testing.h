// A convolution and a matrix product of small integers, exact on every device, for tests on memory of the caller's.
#pragma once

#include <variant>
#include <vector>

#include "omniconv/conv2d.h"
#include "omniconv/gemm.h"

namespace omniconv {

inline std::vector<float> small_integers(std::int64_t count, int seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(seed)) % 9) - 4;
  return values;
}

template <typename T>
std::int64_t bytes_of(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size() * sizeof(T));
}

// With the CPU's result.
struct IntegerLayer {
  Conv2dProblem problem = get<Conv2dProblem>(parse_problem("n2c3h9w7k5r3s2p1uh2"));
  Conv2dElements elements = elements_of(problem);
  std::vector<float> x = small_integers(elements.x, 1), w = small_integers(elements.w, 2),
                     y = std::vector<float>(static_cast<std::size_t>(elements.y));
  IntegerLayer() {
    const Context cpu({.device = "cpu", .threads = 1});
    Queue queue = cpu.make_queue();
    Conv2dPlan(cpu, problem, {.solver = "conv2d/double/cpu.1"})
        .run(queue, {.x = {cpu.borrow(std::span(x))}, .w = {cpu.borrow(std::span(w))}, .y = {cpu.borrow(std::span(y))}})
        .wait();
  }
};

struct IntegerProduct {
  GemmProblem problem = get<GemmProblem>(parse_problem("gemm f32 nn m9n14k33"));
  std::vector<float> a = small_integers(9 * 33, 3), b = small_integers(33 * 14, 4), c = std::vector<float>(9 * 14);
  IntegerProduct() {
    for (std::size_t i = 0; i < 9; ++i)
      for (std::size_t j = 0; j < 14; ++j)
        for (std::size_t k = 0; k < 33; ++k) c[i * 14 + j] += a[i * 33 + k] * b[k * 14 + j];
  }
};

}  // namespace omniconv
