// Tunings and problems that conv2d/split_gemm serves on a device of one compute unit by blocks of rows.
#pragma once

#include <initializer_list>
#include <utility>

namespace omniconv {

inline constexpr std::initializer_list<std::pair<const char*, const char*>> blocks_of_rows = {
    {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "bwd_data n4c32h15w29k96r5s5p2"},
    {"tile_n=64 resident=2 parts=1 shared=1 raw=0", "bwd_data nhwc n4c32h15w29k64r5s5p2"},
    {"tile_n=64 resident=2 parts=1 shared=0 raw=0", "nhwc bias relu n4c64h15w19k32r5s5p2"},
    {"tile_n=64 resident=1 parts=1 shared=0 raw=0", "acc flip n4c64h15w19k30r5s5p2"},
    {"tile_n=64 resident=1 parts=1 shared=2 raw=0", "bf16 nhwc n4c32h15w29k16r3s3p1"},
    {"tile_n=64 resident=1 parts=1 shared=0 raw=0", "bf16 bias n4c64h15w29k16r5s5p2"}};

}  // namespace omniconv
