// gemm/packed/cpu and gemm/vector/cpu: exact on integers, within its bound on the rest, and the same bits however the
// work is cut.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <random>

#include "conformance.h"
#include "core/checked.h"
#include "core/convert.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/packed/blocking.h"
#include "solver_testing.h"
#include "vector/matrix/gemm_panels.h"
#include "vector/matrix/gemm_tiles.h"

namespace omniconv::operations {
namespace {

constexpr std::byte poison{0xFF};  // NaN in every type
constexpr std::int64_t guard_bytes = 256;

struct Machine {
  explicit Machine(int threads) : context({.device = "cpu", .threads = threads}), queue(context.make_queue()) {}
  Context context;
  Queue queue;
};

struct Stored {
  Stored(DataType the_type, std::int64_t elements)
      : type(the_type), bytes(static_cast<std::size_t>(elements * size_of(the_type)), poison) {}
  double operator[](std::int64_t i) const { return load_element(type, bytes.data() + i * size_of(type)); }
  void set(std::int64_t i, double value) { store_element(type, value, bytes.data() + i * size_of(type)); }

  DataType type;
  std::vector<std::byte> bytes;
};

// Elements from the first to the last of so many matrices of stored rows.
std::int64_t extent(std::int64_t batch, std::int64_t stride, std::int64_t rows, std::int64_t ld, std::int64_t columns) {
  return (batch - 1) * stride + (rows - 1) * ld + columns;
}

// A task with its arrays: what lies between rows and matrices is NaN, and is to be left alone.
struct Product {
  explicit Product(const GemmTask& the_task, bool integers, std::uint64_t seed = 1)
      : task(the_task), a(p().type, 0), b(p().type, 0), bias(p().type, 0), c(the_task.output, 0) {
    std::mt19937_64 random(seed);
    // Numbers of which sums in the type are rounded.
    const double last_place = p().type == DataType::f64 ? 0x1p-52 : 0x1p-23;
    const auto value = [&] {
      const auto bits = static_cast<std::int64_t>(random() >> (p().type == DataType::f64 ? 11 : 40));
      return integers ? static_cast<double>(bits % 7 - 3) : static_cast<double>(bits) * last_place - 1;
    };
    const auto matrices = [&](DataType type, std::int64_t stride, std::int64_t rows, std::int64_t ld,
                              std::int64_t columns) {
      Stored stored(type, extent(p().batch, stride, rows, ld, columns));
      for (std::int64_t matrix = 0; matrix < p().batch; ++matrix)
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) stored.set(matrix * stride + i * ld + j, value());
      return stored;
    };
    a = matrices(p().type, task.batch_a, p().transpose_a ? p().k : p().m, task.lda, p().transpose_a ? p().m : p().k);
    b = matrices(p().type, task.batch_b, p().transpose_b ? p().n : p().k, task.ldb, p().transpose_b ? p().k : p().n);
    c = matrices(task.output, task.batch_c, p().m, task.ldc, p().n);
    if (!task.accumulate) c = Stored(task.output, extent(p().batch, task.batch_c, p().m, task.ldc, p().n));
    const std::int64_t biases = task.bias == BiasAlong::rows ? p().m : task.bias == BiasAlong::columns ? p().n : 0;
    bias = Stored(p().type, biases);
    for (std::int64_t i = 0; i < biases; ++i) bias.set(i, value());
  }

  const GemmProblem& p() const { return task.problem; }
  double at_a(std::int64_t matrix, std::int64_t i, std::int64_t t) const {
    return a[matrix * task.batch_a + (p().transpose_a ? t * task.lda + i : i * task.lda + t)];
  }
  double at_b(std::int64_t matrix, std::int64_t t, std::int64_t j) const {
    return b[matrix * task.batch_b + (p().transpose_b ? j * task.ldb + t : t * task.ldb + j)];
  }
  std::int64_t at_c(std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    return matrix * task.batch_c + i * task.ldc + j;
  }

  GemmTask task;
  Stored a, b, bias, c;
};

// Sums in f64 before they are stored, and what their bound is relative to.
struct ExpectedSums {
  std::vector<double> sums, magnitudes;  // batch x m x n
};

// Adds a times b to sums, and the magnitudes of these terms to magnitudes: `count` of each. The thread sanitizer, which
// would take most of the tests' time here, need not look at what one thread alone has.
[[gnu::no_sanitize("thread")]] void add_terms(double a, const double* b, std::size_t count, double* sums,
                                              double* magnitudes) {
  for (std::size_t j = 0; j < count; ++j) {
    const double term = a * b[j];
    sums[j] += term;
    magnitudes[j] += std::fabs(term);
  }
}

ExpectedSums expected_of(const Product& product) {
  const GemmProblem& p = product.p();
  ExpectedSums expected;
  std::vector<double> row(static_cast<std::size_t>(p.n)), magnitude(row.size()), b(static_cast<std::size_t>(p.k * p.n));
  for (std::int64_t matrix = 0; matrix < p.batch; ++matrix) {
    for (std::int64_t t = 0; t < p.k; ++t)
      for (std::int64_t j = 0; j < p.n; ++j) b[static_cast<std::size_t>(t * p.n + j)] = product.at_b(matrix, t, j);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double held = product.task.accumulate ? product.c[product.at_c(matrix, i, j)] : 0, bias = 0;
        if (product.task.bias != BiasAlong::none) bias = product.bias[product.task.bias == BiasAlong::rows ? i : j];
        row[static_cast<std::size_t>(j)] = held + bias;
        magnitude[static_cast<std::size_t>(j)] = std::abs(held) + std::abs(bias);
      }
      for (std::int64_t t = 0; t < p.k; ++t)
        add_terms(product.at_a(matrix, i, t), b.data() + t * p.n, row.size(), row.data(), magnitude.data());
      if (product.task.relu)
        for (double& value : row) value = value < 0 ? 0 : value;
      expected.sums.insert(expected.sums.end(), row.begin(), row.end());
      expected.magnitudes.insert(expected.magnitudes.end(), magnitude.begin(), magnitude.end());
    }
  }
  return expected;
}

// c after a run, in a workspace of NaN with guards behind it and behind c.
std::vector<std::byte> run(const Machine& machine, const Product& product, std::int64_t limit = -1,
                           const GemmSolver& solver = gemm_packed_cpu()) {
  const Offer offer = offer_by(solver, product.task, machine.context.impl(), limit);
  const auto plan = plan_of(offer);
  const auto borrowed = [&](const Stored& stored) {
    return Operand{machine.context.borrow(const_cast<std::byte*>(stored.bytes.data()),
                                          static_cast<std::int64_t>(stored.bytes.size()))};
  };
  std::vector<std::byte> c = product.c.bytes;
  const auto used = c.size();
  c.resize(used + guard_bytes, std::byte{0x5A});
  const Buffer workspace = machine.context.allocate(offer.workspace_bytes + guard_bytes);
  std::byte* const bytes = workspace.impl()->host();
  std::fill_n(bytes, offer.workspace_bytes, poison);
  std::fill_n(bytes + offer.workspace_bytes, guard_bytes, std::byte{0x5A});

  submit_run(*machine.queue.impl(), *plan,
             GemmArrays{.a = borrowed(product.a),
                        .b = borrowed(product.b),
                        .c = {machine.context.borrow(c.data(), static_cast<std::int64_t>(c.size()))},
                        .bias = product.task.bias == BiasAlong::none ? Operand{} : borrowed(product.bias),
                        .workspace = {workspace}})
      .wait();
  for (std::int64_t i = 0; i < guard_bytes; ++i) {
    EXPECT_EQ(bytes[offer.workspace_bytes + i], std::byte{0x5A}) << "beyond the workspace";
    EXPECT_EQ(c[used + static_cast<std::size_t>(i)], std::byte{0x5A}) << "beyond c";
  }
  c.resize(used);
  return c;
}

std::string text_of(const GemmTask& task) {
  return fmt::format("{}, c {}, ld {} {} {}, strides {} {} {}, bias {}, accumulate {}, relu {}", to_text(task.problem),
                     name(task.output), task.lda, task.ldb, task.ldc, task.batch_a, task.batch_b, task.batch_c,
                     static_cast<int>(task.bias), task.accumulate, task.relu);
}

void expect_exact(const Machine& machine, const GemmTask& task, std::int64_t limit = -1,
                  const GemmSolver& solver = gemm_packed_cpu()) {
  const Product product(task, true);
  const ExpectedSums expected = expected_of(product);
  Stored wanted = product.c;
  std::size_t at = 0;
  for (std::int64_t matrix = 0; matrix < task.problem.batch; ++matrix)
    for (std::int64_t i = 0; i < task.problem.m; ++i)
      for (std::int64_t j = 0; j < task.problem.n; ++j) wanted.set(product.at_c(matrix, i, j), expected.sums[at++]);
  EXPECT_TRUE(run(machine, product, limit, solver) == wanted.bytes) << text_of(task) << ", limit " << limit;
}

GemmTask task_of(const std::string& text) {
  return task_for(get<GemmProblem>(parse_problem("gemm " + text)));
}

const char* transposes(std::int64_t i) {
  static constexpr std::array texts = {"nn", "nt", "tn", "tt"};
  return texts[static_cast<std::size_t>(i % 4)];
}

TEST(PackedGemm, EveryShapeUpTo70) {
  const Machine machine(2);
  const std::int64_t step = instrumented ? 9 : 1;
  for (std::int64_t m = 1; m <= 70; m += step)
    for (std::int64_t n = 1; n <= 70; n += step)
      expect_exact(machine,
                   task_of(fmt::format("f32 {} m{}n{}k{}", transposes(m + n), m, n, (7 * m + 29 * n) % 70 + 1)));
}

TEST(PackedGemm, EdgesOfBlocks) {
  const Machine machine(2);
  for (const char* text : {"f32 nn m13n31k511", "f32 nt m14n32k512", "f32 tn m15n33k513", "f32 tt m29n65k1025",
                           "f64 nn m15n17k257", "f64 tt m28n40k513", "f16 nn m31n47k1100", "bf16 tn m31n47k700",
                           "f32 nn m280n330k40", "f32 nt m281n331k600", "f32 tn m300n257k512", "f32 nn m5n1300k90",
                           "f32 tn m1300n5k90", "f32 nn m1n3000k3", "f32 nn m3000n1k3", "f32 nn m2n2k5000"})
    expect_exact(machine, task_of(text));
  if (!instrumented) expect_exact(machine, task_of("f32 nn m2055n290k520"));
}

TEST(PackedGemm, EveryTypeAndFinish) {
  const Machine machine(2);
  int number = 0;
  for (const char* type : {"f32", "f64", "f16", "bf16", "tf32"})
    for (const std::int64_t k : {23, 600})
      for (const BiasAlong bias : {BiasAlong::none, BiasAlong::rows, BiasAlong::columns})
        for (const bool accumulate : {false, true})
          for (const bool relu : {false, true})
            for (const bool f32 : {false, true}) {
              GemmTask task = task_of(
                  fmt::format("{} {} m{}n{}k{}", type, transposes(number), 17 + number % 13, 35 + number % 31, k));
              ++number;
              if (f32) task.output = DataType::f32;
              task.bias = bias;
              task.accumulate = accumulate;
              task.relu = relu;
              expect_exact(machine, task);
            }
}

TEST(PackedGemm, LeadingDimensionsAndBatches) {
  const Machine machine(2);
  for (const char* type : {"f32", "f16", "f64", "bf16"}) {
    if (type == std::string_view(threads_watched ? "f16" : instrumented ? "f64" : "")) break;
    for (int i = 0; i < 4; ++i)
      for (const char* shape : {"m20n37k19batch3", "m3n9k2batch70", "m33n150k530batch2", "m150n40k30batch5"})
        for (const int shared : {0, 1, 2, 3}) {
          GemmTask task = task_of(fmt::format("{} {} {}", type, transposes(i), shape));
          task.lda += 3;
          task.ldb += 5;
          task.ldc += 7;
          const GemmProblem& p = task.problem;
          task.batch_a = shared & 1 ? 0 : task.lda * (p.transpose_a ? p.k : p.m) + 11;
          task.batch_b = shared & 2 ? 0 : task.ldb * (p.transpose_b ? p.n : p.k) + 1;
          task.batch_c = task.ldc * p.m + 2;
          task.accumulate = i == 2;
          expect_exact(machine, task);
        }
  }
}

// Rows that are read where they are, between which NaN stands, or packed: few columns, many steps, of types that need
// no widening, and lines that are no whole pages apart.
TEST(PackedGemm, RowsInPlace) {
  const Machine machine(2);
  const auto is_in_place = [](const GemmTask& task) { return GemmBlocking(task, 2, -1).is_a_in_place; };
  const std::int64_t lanes = kernels::register_tile(DataType::f32, 200).lanes, most = 4 * lanes;
  for (const char* type : {"f32", "tf32", "f64"})
    for (int i = 0; i < 4; ++i)
      for (const std::int64_t n : {std::int64_t{1}, lanes + 1, most / (type == std::string_view("f64") ? 2 : 1)})
        for (const char* shape : {"m181n{}k128", "m170n{}k1030", "m80n{}k150batch5"}) {
          GemmTask task = task_of(fmt::format("{} {} {}", type, transposes(i), fmt::format(fmt::runtime(shape), n)));
          task.lda += 3;
          task.batch_a = task.lda * (task.problem.transpose_a ? task.problem.k : task.problem.m) + 5;
          task.bias = i % 2 == 0 ? BiasAlong::columns : BiasAlong::rows;
          task.accumulate = i == 2;
          EXPECT_TRUE(is_in_place(task)) << text_of(task);
          expect_exact(machine, task);
        }
  GemmTask pages = task_of("f32 nn m200n30k1000");
  pages.lda = 1024;
  EXPECT_FALSE(is_in_place(pages));
  expect_exact(machine, pages);
  const std::string wide = fmt::format("f32 nn m200n{}k200", most + 1);
  for (const std::string& text :
       {wide, std::string("f32 nn m200n30k127"), std::string("f16 nn m200n30k200"), std::string("f32 nn m20n19k200")}) {
    EXPECT_FALSE(is_in_place(task_of(text))) << text;
    expect_exact(machine, task_of(text));
  }
  GemmTask prepared = task_of("f32 nn m200n30k200");
  prepared.prepared_a = true;
  EXPECT_FALSE(is_in_place(prepared));
}

// Matrices enough for several blocks of them.
TEST(PackedGemm, SharedOperandsOfManyMatrices) {
  const Machine machine(2);
  for (const int shared : {1, 2}) {
    GemmTask task = task_of(instrumented ? "f32 nn m30n35k520batch3" : "f32 nn m70n90k520batch15");
    (shared == 1 ? task.batch_a : task.batch_b) = 0;
    expect_exact(machine, task);
  }
}

// Panels of more products than are multiplied at a time, kept from one matrix to the next.
TEST(PackedGemm, KeptOperandsInSeveralBlocks) {
  const Machine machine(2);
  GemmTask few_rows = task_of("f32 nn m2n1500k2100batch3"), few_columns = task_of("f32 nn m1500n2k2100batch3");
  few_rows.batch_b = few_columns.batch_a = 0;
  for (const GemmTask& task : {few_rows, few_columns}) {
    const GemmBlocking cut(task, 2, -1);
    ASSERT_TRUE((task.batch_a == 0 ? cut.keeps_a : cut.keeps_b) && cut.k < task.problem.k);
    expect_exact(machine, task);
  }
}

void expect_the_same_under_limits(const Machine& machine, const char* text) {
  const GemmTask task = task_of(text);
  const Product product(task, false);
  const auto bytes = [&](std::int64_t limit) {
    return offer_by(gemm_packed_cpu(), task, machine.context.impl(), limit).workspace_bytes;
  };
  const std::vector<std::byte> expected = run(machine, product);
  const std::int64_t least = bytes(0);
  EXPECT_LE(least, std::int64_t{512} << 10) << text;
  for (const std::int64_t limit :
       {bytes(-1), bytes(-1) - 1, bytes(-1) / 2, bytes(-1) / 5, least + 1, least, std::int64_t{0}}) {
    EXPECT_LE(bytes(limit), std::max(limit, least)) << text;
    EXPECT_TRUE(run(machine, product, limit) == expected) << text << ", limit " << limit;
  }
}

TEST(PackedGemm, WorkspaceLimits) {
  const Machine machine(2);
  for (const char* text : {"f32 nn m100n300k700", "f32 tn m300n60k700", "f16 nt m60n300k1200", "f64 nn m70n70k600",
                           "f32 nn m300n290k530", "bf16 nn m20n20k30batch40", "f32 nn m64n2000k64"})
    expect_the_same_under_limits(machine, text);
}

// Products whose columns are pixels of images: three taps apart in each of two channels, as convolutions read them.
struct OverImages {
  OverImages(DataType type, std::int64_t images, std::int64_t rows, std::int64_t run, std::int64_t m,
             std::int64_t groups)
      : b(type == DataType::f64 ? type : DataType::f32, 0), a(type, 0), c(type, 0), bias(type, 0) {
    ImageColumns columns;
    columns.pixels = rows * run, columns.run = run, columns.run_pitch = run + 5;
    const std::int64_t channel = (rows + 1) * columns.run_pitch + 5;
    columns.image_b = 2 * groups * channel + 3;
    for (const std::int64_t tap : {std::int64_t{0}, std::int64_t{4}, columns.run_pitch + 2})
      for (const std::int64_t of : {std::int64_t{0}, channel}) columns.steps.push_back(of + tap);
    GemmProblem& product = task.problem;
    product.type = type, product.batch = groups;
    product.m = m, product.n = images * columns.pixels, product.k = 6;
    task.output = type;
    task.lda = 6, task.ldb = task.problem.n, task.ldc = columns.pixels + 2;
    task.batch_a = 6 * m, task.batch_b = 2 * channel, task.batch_c = m * task.ldc;
    columns.image_c = groups * task.batch_c + 1;
    std::mt19937_64 random(3);
    const auto integers = [&](DataType of, std::int64_t count) {
      Stored stored(of, count);
      for (std::int64_t i = 0; i < count; ++i) stored.set(i, static_cast<double>(random() % 7) - 3);
      return stored;
    };
    a = integers(type, groups * m * 6);
    b = integers(b.type, images * columns.image_b);
    c = integers(type, images * columns.image_c);
    bias = integers(type, std::max(m, product.n));
    task.images = std::make_shared<const ImageColumns>(columns);
  }

  Stored expected() const {
    const ImageColumns& of = *task.images;
    Stored result = c;
    for (std::int64_t group = 0; group < task.problem.batch; ++group)
      for (std::int64_t i = 0; i < task.problem.m; ++i)
        for (std::int64_t j = 0; j < task.problem.n; ++j) {
          const std::int64_t image = j / of.pixels, pixel = j % of.pixels;
          const std::int64_t at_b = group * task.batch_b + image * of.image_b + pixel / of.run * of.run_pitch +
                                    pixel % of.run,
                             at_c = group * task.batch_c + image * of.image_c + i * task.ldc + pixel;
          double sum = (task.accumulate ? c[at_c] : 0) +
                       (task.bias == BiasAlong::none ? 0 : bias[task.bias == BiasAlong::rows ? i : j]);
          for (std::int64_t t = 0; t < 6; ++t)
            sum += a[group * task.batch_a + i * 6 + t] * b[at_b + of.steps[static_cast<std::size_t>(t)]];
          result.set(at_c, task.relu && sum < 0 ? 0 : sum);
        }
    return result;
  }

  std::vector<std::byte> run(const Machine& machine, std::int64_t limit) const {
    const Offer offer = offer_by(gemm_packed_cpu(), task, machine.context.impl(), limit);
    const auto plan = plan_of(offer);
    const auto borrowed = [&](const Stored& stored) {
      return Operand{machine.context.borrow(const_cast<std::byte*>(stored.bytes.data()),
                                            static_cast<std::int64_t>(stored.bytes.size()))};
    };
    Stored result = c;
    submit_run(*machine.queue.impl(), *plan,
               GemmArrays{.a = borrowed(a),
                          .b = borrowed(b),
                          .c = borrowed(result),
                          .bias = borrowed(bias),
                          .workspace = {machine.context.allocate(offer.workspace_bytes)}})
        .wait();
    return result.bytes;
  }

  GemmTask task;
  Stored b, a, c, bias;
};

TEST(PackedGemm, ColumnsOfImages) {
  int sets = 0;
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    ++sets;
    int number = 0;
    for (const DataType type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16})
      for (const std::int64_t run : {1, 2, 7, 16, 23, 70})
        for (const std::int64_t rows : {1, 5})
          for (const std::int64_t m : {1, 2, 30}) {
            OverImages product(type, 1 + number % 4, rows, run, m, 1 + number % 3);
            product.task.accumulate = number % 2 == 0;
            product.task.relu = number % 5 == 0;
            product.task.bias =
                std::array{BiasAlong::rows, BiasAlong::columns, BiasAlong::none}[static_cast<std::size_t>(number % 3)];
            const Machine machine(1 + ++number % 2);
            const Stored expected = product.expected();
            for (const std::int64_t limit : {-1, 0})
              EXPECT_TRUE(product.run(machine, limit) == expected.bytes)
                  << name(type) << " " << rows << " runs of " << run << ", m " << m << ", limit " << limit;
          }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  // The least that was compiled is always one of them.
  EXPECT_GE(sets, (hwy::SupportedTargets() & HWY_AVX2) != 0 ? 2 : 1);
}

// The largest error as a part of its bound.
double expect_within_bound(const Machine& machine, const GemmTask& task) {
  const Product product(task, false);
  const ExpectedSums expected = expected_of(product);
  Stored result(task.output, 0);
  result.bytes = run(machine, product);
  const ErrorBound bound = offer_by(gemm_packed_cpu(), task, machine.context.impl()).bound;
  const double epsilon = task.problem.type == DataType::f64 ? 0x1p-52 : 0x1p-23;
  // What is expected of f64 has an error of its own.
  const double factor =
      bound.amplification * (bound.chain / 2 + bound.constant) * epsilon * (epsilon < 0x1p-40 ? 2 : 1);
  const double rounding = task.output == DataType::f16 ? 0x1p-11 : task.output == DataType::bf16 ? 0x1p-8 : 0;
  double largest = 0;
  for (std::size_t i = 0; i < expected.sums.size(); ++i) {
    const double error = std::abs(result[static_cast<std::int64_t>(i)] - expected.sums[i]);
    const double allowed = factor * expected.magnitudes[i];
    const double with_rounding = allowed + rounding * (std::abs(expected.sums[i]) + allowed);
    EXPECT_LE(error, with_rounding) << text_of(task) << " at " << i;
    if (rounding == 0) largest = std::max(largest, error / allowed);
  }
  return largest;
}

// Tasks of a matrix and a vector, of all that gemm/vector serves.
std::vector<GemmTask> vector_tasks(std::int64_t rows, std::int64_t steps) {
  std::vector<GemmTask> tasks;
  int number = 0;
  for (const char* type : {"f32", "f64", "f16", "bf16", "tf32"})
    for (const char* form : {"nn m{0}n1k{1}", "nt m{0}n1k{1}", "nt m1n{0}k{1}", "tt m1n{0}k{1}", "nt m1n{0}k{1}batch3"})
      for (const BiasAlong bias : {BiasAlong::none, BiasAlong::rows, BiasAlong::columns}) {
        GemmTask task = task_of(fmt::format("{} {}", type, fmt::format(fmt::runtime(form), rows, steps)));
        task.bias = bias, task.accumulate = ++number % 2 == 0, task.relu = number % 3 == 0;
        if (number % 5 == 0) task.output = DataType::f32;
        tasks.push_back(task);
      }
  return tasks;
}

TEST(VectorGemm, EveryShapeUpTo70) {
  const Machine machine(2);
  const std::int64_t step = instrumented ? 23 : 3;
  for (std::int64_t rows = 1; rows <= 70; rows += step)
    for (std::int64_t steps = 1; steps <= 70; steps += step)
      for (const char* form : {"nn m{0}n1k{1}", "nt m1n{0}k{1}"})
        expect_exact(machine, task_of("f32 " + fmt::format(fmt::runtime(form), rows, steps)), -1, gemm_vector_cpu());
}

TEST(VectorGemm, EveryTypeAndFinish) {
  const Machine machine(3);
  for (const auto& [rows, steps] : {std::pair(131, 77), std::pair(1, 1000), std::pair(517, 33)})
    for (const GemmTask& task : vector_tasks(rows, steps)) expect_exact(machine, task, -1, gemm_vector_cpu());
}

TEST(VectorGemm, LeadingDimensions) {
  const Machine machine(2);
  for (const char* text : {"f32 nn m90n1k45batch2", "f64 nt m1n90k45batch2", "bf16 nt m90n1k45"})
    for (const int shared : {0, 1, 2}) {
      GemmTask task = task_of(text);
      const GemmProblem& p = task.problem;
      task.lda += 3, task.ldc += 7;
      if (p.m == 1) task.ldb += 5;
      task.batch_a = shared == 1 ? 0 : task.lda * p.m + 11;
      task.batch_b = shared == 2 ? 0 : task.ldb * (p.transpose_b ? p.n : p.k) + 1;
      task.batch_c = task.ldc * p.m + 2;
      expect_exact(machine, task, -1, gemm_vector_cpu());
    }
}

TEST(VectorGemm, RefusesWhatIsNoVectorInOnePiece) {
  const Machine machine(1);
  const auto refusal = [&](const GemmTask& task) {
    return gemm_vector_cpu().offer(task, machine.context.impl(), {}).refusal();
  };
  GemmTask apart = task_of("f32 nn m20n1k30"), part = apart, prepared = apart;
  apart.ldb = 2, part.is_whole = false, prepared.prepared_a = true;
  const std::string rows = "multiplies rows as they lie with one vector: n is 1, or m is 1 and b is transposed";
  for (const GemmTask& task :
       {apart, task_of("f32 tn m20n1k30"), task_of("f32 nn m1n20k30"), task_of("f32 nt m2n20k30")})
    EXPECT_EQ(refusal(task), rows) << text_of(task);
  EXPECT_EQ(refusal(part), "is no part of a product whose other parts have more columns");
  EXPECT_EQ(refusal(prepared), "reads matrices as they lie");
}

// Whatever vectors are, and however rows are shared out, but for fused multiply-adds.
TEST(VectorGemm, ThreadsAndRowsAtOnceGiveTheSameBits) {
  for (const char* text : {"f32 nn m999n1k1003", "f64 nt m1n310k517"}) {
    const Product product(task_of(text), false);
    const std::vector<std::byte> expected = run(Machine(1), product, -1, gemm_vector_cpu());
    for (const int threads : {2, 3, 5})
      EXPECT_TRUE(run(Machine(threads), product, -1, gemm_vector_cpu()) == expected) << text << ", " << threads;
    // A row by itself has the bits that it has among others.
    const GemmProblem& p = product.p();
    const std::int64_t size = size_of(p.type), row = 7;
    GemmTask one = product.task;
    (p.m == 1 ? one.problem.n : one.problem.m) = 1;
    if (p.m == 1) one.ldc = 1;
    Product alone(one, false);
    alone.a.bytes = product.a.bytes, alone.b.bytes = product.b.bytes;
    Stored& rows = p.m == 1 ? alone.b : alone.a;
    rows.bytes.assign(rows.bytes.begin() + row * p.k * size, rows.bytes.begin() + (row + 1) * p.k * size);
    const std::vector<std::byte> found = run(Machine(1), alone, -1, gemm_vector_cpu());
    EXPECT_TRUE(std::equal(found.begin(), found.begin() + size, expected.begin() + row * size)) << text;
  }
}

TEST(VectorGemm, AtAnyInstructionSet) {
  const Machine machine(2);
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    for (const GemmTask& task : vector_tasks(13, 101)) expect_exact(machine, task, -1, gemm_vector_cpu());
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(PackedGemm, RandomDataWithinTheBound) {
  const Machine machine(2);
  double largest = 0;
  for (const char* text : {"f32 nn m70n90k2000", "f32 tn m64n49k576", "f64 nt m40n50k700", "f16 nn m50n60k900",
                           "bf16 tn m50n60k900", "tf32 nn m30n40k300", "f32 nn m1n1k100000"})
    for (const bool all : {false, true}) {
      GemmTask task = task_of(text);
      task.accumulate = all;
      task.bias = all ? BiasAlong::columns : BiasAlong::none;
      largest = std::max(largest, expect_within_bound(machine, task));
    }
  fmt::print("largest error to bound: {:.3f}\n", largest);
}

// Of whatever type: a row with a NaN is NaN, one with an infinity is infinite, and their neighbours are not.
TEST(PackedGemm, NanAndInfinityStay) {
  const Machine machine(2);
  for (const char* type : {"f32", "f64", "f16", "bf16"})
    for (const bool relu : {false, true}) {
      GemmTask task = task_of(fmt::format("{} nn m20n37k9", type));
      task.relu = relu;
      Product product(task, true);
      for (std::int64_t j = 0; j < 37; ++j) product.b.set(3 * 37 + j, 1);
      product.a.set(4 * 9 + 3, std::numeric_limits<double>::quiet_NaN());
      product.a.set(6 * 9 + 3, std::numeric_limits<double>::infinity());
      Stored result(task.output, 0);
      result.bytes = run(machine, product);
      for (std::int64_t i = 0; i < 20; ++i)
        for (std::int64_t j = 0; j < 37; ++j) {
          const double value = result[i * 37 + j];
          EXPECT_EQ(std::isnan(value), i == 4) << type << " at " << i << " " << j;
          EXPECT_EQ(std::isinf(value), i == 6) << type << " at " << i << " " << j;
        }
    }
}

// Address space, of which only what is touched takes memory: of a file without a name, since a system may grant
// anonymous memory no further than it has.
struct Sparse {
  explicit Sparse(std::int64_t floats) : bytes(static_cast<std::size_t>(floats) * sizeof(float)) {
    const int file = memfd_create("sparse", 0);
    const bool grown = file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0;
    void* const got = grown ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0) close(file);
    if (got == MAP_FAILED) throw std::bad_alloc();
    data = static_cast<float*>(got);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { munmap(data, bytes); }
  Operand operand(const Context& context) const { return {context.borrow(data, static_cast<std::int64_t>(bytes))}; }

  std::size_t bytes;
  float* data;
};

TEST(PackedGemm, MoreThan2To31Elements) {
  if (threads_watched) GTEST_SKIP() << "the thread sanitizer has no room for shadows of so many addresses";
  const Machine machine(2);
  constexpr std::int64_t far = (std::int64_t{1} << 31) + 64;
  GemmTask task = task_of("f32 nn m3n20k2batch2");
  task.lda = task.ldb = task.ldc = far;
  task.batch_a = task.batch_b = 100;
  task.batch_c = 32;
  const Sparse a(3 * far), b(2 * far), c(3 * far);
  for (std::int64_t matrix = 0; matrix < 2; ++matrix)
    for (std::int64_t t = 0; t < 2; ++t) {
      for (std::int64_t i = 0; i < 3; ++i) a.data[matrix * 100 + i * far + t] = static_cast<float>(i + 3 * t + matrix);
      for (std::int64_t j = 0; j < 20; ++j) b.data[matrix * 100 + t * far + j] = static_cast<float>(j - t);
    }
  const Offer offer = offer_by(gemm_packed_cpu(), task, machine.context.impl());
  const auto plan = plan_of(offer);
  submit_run(*machine.queue.impl(), *plan,
             GemmArrays{.a = a.operand(machine.context),
                        .b = b.operand(machine.context),
                        .c = c.operand(machine.context),
                        .bias = {},
                        .workspace = {machine.context.allocate(offer.workspace_bytes)}})
      .wait();
  for (std::int64_t matrix = 0; matrix < 2; ++matrix)
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 20; ++j)
        EXPECT_EQ(c.data[matrix * 32 + i * far + j], static_cast<float>((i + matrix) * j + (i + 3 + matrix) * (j - 1)));
}

const char* const cut_anyhow[] = {
    "f32 nn m64n196k576", "f32 tn m200n300k700", "f32 nt m400n30k513",      "f16 nn m90n100k1100", "f64 nn m60n70k530",
    "bf16 nt m30n700k40", "f32 nn m290n300k90",  "f32 nn m17n18k19batch30", "f32 nn m70n97k700",   "f64 tn m60n49k530"};

TEST(PackedGemm, ThreadsGiveTheSameBits) {
  for (const char* text : cut_anyhow) {
    const Product product(task_of(text), false);
    const auto expected = run(Machine(1), product);
    for (const int threads : {2, 3, 4})
      EXPECT_TRUE(run(Machine(threads), product) == expected) << text << ", " << threads << " threads";
  }
}

TEST(PackedGemm, InstructionSets) {
  const Machine machine(2);
  int sets = 0;
  const Product product(task_of("f32 nn m75n90k700"), false), column(task_of("f32 nn m75n49k700"), false);
  const auto expected = run(machine, product), of_column = run(machine, column);
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    ++sets;
    // Those with a fused multiply-add give the same bits.
    if (target != HWY_SCALAR && target != HWY_SSE4) {
      EXPECT_TRUE(run(machine, product) == expected) << hwy::TargetName(target);
      EXPECT_TRUE(run(machine, column) == of_column) << hwy::TargetName(target);
    }
    for (const char* type : {"f32", "f64", "f16", "bf16"})
      for (int i = 0; i < 4; ++i)
        for (const char* shape :
             {"m1n1k1", "m5n7k9", "m13n17k21", "m37n70k33", "m14n32k600", "m130n5k140", "m30n17k150"}) {
          GemmTask task = task_of(fmt::format("{} {} {}", type, transposes(i), shape));
          task.bias = i % 2 == 0 ? BiasAlong::columns : BiasAlong::rows;
          task.relu = i == 1;
          task.accumulate = i == 2;
          expect_exact(machine, task);
        }
    for (const char* text : {"f32 nn m30n50k700", "f64 nt m30n50k700", "f16 tn m30n50k700", "f64 nn m30n49k700"})
      expect_within_bound(machine, task_of(text));
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  // Where there is AVX2 there is SSE4 too, so that at least both were taken.
  EXPECT_GE(sets, (hwy::SupportedTargets() & HWY_TARGETS & HWY_AVX2) != 0 ? 2 : 1);
}

// Alone is the last column of the problem, not of blocks, whose columns are no whole sixteens on every instruction set;
// rows are packed or in place.
TEST(PackedGemm, ColumnsAloneKeepTheirBits) {
  const Machine machine(2);
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    for (const char* text : {"f32 nn m200n49k300", "f32 tn m200n49k300", "f64 nn m200n41k300", "f64 nt m60n97k700",
                             "f64 tn m70n73k600", "f32 nt m2n177k300", "f16 nn m60n33k200"})
      expect_the_same_under_limits(machine, text);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  const auto is_last_alone = [](const char* text) { return GemmBlocking(task_of(text), 2, -1).is_last_alone; };
  EXPECT_TRUE(is_last_alone("f32 nn m200n49k64"));
  EXPECT_TRUE(is_last_alone("f64 nn m200n1k64"));
  EXPECT_FALSE(is_last_alone("f32 nn m200n49k63"));
  EXPECT_FALSE(is_last_alone("f32 nn m200n41k300"));
  GemmTask task = task_of("f32 nn m200n49k300");
  task.may_set_last_apart = false;
  EXPECT_FALSE(GemmBlocking(task, 2, -1).is_last_alone);
}

// With every instruction set but those that would need the processor's own products, where it has none.
template <typename Body>
void for_sets_with_pairs(const Body& body) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    if (target != HWY_AVX3 || kernels::has_pair_products()) body(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// The two terms of an element are those of steps 2t and 2t + 1, whichever way lines are stored, and zero beyond the
// last.
TEST(PackedGemm, PanelsOfPairs) {
  constexpr DataType type = DataType::bf16;
  for_sets_with_pairs([&](const char* set) {
    for (const bool steps_adjacent : {false, true})
      for (const std::int64_t count : {1, 3, 4, 7, 13, 16, 31, 32})
        for (const std::int64_t steps : {1, 2, 3, 8, 9, 16, 17, 18, 33, 70}) {
          const std::int64_t width = count + count % 3, ld = (steps_adjacent ? steps : count) + 1 + count % 2,
                             stored_rows = steps_adjacent ? count : steps;
          Stored lines(type, stored_rows * ld);
          const auto at = [&](std::int64_t i, std::int64_t t) { return steps_adjacent ? i * ld + t : t * ld + i; };
          for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t t = 0; t < steps; ++t) lines.set(at(i, t), static_cast<double>(1 + (i * 71 + t) % 251));
          std::vector<kernels::BfloatPair> panel(static_cast<std::size_t>(width * ((steps + 1) / 2) + 1), {7, 7});
          kernels::pack_panel({lines.bytes.data(), type, ld, steps_adjacent}, count, width, steps, panel.data());
          EXPECT_TRUE(panel.back().low == 7 && panel.back().high == 7) << "past the end";
          const auto term = [&](std::int64_t i, std::int64_t t) {
            const kernels::BfloatPair pair = panel[static_cast<std::size_t>(t / 2 * width + i)];
            return load_element(type, reinterpret_cast<const std::byte*>(t % 2 == 0 ? &pair.low : &pair.high));
          };
          for (std::int64_t i = 0; i < width; ++i)
            for (std::int64_t t = 0; t < (steps + 1) / 2 * 2; ++t)
              ASSERT_EQ(term(i, t), i < count && t < steps ? lines[at(i, t)] : 0)
                  << set << ", " << count << " lines, step " << t << " of " << steps << ", line " << i;
        }
  });
}

// Sums of integers, exact: as the processor's products of pairs give them, and as the other instruction sets do.
TEST(PackedGemm, TilesOfPairs) {
  constexpr DataType type = DataType::bf16;
  for_sets_with_pairs([&](const char* set) {
    for (const std::int64_t rows :
         {std::int64_t{1}, std::int64_t{2}, kernels::register_tile(DataType::f32, 100).rows}) {
      const kernels::RegisterTile tile = kernels::register_tile(DataType::f32, rows);
      for (const std::int64_t columns : {std::int64_t{1}, tile.lanes, tile.columns - 1, tile.columns}) {
        constexpr std::int64_t steps = 21, pairs = 11;
        const std::int64_t width = round_up(columns, tile.lanes);
        Stored a(type, rows * steps), b(type, columns * steps);
        for (std::int64_t i = 0; i < rows * steps; ++i) a.set(i, static_cast<double>(i % 7 - 3));
        for (std::int64_t i = 0; i < columns * steps; ++i) b.set(i, static_cast<double>(i % 11 - 5));
        std::vector<kernels::BfloatPair> of_a(static_cast<std::size_t>(rows * pairs));
        const auto of_b = std::make_unique<kernels::BfloatPair[]>(static_cast<std::size_t>(width * pairs) + 16);
        void* begin = of_b.get();
        std::size_t room = static_cast<std::size_t>(width * pairs + 16) * sizeof(kernels::BfloatPair);
        auto* const aligned = static_cast<kernels::BfloatPair*>(std::align(64, room - 64, begin, room));
        kernels::pack_panel({a.bytes.data(), type, steps, true}, rows, rows, steps, of_a.data());
        kernels::pack_panel({b.bytes.data(), type, steps, true}, columns, width, steps, aligned);
        std::vector<float> sums(static_cast<std::size_t>(rows * columns), 1);
        kernels::multiply_panels(kernels::GemmPanels<kernels::BfloatPair>{.a = of_a.data(),
                                                                          .b = aligned,
                                                                          .steps = pairs,
                                                                          .rows = rows,
                                                                          .columns = columns,
                                                                          .sums = sums.data(),
                                                                          .ld = columns,
                                                                          .add = true});
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) {
            double sum = 1;
            for (std::int64_t t = 0; t < steps; ++t) sum += a[i * steps + t] * b[j * steps + t];
            ASSERT_EQ(sums[static_cast<std::size_t>(i * columns + j)], sum) << set << ", " << i << ", " << j;
          }
      }
    }
  });
}

// Odd sums, rows that begin at odd elements, and several chunks, the last of them odd.
TEST(PackedGemm, OddSumsOfBf16) {
  const Machine machine(2);
  for (const char* shape : {"m1n1k1", "m15n33k3", "m70n2k1023", "m2n70k1025", "m31n47k2049", "m130n200k3073"})
    for (int i = 0; i < 4; ++i) {
      GemmTask task = task_of(fmt::format("bf16 {} {}", transposes(i), shape));
      expect_exact(machine, task);
      task.lda += 1 + i % 2, task.ldb += 2 - i % 2;
      expect_exact(machine, task);
    }
  expect_within_bound(machine, task_of("bf16 nt m31n47k2049"));
}

// Of numbers below the normal range: pairs take them for zeros, and whoever asks for fused multiply-adds alone, or for
// relative errors, has the definition.
TEST(PackedGemm, BelowTheNormalRange) {
  const Machine machine(1);
  const auto product_of = [&](const SolverOptions& request) {
    GemmTask task = task_of("bf16 nn m4n4k4");
    task.output = DataType::f32;
    task.may_pair = may_pair(request);
    Product product(task, true);
    for (std::int64_t i = 0; i < 16; ++i) product.a.set(i, 0x1p100), product.b.set(i, 0x1p-130);
    return load_element(DataType::f32, run(machine, product).data());
  };
  constexpr double exact = 4 * 0x1p-30;
  EXPECT_EQ(product_of({.units = Units::fma}), exact);
  EXPECT_EQ(product_of({.relative_error = true}), exact);
  EXPECT_EQ(product_of({}), kernels::has_pair_products() ? 0 : exact);
}

}  // namespace
}  // namespace omniconv::operations
