// One kind of random data in all arrays of a problem, what the outputs should be, and the check of a plan against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "checking/host.h"
#include "checking/verify.h"
#include "operations/operation.h"

namespace omniconv::checking {

// Made once for any number of plans.
class Trial {
 public:
  Trial(const operations::Operation& operation, const operations::AnyTask& task, std::vector<ArraySpec> arrays,
        operations::DataKind kind, const VerifyOptions& options, Host& host);

  void check(const Context& context, const Plan& plan, VerifyResult& result);
  // Too few of what is expected differ from zero for a comparison to mean anything.
  bool is_mostly_zero() const;

  // Of an array that plans read; empty of others.
  std::span<const std::byte> data(std::size_t array) const { return data_[array].bytes(); }

 private:
  struct Output {
    std::size_t array;
    bool is_whole;  // the points are all, in their order
    std::vector<std::int64_t> points;
    std::vector<operations::Expected> expected;
  };

  void expect(std::size_t array);
  // Of each output the elements that are looked at; `result` fails where anything else was written.
  std::vector<std::vector<std::byte>> run(const Context& context, const Plan& plan, VerifyResult& result) const;
  std::vector<std::byte> run_in_strips(const Context& context, const Plan& plan, VerifyResult& result) const;
  double largest_product();
  // What is expected, with the norm of the bound's own blocks.
  std::vector<operations::Expected> expected_in_blocks(const Output& output,
                                                       const operations::BlockExtents& tile) const;

  const operations::Operation& operation_;
  const operations::AnyTask& task_;
  std::vector<ArraySpec> arrays_;
  std::vector<operations::ScalarSpec> scalar_specs_;
  operations::DataKind kind_;
  const VerifyOptions& options_;
  Host& host_;
  std::vector<Host::Memory> data_;  // of inputs, and of outputs that are added to
  std::vector<const std::byte*> pointers_;
  std::vector<double> scalars_;
  std::vector<Output> outputs_;
  std::optional<double> largest_product_;  // of factors; once a bound asks for it
};

}  // namespace omniconv::checking
