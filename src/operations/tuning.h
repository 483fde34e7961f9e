// What a solver can be tuned by: named integers, with a text form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omniconv::operations {

// "tile_m=128 stages=3"; of a product inside another solver "gemm.tile_m=128". Names stand in the solver's order.
class Tuning {
 public:
  Tuning() = default;
  Tuning(std::initializer_list<std::pair<std::string, std::int64_t>> values) : values_(values) {}
  void set(std::string name, std::int64_t value) { values_.emplace_back(std::move(name), value); }
  // Throws, naming the word, for a text of another form.
  static Tuning parse(std::string_view text);

  bool is_empty() const { return values_.empty(); }
  std::optional<std::int64_t> find(std::string_view name) const;
  // Throws where it is not given.
  std::int64_t at(std::string_view name) const;
  const std::vector<std::pair<std::string, std::int64_t>>& values() const { return values_; }
  std::string to_text() const;
  // Those whose names begin with "prefix.", without it; and the others with it.
  Tuning inner(std::string_view prefix) const;
  Tuning prefixed(std::string_view prefix) const;
  bool operator==(const Tuning& other) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> values_;
};

// Empty where each name of `wanted` is one of these and every one of these is given, as the first tuning has them all;
// else a sentence that says which is not.
std::string names_refusal(const Tuning& wanted, const Tuning& first);

// One name of a domain, and the integers that it may be.
struct Tunable {
  const char* name;
  std::vector<std::int64_t> values;
};
// Empty where each of these is given, as one of its values; else a sentence that says which is not.
std::string domain_refusal(const Tuning& wanted, std::span<const Tunable> domain);
// `first`, and then all others of the domain that `is_valid`.
std::vector<Tuning> tunings_of(const Tuning& first, std::span<const Tunable> domain,
                               const std::function<bool(const Tuning&)>& is_valid);

}  // namespace omniconv::operations
