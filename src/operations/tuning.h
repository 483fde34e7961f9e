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

// One name of a domain, and the integers that it may be.
struct Tunable {
  std::string name;
  std::vector<std::int64_t> values;
};
// Those of a product inside another solver: "gemm.tile_m".
std::vector<Tunable> prefixed(std::string_view prefix, std::span<const Tunable> domain);
// Empty where a tuning has each of these names and no other, with one of its values; else a sentence that says which
// not.
std::string domain_refusal(const Tuning& tuning, std::span<const Tunable> domain);
// Calls `visit` with every combination.
void for_each_tuning(std::span<const Tunable> domain, const std::function<void(const Tuning&)>& visit);

}  // namespace omniconv::operations
