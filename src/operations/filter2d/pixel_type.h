// Types of pixels as constants, for loops over elements whose type is known when a run is given.
#pragma once

#include <type_traits>

#include "omniconv/types.h"

namespace omniconv {

// f(std::integral_constant<DataType, type>) for the pixel type that `type` is.
template <typename F>
void with_pixel_type(DataType type, const F& f) {
  switch (type) {
    case DataType::u8: return f(std::integral_constant<DataType, DataType::u8>());
    case DataType::u16: return f(std::integral_constant<DataType, DataType::u16>());
    case DataType::s16: return f(std::integral_constant<DataType, DataType::s16>());
    case DataType::s32: return f(std::integral_constant<DataType, DataType::s32>());
    case DataType::f16: return f(std::integral_constant<DataType, DataType::f16>());
    case DataType::f32: return f(std::integral_constant<DataType, DataType::f32>());
    case DataType::f64: return f(std::integral_constant<DataType, DataType::f64>());
    case DataType::bf16:
    case DataType::tf32: break;  // no pixel types: validate() refuses them
  }
}

}  // namespace omniconv
