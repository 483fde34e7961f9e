// Element types and image borders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace omniconv {

// tf32 is f32 storage with TF32 units permitted.
enum class DataType : std::uint8_t { u8, u16, s16, s32, f16, bf16, tf32, f32, f64 };

std::string_view name(DataType type);
std::optional<DataType> parse_data_type(std::string_view text);
[[noreturn]] void throw_no_such_type(DataType type);
// Bytes of one stored element.
inline std::int64_t size_of(DataType type) {
  switch (type) {
    case DataType::u8: return 1;
    case DataType::u16:
    case DataType::s16:
    case DataType::f16:
    case DataType::bf16: return 2;
    case DataType::s32:
    case DataType::tf32:
    case DataType::f32: return 4;
    case DataType::f64: return 8;
  }
  throw_no_such_type(type);
}
bool is_integer(DataType type);
// The stored values an integer type can hold; infinities for the others.
double lowest_value(DataType type);
double highest_value(DataType type);

// What stands outside the image. replicate: aaa|abcd|ddd; reflect: cba|abcd|dcb (edge repeated); reflect101:
// dcb|abcd|cba (edge not repeated; replicate on extent 1); wrap: bcd|abcd|abc; valid: nothing, the output shrinks.
enum class BorderMode : std::uint8_t { constant, replicate, reflect, reflect101, wrap, valid };

struct Border {
  BorderMode mode = BorderMode::replicate;
  double value = 0;  // of `constant`, in stored pixel values

  bool operator==(const Border&) const = default;
};

std::string_view name(BorderMode mode);
std::string to_text(const Border& border);
// Throws with the nearest names for an unknown one, and with each peer's meaning for `mirror` and `symmetric`.
Border parse_border(std::string_view text);

}  // namespace omniconv
