// Random problems for checks, awkward on purpose: the same seed draws the same ones on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace omniconv::operations {

// The engine is specified to the bit, the library's distributions are not.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}

  // From 0, less than the limit.
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
  }
  bool one_in(std::int64_t times) { return below(times) == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

  // The most that a problem may take: multiply-adds of its definition, and steps of the references beside them. A
  // problem of the most takes some tens of milliseconds to check on one core; few are of the most.
  double work();

  // Rows or columns of an image: 1, primes, powers of two and their neighbours, those of layers, now and then long
  // ones.
  std::int64_t extent();
  std::int64_t batch();
  std::int64_t channels();

  // One of rows, one of columns.
  struct Pair {
    std::int64_t rows = 1, columns = 1;
  };
  // Of a filter: 1 x 1, 1 x N, N x 1, square, now and then large.
  Pair window();
  Pair stride();
  Pair dilation();

  // Before and behind one axis on which the window reaches over so many elements; less than that on either side.
  struct Padding {
    std::int64_t before = 0, after = 0;
  };
  Padding padding(std::int64_t reach);

 private:
  std::mt19937_64 engine_;
};

}  // namespace omniconv::operations
