// Whether elements of one result are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "checking/verify.h"
#include "operations/operation.h"

namespace omniconv::checking {

class Judge {
 public:
  // Of the output `array`, made of data of this kind.
  // The largest product is of the magnitudes of its sums' factors.
  Judge(const operations::Operation& operation, const operations::AnyTask& task, const ArraySpec& array,
        operations::DataKind kind, const operations::ErrorBound& bound, double largest_product);

  // The stored element at `point`; the first that is wrong makes the result fail.
  void check(std::int64_t point, const operations::Expected& expected, const std::byte* stored,
             VerifyResult& result) const;
  // In the units of VerifyResult: the solver's own, and the reference's.
  double bound() const { return units_; }

 private:
  void check_bits(std::int64_t point, const operations::Expected& expected, const std::byte* stored,
                  VerifyResult& result) const;
  void check_exact(std::int64_t point, const operations::Expected& expected, const std::byte* stored,
                   VerifyResult& result) const;
  void check_bound(std::int64_t point, const operations::Expected& expected, const std::byte* stored,
                   VerifyResult& result) const;
  void fail(std::int64_t point, const std::string& what, VerifyResult& result) const;
  // What is stored of a value.
  double converted(double value) const;

  const operations::Operation& operation_;
  const operations::AnyTask& task_;
  const ArraySpec& array_;
  bool must_be_whole_;    // what is a sum of integers
  double largest_exact_;  // norm up to which these are exact
  double epsilon_, units_, absolute_;
};

}  // namespace omniconv::checking
