// Errors of convolutions beside those of fp32 chains: on random data, signed and non-negative, the largest
// |result - exact| / sum |x*w| of sampled elements, of what a device's plans make and of fp32 multiply-adds one after
// the other in the order of the definition. Exact is the sum in f64. Sums of few terms are drawn several times, and
// their largest errors averaged: a chain of few additions is nearly as good, and one draw's largest is chance.
//
//   conv2d_errors [--device cuda] [--json FILE] [--samples 2048] [--relative-error] PROBLEM_LIST...
//
// fp32, nchw, every pass. Exit status 1 where a result's error passes the chain's.
#include <omniconv/conv2d.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "comparing.h"
#include "devices/cpu/crew.h"
#include "operations/random.h"

namespace {

using namespace omniconv;

struct Errors {
  double own = 0, chain = 0;  // units of 2^-24
};

std::vector<float> random_array(std::int64_t count, std::uint64_t seed, bool is_signed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  operations::fill_random(DataType::f32, 0, seed, std::as_writable_bytes(std::span(values)));
  if (!is_signed)
    for (float& value : values) value = std::fabs(value);
  return values;
}

// The terms of one element of the pass's output, in the order of the definition, to `take` one after the other.
template <typename Take>
void for_each_term(const Conv2dProblem& p, std::int64_t element, const Take& take) {
  const std::int64_t rows = P(p), columns = Q(p), of_group = p.c / p.groups, filters = p.k / p.groups;
  const auto x_at = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    return ((n * p.c + c) * p.h + h) * p.w + w;
  };
  const auto w_at = [&](std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) {
    return ((k * of_group + c) * p.r + r) * p.s + s;
  };
  const auto y_at = [&](std::int64_t n, std::int64_t k, std::int64_t row, std::int64_t column) {
    return ((n * p.k + k) * rows + row) * columns + column;
  };
  const auto in_x = [&](std::int64_t row, std::int64_t column, std::int64_t r, std::int64_t s, const auto& use) {
    const std::int64_t h = row * p.stride_h + r * p.dilation_h - p.pad_top,
                       w = column * p.stride_w + s * p.dilation_w - p.pad_left;
    if (h >= 0 && h < p.h && w >= 0 && w < p.w) use(h, w);
  };
  if (p.pass == Pass::forward) {
    const std::int64_t column = element % columns, row = element / columns % rows, k = element / columns / rows % p.k,
                       n = element / columns / rows / p.k, first = k / filters * of_group;
    for (std::int64_t c = 0; c < of_group; ++c)
      for (std::int64_t r = 0; r < p.r; ++r)
        for (std::int64_t s = 0; s < p.s; ++s)
          in_x(row, column, r, s,
               [&](std::int64_t h, std::int64_t w) { take(x_at(n, first + c, h, w), w_at(k, c, r, s)); });
  } else if (p.pass == Pass::backward_data) {
    const std::int64_t w = element % p.w, h = element / p.w % p.h, c = element / p.w / p.h % p.c,
                       n = element / p.w / p.h / p.c, group = c / of_group;
    for (std::int64_t k = group * filters; k < (group + 1) * filters; ++k)
      for (std::int64_t r = 0; r < p.r; ++r)
        for (std::int64_t s = 0; s < p.s; ++s) {
          const std::int64_t down = h + p.pad_top - r * p.dilation_h, along = w + p.pad_left - s * p.dilation_w;
          if (down < 0 || along < 0 || down % p.stride_h != 0 || along % p.stride_w != 0) continue;
          if (down / p.stride_h >= rows || along / p.stride_w >= columns) continue;
          take(y_at(n, k, down / p.stride_h, along / p.stride_w), w_at(k, c % of_group, r, s));
        }
  } else {
    const std::int64_t s = element % p.s, r = element / p.s % p.r, c = element / p.s / p.r % of_group,
                       k = element / p.s / p.r / of_group, channel = k / filters * of_group + c;
    for (std::int64_t n = 0; n < p.n; ++n)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          in_x(row, column, r, s,
               [&](std::int64_t h, std::int64_t w) { take(x_at(n, channel, h, w), y_at(n, k, row, column)); });
  }
}

// Of a sum of the pass's output, but for those at edges.
std::int64_t terms_of(const Conv2dProblem& p) {
  const std::int64_t taps = p.r * p.s;
  return std::max<std::int64_t>(1, p.pass == Pass::forward         ? p.c / p.groups * taps
                                   : p.pass == Pass::backward_data ? p.k / p.groups * taps / p.stride_h / p.stride_w
                                                                   : p.n * P(p) * Q(p));
}

Errors errors_of(const Conv2dProblem& problem, const std::vector<float>& first, const std::vector<float>& second,
                 const std::vector<float>& result, std::int64_t samples) {
  // So many sums of about ten thousand terms; of longer ones fewer, of shorter ones more; all, where they are no more.
  const auto count = static_cast<std::int64_t>(result.size());
  const std::int64_t taken = std::clamp<std::int64_t>(samples * 10'000 / terms_of(problem), 64, 64 * samples);
  std::vector<std::int64_t> elements(static_cast<std::size_t>(std::min(taken, count)));
  std::mt19937_64 generator(1);
  std::iota(elements.begin(), elements.end(), std::int64_t{0});
  if (taken < count)
    for (std::int64_t& element : elements)
      element = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(count));
  std::vector<Errors> each(elements.size());
  const auto errors_at = [&](std::int64_t element) {
    double exact = 0, norm = 0;
    float chain = 0;
    for_each_term(problem, element, [&](std::int64_t a, std::int64_t b) {
      const float x = first[static_cast<std::size_t>(a)], w = second[static_cast<std::size_t>(b)];
      exact += static_cast<double>(x) * w, norm += std::fabs(static_cast<double>(x) * w);
      chain = std::fma(x, w, chain);
    });
    const auto error = [&](float value) {
      if (value == exact) return 0.0;
      return norm == 0 || !std::isfinite(value) ? std::numeric_limits<double>::infinity()
                                                : std::fabs(value - exact) / norm * 0x1p24;
    };
    return Errors{error(result[static_cast<std::size_t>(element)]), error(chain)};
  };
  const auto at = [&](std::int64_t i) {
    each[static_cast<std::size_t>(i)] = errors_at(elements[static_cast<std::size_t>(i)]);
  };
  devices::Crew crew(devices::usable_cores());
  crew.run(
      std::ssize(elements), [](const void* body, std::int64_t i, int) { (*static_cast<decltype(at)*>(body))(i); }, &at);
  Errors worst;
  for (const Errors& one : each)
    worst.own = std::max(worst.own, one.own), worst.chain = std::max(worst.chain, one.chain);
  return worst;
}

nlohmann::json measure(const Context& context, const Conv2dProblem& problem, std::int64_t samples,
                       const SolverOptions& options) {
  const Conv2dPlan plan(context, problem, options);
  const Conv2dElements count = elements_of(problem);
  Queue queue = context.make_queue();
  constexpr std::int64_t few_terms = 256, draws_of_few = 8;
  const std::int64_t draws = terms_of(problem) <= few_terms ? draws_of_few : 1;
  nlohmann::json row = {
      {"problem", to_text(problem)}, {"name", problem.name}, {"solver", plan.solver()}, {"draws", draws}};
  const Conv2dRun run{.x = {context.allocate(count.x * 4)},
                      .w = {context.allocate(count.w * 4)},
                      .y = {context.allocate(count.y * 4)},
                      .bias = {},
                      .workspace = context.allocate(plan.workspace_bytes())};
  const bool forward = problem.pass == Pass::forward, of_filter = problem.pass == Pass::backward_filter;
  for (const bool is_signed : {true, false}) {
    Errors mean;
    for (std::int64_t draw = 0; draw < draws; ++draw) {
      const auto seed = static_cast<std::uint64_t>(3 * draw);
      std::vector<float> x = random_array(count.x, seed + 1, is_signed), w = random_array(count.w, seed + 2, is_signed),
                         y = random_array(count.y, seed + 3, is_signed);
      queue.upload(run.x.buffer, 0, x.data(), count.x * 4);
      queue.upload(run.w.buffer, 0, w.data(), count.w * 4);
      queue.upload(run.y.buffer, 0, y.data(), count.y * 4);
      plan.run(queue, run);
      std::vector<float>& result = forward ? y : of_filter ? w : x;
      const Operand& written = forward ? run.y : of_filter ? run.w : run.x;
      queue.download(result.data(), written.buffer, 0, static_cast<std::int64_t>(result.size()) * 4);
      queue.finish();
      const Errors worst = errors_of(problem, forward || of_filter ? x : y, of_filter ? y : w, result, samples);
      mean.own += worst.own / static_cast<double>(draws), mean.chain += worst.chain / static_cast<double>(draws);
    }
    row[is_signed ? "signed" : "non_negative"] = {{"own", mean.own}, {"chain", mean.chain}};
  }
  return row;
}

int run(int argc, char** argv) {
  std::string device = "cuda", path;
  std::int64_t samples = 2048;
  SolverOptions options;
  const std::vector<std::string> lists = bench::parse_arguments(
      argc, argv,
      {{"--device", [&](const std::string& value) { device = value; }},
       {"--json", [&](const std::string& value) { path = value; }},
       {"--samples", [&](const std::string& value) { samples = std::max<std::int64_t>(1, std::stoll(value)); }}},
      {{"--relative-error", [&] { options.relative_error = true; }}});
  if (lists.empty()) throw bad_input("which problems? name a list, as data/problems/anchors.txt");
  const Context context({.device = device, .quick_start = false});
  nlohmann::json report = bench::report_head("omniconv-errors/1");
  report["device"] = {{"name", context.device().name}, {"driver", context.device().driver}};
  report["relative_error"] = options.relative_error;
  bool is_worse = false;
  fmt::print("largest |error| / sum |x*w|, in units of 2^-24; own, then an fp32 chain's\n{:<52}{:>18}{:>18}\n",
             "problem", "signed", "non-negative");
  for (const std::string& list : lists)
    for (Conv2dProblem conv : bench::in_all_passes(list)) {
      if (conv.flip) throw bad_input(fmt::format("{}: flip is not what is summed here: leave it out", to_text(conv)));
      conv.bias = conv.relu = conv.accumulate = false;
      conv.type = DataType::f32, conv.layout = Layout::nchw;
      const nlohmann::json row = measure(context, conv, samples, options);
      fmt::print("{:<52}", row["problem"].get<std::string>());
      for (const char* const data : {"signed", "non_negative"}) {
        const double own = row[data]["own"], chain = row[data]["chain"];
        fmt::print("{:>9.2f}{:>9.2f}", own, chain);
        is_worse |= own > chain;
      }
      fmt::print("\n");
      std::fflush(stdout);
      report["results"].push_back(row);
    }
  bench::write_report(path, report);
  return is_worse ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "conv2d_errors: error: {}\n", error.what());
    return 2;
  }
}
