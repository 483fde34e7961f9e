// batch by its definition: what tests of every device compare with.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/philox.h"
#include "omniconv/batch.h"
#include "operations/batch/draw.h"

namespace omniconv {

inline BatchProblem batch(const std::string& text) {
  return get<BatchProblem>(parse_problem("batch " + text));
}

// A data set on the host.
struct BatchSet {
  std::vector<std::uint8_t> images, labels;
  std::vector<std::int32_t> order;
  std::vector<float> table;
};

// A set whose images, rows and columns all differ, in an order in which every image is once; gathered ones have numbers
// of a larger set.
inline BatchSet some_set(const BatchProblem& p) {
  BatchSet set;
  for (std::int64_t i = 0; i < p.m * p.c * p.h * p.w; ++i)
    set.images.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(i * i + 1) * 2654435761u >> 20));
  for (std::int64_t i = 0; i < p.m; ++i) {
    set.labels.push_back(static_cast<std::uint8_t>(i * 37 + 5));
    set.order.push_back(static_cast<std::int32_t>(i));
  }
  for (std::int64_t i = p.m; i > 1; --i)
    std::swap(set.order[static_cast<std::size_t>(i - 1)], set.order[static_cast<std::size_t>((i * 7919 + 3) % i)]);
  if (p.gathered)
    for (std::int32_t& number : set.order) number += 1 << 24;
  for (std::int64_t i = 0; i < 256 * p.c; ++i)
    set.table.push_back(static_cast<float>(std::sin(static_cast<double>(i * 13 + 1))));
  return set;
}

struct BatchScalars {
  std::int64_t first = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

struct BatchResult {
  std::vector<double> y;
  std::vector<std::int32_t> classes;
  bool operator==(const BatchResult&) const = default;
};

// What the operation promises, in its words.
inline BatchResult defined(const BatchProblem& p, const BatchSet& set, const BatchScalars& scalars) {
  BatchResult result;
  result.y.resize(static_cast<std::size_t>(p.n * p.c * p.h * p.w));
  for (std::int64_t i = 0; i < p.n; ++i) {
    std::int64_t image = -1, number = -1, dp = 0, dq = 0;
    bool mirrored = false;
    if (const std::int64_t position = scalars.first + i; position < p.m) {
      const std::int32_t entry = set.order[static_cast<std::size_t>(position)];
      if (entry >= 0 && (p.gathered || entry < p.m)) image = p.gathered ? position : entry, number = entry;
    }
    if (image >= 0) {
      const auto words = philox(
          {static_cast<std::uint32_t>(number), 0, static_cast<std::uint32_t>(scalars.epoch), operations::use_of_draws},
          {static_cast<std::uint32_t>(scalars.seed), static_cast<std::uint32_t>(scalars.seed >> 32)});
      const std::uint64_t choices = 2 * static_cast<std::uint64_t>(p.shift) + 1;
      mirrored = p.flip && words[0] >= 0x80000000u;
      dp = static_cast<std::int64_t>(words[1] * choices >> 32) - p.shift;
      dq = static_cast<std::int64_t>(words[2] * choices >> 32) - p.shift;
    }
    result.classes.push_back(image < 0 ? -1 : set.labels[static_cast<std::size_t>(image)]);
    for (std::int64_t k = 0; k < p.c; ++k)
      for (std::int64_t r = 0; r < p.h; ++r)
        for (std::int64_t q = 0; q < p.w; ++q) {
          const std::int64_t row = r + dp, column = (mirrored ? p.w - 1 - q : q) + dq;
          std::uint8_t pixel = 0;
          if (image >= 0 && row >= 0 && row < p.h && column >= 0 && column < p.w)
            pixel = set.images[static_cast<std::size_t>(((image * p.c + k) * p.h + row) * p.w + column)];
          std::byte bytes[8];
          store_element(p.type, set.table[static_cast<std::size_t>(k * 256 + pixel)], bytes);
          const std::int64_t at =
              p.layout == Layout::nhwc ? ((i * p.h + r) * p.w + q) * p.c + k : ((i * p.c + k) * p.h + r) * p.w + q;
          result.y[static_cast<std::size_t>(at)] = load_element(p.type, bytes);
        }
  }
  return result;
}

// Elements before the arrays in their buffers.
struct BatchPlaces {
  std::int64_t images = 0, labels = 0, order = 0, table = 0, y = 0, classes = 0;
};

// A set in a device's memory. Buffers end with their arrays.
class BatchOnDevice {
 public:
  BatchOnDevice(const Context& context, const BatchProblem& problem, const BatchSet& set,
                const BatchPlaces& places = {})
      : context_(context), problem_(problem), queue_(context.make_queue()) {
    run_.images = placed(set.images, places.images);
    run_.labels = placed(set.labels, places.labels);
    run_.order = placed(set.order, places.order);
    run_.table = placed(set.table, places.table);
    const std::int64_t size = size_of(problem.type);
    run_.y = placed(std::vector<std::uint8_t>(static_cast<std::size_t>(y_elements() * size), 0xFF), places.y * size);
    run_.classes = placed(std::vector<std::int32_t>(static_cast<std::size_t>(problem.n), -7), places.classes);
  }

  BatchRun run(const BatchScalars& scalars, const BatchPlan& plan) const {
    BatchRun run = run_;
    run.first = static_cast<double>(scalars.first), run.epoch = static_cast<double>(scalars.epoch);
    run.seed = scalars.seed;
    run.workspace = context_.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
    return run;
  }
  BatchResult made(const BatchPlan& plan, const BatchScalars& scalars) {
    plan.run(queue_, run(scalars, plan)).wait();
    return result();
  }
  BatchResult result() {
    const std::int64_t size = size_of(problem_.type);
    std::vector<std::byte> bytes(static_cast<std::size_t>(y_elements() * size));
    queue_.download(bytes.data(), run_.y.buffer, run_.y.offset_bytes, std::ssize(bytes)).wait();
    BatchResult result;
    for (std::int64_t i = 0; i < y_elements(); ++i)
      result.y.push_back(load_element(problem_.type, bytes.data() + i * size));
    result.classes.resize(static_cast<std::size_t>(problem_.n));
    queue_.download(result.classes.data(), run_.classes.buffer, run_.classes.offset_bytes, 4 * problem_.n).wait();
    return result;
  }
  Queue& queue() { return queue_; }

 private:
  std::int64_t y_elements() const { return problem_.n * problem_.c * problem_.h * problem_.w; }
  template <typename T>
  Operand placed(const std::vector<T>& values, std::int64_t before) {
    constexpr std::int64_t size{sizeof(T)};
    const Operand operand{context_.allocate((std::ssize(values) + before) * size), before * size};
    queue_.upload(operand.buffer, operand.offset_bytes, values.data(), std::ssize(values) * size).wait();
    return operand;
  }

  const Context& context_;
  BatchProblem problem_;
  Queue queue_;
  BatchRun run_;
};

inline void expect_defined(const Context& context, const BatchProblem& problem, const std::string& solver,
                           const BatchScalars& scalars, const BatchPlaces& places = {}) {
  const BatchSet set = some_set(problem);
  const BatchResult expected = defined(problem, set, scalars);
  BatchOnDevice on_device(context, problem, set, places);
  const BatchResult found = on_device.made(BatchPlan(context, problem, {.solver = solver}), scalars);
  EXPECT_EQ(found.classes, expected.classes) << to_text(problem) << " by " << solver;
  EXPECT_TRUE(found.y == expected.y) << to_text(problem) << " by " << solver << ", first " << scalars.first;
}

// Entries of an order that name no image, and positions that are none: nothing beside the arrays is read.
inline void expect_nothing_outside(const Context& context, const BatchProblem& problem, const std::string& solver) {
  constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  BatchSet set = some_set(problem);
  const auto m = static_cast<std::int32_t>(problem.m);
  const std::vector<std::int32_t> strange = {m, -1, largest, std::numeric_limits<std::int32_t>::lowest(), m - 1};
  ASSERT_GE(set.order.size(), strange.size());
  std::copy(strange.begin(), strange.end(), set.order.begin());
  const BatchPlan plan(context, problem, {.solver = solver});
  BatchOnDevice on_device(context, problem, set);
  for (const std::int64_t first :
       {std::int64_t{0}, problem.m - problem.n + 2, problem.m - 1, problem.m, BatchProblem::most_images}) {
    const BatchScalars scalars{.first = first, .seed = 11, .epoch = 2};
    EXPECT_TRUE(on_device.made(plan, scalars) == defined(problem, set, scalars)) << to_text(problem) << ' ' << first;
  }
  // What is no position stands for no image either.
  const BatchResult none = defined(problem, set, {.first = problem.m});
  EXPECT_EQ(none.classes, std::vector<std::int32_t>(static_cast<std::size_t>(problem.n), -1));
  for (const double first : {-1.0, -1e30, 1e30, 16777218.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    BatchRun run = on_device.run({}, plan);
    run.first = first;
    plan.run(on_device.queue(), run).wait();
    EXPECT_TRUE(on_device.result() == none) << to_text(problem) << ' ' << first;
  }
}

// A recorded batch whose position and epoch change between replays is as many batches of their own.
inline void expect_recorded_batches(const Context& context, const BatchProblem& problem) {
  const BatchSet set = some_set(problem);
  BatchOnDevice on_device(context, problem, set);
  const BatchPlan plan(context, problem);
  BatchRun run = on_device.run({.seed = 0x0123456789ABCDEF}, plan);
  run.first = Scalar::changing(0), run.epoch = Scalar::changing(0);
  Sequence sequence = context.make_sequence();
  plan.append(sequence, run);
  const Recording recording = context.record(std::move(sequence));
  for (const std::int64_t epoch : {1, 2, 16777216})
    for (std::int64_t first = 0; first < problem.m; first += problem.n) {
      run.first.set(static_cast<double>(first)), run.epoch.set(static_cast<double>(epoch));
      recording.replay(on_device.queue()).wait();
      EXPECT_TRUE(on_device.result() == defined(problem, set, {first, 0x0123456789ABCDEF, epoch}))
          << to_text(problem) << ", epoch " << epoch << ", from " << first;
    }
}

}  // namespace omniconv
