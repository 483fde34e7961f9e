// The GPU variants of the filter2d solvers, bit for bit against the scalar loops of docs/arithmetic.md written out
// here, on every device of the program's kind: whole images, and strips that were given only the rows that they need.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <random>

#include "../conformance/solver_testing.h"
#include "core/border_map.h"
#include "core/convert.h"
#include "devices/device.h"
#include "gpu_testing.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/strips.h"
#include "operations/filter2d/weights.h"
#include "recording_device.h"

namespace omniconv::operations {
namespace {

std::vector<std::shared_ptr<devices::Device>> all_devices() {
  std::vector<std::shared_ptr<devices::Device>> all;
  for (const std::string& id : tested_ids())
    all.push_back(tested_backend().open(id.substr(tested_backend().prefix.size() + 1), {}));
  return all;
}

// A packed image of random pixels: every integer, or floating values of mixed sizes and signs.
struct Image {
  DataType type;
  std::int64_t h, w, c;
  std::vector<std::byte> bytes;

  double at(std::int64_t y, std::int64_t x, std::int64_t ch) const {
    return load_element(type, &bytes[static_cast<std::size_t>(((y * w + x) * c + ch) * size_of(type))]);
  }
};

Image random_image(const Filter2dProblem& problem, std::mt19937_64& random) {
  Image image{problem.input, problem.h, problem.w, problem.c, {}};
  image.bytes.resize(static_cast<std::size_t>(problem.h * problem.w * problem.c * size_of(problem.input)));
  if (is_integer(problem.input)) {
    for (std::byte& byte : image.bytes) byte = static_cast<std::byte>(random());
  } else {
    const auto size = static_cast<std::size_t>(size_of(problem.input));
    for (std::size_t i = 0; i < image.bytes.size(); i += size)
      store_element(problem.input,
                    std::ldexp(static_cast<double>(random() % 2001) - 1000, -static_cast<int>(random() % 12)),
                    &image.bytes[i]);
  }
  return image;
}

double pixel(const Filter2dTask& task, const Image& x, std::int64_t row, std::int64_t column, std::int64_t ch) {
  const std::int64_t h = border_index(task.problem.border.mode, row, x.h),
                     w = border_index(task.problem.border.mode, column, x.w);
  return h < 0 || w < 0 ? task.weights.border_value : x.at(h, w, ch);
}

// The rule, with the form that the solver follows: direct chains rank one weights like general ones.
float expected_value(const Filter2dTask& task, const Image& x, bool separable, std::int64_t p, std::int64_t q,
                     std::int64_t ch) {
  const Weights& weights = task.weights;
  const auto tap = [&](std::int64_t r, std::int64_t s) {
    return pixel(task, x, p + r - weights.anchor_y, q + s - weights.anchor_x, ch);
  };
  float sum = 0;
  if (weights.form == WeightForm::equal) {
    std::int64_t total = 0;
    for (std::int64_t r = 0; r < weights.r; ++r)
      for (std::int64_t s = 0; s < weights.s; ++s) total += static_cast<std::int64_t>(tap(r, s));
    sum = static_cast<float>(total) * static_cast<float>(weights.values[0]);
  } else if (separable) {
    for (std::int64_t r = 0; r < weights.r; ++r) {
      float along = 0;
      for (std::int64_t s = 0; s < weights.s; ++s)
        along = std::fma(static_cast<float>(weights.row[static_cast<std::size_t>(s)]), static_cast<float>(tap(r, s)),
                         along);
      sum = std::fma(static_cast<float>(weights.column[static_cast<std::size_t>(r)]), along, sum);
    }
  } else {
    for (std::int64_t r = 0; r < weights.r; ++r)
      for (std::int64_t s = 0; s < weights.s; ++s)
        sum = std::fma(static_cast<float>(weights.values[static_cast<std::size_t>(r * weights.s + s)]),
                       static_cast<float>(tap(r, s)), sum);
  }
  return std::fma(static_cast<float>(weights.scale), sum, static_cast<float>(weights.bias));
}

// Rows [first, first + rows) of the continued image that stand in for what output rows [p, p + count) read: virtual
// rows under wrap, else the smallest range of real ones.
struct Given {
  std::int64_t first, rows;
};
Given needed_rows(const Filter2dTask& task, std::int64_t p, std::int64_t count) {
  const std::int64_t top = p - task.weights.anchor_y, end = top + count + task.problem.r - 1;
  if (task.problem.border.mode == BorderMode::wrap) return {top, end - top};
  std::int64_t first = task.problem.h, last = -1;
  for (std::int64_t y = top; y < end; ++y) {
    const std::int64_t row = border_index(task.problem.border.mode, y, task.problem.h);
    if (row < 0) continue;
    first = std::min(first, row);
    last = std::max(last, row);
  }
  return {first, last - first + 1};
}

class Runner {
 public:
  Runner(
      const Filter2dSolver& solver, const Filter2dTask& task, const std::shared_ptr<devices::Device>& device,
      std::uint64_t seed, const std::function<void(Image&)>& change = [](Image&) {})
      : task_(task), device_(device), queue_(device->make_queue()) {
    std::mt19937_64 random(seed);
    x_ = random_image(task.problem, random);
    change(x_);
    const std::string refusal = refusal_of(solver, task, device);
    if (refusal.starts_with("PoCL newer")) {
      std::cout << device->info().id << " is left out: " << refusal << "\n";
      return;
    }
    EXPECT_EQ(refusal, "");
    const Offer offer = offer_by(solver, task, device);
    plan_ = body_of<Filter2dPlanBody>(offer);
    workspace_bytes_ = offer.workspace_bytes;
    const Filter2dProblem& problem = task.problem;
    const std::int64_t size = size_of(problem.output);
    const bool separable = &solver == &separable_gpu() || &solver == &separable_gpu_fused();
    for (std::int64_t p = 0; p < P(problem); ++p)
      for (std::int64_t q = 0; q < Q(problem); ++q)
        for (std::int64_t ch = 0; ch < problem.c; ++ch) {
          y_.resize(y_.size() + static_cast<std::size_t>(size));
          store_element(problem.output, expected_value(task, x_, separable, p, q, ch),
                        &y_[y_.size() - static_cast<std::size_t>(size)]);
        }
  }

  enum class Rows { anywhere, at_multiples_of_16_bytes, packed };

  // Runs output rows [p, p + count) on input rows `given`, at offsets and strides that are packed or not. The whole of
  // the output buffer must be as expected, what lies between the rows included.
  void run(std::int64_t p, std::int64_t count, Given given, Rows rows = Rows::anywhere) {
    if (!plan_) return;
    const Filter2dProblem& problem = task_.problem;
    const std::int64_t in = size_of(problem.input), out = size_of(problem.output);
    const std::int64_t input_row = problem.w * problem.c * in, output_row = Q(problem) * problem.c * out;
    Filter2dRun run;
    run.input_offset_bytes = 3 * in;
    run.input_stride_bytes = input_row + 5 * in;
    run.output_offset_bytes = 2 * out;
    run.output_stride_bytes = output_row + 3 * out;
    if (rows == Rows::at_multiples_of_16_bytes) {
      run.input_offset_bytes = run.output_offset_bytes = 16;
      run.input_stride_bytes = round_up(input_row, 16) + 16;
      run.output_stride_bytes = round_up(output_row, 16) + 16;
    }
    if (rows == Rows::packed) {
      run.input_offset_bytes = run.output_offset_bytes = 0;
      run.input_stride_bytes = input_row;
      run.output_stride_bytes = output_row;
    }
    run.input_first = given.first;
    run.input_rows = given.rows;
    run.output_first = p;
    run.output_rows = count;
    std::vector<std::byte> input(static_cast<std::size_t>(run.input_offset_bytes + given.rows * run.input_stride_bytes),
                                 std::byte{0x5A});
    for (std::int64_t i = 0; i < given.rows; ++i) {
      const std::int64_t row = border_index(problem.border.mode, given.first + i, problem.h);
      std::memcpy(&input[static_cast<std::size_t>(run.input_offset_bytes + i * run.input_stride_bytes)],
                  &x_.bytes[static_cast<std::size_t>(row * input_row)], static_cast<std::size_t>(input_row));
    }
    const auto output_bytes = static_cast<std::size_t>(run.output_offset_bytes + count * run.output_stride_bytes);
    std::vector<std::byte> expected(output_bytes, std::byte{0xA5}), output = expected;
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(&expected[static_cast<std::size_t>(run.output_offset_bytes + i * run.output_stride_bytes)],
                  &y_[static_cast<std::size_t>((p + i) * output_row)], static_cast<std::size_t>(output_row));

    run.input = upload(input);
    run.output = upload(output);
    run.workspace = Buffer(device_->allocate(workspace_bytes_));
    submit_run(*queue_, *plan_, run);
    queue_->download(output.data(), run.output.impl(), 0, static_cast<std::int64_t>(output_bytes)).wait();
    for (std::size_t i = 0; i < output_bytes; ++i) {
      if (output[i] == expected[i]) continue;
      const auto at = static_cast<std::int64_t>(i) - run.output_offset_bytes;
      ADD_FAILURE() << device_->info().id << " (" << device_->info().name << "): " << to_text(problem) << " "
                    << name(task_.weights.form) << " anchor " << task_.weights.anchor_y << "," << task_.weights.anchor_x
                    << " rows " << p << "+" << count << ": byte " << i << " (row " << at / run.output_stride_bytes
                    << ", element " << at % run.output_stride_bytes / out << ") is " << static_cast<int>(output[i])
                    << ", not " << static_cast<int>(expected[i]);
      return;
    }
  }

  // Whole, then in strips.
  void run_all() {
    const std::int64_t rows = P(task_.problem);
    run(0, rows, {0, task_.problem.h});
    run(0, rows, {0, task_.problem.h}, Rows::at_multiples_of_16_bytes);
    run(0, rows, {0, task_.problem.h}, Rows::packed);
    for (const std::int64_t height : {1, 3, 5})
      for (std::int64_t p = 0; p < rows && p < 3 * height; p += height) {
        const std::int64_t count = std::min(height, rows - p);
        run(p, count, needed_rows(task_, p, count));
        run(rows - p - count, count, needed_rows(task_, rows - p - count, count));
      }
  }

 private:
  Buffer upload(const std::vector<std::byte>& bytes) {
    auto buffer = device_->allocate(static_cast<std::int64_t>(bytes.size()));
    queue_->upload(buffer, 0, bytes.data(), static_cast<std::int64_t>(bytes.size())).wait();
    return Buffer(buffer);
  }

  Filter2dTask task_;
  std::shared_ptr<devices::Device> device_;
  std::shared_ptr<devices::Queue> queue_;
  std::shared_ptr<const Filter2dPlanBody> plan_;
  std::int64_t workspace_bytes_ = 0;
  Image x_;
  std::vector<std::byte> y_;
};

enum class Kind { random, equal, rank_one, integer_rank_one };

std::vector<double> weights_of(Kind kind, std::int64_t r, std::int64_t s, std::mt19937_64& random) {
  const auto draw = [&] { return static_cast<double>(random() % 20001) / 10000 - 1; };
  // Weights of one sign add up to 1.25 at most: results that all are the type's largest number would tell nothing.
  const auto part_of = [&](std::int64_t taps) {
    return (draw() + 1.5) / 2 / static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(taps)));
  };
  std::vector<double> column, row, all;
  for (std::int64_t i = 0; i < r; ++i)
    column.push_back(kind == Kind::integer_rank_one ? static_cast<double>(random() % 2) + 1 : part_of(r));
  for (std::int64_t j = 0; j < s; ++j)
    row.push_back(kind == Kind::integer_rank_one ? static_cast<double>(random() % 3) - 3 : part_of(s));
  const double same = part_of(r * s);
  for (std::int64_t i = 0; i < r; ++i)
    for (std::int64_t j = 0; j < s; ++j)
      all.push_back(kind == Kind::random  ? draw()
                    : kind == Kind::equal ? same
                                          : column[static_cast<std::size_t>(i)] * row[static_cast<std::size_t>(j)]);
  return all;
}

constexpr DataType image_types[] = {DataType::u8,  DataType::u16, DataType::s16,
                                    DataType::s32, DataType::f16, DataType::f32};
constexpr BorderMode borders[] = {BorderMode::constant,   BorderMode::replicate, BorderMode::reflect,
                                  BorderMode::reflect101, BorderMode::wrap,      BorderMode::valid};

// One of many tasks: what `number` does not fix follows from it by chance.
void check_random_task(const Filter2dSolver& solver, Kind kind, DataType input, DataType output, BorderMode border,
                       std::uint64_t number) {
  std::mt19937_64 random(number);
  Filter2dProblem problem;
  problem.input = input;
  problem.output = output;
  problem.border = {border, border == BorderMode::constant ? static_cast<double>(random() % 200) : 0};
  const std::int64_t least = kind == Kind::random || kind == Kind::equal ? 1 : 2;  // a rank needs two rows and columns
  problem.r = least + static_cast<std::int64_t>(random() % 6);
  problem.s = least + static_cast<std::int64_t>(random() % 6);
  problem.c = 1 + static_cast<std::int64_t>(random() % 5);
  problem.h = 1 + static_cast<std::int64_t>(random() % 14);
  problem.w = 1 + static_cast<std::int64_t>(random() % 40);
  if (border == BorderMode::valid) problem.h += problem.r - 1, problem.w += problem.s - 1;
  problem.flip = random() % 2;
  Filter filter;
  // Products rounded to fp32 are not always near enough to a product of the factors found again.
  do filter.weights = weights_of(kind, problem.r, problem.s, random);
  while (least == 2 && analyse(problem, filter).form != WeightForm::rank_one);
  if (random() % 2) filter.anchor_y = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.r));
  if (random() % 2) filter.anchor_x = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.s));
  if (random() % 2) filter.scale = 0.37;
  if (random() % 2) filter.bias = 11.25;
  const Filter2dTask task{problem, analyse(problem, filter)};
  for (const auto& device : all_devices()) Runner(solver, task, device, number).run_all();
}

class GpuFilter2d : public testing::Test {
 protected:
  void SetUp() override {
    devices_ = all_devices();
    if (devices_.empty()) GTEST_SKIP() << no_device();
  }
  std::vector<std::shared_ptr<devices::Device>> devices_;
};

// Every type on either side, with every border in turn.
TEST_F(GpuFilter2d, DirectOnEveryType) {
  for (std::size_t i = 0; i < 6; ++i)
    for (const std::size_t shift : {0u, 1u, 3u})
      check_random_task(direct_gpu(), Kind::random, image_types[i], image_types[(i + shift) % 6],
                        borders[(i + 2 * shift) % 6], 1 + 6 * i + shift);
}

TEST_F(GpuFilter2d, DirectOnEveryBorder) {
  std::uint64_t number = 100;
  for (const BorderMode border : borders)
    for (const DataType type : {DataType::u8, DataType::f32})
      check_random_task(direct_gpu(), Kind::random, type, type, border, number++);
}

// Sums of s32 pixels pass 2^24, those of 7 x 7 u16 do not.
TEST_F(GpuFilter2d, DirectOnEqualWeights) {
  std::uint64_t number = 200;
  for (const BorderMode border : {BorderMode::constant, BorderMode::reflect101})
    for (const DataType input : image_types)
      check_random_task(direct_gpu(), Kind::equal, input, input == DataType::u8 ? DataType::f32 : input, border,
                        number++);
}

TEST_F(GpuFilter2d, DirectOnRankOneWhereTheOrderCannotMatter) {
  check_random_task(direct_gpu(), Kind::integer_rank_one, DataType::u8, DataType::s16, BorderMode::replicate, 300);
  check_random_task(direct_gpu(), Kind::rank_one, DataType::f32, DataType::f32, BorderMode::wrap, 301);
}

// Wide enough for several strips, with rows at every alignment: strides, offsets and strips of rows by chance.
Filter2dTask strip_task(DataType input, DataType output, BorderMode border, std::uint64_t number,
                        Kind kind = Kind::random) {
  std::mt19937_64 random(number);
  Filter2dProblem problem;
  problem.input = input;
  problem.output = output;
  problem.border = {border, border == BorderMode::constant ? static_cast<double>(random() % 200) : 0};
  problem.r = 2 + static_cast<std::int64_t>(random() % 6);
  problem.s = 2 + static_cast<std::int64_t>(random() % 6);
  problem.c = 1 + static_cast<std::int64_t>(random() % 4);
  problem.h = 1 + static_cast<std::int64_t>(random() % 40);
  problem.w = 70 + static_cast<std::int64_t>(random() % 40);
  if (border == BorderMode::valid) problem.h += problem.r - 1;
  Filter filter;
  do filter.weights = weights_of(kind, problem.r, problem.s, random);
  while (kind == Kind::rank_one && analyse(problem, filter).form != WeightForm::rank_one);
  if (random() % 2) filter.anchor_y = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.r));
  if (random() % 2) filter.anchor_x = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.s));
  if (random() % 2) filter.bias = 11.25;
  return {problem, analyse(problem, filter)};
}

TEST_F(GpuFilter2d, StripsOnEveryTypeAndBorder) {
  for (const auto& device : devices_)
    for (std::size_t i = 0; i < 6; ++i)
      for (const std::size_t shift : {0u, 1u, 3u}) {
        const DataType input = image_types[i], output = image_types[(i + shift) % 6];
        const Filter2dTask task = strip_task(input, output, borders[(i + 2 * shift) % 6], 600 + 6 * i + shift);
        Runner(direct_gpu_strips(), task, device, 600 + i).run_all();
      }
}

TEST_F(GpuFilter2d, FusedOnEveryTypeAndBorder) {
  for (const auto& device : devices_) {
    std::uint64_t number = 650;
    for (const DataType input : image_types)
      for (const std::size_t shift : {0u, 1u, 3u}) {
        const std::size_t i = number % 6;
        const Filter2dTask task =
            strip_task(input, shift == 0 ? input : image_types[i], borders[number % 6], number, Kind::rank_one);
        Runner(separable_gpu_fused(), task, device, number++).run_all();
      }
  }
}

// A kernel of 15 x 13, an image of several bands, and one of several groups side by side.
TEST_F(GpuFilter2d, FusedUnderTallKernelsOnTallAndWideImages) {
  for (const auto& device : devices_)
    for (const auto& [h, w] : {std::pair(40, 90), std::pair(300, 7), std::pair(9, 700)}) {
      Filter2dTask task = strip_task(DataType::u8, DataType::u8, BorderMode::reflect101, 680, Kind::rank_one);
      task.problem.r = 15, task.problem.s = 13, task.problem.h = h, task.problem.w = w, task.problem.c = 3;
      std::mt19937_64 random(9);
      const Filter filter{.weights = weights_of(Kind::rank_one, 15, 13, random)};
      task.weights = analyse(task.problem, filter);
      ASSERT_EQ(task.weights.form, WeightForm::rank_one);
      Runner runner(separable_gpu_fused(), task, device, 681);
      runner.run(0, h, {0, h});
      runner.run(0, h, {0, h}, Runner::Rows::at_multiples_of_16_bytes);
      runner.run(h / 3, h / 2, needed_rows(task, h / 3, h / 2));
    }
}

// Few rows and long ones, of every size of element: what is staged at once, and how often, differs.
TEST_F(GpuFilter2d, FusedOnFewLongRows) {
  for (const auto& device : devices_)
    for (const DataType type : {DataType::u8, DataType::u16, DataType::f32}) {
      Filter2dTask task = strip_task(type, type, BorderMode::valid, 685, Kind::rank_one);
      task.problem.r = 3, task.problem.s = 5, task.problem.h = 9, task.problem.w = 66, task.problem.c = 4;
      std::mt19937_64 random(9);
      const Filter filter{.weights = weights_of(Kind::rank_one, 3, 5, random)};
      task.weights = analyse(task.problem, filter);
      Runner(separable_gpu_fused(), task, device, 686).run_all();
    }
}

// So many rows that on devices of few compute units groups at the ends of rows make fewer of them than the others: of
// three parts of a row, and of two.
TEST_F(GpuFilter2d, FusedOnManyRows) {
  for (const auto& device : devices_)
    for (const std::int64_t columns : {401, 201}) {
      Filter2dTask task = strip_task(DataType::u8, DataType::u8, BorderMode::replicate, 687, Kind::rank_one);
      task.problem.r = 3, task.problem.s = 3, task.problem.h = 997, task.problem.w = columns, task.problem.c = 3;
      std::mt19937_64 random(9);
      const Filter filter{.weights = weights_of(Kind::rank_one, 3, 3, random)};
      task.weights = analyse(task.problem, filter);
      Runner(separable_gpu_fused(), task, device, 688).run_all();
    }
}

// Parts of a row some of which have a band more than the others: on devices that 8, 12, 16, 24, 32, 48, 64, 96 or 128
// groups fill, one of the two images has such parts.
TEST_F(GpuFilter2d, FusedWithABandMoreInSomeParts) {
  constexpr std::pair<std::int64_t, std::int64_t> sizes[] = {{115, 2400}, {22, 1400}};
  for (const auto& device : devices_)
    for (const auto& [rows, columns] : sizes) {
      Filter2dTask task = strip_task(DataType::u8, DataType::u8, BorderMode::reflect, 689, Kind::rank_one);
      task.problem.r = 3, task.problem.s = 3, task.problem.h = rows, task.problem.w = columns, task.problem.c = 3;
      std::mt19937_64 random(9);
      const Filter filter{.weights = weights_of(Kind::rank_one, 3, 3, random)};
      task.weights = analyse(task.problem, filter);
      Runner(separable_gpu_fused(), task, device, 690).run_all();
    }
}

// Results up to the ends of their type, as far beyond them as rounds back, and beyond that; white, black and random
// pixels.
TEST_F(GpuFilter2d, FusedWhereResultsReachTheEndsOfTheirType) {
  const auto to_the_ends = [](Image& image) {
    const std::size_t third = image.bytes.size() / 3;
    std::fill_n(image.bytes.begin(), third, std::byte{0xFF});
    std::fill_n(image.bytes.begin() + static_cast<std::ptrdiff_t>(third), third, std::byte{0});
  };
  struct Case {
    DataType input, output;
    double sum, scale;  // of the weights, of which `scale` stands apart
  };
  constexpr DataType u8 = DataType::u8, u16 = DataType::u16;
  std::uint64_t number = 720;
  for (const auto& device : devices_)
    for (const Case& c :
         {Case{u8, u8, 1, 1}, Case{u8, u8, 1 + 0.3 / 255, 0.5}, Case{u8, u8, 1 + 0.9 / 255, 1}, Case{u8, u8, 1.5, 4},
          Case{u16, u16, 1, 4}, Case{u16, u16, 1 + 0.3 / 65535, 1}, Case{u8, u16, 1, 0.5}, Case{u16, u8, 1, 1}}) {
      Filter2dTask task = strip_task(c.input, c.output, BorderMode::reflect, number, Kind::rank_one);
      task.problem.r = 3, task.problem.s = 4;
      const double least = c.sum == 1 ? 0 : c.sum == 1.5 ? -0.25 : -0.0005;
      Filter filter{.scale = c.scale};
      for (const double down : {0.25, 0.5, 0.25})
        for (const double along : {least, 0.375, 0.375, 0.25 - least + (c.sum - 1)})
          filter.weights.push_back(down * static_cast<double>(static_cast<float>(along)) / c.scale);
      task.weights = analyse(task.problem, filter);
      ASSERT_EQ(task.weights.form, WeightForm::rank_one);
      Runner runner(separable_gpu_fused(), task, device, number++, to_the_ends);
      runner.run(0, P(task.problem), {0, task.problem.h});
      runner.run(0, P(task.problem), {0, task.problem.h}, Runner::Rows::at_multiples_of_16_bytes);
    }
}

TEST_F(GpuFilter2d, FusedOnEqualWeights) {
  std::uint64_t number = 690;
  for (const BorderMode border : {BorderMode::constant, BorderMode::reflect101})
    for (const DataType input : {DataType::u8, DataType::u16, DataType::s16})
      check_random_task(separable_gpu_fused(), Kind::equal, input, input == DataType::u8 ? DataType::f32 : input,
                        border, number++);
}

TEST_F(GpuFilter2d, TilesOnEveryTypeAndBorder) {
  for (std::size_t i = 0; i < 6; ++i)
    check_random_task(direct_gpu_tiles(), Kind::random, image_types[i], image_types[(i + i % 3) % 6], borders[i],
                      1000 + i);
}

// 17 x 19 taps over several groups side by side and one above the other.
TEST_F(GpuFilter2d, TilesUnderLargeKernels) {
  for (const auto& device : devices_)
    for (const DataType type : {DataType::u8, DataType::f32}) {
      Filter2dTask task = strip_task(type, type, BorderMode::wrap, 1100);
      task.problem.r = 17, task.problem.s = 19, task.problem.h = 26, task.problem.w = 700, task.problem.c = 3;
      std::mt19937_64 random(9);
      const Filter filter{.weights = weights_of(Kind::random, 17, 19, random)};
      task.weights = analyse(task.problem, filter);
      Runner runner(direct_gpu_tiles(), task, device, 1101);
      runner.run(0, 26, {0, 26});
      runner.run(0, 26, {0, 26}, Runner::Rows::at_multiples_of_16_bytes);
      runner.run(3, 11, needed_rows(task, 3, 11));
    }
}

// Rows at multiples of 16 bytes, of 4, and of 1; the narrow ones have strips of 4 elements.
TEST_F(GpuFilter2d, StripsOfEveryWidthAndAlignment) {
  for (const auto& device : devices_)
    for (const std::int64_t width : {128, 129, 130, 20})
      for (const std::int64_t extent : {3, 7}) {
        const BorderMode border = width % 2 == 0 ? BorderMode::constant : BorderMode::reflect;
        Filter2dTask task = strip_task(DataType::u8, DataType::u8, border, 700);
        task.problem.w = width;
        task.problem.c = 1;
        task.problem.r = task.problem.s = extent;
        std::mt19937_64 random(9);
        const Filter filter{.weights = weights_of(Kind::random, extent, extent, random)};
        task.weights = analyse(task.problem, filter);
        Runner(direct_gpu_strips(), task, device, 701).run_all();
      }
}

// Rows that strips fill, where they are aligned: continued on both sides, and on one by three pixels.
TEST_F(GpuFilter2d, StripsOfWholeRows) {
  constexpr BorderMode inside[] = {BorderMode::constant, BorderMode::replicate, BorderMode::reflect,
                                   BorderMode::reflect101};
  for (const auto& device : devices_)
    for (std::size_t i = 0; i < 12; ++i) {
      const DataType type = image_types[i % 6];
      Filter2dTask task = strip_task(type, type, inside[(i + i / 6) % 4], 710 + i);
      Filter2dProblem& problem = task.problem;
      std::mt19937_64 random(i);
      problem.s = i < 6 ? 3 : 4;
      problem.c = 1 + static_cast<std::int64_t>(i < 6 ? i % 4 : i % 2);
      problem.w = 48, problem.h = 7 + problem.r;
      Filter filter{.weights = weights_of(Kind::random, problem.r, problem.s, random)};
      filter.anchor_x = i < 6 ? 1 : i % 4 < 2 ? 0 : 3;
      task.weights = analyse(problem, filter);
      const StripTunables tunables{.v = type == DataType::u8 ? 16 : 8, .halo = size_of(type) == 2 ? 4 : 1};
      EXPECT_EQ(strips_of_whole_rows(task, tunables).count, 48 * problem.c / tunables.v);
      Runner(direct_gpu_strips(), task, device, 710 + i).run_all();
    }
}

TEST(FilterPositions, AreNarrowWhereTheySuffice) {
  const auto type_of = [](std::int64_t h, std::int64_t w, std::int64_t c) {
    Filter2dProblem problem;
    problem.h = h, problem.w = w, problem.c = c;
    return narrow_positions(problem).value;
  };
  constexpr std::int64_t most = std::int64_t{1} << 28;
  EXPECT_EQ(type_of(most - 1, 1000, 3), "int");
  EXPECT_EQ(type_of(most, 1000, 3), "long");
  EXPECT_EQ(type_of(1000, most / 3 - 1, 3), "int");
  EXPECT_EQ(type_of(1000, most / 3, 3), "long");
}

// Signed bytes times a power of two, -128 and 127 among them where there are several.
std::vector<double> byte_weights_of(std::int64_t r, std::int64_t s, double unit, std::mt19937_64& random) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < r * s; ++i) weights.push_back(unit * (static_cast<double>(random() % 256) - 128));
  weights.front() = -128 * unit;
  weights.back() = 127 * unit;
  return weights;
}

// Kernels of 1 to 9 rows and columns, also of more rows than the image has.
Filter2dTask dot_task(DataType output, BorderMode border, std::uint64_t number, std::int64_t r = 0,
                      std::int64_t s = 0) {
  Filter2dTask task = strip_task(DataType::u8, output, border, number);
  Filter2dProblem& problem = task.problem;
  std::mt19937_64 random(number);
  problem.c = 1 + static_cast<std::int64_t>(random() % 5);
  problem.s = s > 0 ? s : 1 + static_cast<std::int64_t>(number % 9);
  problem.r = r > 0 ? r : (problem.s == 1 ? 2 : 1) + static_cast<std::int64_t>(random() % 8);
  problem.h = 1 + static_cast<std::int64_t>(random() % 12);
  if (border == BorderMode::valid) problem.h += problem.r - 1;
  problem.flip = random() % 2;
  const double unit = random() % 2 ? 1 : 0x1p-7;
  Filter filter{.weights = byte_weights_of(problem.r, problem.s, unit, random)};
  if (random() % 2) filter.anchor_y = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.r));
  if (random() % 2) filter.anchor_x = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.s));
  filter.scale = random() % 2 ? 1 : 0.0037 / unit;
  if (random() % 2) filter.bias = 101.25;
  task.weights = analyse(problem, filter);
  return task;
}

TEST_F(GpuFilter2d, DotsOnEveryTypeAndBorder) {
  for (const auto& device : devices_) {
    std::uint64_t number = 800;
    for (const BorderMode border : borders)
      for (const DataType output : {DataType::u8, image_types[number % 6]}) {
        const Filter2dTask task = dot_task(output, border, number++);
        Runner(integer_dot_gpu_strips(), task, device, number).run_all();
      }
  }
}

TEST_F(GpuFilter2d, DotsOfWholeRows) {
  for (const auto& device : devices_)
    for (std::size_t i = 0; i < std::size(borders); ++i) {
      Filter2dTask task = dot_task(DataType::u8, borders[i], 815 + i, 3, 3 + 2 * static_cast<std::int64_t>(i % 2));
      task.problem.w = 64, task.problem.c = 1 + static_cast<std::int64_t>(i % 3);
      Runner(integer_dot_gpu_strips(), task, device, 815 + i).run_all();
    }
}

// A last column that stands alone after fours, and is taken by fours itself: in one word, filled up or not, and in two.
TEST_F(GpuFilter2d, DotsDownTheLastColumn) {
  for (const auto& device : devices_)
    for (const std::int64_t r : {1, 3, 4, 6})
      Runner(integer_dot_gpu_strips(), dot_task(DataType::u8, BorderMode::reflect, 820, r, 5), device, 821).run_all();
}

// Every weight -128 but one, under pixels of 255: the largest sums of 9 x 9 signed bytes.
TEST_F(GpuFilter2d, DotsOfTheLargestSums) {
  for (const auto& device : devices_) {
    Filter2dTask task = dot_task(DataType::s32, BorderMode::replicate, 830, 9, 9);
    Filter filter{.weights = std::vector<double>(81, -128.0)};
    filter.weights[40] = 127;
    task.weights = analyse(task.problem, filter);
    Runner runner(integer_dot_gpu_strips(), task, device, 831,
                  [](Image& image) { std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255}); });
    runner.run(0, P(task.problem), {0, task.problem.h});
  }
}

// The solvers by strips with other tunables than their own.
class Variant final : public Filter2dSolver {
 public:
  explicit Variant(const StripTunables& tunables) : tunables_(tunables) {}
  std::string_view id() const override { return "variant"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    return strip_offer(task, device, {.first = tunables_, .most = 9}, request);
  }

 private:
  StripTunables tunables_;
};

// What other devices are given, on this one.
TEST_F(GpuFilter2d, StripsWithOtherTunables) {
  const Filter2dTask task = strip_task(DataType::u8, DataType::u8, BorderMode::constant, 730);
  for (const auto& device : devices_)
    for (const StripTunables& tunables :
         {StripTunables{
              .v = 16, .prefetch = 2, .halo = 1, .denormal = device->facts().has_denormals, .ring = 1, .group = 64},
          StripTunables{.v = 16, .prefetch = 0, .halo = 4, .ring = 1}, StripTunables{.v = 8, .prefetch = 4, .halo = 2},
          StripTunables{.v = 8, .rows = 7}})
      Runner(Variant(tunables), task, device, 731).run_all();
}

TEST_F(GpuFilter2d, DotsWithOtherTunables) {
  std::uint64_t number = 840;
  for (const auto& device : devices_)
    for (const StripTunables& tunables :
         {StripTunables{.v = 4, .prefetch = 0, .dots = 1}, StripTunables{.v = 8, .prefetch = 2, .ring = 1, .dots = 2},
          StripTunables{.v = 16, .ahead = 3, .halo = 4, .dots = 1}}) {
      const Filter2dTask task = dot_task(DataType::u8, BorderMode::constant, number++, 5, tunables.dots == 2 ? 9 : 0);
      Runner(Variant(tunables), task, device, number).run_all();
    }
}

// Weights of all sizes: those with which bytes may enter sums as denormal numbers, and those with which they may not.
TEST_F(GpuFilter2d, StripsUnderTinyAndHugeWeights) {
  for (const auto& device : devices_)
    for (const double unit : {0x1p-140, 0x1p-101, 0x1p-86, 1.0, 127.0, 0x1p20, 0x1p100}) {
      Filter2dTask task = strip_task(DataType::u8, DataType::f32, BorderMode::replicate, 710);
      task.problem.r = task.problem.s = 3;
      std::mt19937_64 random(11);
      Filter filter{.weights = weights_of(Kind::random, 3, 3, random)};
      for (double& weight : filter.weights) weight *= unit;
      task.weights = analyse(task.problem, filter);
      EXPECT_EQ(denormals_are_exact(task), unit >= 0x1p-86 && unit <= 127) << unit;
      Runner(direct_gpu_strips(), task, device, 711).run_all();
      if (!denormals_are_exact(task) || !device->facts().has_denormals) continue;
      Runner(Variant(StripTunables{.denormal = 1}), task, device, 712).run_all();
    }
}

// NaN becomes 0 also where several results are put together in a word.
TEST_F(GpuFilter2d, StripsTurnNanIntoZero) {
  for (const auto& device : devices_)
    for (const DataType output : {DataType::u8, DataType::u16}) {
      Filter2dProblem problem;
      problem.input = DataType::f32;
      problem.output = output;
      problem.h = 5, problem.w = 64, problem.r = problem.s = 3;
      const Filter filter{.weights = {1, 2, 3, 4, 5, 6, 7, 8, 10}};
      const Filter2dTask task{problem, analyse(problem, filter)};
      Runner runner(direct_gpu_strips(), task, device, 720, [](Image& image) {
        for (std::size_t i = 0; i < image.bytes.size(); i += 28) {
          const float nan = std::numeric_limits<float>::quiet_NaN();
          std::memcpy(&image.bytes[i], &nan, 4);
        }
      });
      runner.run(0, 5, {0, 5});
    }
}

TEST_F(GpuFilter2d, SeparableOnEveryType) {
  for (std::size_t i = 0; i < 6; ++i)
    for (const std::size_t shift : {0u, 2u})
      check_random_task(separable_gpu(), Kind::rank_one, image_types[i], image_types[(i + shift) % 6],
                        borders[(i + 2 * shift) % 6], 400 + 6 * i + shift);
}

TEST_F(GpuFilter2d, SeparableOnEveryBorder) {
  std::uint64_t number = 500;
  for (const BorderMode border : borders)
    for (const DataType type : {DataType::u8, DataType::f16})
      check_random_task(separable_gpu(), type == DataType::u8 ? Kind::integer_rank_one : Kind::rank_one, type, type,
                        border, number++);
}

TEST_F(GpuFilter2d, SeparableOnEqualWeights) {
  std::uint64_t number = 560;
  for (const BorderMode border : {BorderMode::constant, BorderMode::reflect101})
    for (const DataType input : {DataType::u8, DataType::u16, DataType::s16})
      check_random_task(separable_gpu(), Kind::equal, input, input == DataType::u8 ? DataType::f32 : input, border,
                        number++);
}

Filter2dProblem u8_problem(std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t r, std::int64_t s,
                           BorderMode border) {
  Filter2dProblem problem;
  problem.h = h;
  problem.w = w;
  problem.c = c;
  problem.r = r;
  problem.s = s;
  problem.border = {border, border == BorderMode::constant ? 9.0 : 0.0};
  return problem;
}

Filter2dTask task_of(const Filter2dProblem& problem, Kind kind) {
  std::mt19937_64 random(7);
  Filter filter;
  filter.weights = weights_of(kind, problem.r, problem.s, random);
  return {problem, analyse(problem, filter)};
}

// Masks larger than the image, extents of 1.
TEST_F(GpuFilter2d, MasksLargerThanTheImage) {
  for (const BorderMode border : borders) {
    if (border == BorderMode::valid) continue;
    Filter2dProblem problem = u8_problem(3, 4, 3, 11, 13, border);
    for (const auto& device : devices_) {
      Runner(direct_gpu(), task_of(problem, Kind::random), device, 1).run_all();
      Runner(separable_gpu(), task_of(problem, Kind::rank_one), device, 1).run_all();
      if (border == BorderMode::reflect || border == BorderMode::wrap) {
        Runner(separable_gpu_fused(), task_of(problem, Kind::rank_one), device, 1).run_all();
        Runner(direct_gpu_tiles(), task_of(problem, Kind::random), device, 1).run_all();
      }
      problem.h = problem.w = problem.c = 1;
      Runner(direct_gpu(), task_of(problem, Kind::random), device, 1).run_all();
      Runner(separable_gpu(), task_of(problem, Kind::rank_one), device, 1).run_all();
    }
  }
}

// More rows and columns than loops are unrolled for, and than the fused variant takes.
TEST_F(GpuFilter2d, SeparableUnderLargeBoxes) {
  for (const auto& device : devices_)
    for (const std::int64_t extent : {18, 34}) {
      Filter2dProblem problem = u8_problem(24, 150, 3, extent, extent + 2, BorderMode::reflect);
      const Filter2dTask task = task_of(problem, Kind::equal);
      const std::string refusal = refusal_of(separable_gpu_fused(), task, device);
      EXPECT_EQ(refusal.find("at most 33 rows") != std::string::npos, extent == 34) << refusal;
      Runner runner(separable_gpu(), task, device, 1);
      runner.run(0, 24, {0, 24});
      runner.run(5, 9, needed_rows(task, 5, 9));
    }
}

// Many chains in registers, groups of fewer work items where rows take much local memory, several of each.
TEST_F(GpuFilter2d, FusedUnderTallKernels) {
  for (const auto& device : devices_)
    for (const auto& [extent, type, kind] :
         {std::tuple(33, DataType::u8, Kind::equal), std::tuple(31, DataType::u8, Kind::rank_one),
          std::tuple(20, DataType::u16, Kind::rank_one), std::tuple(30, DataType::f32, Kind::rank_one)}) {
      Filter2dProblem problem = u8_problem(70, 230, 3, extent, extent - 2, BorderMode::reflect101);
      problem.input = problem.output = type;
      const Filter2dTask task = task_of(problem, kind);
      Runner runner(separable_gpu_fused(), task, device, 1);
      runner.run(0, 70, {0, 70});
      runner.run(25, 40, needed_rows(task, 25, 40));
    }
}

TEST_F(GpuFilter2d, BoxOnEveryTypeAndBorder) {
  std::uint64_t number = 900;
  for (const BorderMode border : borders)
    for (const DataType input : {DataType::u8, DataType::u16, DataType::s16})
      check_random_task(box_gpu(), Kind::equal, input, image_types[number % 6], border, number), ++number;
}

// Several columns of tiles and bands, windows that registers hold and that they do not, runs that end inside of a row.
TEST_F(GpuFilter2d, BoxUnderLargeKernelsOnTallAndWideImages) {
  for (const auto& device : devices_)
    for (const auto& [h, w, c, extent] :
         {std::tuple(40, 700, 3, 31), std::tuple(600, 9, 3, 33), std::tuple(70, 2100, 1, 5), std::tuple(20, 250, 4, 65),
          std::tuple(50, 300, 7, 32)})
      for (const DataType type : {DataType::u8, DataType::s16}) {
        Filter2dProblem problem = u8_problem(h, w, c, extent, extent - 2, BorderMode::reflect101);
        problem.input = problem.output = type;
        const Filter2dTask task = task_of(problem, Kind::equal);
        Runner runner(box_gpu(), task, device, 950);
        runner.run(0, h, {0, h});
        runner.run(0, h, {0, h}, Runner::Rows::at_multiples_of_16_bytes);
        runner.run(h / 3, h / 2, needed_rows(task, h / 3, h / 2));
      }
}

// Every other run of two rows side by side: of an odd and an even number of runs, of one channel and several.
TEST_F(GpuFilter2d, BoxOfInterleavedRuns) {
  for (const auto& [w, c, r, s] : {std::tuple(624, 3, 9, 31), std::tuple(1890, 1, 9, 151), std::tuple(300, 5, 9, 101),
                                   std::tuple(188, 7, 9, 101), std::tuple(272, 13, 9, 3)}) {
    const Filter2dTask task = task_of(u8_problem(37, w, c, r, s, BorderMode::reflect101), Kind::equal);
    const auto recording = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    box_gpu().offer(task, recording, {}).offer()->plan();
    const auto& definitions = recording->built.back().definitions;
    const auto interleaved = std::ranges::find(definitions, "INTERLEAVED", &devices::Definition::name);
    ASSERT_NE(interleaved, definitions.end());
    EXPECT_EQ(interleaved->value, "1") << w << ' ' << c;
    for (const auto& device : devices_) {
      Runner runner(box_gpu(), task, device, 950);
      runner.run(0, 37, {0, 37});
      runner.run(11, 20, needed_rows(task, 11, 20));
    }
  }
}

// Windows beside the image: columns whose sums are others', within a group's and beyond it; the last columns of rows of
// any length, and of the first and the last rows; images narrower than what lies beside them; anchors at either end of
// a window and in its middle.
TEST_F(GpuFilter2d, BoxBesideTheImage) {
  std::int64_t number = 0;
  for (const auto& device : devices_)
    for (const BorderMode border : borders)
      for (const auto& [w, c, s, type] : {std::tuple(701, 3, 31, DataType::u8), std::tuple(61, 1, 33, DataType::u8),
                                          std::tuple(35, 3, 33, DataType::u8), std::tuple(16, 3, 33, DataType::u8),
                                          std::tuple(17, 3, 33, DataType::u8), std::tuple(107, 3, 9, DataType::u16)}) {
        if (border == BorderMode::valid && w < s) continue;
        Filter2dProblem problem = u8_problem(40, w, c, 7, s, border);
        problem.input = problem.output = type;
        std::mt19937_64 random(7);
        Filter filter{.weights = weights_of(Kind::equal, 7, s, random)};
        filter.anchor_x = ++number % 3 * (s - 1) / 2;
        const Filter2dTask task{problem, analyse(problem, filter)};
        const std::int64_t rows = P(problem);
        Runner runner(box_gpu(), task, device, 950);
        runner.run(0, rows, {0, 40});
        runner.run(0, rows, {0, 40}, Runner::Rows::at_multiples_of_16_bytes);
        runner.run(9, 17, needed_rows(task, 9, 17));
      }
}

// Rows of less than eight bytes, and rows whose last tile has no more, wherever they begin.
TEST_F(GpuFilter2d, BoxOfFewBytes) {
  for (const auto& device : devices_)
    for (const auto& [w, c, input, output] :
         {std::tuple(1, 1, DataType::u8, DataType::u8), std::tuple(5, 1, DataType::u8, DataType::u8),
          std::tuple(7, 1, DataType::u8, DataType::u8), std::tuple(1, 3, DataType::u8, DataType::u16),
          std::tuple(1, 1, DataType::u8, DataType::f32), std::tuple(2, 1, DataType::u8, DataType::s16),
          std::tuple(931, 3, DataType::u16, DataType::u16), std::tuple(993, 1, DataType::u16, DataType::u16),
          std::tuple(994, 1, DataType::s16, DataType::u8), std::tuple(995, 1, DataType::u16, DataType::u16)}) {
      Filter2dProblem problem = u8_problem(9, w, c, 3, 3, BorderMode::replicate);
      problem.input = input, problem.output = output;
      Runner runner(box_gpu(), task_of(problem, Kind::equal), device, 950);
      runner.run(0, 9, {0, 9});
      runner.run(0, 9, {0, 9}, Runner::Rows::at_multiples_of_16_bytes);
    }
}

// The largest sums that 32 bits hold, of numbers of either sign; beyond them, and rows wider than a group, it refuses.
TEST_F(GpuFilter2d, BoxOfTheLargestSums) {
  for (const auto& device : devices_)
    for (const bool is_signed : {false, true}) {
      Filter2dProblem problem =
          u8_problem(3, 260, 1, is_signed ? 256 : 128, is_signed ? 255 : 256, BorderMode::replicate);
      problem.input = is_signed ? DataType::s16 : DataType::u16, problem.output = DataType::f32;
      const Filter filter{.weights = std::vector<double>(static_cast<std::size_t>(problem.r * problem.s), 1.0)};
      const Filter2dTask task{problem, analyse(problem, filter)};
      Runner(box_gpu(), task, device, 1, [is_signed](Image& image) {
        for (std::size_t i = 0; i < image.bytes.size(); ++i)
          image.bytes[i] = !is_signed ? std::byte{0xFF} : i % 2 == 1 ? std::byte{0x80} : std::byte{0};
      }).run(0, 3, {0, 3});
    }
  // Down columns of white pixels, which 16 bits hold of 257 rows.
  for (const auto& device : devices_)
    for (const std::int64_t rows : {257, 258}) {
      Filter2dProblem problem = u8_problem(4, 150, 1, rows, 3, BorderMode::constant);
      problem.border.value = 255;
      const Filter2dTask task = task_of(problem, Kind::equal);
      Runner(box_gpu(), task, device, 1, [](Image& image) {
        std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255});
      }).run(0, 4, {0, 4});
    }
  Filter2dProblem problem = u8_problem(3, 260, 1, 129, 256, BorderMode::replicate);
  problem.input = DataType::u16;
  EXPECT_NE(refusal_of(box_gpu(), task_of(problem, Kind::equal), devices_.front()).find("32 bits"), std::string::npos);
  problem = u8_problem(3, 260, 3, 3, 700, BorderMode::replicate);
  EXPECT_NE(refusal_of(box_gpu(), task_of(problem, Kind::equal), devices_.front()).find("700 pixels"),
            std::string::npos);
  problem.input = DataType::f32;
  EXPECT_NE(refusal_of(box_gpu(), task_of(problem, Kind::equal), devices_.front()).find("integers"), std::string::npos);
}

// Runs of no rows do nothing, by any solver.
TEST_F(GpuFilter2d, RunsOfNoRows) {
  for (const auto& device : devices_) {
    const Context context(device);
    Queue queue = context.make_queue();
    const Filter2dProblem problem = u8_problem(40, 150, 3, 3, 3, BorderMode::reflect);
    for (const Filter2dSolver* const solver :
         {&box_gpu(), &separable_gpu_fused(), &separable_gpu(), &direct_gpu_strips()}) {
      const Kind kind = solver == &direct_gpu_strips() ? Kind::random : Kind::equal;
      std::mt19937_64 random(7);
      const Filter filter{.weights = weights_of(kind, 3, 3, random)};
      if (refusal_of(*solver, task_of(problem, kind), device).starts_with("PoCL newer")) continue;
      const Filter2dPlan plan(context, problem, filter, {.solver = std::string(solver->id())});
      const Buffer input = context.allocate(40 * 450), output = context.allocate(40 * 450);
      std::vector<std::uint8_t> made(40 * 450, 7);
      queue.upload(input, 0, made.data(), input.bytes());
      queue.upload(output, 0, made.data(), output.bytes()).wait();
      plan.run(queue, {.input = input,
                       .output = output,
                       .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1)),
                       .output_first = 4,
                       .output_rows = 0})
          .wait();
      queue.download(made.data(), output, 0, output.bytes()).wait();
      EXPECT_EQ(made, std::vector<std::uint8_t>(made.size(), 7)) << solver->id();
    }
  }
}

// Neither output rows nor input rows, where the border makes what would be read.
TEST_F(GpuFilter2d, RunsOfNoRowsOfNone) {
  for (const auto& device : devices_) {
    const Context context(device);
    Queue queue = context.make_queue();
    std::mt19937_64 random(7);
    Filter filter{.weights = weights_of(Kind::rank_one, 3, 3, random)};
    filter.anchor_y = 2;
    const Filter2dProblem problem = u8_problem(40, 64, 3, 3, 3, BorderMode::constant);
    for (const Filter2dSolver* const solver : {&separable_gpu_fused(), &separable_gpu()}) {
      if (refusal_of(*solver, task_of(problem, Kind::rank_one), device).starts_with("PoCL newer")) continue;
      const Filter2dPlan plan(context, problem, filter, {.solver = std::string(solver->id())});
      plan.run(queue, {.input = context.allocate(40 * 192),
                       .output = context.allocate(40 * 192),
                       .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1)),
                       .input_rows = 0,
                       .output_rows = 0})
          .wait();
    }
  }
}

// 256 pixels of 65535 are 256 below 2^24, and 272 would be beyond it.
TEST_F(GpuFilter2d, SeparableAddsPixelsUpToTheLastExactSum) {
  Filter2dProblem problem = u8_problem(20, 40, 1, 16, 16, BorderMode::replicate);
  problem.input = DataType::u16;
  problem.output = DataType::s32;
  const Filter2dTask task{problem, analyse(problem, {.weights = std::vector<double>(256, 1.0)})};
  for (const auto& device : devices_)
    Runner(separable_gpu(), task, device, 1, [](Image& image) {
      std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255});
      image.bytes[300] = std::byte{254};  // an odd sum
    }).run(0, 20, {0, 20});
  problem.s = 17;
  EXPECT_NE(refusal_of(separable_gpu(), task_of(problem, Kind::equal), devices_.front()).find("pass 2^24"),
            std::string::npos);
}

// An image whose intermediate rows do not fit in one workspace: 1.25 million floats a row, 6 rows of them in 32 MiB.
TEST_F(GpuFilter2d, SeparableInSeveralChunks) {
  const Filter2dProblem problem = u8_problem(13, 250'000, 5, 3, 2, BorderMode::wrap);
  const Filter2dTask task = task_of(problem, Kind::rank_one);
  for (const auto& device : devices_) {
    Runner runner(separable_gpu(), task, device, 1);
    runner.run(0, 13, {0, 13});
    runner.run(2, 7, needed_rows(task, 2, 7));
  }
}

TEST_F(GpuFilter2d, RefusesInSentences) {
  const DevicePointer& device = devices_.front();
  Filter2dProblem problem = u8_problem(9, 9, 1, 3, 3, BorderMode::replicate);
  EXPECT_NE(refusal_of(separable_gpu(), task_of(problem, Kind::random), device).find("no product"), std::string::npos);
  EXPECT_EQ(refusal_of(separable_gpu(), task_of(problem, Kind::equal), device), "");
  EXPECT_NE(refusal_of(direct_gpu(), task_of(problem, Kind::rank_one), device).find("rows first"), std::string::npos);
  EXPECT_EQ(refusal_of(direct_gpu(), task_of(problem, Kind::integer_rank_one), device), "");
  for (const auto& [input, output] :
       {std::pair(DataType::f64, DataType::f32), std::pair(DataType::u8, DataType::f64)}) {
    problem.input = input;
    problem.output = output;
    EXPECT_NE(refusal_of(direct_gpu(), task_of(problem, Kind::random), device).find("f64"), std::string::npos);
    EXPECT_NE(refusal_of(separable_gpu(), task_of(problem, Kind::rank_one), device).find("f64"), std::string::npos);
  }
  problem = u8_problem(9, 90, 1, 11, 3, BorderMode::replicate);
  EXPECT_NE(refusal_of(direct_gpu_strips(), task_of(problem, Kind::random), device).find("11 x 3"), std::string::npos);
  problem = u8_problem(9, 90, 25, 3, 3, BorderMode::replicate);
  EXPECT_NE(refusal_of(direct_gpu_strips(), task_of(problem, Kind::random), device).find("2 columns of 25"),
            std::string::npos);
  problem = u8_problem(9, 6, 1, 3, 3, BorderMode::replicate);
  EXPECT_NE(refusal_of(direct_gpu_strips(), task_of(problem, Kind::random), device).find("too short"),
            std::string::npos);
  problem = u8_problem(9, 90, 1, 3, 3, BorderMode::replicate);
  EXPECT_NE(refusal_of(direct_gpu_strips(), task_of(problem, Kind::equal), device).find("equal"), std::string::npos);
  EXPECT_EQ(refusal_of(direct_gpu_strips(), task_of(problem, Kind::random), device), "");
  const auto dots_refusal = [&](std::vector<double> weights, double scale = 1) {
    const Filter filter{.weights = std::move(weights), .scale = scale};
    return refusal_of(integer_dot_gpu_strips(), Filter2dTask{problem, analyse(problem, filter)}, device);
  };
  EXPECT_EQ(dots_refusal({0.25, 0.5, 0.25, 0.5, 31.75, 0.5, 0.25, 0.5, -32}), "");
  EXPECT_NE(dots_refusal({1, 2, 1, 2, 128, 2, 1, 2, 1}).find("beyond a signed byte"), std::string::npos);
  EXPECT_NE(dots_refusal({1, 2, 1, 2, 32769, 2, 1, 2, 1}).find("15 bits"), std::string::npos);
  EXPECT_NE(dots_refusal({0.1, 2, 1, 2, 4, 2, 1, 2, 1}).find("no integers"), std::string::npos);
  EXPECT_NE(dots_refusal({1, 1, 1, 1, 1, 1, 1, 1, 1}).find("equal weights"), std::string::npos);
  EXPECT_NE(dots_refusal({1, 2, 1, 2, 3, 2, 1, 2, 1}, 0x1p-110).find("too small"), std::string::npos);
  problem.input = DataType::u16;
  EXPECT_NE(dots_refusal({1, 2, 1, 2, 3, 2, 1, 2, 1}).find("u8 images"), std::string::npos);
  // A row of intermediates larger than any buffer.
  problem = u8_problem(3, device->info().max_buffer_bytes / 4, 1, 3, 3, BorderMode::replicate);
  EXPECT_NE(refusal_of(separable_gpu(), task_of(problem, Kind::rank_one), device).find("workspace"), std::string::npos);
}

}  // namespace
}  // namespace omniconv::operations
