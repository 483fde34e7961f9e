#include "ops/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "core/checked.h"
#include "core/convert.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "ops/random_image.h"
#include "reference/filter2d.h"
#include "solvers/solver.h"

namespace omniconv {
namespace {

constexpr std::byte poison{0xA5};
constexpr std::int64_t guard_bytes = 256;

struct Point {
  std::int64_t p, q, ch;
};

// Every corner, then points of which a quarter lie on an edge.
std::vector<Point> sample_points(const Filter2dProblem& problem, std::int64_t samples, std::uint64_t seed) {
  const std::int64_t rows = P(problem), columns = Q(problem);
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  std::vector<Point> points;
  for (const std::int64_t p : {std::int64_t{0}, rows - 1})
    for (const std::int64_t q : {std::int64_t{0}, columns - 1}) points.push_back({p, q, below(problem.c)});
  const std::int64_t near_rows = std::min(rows, problem.r), near_columns = std::min(columns, problem.s);
  while (static_cast<std::int64_t>(points.size()) < samples) {
    Point point{below(rows), below(columns), below(problem.c)};
    switch (below(16)) {
      case 0: point.p = below(near_rows); break;
      case 1: point.p = rows - 1 - below(near_rows); break;
      case 2: point.q = below(near_columns); break;
      case 3: point.q = columns - 1 - below(near_columns); break;
      default: break;
    }
    points.push_back(point);
  }
  return points;
}

// Judges single output elements of one result.
class Judge {
 public:
  Judge(const Filter2dTask& task, const solvers::ErrorBound& bound, RowWindow x, const std::byte* y)
      : task_(task), x_(x), y_(y), exact_(is_bit_exact(task.problem)) {
    const double epsilon = task.weights.accumulate == DataType::f64 ? 0x1p-52 : 0x1p-23;
    const auto closed = [](double units, double eps) { return units / (1 - units * eps); };  // gamma: higher orders too
    const double taps = static_cast<double>(task.weights.r) * static_cast<double>(task.weights.s);
    const double solver_units = bound.amplification * (bound.chain / 2 + bound.constant);
    // The reference's own roundings count too: in fp32's epsilon they vanish, for f64 images they do not.
    const double reference_units = closed(taps / 2 + 4, 0x1p-52) * 0x1p-52 / epsilon;
    epsilon_ = epsilon;
    bound_ = exact_ ? 0 : closed(solver_units, epsilon) + reference_units;
  }

  void check(const Point& point, VerifyResult& result) const {
    const Filter2dProblem& problem = task_.problem;
    const std::int64_t size = size_of(problem.output);
    const std::byte* const stored = y_ + ((point.p * Q(problem) + point.q) * problem.c + point.ch) * size;
    ++result.checked;
    if (exact_)
      check_bits(point, stored, size, result);
    else
      check_bound(point, stored, result);
  }

  double bound() const { return bound_; }

 private:
  void check_bits(const Point& point, const std::byte* stored, std::int64_t size, VerifyResult& result) const {
    std::byte expected[8];
    reference::definition_element(task_, x_, point.p, point.q, point.ch, expected);
    if (std::memcmp(expected, stored, static_cast<std::size_t>(size)) == 0) return;
    const double wanted = load_element(task_.problem.output, expected),
                 found = load_element(task_.problem.output, stored);
    result.error = std::max(result.error, std::fabs(found - wanted));
    fail(point, fmt::format("is {} and must be {} to the bit", found, wanted), result);
  }

  // The conversion to the stored type is monotone: what lies within the bound before it lies between the converted ends
  // after it.
  void check_bound(const Point& point, const std::byte* stored, VerifyResult& result) const {
    const DataType type = task_.problem.output;
    const auto [value, magnitude, condition] = reference::double_element(task_, x_, point.p, point.q, point.ch);
    const double lost = bound_ * epsilon_ * condition;
    if (!(lost < 1)) return;  // an opacity that rounding alone may turn to zero or less: the colour may be anything
    const double unit = epsilon_ * magnitude / (1 - lost), allowed = bound_ * unit;
    const auto converted = [type](double v) {
      std::byte bytes[8];
      store_element(type, v, bytes);
      return load_element(type, bytes);
    };
    const double found = load_element(type, stored), low = converted(value - allowed),
                 high = converted(value + allowed);
    // What rounding to the stored type alone accounts for is no error of the solver's.
    const double excess = std::max(0.0, std::fabs(found - value) - std::fabs(converted(value) - value));
    if (unit > 0 && (type == DataType::f32 || type == DataType::f64))
      result.error = std::max(result.error, excess / unit);
    if (!(found >= low && found <= high))
      fail(point, fmt::format("is {} and must lie in [{}, {}]", found, low, high), result);
  }

  static void fail(const Point& point, const std::string& what, VerifyResult& result) {
    if (result.status == Status::failed) return;  // the first is reported
    result.status = Status::failed;
    result.reason = fmt::format("y[{}, {}, {}] {}", point.p, point.q, point.ch, what);
  }

  const Filter2dTask& task_;
  RowWindow x_;
  const std::byte* y_;
  bool exact_;
  double epsilon_ = 0, bound_ = 0;
};

// Runs one solver over the whole image, in strips if asked, between guards, over poisoned memory.
std::vector<std::byte> run_guarded(const Context& context, const Filter2dPlan& plan,
                                   const std::vector<std::byte>& image, const Filter& filter,
                                   const VerifyOptions& options, VerifyResult& result) {
  const Filter2dProblem& problem = plan.problem();
  const std::int64_t row_in = problem.w * problem.c * size_of(problem.input);
  const std::int64_t row_out = Q(problem) * problem.c * size_of(problem.output);
  const std::int64_t strip = options.strip_rows > 0 ? options.strip_rows : P(problem);
  Queue queue = context.make_queue();
  std::vector<std::byte> output(static_cast<std::size_t>(P(problem) * row_out));
  const Buffer workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  const std::vector<std::byte> poisoned(static_cast<std::size_t>(workspace.bytes()), std::byte{0xFF});
  queue.upload(workspace, 0, poisoned.data(), workspace.bytes()).wait();
  for (std::int64_t first = 0; first < P(problem); first += strip) {
    const std::int64_t rows = std::min(strip, P(problem) - first);
    const RowSpan span = strip == P(problem) ? RowSpan{0, problem.h} : input_rows_for(problem, filter, first, rows);
    // Rows outside the image (wrap) are put there as copies, as a strip reader does.
    std::vector<std::byte> given(static_cast<std::size_t>((span.last - span.first) * row_in));
    for (std::int64_t row = span.first; row < span.last; ++row)
      std::memcpy(given.data() + (row - span.first) * row_in,
                  image.data() + ((row % problem.h) + problem.h) % problem.h * row_in,
                  static_cast<std::size_t>(row_in));
    std::vector<std::byte> guarded(static_cast<std::size_t>(rows * row_out + 2 * guard_bytes), poison);
    const Buffer input = context.allocate(static_cast<std::int64_t>(given.size()));
    const Buffer result_buffer = context.allocate(static_cast<std::int64_t>(guarded.size()));
    queue.upload(input, 0, given.data(), input.bytes());
    queue.upload(result_buffer, 0, guarded.data(), result_buffer.bytes());
    Filter2dRun run{
        .input = input, .output = result_buffer, .workspace = workspace, .output_offset_bytes = guard_bytes};
    run.input_first = span.first;
    run.input_rows = span.last - span.first;
    run.output_first = first;
    run.output_rows = rows;
    plan.run(queue, run).wait();
    queue.download(guarded.data(), result_buffer, 0, result_buffer.bytes()).wait();
    const auto intact = [](auto begin, auto end) {
      return std::all_of(begin, end, [](std::byte b) { return b == poison; });
    };
    if (!intact(guarded.begin(), guarded.begin() + guard_bytes) ||
        !intact(guarded.end() - guard_bytes, guarded.end())) {
      result.status = Status::failed;
      result.reason = fmt::format("wrote outside its output rows {} to {}", first, first + rows - 1);
    }
    std::memcpy(output.data() + first * row_out, guarded.data() + guard_bytes,
                static_cast<std::size_t>(rows * row_out));
  }
  return output;
}

VerifyResult verify_one(const Context& context, const Filter2dTask& task, const Filter& filter,
                        const solvers::Filter2dSolver& solver, const std::vector<std::byte>& image,
                        const VerifyOptions& options) {
  const Filter2dProblem& problem = task.problem;
  VerifyResult result;
  result.solver = solver.id();
  const auto start = std::chrono::steady_clock::now();
  const Filter2dPlan plan(context, problem, filter, {.solver = result.solver});
  result.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.compile_seconds = plan.compile_seconds();
  const std::vector<std::byte> output = run_guarded(context, plan, image, filter, options, result);
  const RowWindow x{image.data(), problem.w * problem.c * size_of(problem.input), 0, problem.h};
  const Judge judge(task, solver.bound(task), x, output.data());
  result.bound = judge.bound();
  if (options.sampled) {
    for (const Point& point : sample_points(problem, options.samples, options.seed)) judge.check(point, result);
    return result;
  }
  for (std::int64_t p = 0; p < P(problem); ++p)
    for (std::int64_t q = 0; q < Q(problem); ++q)
      for (std::int64_t ch = 0; ch < problem.c; ++ch) judge.check({p, q, ch}, result);
  return result;
}

}  // namespace

std::string_view name(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::refused: return "refused";
    case Status::failed: return "failed";
  }
  return "?";
}

void require_solver(std::string_view id) {
  std::vector<std::string_view> ids;
  for (const solvers::Filter2dSolver* solver : solvers::filter2d_solvers()) ids.push_back(solver->id());
  if (std::find(ids.begin(), ids.end(), id) == ids.end())
    throw bad_input(fmt::format("unknown solver '{}': {}", id, suggest(id, ids)));
}

std::string auto_solver(const Context& context, const Filter2dProblem& problem, const Filter& filter) {
  const std::vector<Filter2dCandidate> candidates = explain(context, problem, filter);
  if (candidates.front().applicable) return candidates.front().solver;
  return Filter2dPlan(context, problem, filter).solver();  // throws
}

std::vector<VerifyResult> verify(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                 const VerifyOptions& options) {
  const Filter2dTask task = task_for(problem, filter);
  const std::int64_t elements =
      checked_multiply(checked_multiply(problem.h, problem.w, "the image"), problem.c, "the image");
  std::vector<std::byte> image(
      static_cast<std::size_t>(checked_multiply(elements, size_of(problem.input), "the image")));
  fill_random(task, options.seed, image);

  const std::string wanted = options.solver == "auto" ? auto_solver(context, problem, filter) : options.solver;
  std::vector<VerifyResult> results;
  for (const solvers::Filter2dSolver* solver : solvers::filter2d_solvers()) {
    if (wanted != "all" && wanted != solver->id()) continue;
    const std::string reason = solver->refusal(task, *context.impl());
    if (reason.empty())
      results.push_back(verify_one(context, task, filter, *solver, image, options));
    else
      results.push_back({.solver = std::string(solver->id()), .status = Status::refused, .reason = reason});
  }
  if (results.empty()) require_solver(wanted);
  return results;
}

}  // namespace omniconv
