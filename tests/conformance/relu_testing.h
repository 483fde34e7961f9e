// relu of sums that are no ordinary numbers, by every solver of a device: what is negative becomes 0, minus infinity
// too; NaN stays NaN, whether it comes from the image, the bias or what the output held.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "conv2d_testing.h"
#include "core/convert.h"

namespace omniconv {

class ReluOfAnything {
 public:
  // A forward problem of f32, or of another type that holds small integers, NaN and infinities.
  ReluOfAnything(const Context& context, const std::string& text)
      : context_(context), queue_(context.make_queue()), problem_(conv2d_problem(text)), random_(text.size()) {
    const Conv2dElements elements = elements_of(problem_);
    x_ = values(elements.x, 9);
    w_ = values(elements.w, 0);
    held_ = values(elements.y, 9);
    bias_ = values(problem_.k, 4);
  }

  void expect_by_every_solver() {
    const std::vector<double> expected = defined();
    int served = 0;
    for (const Candidate& candidate : explain(context_, problem_)) {
      // Transforms carry NaN and infinities to all outputs of a tile.
      const bool transforms =
          candidate.solver.starts_with("conv2d/winograd/") || candidate.solver.starts_with("conv2d/fft/");
      if (!candidate.applicable || transforms) continue;
      expect_equal(made_by(candidate.solver), expected, candidate.solver);
      ++served;
    }
    EXPECT_GE(served, 2) << to_text(problem_);
  }

 private:
  // Whole numbers but 0, and among so many one that is none; all of them ordinary for 0.
  std::vector<double> values(std::int64_t count, std::uint64_t among) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double others[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, -0.0, 0.0};
    std::vector<double> result(static_cast<std::size_t>(count));
    for (double& value : result) {
      value = (random_() % 2 == 0 ? -1.0 : 1.0) * static_cast<double>(1 + random_() % 2);
      if (among > 0 && random_() % among == 0) value = others[random_() % std::size(others)];
    }
    return result;
  }

  std::size_t place(std::int64_t i, std::int64_t c, std::int64_t channels, std::int64_t y, std::int64_t h,
                    std::int64_t x, std::int64_t w) const {
    const bool in_planes = problem_.layout == Layout::nchw;
    return static_cast<std::size_t>(in_planes ? ((i * channels + c) * h + y) * w + x
                                              : ((i * h + y) * w + x) * channels + c);
  }

  double sum(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) const {
    const Conv2dProblem& of = problem_;
    double sum = 0;
    for (std::int64_t c = 0; c < of.c; ++c)
      for (std::int64_t i = 0; i < of.r; ++i)
        for (std::int64_t j = 0; j < of.s; ++j) {
          const std::int64_t row = p + i - of.pad_top, column = q + j - of.pad_left;
          if (row < 0 || row >= of.h || column < 0 || column >= of.w) continue;
          sum += x_[place(n, c, of.c, row, of.h, column, of.w)] * w_[place(k, c, of.c, i, of.r, j, of.s)];
        }
    return sum;
  }

  std::vector<double> defined() const {
    std::vector<double> y(held_.size());
    int undefined = 0, cut = 0;
    for (std::int64_t n = 0; n < problem_.n; ++n)
      for (std::int64_t k = 0; k < problem_.k; ++k)
        for (std::int64_t p = 0; p < P(problem_); ++p)
          for (std::int64_t q = 0; q < Q(problem_); ++q) {
            const std::size_t at = place(n, k, problem_.k, p, P(problem_), q, Q(problem_));
            double value = sum(n, k, p, q);
            if (problem_.bias) value += bias_[static_cast<std::size_t>(k)];
            if (problem_.accumulate) value += held_[at];
            undefined += std::isnan(value) ? 1 : 0;
            cut += value == -std::numeric_limits<double>::infinity() ? 1 : 0;
            y[at] = value < 0 ? 0 : value;
          }
    EXPECT_GT(undefined, 0) << to_text(problem_);
    EXPECT_GT(cut, 0) << to_text(problem_);
    return y;
  }

  Operand placed(const std::vector<double>& values) {
    const auto size = static_cast<std::size_t>(size_of(problem_.type));
    std::vector<std::byte> data(values.size() * size);
    for (std::size_t i = 0; i < values.size(); ++i) store_element(problem_.type, values[i], &data[i * size]);
    const Buffer buffer = context_.allocate(std::ssize(data));
    queue_.upload(buffer, 0, data.data(), buffer.bytes()).wait();
    return {buffer};
  }

  std::vector<double> made_by(const std::string& solver) {
    const Conv2dPlan plan(context_, problem_, {.solver = solver});
    const Conv2dRun run{.x = placed(x_),
                        .w = placed(w_),
                        .y = placed(held_),
                        .bias = problem_.bias ? placed(bias_) : Operand{},
                        .workspace = context_.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))};
    plan.run(queue_, run).wait();
    const auto size = static_cast<std::size_t>(size_of(problem_.type));
    std::vector<std::byte> data(held_.size() * size);
    queue_.download(data.data(), run.y.buffer, 0, std::ssize(data)).wait();
    std::vector<double> result(held_.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = load_element(problem_.type, &data[i * size]);
    return result;
  }

  // Which zero, and which NaN, is not promised.
  void expect_equal(const std::vector<double>& found, const std::vector<double>& expected, const std::string& solver) {
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
          << to_text(problem_) << " by " << solver << " on " << context_.device().id << ": y[" << i << "] is "
          << found[i] << " and must be " << expected[i];
  }

  const Context& context_;
  Queue queue_;
  Conv2dProblem problem_;
  std::mt19937_64 random_;
  std::vector<double> x_, w_, held_, bias_;
};

// Small images, and rows of more than a vector.
inline void expect_relu_of_anything(const Context& context, std::initializer_list<const char*> types,
                                    Variants variants) {
  int number = 0;
  for (const char* const type : types)
    for (const char* const words : {"relu", "bias relu", "relu acc", "bias relu acc"})
      for (const char* const layout : {"nchw", "nhwc"})
        for (const char* const geometry : {"n2c3h5w40k17r3s3p1", "n3c4h4w9k5r1s1"})
          if (variants == Variants::all || number++ % 5 == 0)
            ReluOfAnything(context, fmt::format("{} {} {} {}", words, type, layout, geometry)).expect_by_every_solver();
}

}  // namespace omniconv
