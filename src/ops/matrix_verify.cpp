#include "ops/matrix_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "core/checked.h"
#include "core/convert.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr std::int64_t guard_bytes = 256;
constexpr std::byte poison{0xFF};  // NaN in every type
// Terms of all sums that a sample looks at, so that long sums are sampled in seconds.
constexpr double most_terms = 2e8;

// Copies to and from the device's buffers, between guards; large arrays are held once by the host, not for each copy.
class Transfers {
 public:
  explicit Transfers(const Context& context) : context_(context), queue_(context.make_queue()) {}
  Queue& queue() { return queue_; }

  // `data`, or poison where it is null.
  Buffer put(const std::byte* data, std::int64_t bytes, std::int64_t guard) {
    const Buffer buffer = context_.allocate(bytes + 2 * guard);
    if (data && bytes <= piece_bytes) {  // at once: Oclgrind takes a buffer that is written in parts for unwritten
      std::vector<std::byte> whole(static_cast<std::size_t>(buffer.bytes()), poison);
      std::copy_n(data, bytes, whole.begin() + guard);
      queue_.upload(buffer, 0, whole.data(), buffer.bytes()).wait();
      return buffer;
    }
    spread_poison(buffer, 0, data ? guard : buffer.bytes());
    if (!data) return buffer;
    queue_.upload(buffer, guard, data, bytes).wait();
    spread_poison(buffer, guard + bytes, guard);
    return buffer;
  }
  std::vector<std::byte> get(const Buffer& buffer, std::int64_t first, std::int64_t bytes) {
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    queue_.download(data.data(), buffer, first, bytes).wait();
    return data;
  }
  bool are_guards_intact(const Buffer& buffer) {
    const auto intact = [&](std::int64_t first) {
      const std::vector<std::byte> guard = get(buffer, first, guard_bytes);
      return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == poison; });
    };
    return intact(0) && intact(buffer.bytes() - guard_bytes);
  }
  bool holds(const Buffer& buffer, const std::vector<std::byte>& data) {
    const auto size = static_cast<std::int64_t>(data.size());
    for (std::int64_t at = 0; at < size; at += piece_bytes) {
      const std::vector<std::byte> piece = get(buffer, guard_bytes + at, std::min(piece_bytes, size - at));
      if (!std::equal(piece.begin(), piece.end(), data.begin() + at)) return false;
    }
    return are_guards_intact(buffer);
  }

 private:
  static constexpr std::int64_t piece_bytes = std::int64_t{16} << 20;

  void spread_poison(const Buffer& buffer, std::int64_t first, std::int64_t bytes) {
    const std::vector<std::byte> piece(static_cast<std::size_t>(std::min(piece_bytes, bytes)), poison);
    for (std::int64_t at = 0; at < bytes; at += piece_bytes)
      queue_.upload(buffer, first + at, piece.data(), std::min(piece_bytes, bytes - at)).wait();
  }

  const Context& context_;
  Queue queue_;
};

// One set of arrays, and the outputs that are checked.
class Trial {
 public:
  // `most`: as in fill_random.
  Trial(const MatrixWork& work, int most, const MatrixVerifyOptions& options) : work_(work), integers_(most > 0) {
    std::uint64_t seed = options.seed * 16 + (integers_ ? 8 : 0);
    for (const MatrixArray& input : work.inputs) data_.push_back(random(input, most, seed++));
    if (work.accumulates) old_ = random(work.output, most, seed++);
    for (const std::vector<std::byte>& data : data_) pointers_.push_back(data.data());
    choose_points(options);
  }

  void check(const Context& context, const MatrixPlan& plan, const solvers::MatrixBound& bound,
             VerifyResult& result) const {
    const std::vector<std::byte> output = run(context, plan, result);
    if (result.status == Status::failed) return;
    double largest = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const reference::DoubleSum& sum = expected_[i];
      const std::byte* const stored = output.data() + points_[i] * size_of(work_.type);
      ++result.checked;
      if (integers_)
        check_exact(points_[i], sum.value, stored, result);
      else
        largest = std::max(largest, check_bound(points_[i], sum, bound, stored, result));
      if (result.status == Status::failed) return;
    }
    if (!integers_) result.error = largest;
  }

  // Too few of what is expected differ from zero for a comparison to mean anything.
  bool is_mostly_zero() const {
    const auto zeros = std::count_if(expected_.begin(), expected_.end(), [](const reference::DoubleSum& sum) {
      return sum.magnitude > 0 && sum.value == 0;
    });
    const auto sums = std::count_if(expected_.begin(), expected_.end(),
                                    [](const reference::DoubleSum& s) { return s.magnitude > 0; });
    return sums > 16 && zeros * 2 > sums;
  }

  double units(const solvers::MatrixBound& bound) const {
    const auto closed = [](double units, double eps) { return units / (1 - units * eps); };  // higher orders too
    const double solver = closed(bound.amplification * (bound.chain / 2 + bound.constant), epsilon());
    return solver + closed(work_.longest_sum / 2 + 2, 0x1p-52) * 0x1p-52 / epsilon();  // and the reference's own
  }

 private:
  double epsilon() const { return work_.type == DataType::f64 ? 0x1p-52 : 0x1p-23; }

  std::vector<std::byte> random(const MatrixArray& array, int most, std::uint64_t seed) const {
    std::vector<std::byte> data(
        static_cast<std::size_t>(checked_multiply(array.elements, size_of(work_.type), array.name)));
    fill_random(work_.type, most, seed, data);
    return data;
  }

  // All, or the first and last and a random choice between.
  void choose_points(const MatrixVerifyOptions& options) {
    const std::int64_t all = work_.output.elements;
    const auto most = static_cast<std::int64_t>(std::max(64.0, most_terms / std::max(work_.longest_sum, 1.0)));
    const std::int64_t count = options.sampled ? std::min({options.samples, most, all}) : all;
    std::mt19937_64 random(options.seed);
    for (std::int64_t i = 0; i < count; ++i)
      points_.push_back(count == all ? i
                        : i < 8      ? i
                        : i < 16     ? all - 1 - (i - 8)
                                     : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(all)));
    for (const std::int64_t point : points_) expected_.push_back(sum_at(point));
  }

  reference::DoubleSum sum_at(std::int64_t point) const {
    reference::DoubleSum sum = work_.expected(pointers_, point);
    if (work_.accumulates) {
      const double old = load_element(work_.type, old_.data() + point * size_of(work_.type));
      sum.value += old;
      sum.magnitude += std::fabs(old);
    }
    return sum;
  }

  // The output; `result` fails where anything else was written.
  std::vector<std::byte> run(const Context& context, const MatrixPlan& plan, VerifyResult& result) const {
    Transfers transfers(context);
    std::vector<Operand> inputs;
    for (const std::vector<std::byte>& data : data_)
      inputs.push_back({transfers.put(data.data(), static_cast<std::int64_t>(data.size()), guard_bytes), guard_bytes});
    const std::int64_t output_bytes = checked_multiply(work_.output.elements, size_of(work_.type), work_.output.name);
    const Operand output{transfers.put(work_.accumulates ? old_.data() : nullptr, output_bytes, guard_bytes),
                         guard_bytes};
    const Buffer workspace = transfers.put(nullptr, std::max<std::int64_t>(plan.workspace_bytes(), 1), 0);
    plan.run(transfers.queue(), inputs, output, workspace).wait();

    if (!transfers.are_guards_intact(output.buffer)) fail("wrote outside " + work_.output.name, result);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!transfers.holds(inputs[i].buffer, data_[i])) fail("changed " + work_.inputs[i].name, result);
    return transfers.get(output.buffer, guard_bytes, output_bytes);
  }

  static void fail(const std::string& reason, VerifyResult& result) {
    if (result.status != Status::failed) result.reason = reason;
    result.status = Status::failed;
  }

  // What is stored of a value.
  double converted(double value) const {
    std::byte bytes[8];
    store_element(work_.type, work_.has_relu && value < 0 ? 0.0 : value, bytes);
    return load_element(work_.type, bytes);
  }

  void check_exact(std::int64_t point, double value, const std::byte* stored, VerifyResult& result) const {
    const double found = load_element(work_.type, stored);
    if (found != converted(value))
      fail(fmt::format("{}[{}] of integers is {} and must be {}", work_.output.name, point, found, converted(value)),
           result);
  }

  // The error in units of the bound. Rounding to the stored type is monotone: what lies within the bound before it lies
  // between the rounded ends after it.
  double check_bound(std::int64_t point, const reference::DoubleSum& sum, const solvers::MatrixBound& bound,
                     const std::byte* stored, VerifyResult& result) const {
    const double unit = epsilon() * sum.magnitude, allowed = units(bound) * unit;
    const double found = load_element(work_.type, stored), low = converted(sum.value - allowed),
                 high = converted(sum.value + allowed);
    if (!(found >= low && found <= high))
      fail(fmt::format("{}[{}] is {} and must lie in [{}, {}]", work_.output.name, point, found, low, high), result);
    const bool wide = work_.type == DataType::f32 || work_.type == DataType::f64 || work_.type == DataType::tf32;
    if (unit == 0 || !wide || (work_.has_relu && found == 0)) return 0;
    return std::max(0.0, std::fabs(found - sum.value) - std::fabs(converted(sum.value) - sum.value)) / unit;
  }

  const MatrixWork& work_;
  bool integers_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<std::byte> old_;
  std::vector<const std::byte*> pointers_;
  std::vector<std::int64_t> points_;
  std::vector<reference::DoubleSum> expected_;
};

// Products of integers up to this sum up exactly in fp32.
int largest_exact(const MatrixWork& work) {
  const double most = std::sqrt(0x1p24 / (work.longest_sum + 2));
  if (most < 1)
    throw bad_input(fmt::format("{}: sums of {:g} terms are not exact in fp32 even of -1, 0 and 1: check it with f64",
                                work.text(), work.longest_sum));
  return static_cast<int>(std::min(most, 8.0));
}

VerifyResult verify_one(const Context& context, const MatrixWork& work, const std::vector<const Trial*>& trials,
                        const std::string& solver, const SolverOptions& options) {
  VerifyResult result;
  result.solver = solver;
  const auto start = std::chrono::steady_clock::now();
  SolverOptions only = options;
  only.solver = solver;
  const std::unique_ptr<MatrixPlan> plan = work.plan(context, only);
  result.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.compile_seconds = plan->compile_seconds();
  const solvers::MatrixBound bound = work.bound(solver, *context.impl());
  for (const Trial* trial : trials) {
    trial->check(context, *plan, bound, result);
    result.bound = trial->units(bound);
    if (result.status == Status::failed) break;
  }
  return result;
}

}  // namespace

void fill_random(DataType type, int most, std::uint64_t seed, std::vector<std::byte>& data) {
  // A prime number: rows of no shape begin alike, and gigabytes are made by copying.
  constexpr std::int64_t period = 1'048'583;
  std::mt19937_64 random(seed);
  const std::int64_t size = size_of(type), elements = static_cast<std::int64_t>(data.size()) / size;
  for (std::int64_t i = 0; i < std::min(elements, period); ++i) {
    const std::uint64_t bits = random();
    const double value =
        most > 0
            ? static_cast<double>(static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(2 * most + 1)) - most)
            : static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-52 - 1;
    store_element(type, value, data.data() + i * size);
  }
  for (std::int64_t i = period; i < elements; i += period)
    std::memcpy(data.data() + i * size, data.data(), static_cast<std::size_t>(std::min(period, elements - i) * size));
}

std::vector<VerifyResult> verify(const Context& context, const MatrixWork& work, const MatrixVerifyOptions& options) {
  SolverOptions choice = options.solver;
  const bool all = choice.solver == "all";
  if (all) choice.solver = "auto";
  std::vector<Candidate> candidates = work.explain(context, choice);
  if (!all && !candidates.front().applicable) work.plan(context, choice);  // throws
  if (!all) candidates.resize(1);
  std::vector<VerifyResult> results;
  std::unique_ptr<Trial> integers, reals;
  for (const Candidate& candidate : candidates) {
    if (!candidate.applicable) {
      results.push_back({.solver = candidate.solver, .status = Status::refused, .reason = candidate.reason});
      continue;
    }
    if (!reals) {
      integers = std::make_unique<Trial>(work, largest_exact(work), options);
      reals = std::make_unique<Trial>(work, 0, options);
    }
    results.push_back(verify_one(context, work, {integers.get(), reals.get()}, candidate.solver, choice));
    if (results.back().status == Status::ok && (integers->is_mostly_zero() || reals->is_mostly_zero())) {
      results.back().status = Status::failed;
      results.back().reason = "most of what was expected is zero: the comparison means little; choose another --seed";
    }
  }
  return results;
}

}  // namespace omniconv
