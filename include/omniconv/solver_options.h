// What a caller may ask of the choice among solvers, beside the problem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace omniconv {

// fma: products and sums by fused multiply-adds of the accumulating type alone. any: whatever keeps to the bound.
enum class Units : std::uint8_t { any, fma };

struct SolverOptions {
  std::string solver = "auto";  // or a solver's id, which the rest must allow too
  Units units = Units::any;
  double max_error = 1024;                // the largest amplification A of an error bound (docs/arithmetic.md)
  bool relative_error = false;            // bounds by the magnitudes of an element's own terms alone
  std::int64_t max_workspace_bytes = -1;  // a hard limit; negative: none
  bool deterministic = false;             // the same bits from every run of a plan on the same data
  // Ids, or what they begin with ("conv2d/im2col_gemm"). Empty `allow`: every solver.
  std::vector<std::string> allow = {}, deny = {};
  std::string tuning = {};  // of `solver`, as in "tile_m=128 tile_n=64"; empty: its first
  // Arrays that runs give in the solver's own form, which Plan::prepare makes ("w"). Solvers that have none are
  // refused.
  std::vector<std::string> prepared = {};
  // Arrays that lie as the problem says, 256 bytes behind their largest magnitude (Plan::format, which has no other
  // maker): a run leaves it there of what it writes, and looks no more for that of what it reads. Solvers that have no
  // such form are refused.
  std::vector<std::string> measured = {};
};

// One candidate's answer: yes, or no with the reason.
struct Candidate {
  std::string solver;
  bool applicable = false;
  std::string reason = {};           // of a refusal
  std::int64_t workspace_bytes = 0;  // the rest of an applicable one
  double cost = 0;                   // of a run, in multiply-adds at the device's peak: what the choice compares,
  double counted = 1;                // so many times: more where errors may pass those of a chain
  double bytes = 0;                  // that move meanwhile, where the cost does not hold them
  std::string bound = {};            // "bit-exact", or the formula of its error bound
  std::string tuning = {};           // in full
};

}  // namespace omniconv
