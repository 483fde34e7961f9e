// One image of a batch on the CPU.
#pragma once

#include <cstddef>

#include "omniconv/batch.h"
#include "operations/batch/draw.h"

namespace omniconv::kernels {

// From an image's pixels, c x h x w (null: all are 0), to elements of the problem's type, in its layout. The table has
// that type, too.
void make_image(const BatchProblem& problem, const std::byte* pixels, const operations::ImageDraw& draw,
                const std::byte* table, std::byte* y);

}  // namespace omniconv::kernels
