// Batch normalisation on the CPU: pieces of channels, over the device's threads, that do not depend on how many these
// are.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/batch_norm/batch_norm.h"
#include "operations/batch_norm/direct/elements.h"

namespace omniconv::operations {
namespace {

using Pass = BatchNormProblem::Pass;

constexpr std::int64_t of_piece = 1 << 16;  // elements, some microseconds
constexpr std::int64_t most_columns = kernels::most_columns;

// How channels are cut: so many pieces of so many positions (planes of one element: rows), and blocks of so many
// columns.
struct Cut {
  std::int64_t pieces = 1, positions = 0, columns = 1;
  std::int64_t folded = 1;  // rows that are taken for one, so that few channels fill vectors

  Cut(const BatchNormProblem& p, std::int64_t workspace_limit) {
    constexpr std::int64_t most_pieces = 64, most_lanes = 16;
    const NormPlanes planes(p);
    if (planes.inner == 1) columns = std::min(p.c, most_columns);
    if (planes.inner == 1 && p.c * most_lanes <= most_columns) folded = most_lanes;
    const auto cut_into = [&](std::int64_t wanted) {
      positions = divide_up(planes.positions(), wanted), pieces = divide_up(planes.positions(), positions);
    };
    cut_into(std::clamp<std::int64_t>(divide_up(planes.positions(), std::max<std::int64_t>(of_piece / columns, 1)), 1,
                                      most_pieces));
    if (workspace_limit >= 0 && workspace_bytes(p) > workspace_limit) cut_into(1);
  }
  // Of each piece of each channel two numbers.
  std::int64_t workspace_bytes(const BatchNormProblem& p) const {
    return p.pass != Pass::inference && pieces > 1 ? pieces * p.c * 16 : 0;
  }
  // README.md, "Bound".
  std::int64_t roundings(const BatchNormProblem& p) const {
    const NormPlanes planes(p);
    const bool has_rows = planes.inner == 1;
    const std::int64_t in_block = std::min(positions, has_rows ? kernels::block_rows : kernels::most_additions) + 4;
    if (p.type != DataType::f64) return in_block;
    const std::int64_t runs = positions / planes.inner + 2;
    const std::int64_t blocks = has_rows ? divide_up(positions, kernels::block_rows)
                                         : positions / kernels::block_elements + runs / kernels::block_runs + 2;
    return in_block + 4 * (blocks + pieces + folded + 1);
  }
};

// The first number of a pair is forward a mean and backward a sum of g, the second a sum of squares or of products.
struct Pair {
  double first = 0, second = 0;
};

template <typename Real>
class Plan final : public BatchNormPlanBody {
 public:
  Plan(const BatchNormProblem& problem, const DevicePointer& device, const Cut& cut)
      : BatchNormPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        cut_(cut),
        planes_(problem) {}

  void append(devices::Sequence& sequence, const BatchNormArrays& run, std::span<const Scalar> scalars) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run](std::span<const double> values) {
                    const Numbers numbers{.epsilon = values.empty() ? 0 : values[0],
                                          .momentum = values.size() < 2 ? 0 : values[1]};
                    if (problem().pass != Pass::inference) gather(run, numbers);
                    apply(run, numbers);
                  }),
                  scalars);
  }

 private:
  static constexpr auto real_size = static_cast<std::int64_t>(sizeof(Real));

  struct Numbers {
    double epsilon, momentum;
  };

  // Of neighbouring channels what their elements are made of.
  struct Factors {
    alignas(64) Real mean[most_columns], scale[most_columns], beta[most_columns], shift[most_columns],
        slope[most_columns];

    kernels::FactorArrays arrays() const {
      const auto bytes = [](const Real* array) { return reinterpret_cast<const std::byte*>(array); };
      return {bytes(mean), bytes(scale), bytes(beta), bytes(shift), bytes(slope)};
    }
  };

  static Real number(const NormArray& array, std::int64_t c) {
    Real value;
    std::memcpy(&value, host(array) + c * real_size, sizeof value);
    return value;
  }
  static void put(double value, const NormArray& array, std::int64_t c) {
    const auto rounded = static_cast<Real>(value);
    std::memcpy(host(array) + c * real_size, &rounded, sizeof rounded);
  }

  // Of mean and invstd of a run; y's bits follow from these, forward and backward.
  kernels::ChannelFactors factors_of(const BatchNormArrays& run, std::int64_t c, const Numbers& numbers) const {
    const bool inference = problem().pass == Pass::inference;
    const Real invstd =
        inference ? static_cast<Real>(1 / std::sqrt(static_cast<double>(number(run.running_var, c)) + numbers.epsilon))
                  : number(run.invstd, c);
    const Real scale = number(run.gamma, c) * invstd;
    return {.mean = static_cast<double>(number(inference ? run.running_mean : run.mean, c)),
            .scale = static_cast<double>(scale),
            .beta = static_cast<double>(number(run.beta, c))};
  }
  // With what the sums give for dx.
  kernels::ChannelFactors gradient_factors_of(const BatchNormArrays& run, std::int64_t c) const {
    kernels::ChannelFactors factors = factors_of(run, c, {});
    const auto count = static_cast<double>(planes_.positions());
    factors.shift = static_cast<double>(number(run.dbeta, c)) / count;
    factors.slope = static_cast<double>(number(run.dgamma, c)) * static_cast<double>(number(run.invstd, c)) / count;
    return factors;
  }
  // Of `columns` channels from `first` on, again for each folded row.
  template <typename Of>
  void set(Factors& factors, std::int64_t first, std::int64_t columns, const Of& of) const {
    for (std::int64_t i = 0; i < columns * cut_.folded; ++i) {
      const kernels::ChannelFactors own = of(first + i % columns);
      factors.mean[i] = static_cast<Real>(own.mean), factors.scale[i] = static_cast<Real>(own.scale);
      factors.beta[i] = static_cast<Real>(own.beta);
      factors.shift[i] = static_cast<Real>(own.shift), factors.slope[i] = static_cast<Real>(own.slope);
    }
  }

  std::int64_t positions_of(std::int64_t piece) const {
    return std::min(cut_.positions, planes_.positions() - piece * cut_.positions);
  }
  // The first element of a channel, from which its distances are.
  Real pivot(const BatchNormArrays& run, std::int64_t c) const {
    return static_cast<Real>(load_element(problem().type, host(run.x) + c * planes_.inner * size_of(problem().type)));
  }

  // Moments of the batch, or sums of the gradient, of each channel.
  void gather(const BatchNormArrays& run, const Numbers& numbers) const {
    const BatchNormProblem& p = problem();
    const std::int64_t blocks = divide_up(p.c, cut_.columns);
    auto* const pairs = reinterpret_cast<Pair*>(host(run.workspace));
    cpu_.parallel_for(cut_.pieces * blocks, [&](std::int64_t task, int) {
      const std::int64_t piece = task / blocks, c = task % blocks * cut_.columns,
                         columns = std::min(cut_.columns, p.c - c);
      Pair found[most_columns];
      if (planes_.inner == 1)
        gather_rows(run, piece, c, columns, found);
      else
        found[0] = gather_runs(run, piece, c);
      if (cut_.pieces > 1)
        std::copy(found, found + columns, pairs + piece * p.c + c);
      else
        for (std::int64_t i = 0; i < columns; ++i) finish(run, c + i, found[i], numbers);
    });
    if (cut_.pieces == 1) return;
    constexpr std::int64_t at_once = 1024;
    cpu_.parallel_for(divide_up(p.c, at_once), [&](std::int64_t task, int) {
      for (std::int64_t c = task * at_once; c < std::min(p.c, (task + 1) * at_once); ++c)
        finish(run, c, joined(pairs, c), numbers);
    });
  }

  Pair gather_runs(const BatchNormArrays& run, std::int64_t piece, std::int64_t c) const {
    const BatchNormProblem& p = problem();
    const std::int64_t first = piece * cut_.positions, plane = first / planes_.inner, k = first - plane * planes_.inner;
    const std::int64_t at = ((plane * p.c + c) * planes_.inner + k) * size_of(p.type);
    const kernels::ChannelRuns runs{planes_.inner - k, positions_of(piece), planes_.inner, p.c * planes_.inner};
    if (p.pass == Pass::forward) {
      const kernels::Moments moments =
          kernels::moments_of_runs(p.type, host(run.x) + at, runs, static_cast<double>(pivot(run, c)));
      return {moments.mean, moments.squares};
    }
    const kernels::GradientSums sums =
        kernels::sums_of_runs(p.type, host(run.x) + at, host(run.dy) + at, runs, factors_of(run, c, {}), p.relu);
    return {sums.g, sums.product};
  }

  void gather_rows(const BatchNormArrays& run, std::int64_t piece, std::int64_t c, std::int64_t columns,
                   Pair* found) const {
    const std::int64_t rows = positions_of(piece), wide = rows / cut_.folded, left = rows - wide * cut_.folded,
                       first = piece * cut_.positions;
    Pair some[most_columns];
    if (wide > 0)
      gather_side_by_side(run, first, {wide, columns * cut_.folded, problem().c * cut_.folded}, c, columns, some);
    // Halves with halves, so that what is exact stays so.
    for (std::int64_t rows_left = cut_.folded / 2, count = wide; wide > 0 && rows_left > 0; rows_left /= 2, count *= 2)
      for (std::int64_t i = 0; i < rows_left * columns; ++i) {
        Joined both{some[i], static_cast<double>(count)};
        join(both, some[rows_left * columns + i], count);
        some[i] = both.pair;
      }
    for (std::int64_t i = 0; i < columns; ++i) found[i] = wide > 0 ? some[i] : Pair();
    if (left == 0) return;
    gather_side_by_side(run, first + rows - left, {left, columns, problem().c}, c, columns, some);
    for (std::int64_t i = 0; i < columns; ++i) {
      Joined all{found[i], static_cast<double>(rows - left)};
      join(all, some[i], left);
      found[i] = all.pair;
    }
  }

  // Of rows from `row` on, of channels from c on, which are there again after `columns`.
  void gather_side_by_side(const BatchNormArrays& run, std::int64_t row, const kernels::ChannelRows& rows,
                           std::int64_t c, std::int64_t columns, Pair* found) const {
    const BatchNormProblem& p = problem();
    const std::int64_t at = (row * p.c + c) * size_of(p.type);
    double first[most_columns], second[most_columns];
    if (p.pass == Pass::forward) {
      alignas(64) Real pivots[most_columns];
      for (std::int64_t i = 0; i < rows.columns; ++i) pivots[i] = pivot(run, c + i % columns);
      kernels::moments_of_rows(p.type, host(run.x) + at, rows, reinterpret_cast<const std::byte*>(pivots), first,
                               second);
    } else {
      Factors factors;
      set(factors, c, columns, [&](std::int64_t channel) { return factors_of(run, channel, {}); });
      kernels::sums_of_rows(p.type, host(run.x) + at, host(run.dy) + at, rows, factors.arrays(), p.relu, first, second);
    }
    for (std::int64_t i = 0; i < rows.columns; ++i) found[i] = {first[i], second[i]};
  }

  // With `count` elements more: sums are added; moments as T. Chan, G. Golub, R. LeVeque join them.
  struct Joined {
    Pair pair = {};
    double count = 0;
  };
  void join(Joined& all, const Pair& own, std::int64_t elements) const {
    if (problem().pass == Pass::backward) {
      all.pair.first += own.first, all.pair.second += own.second;
      return;
    }
    const auto count = static_cast<double>(elements);
    const double difference = own.first - all.pair.first, share = count / (all.count + count);
    all.pair.first += difference * share;
    all.pair.second += own.second + difference * difference * (all.count * share);
    all.count += count;
  }
  // The pieces of a channel, one after the other.
  Pair joined(const Pair* pairs, std::int64_t c) const {
    Joined all;
    for (std::int64_t piece = 0; piece < cut_.pieces; ++piece)
      join(all, pairs[piece * problem().c + c], positions_of(piece));
    return all.pair;
  }

  void finish(const BatchNormArrays& run, std::int64_t c, const Pair& found, const Numbers& numbers) const {
    if (problem().pass == Pass::backward) {
      put(found.first, run.dbeta, c);
      return put(found.second * static_cast<double>(number(run.invstd, c)), run.dgamma, c);
    }
    const double count = static_cast<double>(planes_.positions()), momentum = numbers.momentum;
    const double mean = static_cast<double>(pivot(run, c)) + found.first;
    const auto updated = [&](const NormArray& array, double value) {
      put((1 - momentum) * static_cast<double>(number(array, c)) + momentum * value, array, c);
    };
    updated(run.running_mean, mean);
    updated(run.running_var, found.second / (count - 1));
    put(mean, run.mean, c);
    put(1 / std::sqrt(found.second / count + numbers.epsilon), run.invstd, c);
  }

  // y, or dx: by what gather() left in the run's arrays.
  void apply(const BatchNormArrays& run, const Numbers& numbers) const {
    const auto factors = [&](std::int64_t c) {
      return problem().pass == Pass::backward ? gradient_factors_of(run, c) : factors_of(run, c, numbers);
    };
    planes_.inner == 1 ? apply_to_rows(run, factors) : apply_to_runs(run, factors);
  }

  template <typename Of>
  void apply_to_runs(const BatchNormArrays& run, const Of& factors) const {
    const BatchNormProblem& p = problem();
    const std::int64_t lines = planes_.planes * p.c, size = size_of(p.type),
                       at_once = std::max<std::int64_t>(of_piece / planes_.inner, 1);
    cpu_.parallel_for(divide_up(lines, at_once), [&](std::int64_t task, int) {
      for (std::int64_t line = task * at_once; line < std::min(lines, (task + 1) * at_once); ++line) {
        const std::int64_t at = line * planes_.inner * size;
        if (p.pass == Pass::backward)
          kernels::differentiate_run(p.type, host(run.x) + at, host(run.dy) + at, host(run.result) + at, planes_.inner,
                                     factors(line % p.c), p.relu);
        else
          kernels::normalise_run(p.type, host(run.x) + at, host(run.result) + at, planes_.inner, factors(line % p.c),
                                 p.relu);
      }
    });
  }

  template <typename Of>
  void apply_to_rows(const BatchNormArrays& run, const Of& of) const {
    const BatchNormProblem& p = problem();
    const std::int64_t blocks = divide_up(p.c, cut_.columns),
                       of_task = std::max<std::int64_t>(of_piece / cut_.columns, 1);
    cpu_.parallel_for(divide_up(planes_.planes, of_task) * blocks, [&](std::int64_t task, int) {
      const std::int64_t first = task / blocks * of_task, c = task % blocks * cut_.columns,
                         at = (first * p.c + c) * size_of(p.type);
      const std::int64_t count = std::min(of_task, planes_.planes - first), columns = std::min(cut_.columns, p.c - c);
      const std::int64_t wide = count / cut_.folded, left = count - wide * cut_.folded;
      Factors factors;
      set(factors, c, columns, of);
      const auto apply_to = [&](std::int64_t from, const kernels::ChannelRows& rows) {
        if (p.pass == Pass::backward)
          kernels::differentiate_rows(p.type, host(run.x) + from, host(run.dy) + from, host(run.result) + from, rows,
                                      factors.arrays(), p.relu);
        else
          kernels::normalise_rows(p.type, host(run.x) + from, host(run.result) + from, rows, factors.arrays(), p.relu);
      };
      apply_to(at, {wide, columns * cut_.folded, p.c * cut_.folded});
      apply_to(at + wide * cut_.folded * p.c * size_of(p.type), {left, columns, p.c});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Cut cut_;
  NormPlanes planes_;
};

class DirectCpu final : public BatchNormSolver {
 public:
  std::string_view id() const override { return "batch_norm/direct/cpu.1"; }
  Answer offer(const BatchNormProblem& problem, const DevicePointer& device,
               const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const Cut cut(problem, request.max_workspace_bytes);
    return Offer{
        .cost = {std::max(byte_cost(*device) * moved_bytes(problem), 4 * static_cast<double>(elements_of(problem)))},
        .bound = batch_norm_bound(problem, cut.roundings(problem)),
        .workspace_bytes = cut.workspace_bytes(problem),
        .plan = [=]() -> std::shared_ptr<const PlanBody> {
          if (problem.type == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
          return std::make_shared<Plan<float>>(problem, device, cut);
        },
    };
  }
};

}  // namespace

const BatchNormSolver& batch_norm_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
