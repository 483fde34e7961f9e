// batch_norm as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "core/convert.h"
#include "operations/batch_norm/batch_norm.h"
#include "operations/batch_norm/problem.h"
#include "operations/batch_norm/reference/channel.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

using Pass = BatchNormProblem::Pass;

// The arrays in their order; x, gamma and beta come first in every pass.
enum : std::size_t { of_x, of_gamma, of_beta };
enum : std::size_t { of_y = 3, of_running_mean, of_running_var, of_mean, of_invstd };
enum : std::size_t { of_read_mean = 3, of_read_invstd, of_dy, of_dx, of_dgamma, of_dbeta };

// In checks 49/256 + epsilon is 1/4, whose root is exact.
constexpr double checked_epsilon = 15.0 / 256, checked_momentum = 0.25;

class BatchNormOperation final : public OperationOf<BatchNormProblem> {
 public:
  std::string_view name() const override { return "batch_norm"; }
  std::span<const Solver* const> solvers() const override { return batch_norm_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const BatchNormProblem& p = of(problem);
    const auto image = [&](const char* name, ArrayRole role) {
      ArraySpec spec{name, p.type, {p.n, p.c, p.h, p.w}, "n, c, h, w", role};
      if (p.layout == Layout::nhwc) {
        spec.extents = {p.n, p.h, p.w, p.c};
        spec.axes = "n, h, w, c";
      }
      return spec;
    };
    const auto numbers = [&](const char* name, ArrayRole role) {
      return ArraySpec{name, channel_type(p), {p.c}, "c", role};
    };
    constexpr ArrayRole in = ArrayRole::in, out = ArrayRole::out;
    std::vector<ArraySpec> arrays = {image("x", in), numbers("gamma", in), numbers("beta", in)};
    if (p.pass == Pass::backward) {
      for (const ArraySpec& array : {numbers("mean", in), numbers("invstd", in), image("dy", in), image("dx", out),
                                     numbers("dgamma", out), numbers("dbeta", out)})
        arrays.push_back(array);
      return arrays;
    }
    const ArrayRole running = p.pass == Pass::forward ? ArrayRole::in_out : in;
    for (const ArraySpec& array : {image("y", out), numbers("running_mean", running), numbers("running_var", running)})
      arrays.push_back(array);
    if (p.pass == Pass::forward)
      for (const char* const name : {"mean", "invstd"}) arrays.push_back(numbers(name, out));
    return arrays;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input"},
            {"gamma", "the factor of each channel"},
            {"beta", "what is added to each channel"},
            {"running_mean", "the mean over many batches, changed by the forward pass"},
            {"running_var", "the variance over many batches, changed by the forward pass"},
            {"y", "the output"},
            {"mean", "of each channel of the batch; bwd reads it"},
            {"invstd", "1 / sqrt(variance + epsilon) of each channel of the batch; bwd reads it"},
            {"dy", "the output's gradient; of bwd"},
            {"dx", "the input's gradient"},
            {"dgamma", "the gradient of gamma"},
            {"dbeta", "the gradient of beta"}};
  }

  std::vector<ScalarSpec> scalars(const AnyTask& task) const override {
    const Pass pass = task.as<BatchNormProblem>().pass;
    if (pass == Pass::backward) return {};
    std::vector<ScalarSpec> scalars = {{"epsilon", 1e-5, checked_epsilon}};
    if (pass == Pass::forward) scalars.push_back({"momentum", 0.1, checked_momentum});
    return scalars;
  }

  // A check looks through a channel once for many elements, so that no element counts as a long sum.
  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<BatchNormProblem>();
    const auto elements = static_cast<double>(elements_of(problem));
    Figures figures;
    figures.operations = elements * operations_of_element(problem);
    figures.least_operations = elements;
    figures.longest_sum = 1;
    const double terms = problem.pass == Pass::inference ? 0 : static_cast<double>(NormPlanes(problem).positions());
    figures.reference_units = terms / 2 + 8;
    return figures;
  }

  // Small integers are exact with a variance whose root is, and backward where a mean over a power of two elements is.
  std::vector<DataKind> data_kinds(const AnyTask& task) const override {
    const auto& problem = task.as<BatchNormProblem>();
    const std::int64_t positions = NormPlanes(problem).positions();
    constexpr std::int64_t most_positions = 1 << 14;
    const bool exact =
        problem.pass == Pass::inference || (problem.pass == Pass::backward && positions <= most_positions &&
                                            std::has_single_bit(static_cast<std::uint64_t>(positions)));
    return exact ? std::vector{DataKind::integers, DataKind::reals} : std::vector{DataKind::reals};
  }

  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<BatchNormProblem>();
    const bool is_image = array == of_x || (problem.pass == Pass::backward && array == of_dy);
    if (kind == DataKind::integers)
      is_image ? fill_random(problem.type, 2, seed, data) : fill_whole(problem, array, seed, data);
    else if (array == of_x)
      fill_input(problem, seed, data);
    else if (is_image)
      fill_random(problem.type, 0, seed, data);
    else
      fill_numbers(problem, array, seed, data);
  }

  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
              std::span<const double> scalars, std::span<const std::int64_t> points,
              std::span<Expected> expected) const override {
    const auto& problem = task.as<BatchNormProblem>();
    const bool is_image = array == (problem.pass == Pass::backward ? std::size_t{of_dx} : std::size_t{of_y});
    const std::int64_t inner = is_image ? NormPlanes(problem).inner : 1;
    // A channel is looked through once, for all points of it.
    std::map<std::int64_t, Channel> channels;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::int64_t c = points[i] / inner % problem.c;
      auto found = channels.find(c);
      if (found == channels.end()) found = channels.emplace(c, channel_of(problem, data, scalars, c)).first;
      expected[i] = problem.pass == Pass::backward
                        ? of_backward(problem, array, data, points[i], found->second)
                        : of_forward(problem, array, data, scalars, points[i], found->second);
    }
  }

 protected:
  const text::Notation<BatchNormProblem>& notation() const override { return batch_norm_notation(); }
  BatchNormProblem draw(BatchNormProblem problem, Draws& draws) const override {
    problem.n = draws.batch();
    problem.c = draws.channels();
    problem.h = draws.extent();
    problem.w = draws.extent();
    return problem;
  }

 private:
  // What all elements of a channel have in common.
  struct Channel {
    reference::ChannelNumbers numbers = {};
    reference::ChannelMoments moments = {};
    reference::ChannelSums sums = {};
    double variance = 0;      // that invstd is of; not of backward
    double running_mean = 0;  // before the run
    double running_var = 0;
    double count = 0;
    // R^2 / (variance + epsilon): so many times the bound of a sum invstd may be off by, times 7 (README.md of direct).
    double ratio = 0;
  };

  static constexpr double of_root = 7;

  static double number(const BatchNormProblem& problem, std::span<const std::byte* const> data, std::size_t array,
                       std::int64_t c) {
    return load_element(channel_type(problem), data[array] + c * size_of(channel_type(problem)));
  }

  static Channel channel_of(const BatchNormProblem& problem, std::span<const std::byte* const> data,
                            std::span<const double> scalars, std::int64_t c) {
    const auto own = [&](std::size_t array) { return number(problem, data, array, c); };
    Channel channel;
    channel.count = static_cast<double>(NormPlanes(problem).positions());
    reference::ChannelNumbers& numbers = channel.numbers;
    numbers.gamma = own(of_gamma), numbers.beta = own(of_beta);
    if (problem.pass == Pass::backward) {
      numbers.mean = own(of_read_mean), numbers.invstd = own(of_read_invstd);
      channel.sums = reference::channel_sums(problem, data[of_x], data[of_dy], c, numbers);
      return channel;
    }
    channel.running_mean = own(of_running_mean), channel.running_var = own(of_running_var);
    numbers.mean = channel.running_mean, channel.variance = channel.running_var;
    if (problem.pass == Pass::forward) {
      channel.moments = reference::channel_moments(problem, data[of_x], c);
      numbers.mean = channel.moments.mean, channel.variance = channel.moments.variance;
      channel.ratio = channel.moments.square_distance / (channel.variance + scalars[0]);
    }
    numbers.invstd = 1 / std::sqrt(channel.variance + scalars[0]);
    return channel;
  }

  // The norms are those of README.md of batch_norm/direct.
  static Expected of_forward(const BatchNormProblem& problem, std::size_t array, std::span<const std::byte* const> data,
                             std::span<const double> scalars, std::int64_t point, const Channel& channel) {
    const auto& [mean, invstd, gamma, beta] = channel.numbers;
    const auto& moments = channel.moments;
    const double off = 1 + of_root * channel.ratio, condition = 2 * of_root * channel.ratio;
    if (array == of_y) {
      const double x = load_element(problem.type, data[of_x] + point * size_of(problem.type)), scale = gamma * invstd;
      const double y = (x - mean) * scale + beta;
      const double shift = problem.pass == Pass::forward ? std::fabs(mean) / 10 + moments.distance : 0;
      return {.value = problem.relu ? std::max(y, 0.0) : y,
              .magnitude = std::fabs(scale) * (shift + std::fabs(x - mean) * off) + std::fabs(beta),
              .condition = condition};
    }
    if (array == of_mean) return {.value = mean, .magnitude = std::fabs(mean) / 10 + moments.distance};
    if (array == of_invstd) return {.value = invstd, .magnitude = invstd * off, .condition = condition};
    const double momentum = scalars[1], kept = 1 - momentum;
    if (array == of_running_mean) {
      const double old = kept * channel.running_mean;
      return {.value = old + momentum * mean,
              .magnitude = std::fabs(old) + std::fabs(momentum) * (std::fabs(mean) / 2 + moments.distance)};
    }
    const double old = kept * channel.running_var, share = momentum * channel.count / (channel.count - 1);
    return {.value = old + share * channel.variance,
            .magnitude = std::fabs(old) + std::fabs(share) * 2 * of_root * moments.square_distance};
  }

  static Expected of_backward(const BatchNormProblem& problem, std::size_t array,
                              std::span<const std::byte* const> data, std::int64_t point, const Channel& channel) {
    const auto& [mean, invstd, gamma, beta] = channel.numbers;
    const reference::ChannelSums& sums = channel.sums;
    if (array == of_dbeta) return {.value = sums.g, .magnitude = sums.magnitude};
    if (array == of_dgamma)
      return {.value = sums.product * invstd, .magnitude = sums.product_magnitude * std::fabs(invstd)};
    const std::int64_t at = point * size_of(problem.type);
    const double x = load_element(problem.type, data[of_x] + at), dy = load_element(problem.type, data[of_dy] + at);
    const double g = reference::passed_gradient(problem, x, dy, channel.numbers), scale = gamma * invstd;
    const double part = (x - mean) * invstd * invstd;
    return {.value = scale * (g - (sums.g + part * sums.product) / channel.count),
            .magnitude = std::fabs(scale) *
                         (std::fabs(g) + (sums.magnitude + std::fabs(part) * sums.product_magnitude) / channel.count)};
  }

  // Channels whose means are small, or many times as large as their deviations.
  static void fill_input(const BatchNormProblem& problem, std::uint64_t seed, std::span<std::byte> data) {
    const double large = size_of(problem.type) == 2 ? 16 : 1000;
    const std::array<double, 4> means = {0, 0.5, -3, large};
    const NormPlanes planes(problem);
    fill_by(problem.type, seed, data, [&, at = std::int64_t{0}](std::uint64_t bits) mutable {
      const std::int64_t c = at++ / planes.inner % problem.c;
      return means[static_cast<std::size_t>(c % 4)] + real_number(bits);
    });
  }

  // With relu most y are above 0, so that results are no zeros.
  static void fill_numbers(const BatchNormProblem& problem, std::size_t array, std::uint64_t seed,
                           std::span<std::byte> data) {
    fill_by(channel_type(problem), seed, data, [&](std::uint64_t bits) {
      const double real = real_number(bits);
      if (array == of_gamma) return (bits % 8 == 0 ? -1 : 1) * (1 + real / 2);
      if (array == of_beta) return problem.relu ? real + 1.5 : real;
      if (problem.pass == Pass::backward) return array == of_read_mean ? real : (real + 3) / 2;
      return array == of_running_mean ? real : (real + 1) / 2 + 0x1p-6;
    });
  }

  static void fill_whole(const BatchNormProblem& problem, std::size_t array, std::uint64_t seed,
                         std::span<std::byte> data) {
    fill_by(channel_type(problem), seed, data, [&](std::uint64_t bits) {
      constexpr double factors[] = {1, -1, 2, 0.5}, roots[] = {0.5, 1, 2, 1};
      const auto whole = static_cast<double>(bits % 3) - 1;
      if (array == of_gamma) return factors[bits / 3 % 4];
      if (array == of_beta) return problem.relu ? whole + 3 : whole;
      if (problem.pass == Pass::backward && array == of_read_invstd) return roots[bits / 3 % 4];
      if (problem.pass == Pass::inference && array == of_running_var)
        return (bits % 2 == 0 ? 0.25 : 1) - checked_epsilon;
      return whole;  // a mean
    });
  }
};

NormArray& result_of(const BatchNormProblem&, BatchNormArrays& run) {
  return run.result;
}
const Operand& result_of(const BatchNormProblem& problem, const BatchNormRun& run) {
  return problem.pass == Pass::backward ? run.dx : run.y;
}

// Calls with(name, a run's array) for those that the problem has, in their order.
template <typename Run, typename With>
void for_each_array(const BatchNormProblem& problem, Run& run, const With& with) {
  with("x", run.x), with("gamma", run.gamma), with("beta", run.beta);
  if (problem.pass == Pass::backward) {
    with("mean", run.mean), with("invstd", run.invstd), with("dy", run.dy), with("dx", result_of(problem, run));
    with("dgamma", run.dgamma), with("dbeta", run.dbeta);
    return;
  }
  with("y", result_of(problem, run)), with("running_mean", run.running_mean), with("running_var", run.running_var);
  if (problem.pass == Pass::forward) with("mean", run.mean), with("invstd", run.invstd);
}

}  // namespace

void BatchNormPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  BatchNormArrays arrays;
  std::size_t next = 0;
  for_each_array(problem_, arrays, [&](const char*, NormArray& array) {
    const Operand& given = run.arrays[next++];
    array = {given.buffer, given.offset_bytes};
  });
  arrays.workspace = {run.workspace.buffer, run.workspace.offset_bytes};
  append(sequence, arrays, run.scalars);
}

// Forward a sum, a deviation, its square and their sum, and y. Backward x - mean, a product and two sums, and five of
// dx. What relu adds is y again, and a choice.
double operations_of_element(const BatchNormProblem& problem) {
  switch (problem.pass) {
    case Pass::forward: return problem.relu ? 8 : 7;
    case Pass::inference: return problem.relu ? 4 : 3;
    case Pass::backward: return problem.relu ? 13 : 9;
  }
  return 0;
}

double moved_bytes(const BatchNormProblem& problem) {
  const double arrays = problem.pass == Pass::forward ? 3 : problem.pass == Pass::inference ? 2 : 5;
  return arrays * static_cast<double>(elements_of(problem) * size_of(problem.type));
}

ErrorBound batch_norm_bound(const BatchNormProblem& problem, std::int64_t roundings) {
  const Pass pass = problem.pass;
  return {.chain = pass == Pass::inference ? 0 : static_cast<double>(roundings),
          .constant = pass == Pass::forward     ? 5.0
                      : pass == Pass::inference ? 4.0
                                                : 6.0,
          .f64 = problem.type == DataType::f64,
          .norm = pass == Pass::forward     ? "(|y - beta| and distances from a channel's first element)"
                  : pass == Pass::inference ? "|y - beta| + |beta|"
                                            : "sum|terms|"};
}

}  // namespace operations

const operations::Operation& operation_of(const BatchNormProblem*) {
  static const operations::BatchNormOperation operation;
  return operation;
}

namespace {

// Calls with(arrays, scalars) for those that the problem has.
template <typename With>
auto with_named(const BatchNormProblem& problem, const BatchNormRun& run, const With& with) {
  using Pass = BatchNormProblem::Pass;
  std::array<NamedOperand, 9> arrays;
  std::size_t count = 0;
  operations::for_each_array(problem, run, [&](const char* name, const Operand& array) {
    arrays[count++] = {name, array};
  });
  const NamedScalar scalars[] = {{"epsilon", run.epsilon}, {"momentum", run.momentum}};
  const std::size_t scalar_count = problem.pass == Pass::forward ? 2 : problem.pass == Pass::inference ? 1 : 0;
  return with(std::span<const NamedOperand>(arrays).first(count),
              std::span<const NamedScalar>(scalars).first(scalar_count));
}

}  // namespace

Event BatchNormPlan::run(Queue& queue, const BatchNormRun& run) const {
  return with_named(problem(), run,
                    [&](auto arrays, auto scalars) { return plan_.run(queue, arrays, run.workspace, scalars); });
}

void BatchNormPlan::append(Sequence& sequence, const BatchNormRun& run) const {
  with_named(problem(), run,
             [&](auto arrays, auto scalars) { plan_.append(sequence, arrays, run.workspace, scalars); });
}

}  // namespace omniconv
