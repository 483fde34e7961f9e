// Panels: the parts of a matrix that a tile of a product reads, widened, in the order in which it reads them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"
#include "vector/matrix/bfloat_pair.h"

namespace omniconv::kernels {

// Rows of a or columns of b, along each of which a sum runs: element i of step t.
struct GemmLines {
  const std::byte* from = nullptr;  // line 0, step 0
  DataType type = DataType::f32;
  std::int64_t ld = 0;         // elements from a stored row to the next
  bool steps_adjacent = true;  // stored rows are lines; else they are steps
};

// to[t * width + i] = line i at step t, for i < count <= width; what is left of the width is zero.
void pack_panel(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, float* to);
void pack_panel(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, double* to);
// Of bf16, two steps to an element: to[t * width + i] = line i at steps 2t and 2t + 1.
void pack_panel(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, BfloatPair* to);

// to[i] = first[i] and second[i], numbers of bf16 in f32.
void make_pairs(const float* first, const float* second, std::int64_t count, BfloatPair* to);

// Lines that are pixels of images, and steps the elements that each reads: runs of neighbouring lines are neighbours at
// every step. Line i, pixel i % pixels of image i / pixels, has step t at from[offset(i) + steps[t]].
template <typename Real>
struct GemmImages {
  const Real* from = nullptr;
  const std::int64_t* steps = nullptr;
  std::int64_t pixels = 1, image_pitch = 0;  // lines of an image, elements from one image to the next
  std::int64_t run = 1, run_pitch = 0;       // lines of a run, elements from one run to the next
};

// to[t * width + i] = line first + i at step t, for i < count <= width; what is left of the width is zero. Whole
// vectors are stored: of width 1, all but one lane of the last beyond the panel.
void pack_images(const GemmImages<float>& images, std::int64_t first, std::int64_t count, std::int64_t width,
                 std::int64_t steps, float* to);
void pack_images(const GemmImages<double>& images, std::int64_t first, std::int64_t count, std::int64_t width,
                 std::int64_t steps, double* to);

}  // namespace omniconv::kernels
