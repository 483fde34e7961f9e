// What a solver can be tuned by: named integers, with a text form.
#pragma once

#include <cstdint>
#include <optional>
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
  // Throws, naming the word, for a text of another form.
  static Tuning parse(std::string_view text);

  bool is_empty() const { return values_.empty(); }
  std::optional<std::int64_t> find(std::string_view name) const;
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

}  // namespace omniconv::operations
