// How matrix units add up: what is known of NVIDIA's, what that costs a sum, and a probe that finds it out on the
// device itself. Sums are modelled as published tests of these units describe them (M. Fasi, N. J. Higham, M. Mikaitis,
// S. Pranesh: Numerical behavior of NVIDIA tensor cores, 2021).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "devices/device.h"

namespace omniconv::devices {

// Of a compute capability, 90 for 9.0; without terms where there are no such units.
MatrixUnits matrix_units_of(int compute_capability);

// What 16 products and the sum before lose at most when they are added up, in units of 2^-23 of the sum of their
// magnitudes: all but the largest are cut, and so is what comes out, which has 24 bits.
double cut_of_sixteen(const MatrixUnits& units);

// "16 products at a time, cut toward zero at 25 bits".
std::string describe(const MatrixUnits& units);

// 16 products, each a power of two or half as much again, and what was there before.
struct ProbeSum {
  std::array<double, 16> products = {};
  double before = 0;
};
// Sums that show the terms that units add at a time, the bits that they keep, and how they round.
constexpr std::size_t probe_sum_count = 64;
const std::array<ProbeSum, probe_sum_count>& probe_sums();
float sum_by(const MatrixUnits& units, const ProbeSum& sum);
// Units that make these of the sums above; none if no units do that are modelled.
std::optional<MatrixUnits> units_that_give(std::span<const float> sums);

// What the device's units make of these sums, by the instructions of warps (mma.sync), and of warpgroups (wgmma), which
// 9.0 has through CUDA.
struct ProbedUnits {
  std::optional<MatrixUnits> by_warps, by_warpgroups;
};
ProbedUnits probe_matrix_units(Device& device);
// Whether the device has the instructions of warpgroups.
bool has_warpgroup_products(const DeviceFacts& facts);

// Why what was found may lose more than what is known; empty if it does not.
std::string disagreement(const DeviceFacts& facts, const ProbedUnits& found);

}  // namespace omniconv::devices
