#include "devices/matrix_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/convert.h"
#include "embedded/matrix_probe.kernel.h"
#include "embedded/matrix_probe_units.kernel.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

constexpr int fp32_bits = 23;

double rounded(double value, int exponent, bool truncates) {
  const double scaled = std::ldexp(value, -exponent);
  return std::ldexp(truncates ? std::trunc(scaled) : std::nearbyint(scaled), exponent);
}

std::array<ProbeSum, probe_sum_count> make_probe_sums() {
  std::array<ProbeSum, probe_sum_count> all;
  std::size_t count = 0;
  const auto next = [&]() -> ProbeSum& { return all.at(count++); };
  // A product beside a 1 that another number takes away again: what is left was kept. Of either sign; powers of two,
  // and half as much again, which rounding to the nearest makes more.
  for (int k = 22; k <= 28; ++k)
    for (const double sign : {1.0, -1.0}) {
      ProbeSum& one = next();
      one.products[0] = 1, one.products[1] = sign * std::ldexp(1, -k), one.before = -1;
      if (k == 28) continue;
      ProbeSum& more = next();
      more.products[0] = -1, more.products[1] = sign * std::ldexp(1.5, -k), more.before = 1;
    }
  // At each place: one that is beside the 1 is lost, and one that is added later is not.
  for (std::size_t place = 1; place < 16; ++place) {
    ProbeSum& one = next();
    one.products[0] = 1, one.products[place] = std::ldexp(1, -28), one.before = -1;
  }
  // Many of them, whose sum would show.
  for (const int k : {25, 26, 28}) {
    ProbeSum& many = next();
    many.products.fill(std::ldexp(1, -k)), many.products[0] = 1, many.before = -1;
  }
  // The sum before is cut as products are.
  for (const double before : {std::ldexp(1, -24), std::ldexp(1, -25), std::ldexp(1.5, -25), std::ldexp(-1, -26)}) {
    ProbeSum& one = next();
    one.products[0] = 1, one.products[1] = -1, one.before = before;
  }
  // What comes out has 24 bits.
  for (const double sign : {1.0, -1.0}) {
    ProbeSum& one = next();
    one.products[0] = sign, one.products[1] = sign * std::ldexp(1.5, -24);
  }
  return all;
}

std::string found_by(const char* instruction, const std::optional<MatrixUnits>& units) {
  return fmt::format("{} adds up {}", instruction, units ? describe(*units) : "in no way that is known");
}

}  // namespace

MatrixUnits matrix_units_of(int compute_capability) {
  if (compute_capability < 80) return {};
  if (compute_capability == 90) return {.terms = 16, .bits = 25};
  return {.terms = 8, .bits = 24};
}

double cut_of_sixteen(const MatrixUnits& units) {
  const double of_each = std::ldexp(1, fp32_bits - units.bits), of_sum = 1,
               of_some = (units.terms * of_each + of_sum) * (units.truncates ? 1 : 0.5);
  return 16.0 / units.terms * of_some;
}

std::string describe(const MatrixUnits& units) {
  return fmt::format("{} products at a time, {} at {} bits", units.terms,
                     units.truncates ? "cut toward zero" : "rounded to the nearest", units.bits);
}

const std::array<ProbeSum, probe_sum_count>& probe_sums() {
  static const std::array<ProbeSum, probe_sum_count> all = make_probe_sums();
  return all;
}

float sum_by(const MatrixUnits& units, const ProbeSum& sum) {
  double all = sum.before;
  for (std::size_t first = 0; first < sum.products.size(); first += static_cast<std::size_t>(units.terms)) {
    const std::span<const double> some = std::span(sum.products).subspan(first, static_cast<std::size_t>(units.terms));
    double largest = std::fabs(all), next = 0;
    for (const double each : some) largest = std::max(largest, std::fabs(each));
    if (largest == 0) continue;
    const int last_bit = std::ilogb(largest) - units.bits;
    next = rounded(all, last_bit, units.truncates);
    for (const double each : some) next += rounded(each, last_bit, units.truncates);
    all = next == 0 ? 0 : rounded(next, std::ilogb(next) - fp32_bits, units.truncates);
  }
  return static_cast<float>(all);
}

std::optional<MatrixUnits> units_that_give(std::span<const float> sums) {
  for (const int terms : {16, 8, 4})
    for (int bits = 22; bits <= 27; ++bits)
      for (const bool truncates : {true, false}) {
        const MatrixUnits units{.terms = terms, .bits = bits, .truncates = truncates};
        if (std::equal(sums.begin(), sums.end(), probe_sums().begin(), probe_sums().end(),
                       [&](float found, const ProbeSum& sum) { return found == sum_by(units, sum); }))
          return units;
      }
  return {};
}

bool has_warpgroup_products(const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cuda && facts.compute_capability == 90 && facts.has_tensor_maps;
}

ProbedUnits probe_matrix_units(Device& device) {
  const bool warpgroups = has_warpgroup_products(device.facts());
  const Definition definitions[] = {{"WARPGROUPS", warpgroups ? "1" : "0"}};
  const std::string text = std::string(matrix_probe_units_kernel) + std::string(matrix_probe_kernel);
  const std::shared_ptr<Program> program = device.build(text, definitions, {.target = warpgroups ? "sm_90a" : ""});
  // Factors of the products are 2^14 as large as these: fp16 numbers in the normal range.
  std::vector<std::byte> factors(probe_sum_count * 16 * 2);
  std::vector<float> before, sums(probe_sum_count);
  std::byte* to = factors.data();
  for (const ProbeSum& sum : probe_sums()) {
    for (const double product : sum.products) store_element(DataType::f16, std::ldexp(product, 14), to), to += 2;
    before.push_back(static_cast<float>(sum.before));
  }
  const std::shared_ptr<Queue> queue = device.make_queue();
  const auto bytes = static_cast<std::int64_t>(probe_sum_count * 4);
  const std::shared_ptr<Buffer> of_factors = device.allocate(static_cast<std::int64_t>(factors.size())),
                                of_before = device.allocate(bytes), of_sums = device.allocate(bytes);
  queue->upload(of_factors, 0, factors.data(), of_factors->bytes()).wait();
  queue->upload(of_before, 0, before.data(), bytes).wait();
  const auto units_of = [&](const char* kernel) {
    std::fill(sums.begin(), sums.end(), std::numeric_limits<float>::quiet_NaN());
    queue->upload(of_sums, 0, sums.data(), bytes).wait();
    const KernelArgument arguments[] = {of_factors.get(), of_before.get(), of_sums.get()};
    queue->launch(program, kernel, {{128, 1}, {128, 1}}, arguments).wait();
    queue->download(sums.data(), of_sums, 0, bytes).wait();
    return units_that_give(sums);
  };
  ProbedUnits found;
  found.by_warps = units_of("by_warps");
  if (warpgroups) found.by_warpgroups = units_of("by_warpgroups");
  return found;
}

std::string disagreement(const DeviceFacts& facts, const ProbedUnits& found) {
  const double known = cut_of_sixteen(facts.matrix_units);
  const auto agrees = [&](const std::optional<MatrixUnits>& units) { return units && cut_of_sixteen(*units) <= known; };
  const bool warpgroups = has_warpgroup_products(facts);
  if (agrees(found.by_warps) && (!warpgroups || agrees(found.by_warpgroups))) return {};
  return fmt::format("the bound rests on matrix units that add up {}, and on this device a probe found that {}{}",
                     describe(facts.matrix_units), found_by("mma.sync", found.by_warps),
                     warpgroups ? ", " + found_by("wgmma", found.by_warpgroups) : std::string());
}

void Device::probe_matrix_units() {
  if (facts_.matrix_units.terms == 0) return;
  std::call_once(probes_, [this] {
    std::string reason;
    try {
      reason = disagreement(facts_, devices::probe_matrix_units(*this));
    } catch (const Error& error) {
      reason = fmt::format("how its matrix units add up could not be found out: {}", error.what());
    }
    const std::lock_guard lock(probe_mutex_);
    matrix_units_refusal_ = reason, has_probed_ = true;
  });
}
bool Device::has_probed_matrix_units() const {
  const std::lock_guard lock(probe_mutex_);
  return facts_.matrix_units.terms == 0 || has_probed_;
}
std::string Device::matrix_units_refusal() const {
  const std::lock_guard lock(probe_mutex_);
  return matrix_units_refusal_;
}

}  // namespace omniconv::devices
