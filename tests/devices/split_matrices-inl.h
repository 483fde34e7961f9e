// The kernels of gemm/split, their own text, run by the processor: a work item is a thread. Included in a namespace,
// for each of the text's forms: PRODUCTS, SAMPLES, TRANSPOSED and TILE_N stand before it. Copies and products are what
// the matrix units would do, element by element.
#define TRANSPOSED_A TRANSPOSED
#define TRANSPOSED_B TRANSPOSED
#define BIAS (2 - TRANSPOSED)
#define ACCUMULATE TRANSPOSED
#define RELU TRANSPOSED
#define OUTPUT TYPE_f32
#define TILES 0  // all of the text
#if PRODUCTS > 1
#define TYPE TYPE_f32
#if PRODUCTS == 6
#define PART TYPE_bf16
#else
#define PART TYPE_f16
#endif
#define SCALED 1
#define SAMPLED SAMPLES
#else
#define TYPE TYPE_bf16
#define PART TYPE_bf16
#define SCALED 0
#define SAMPLED 0
#endif
#define A_TURNED TRANSPOSED
#define B_TURNED !TRANSPOSED
// Of a tile, where sum i of a work item is.
inline int row_of(int half, int i) {
  const int t = LOCAL_ID_X % 128;
  return SWAPPED ? i / 4 * 8 + t % 4 * 2 + i % 2 : half * 64 + t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2);
}
inline int column_of(int half, int i) {
  const int t = LOCAL_ID_X % 128;
  return SWAPPED ? half * 64 + t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2) : i / 4 * 8 + t % 4 * 2 + i % 2;
}
inline void store_part(float* to, int line, int half, const float (&sums)[SUMS]) {
  for (int i = 0; i < SUMS; ++i) to[long{row_of(half, i)} * line + column_of(half, i)] = sums[i];
}
inline void take_next(float (&sums)[SUMS]) {
  for (int i = 0; i + 16 < SUMS; ++i) sums[i] = sums[i + 16];
}

#include "text/gemm_elements.kernel"

#include "text/plain_sums.kernel"

#include "text/scales.kernel"

#include "text/parts.kernel"

#include "operations/gemm/split/split_matrices.kernel"

// Where a run finds everything.
struct Memory {
  const element_t *a, *b, *bias;
  output_t* c;
  std::vector<uint> workspace = {};
  std::array<uint, 4> largest = {};  // magnitudes that the run found, where it looked; the smallest, negated
  bool are_parts = false;            // that tiles were made of
};

// All launches of a run, as the plan appends them.
inline void run(const MatrixTask& host, float alpha, bool quads_of_a, bool quads_of_b, Memory& memory) {
  task_t task;
  static_assert(sizeof task == sizeof host);
  std::memcpy(&task, &host, sizeof task);
  constexpr std::int64_t planes = PLANES;
  const std::int64_t maxima_at = 0, largest_at = 4 * MAXIMA + 8, a_planes_at = 2 * (largest_at + 8),
                     b_planes_at = a_planes_at + planes * host.a.elements(),
                     parts_at = (b_planes_at + planes * host.b.elements()) / 2;
  memory.workspace.assign(static_cast<std::size_t>(parts_at + std::int64_t{host.parts} * host.batch * host.tiles_m *
                                                                  128 * host.tiles_n * TILE_N),
                          0xffffffffu);  // NaN
  uint* const workspace = memory.workspace.data();
  constexpr int every = SAMPLED != 0 ? 3 : 1;
  const bool are_packed = is_packed(host.a, A_ALONG) && is_packed(host.b, B_ALONG);
  if (SAMPLED != 0 || (PRODUCTS == 6 && are_packed)) {
    launch(2 * MAXIMA, 256, [&] {
      find_largest(memory.a, 0, host.a.source_elements(), every, memory.b, 0, host.b.source_elements(), every,
                   workspace, maxima_at, largest_at);
    });
  } else if (SCALED) {
    launch(2 * MAXIMA, 256, [&] {
      find_largest_of_lines(task, memory.a, 0, quads_of_a, memory.b, 0, quads_of_b, workspace, maxima_at);
    });
  }
  // As the plan does where arrays begin at multiples of 16 bytes.
  const bool a_as_stored = !SCALED && can_be_copied(host.a), b_as_stored = !SCALED && can_be_copied(host.b);
  const int a_groups = a_as_stored ? 0 : static_cast<int>(host.a.groups()),
            b_groups = b_as_stored ? 0 : static_cast<int>(host.b.groups());
  for (const int mends : {0, 1}) {
    if (mends && !SAMPLED) continue;
    launch(mends ? 2 : std::max(a_groups + b_groups, 1), 256, [&] {
      make_parts(task, memory.a, 0, quads_of_a, memory.b, 0, quads_of_b, workspace, maxima_at, largest_at, a_planes_at,
                 host.a.elements(), b_planes_at, host.b.elements(), a_groups, b_groups, alpha, mends);
    });
  }
  const auto map_of = [](const Matrix& matrix, bool as_stored, std::int64_t lines) {
    return as_stored ? map_of_operand(matrix, lines) : map_of_planes(matrix, lines);
  };
  const devices::TensorMap a_map = map_of(host.a, a_as_stored, A_TURNED ? 64 : 128),
                           b_map = map_of(host.b, b_as_stored, B_TURNED ? 64 : TILE_N);
  const auto* const halves = reinterpret_cast<const ushort*>(workspace);
  const ushort *const a = a_as_stored ? reinterpret_cast<const ushort*>(memory.a) : halves + a_planes_at,
                      *const b = b_as_stored ? reinterpret_cast<const ushort*>(memory.b) : halves + b_planes_at;
  constexpr Numbers numbers{.products = PRODUCTS};
  const OperandMaps a_maps = maps_of_planes(a_map, numbers, host.a.elements()),
                    b_maps = maps_of_planes(b_map, numbers, host.b.elements());
  const tensor_map_t a_high{a, &a_maps[0]}, a_low{a + a_maps[1].offset_bytes / 2, &a_maps[1]}, b_high{b, &b_maps[0]},
      b_low{b + b_maps[1].offset_bytes / 2, &b_maps[1]};
  arrays_t arrays;
  arrays.a = memory.a, arrays.b = memory.b, arrays.bias = memory.bias, arrays.out = memory.c;
  arrays.parts = reinterpret_cast<float*>(workspace) + parts_at, arrays.largest = workspace + largest_at;
  const int units = unit_count(task);
  launch(units, GROUP, [&] {
    if (!have_parts(arrays)) return compute_plainly(task, arrays);
    const unit_t unit = unit_of(task, static_cast<int>(GROUP_ID_X));
    const int half = LOCAL_ID_X / 128 - 1;
    LOCAL float staging[2 * STAGING];
    float sums[SUMS] = {};
    for (int step = unit.first; step < unit.last; ++step) {
      BARRIER;
      if (LOCAL_ID_X == 0) {
        copies_t copies = copies_of(task, unit);
        copy_a(task, unit, step, copies, a_high, a_low, 0, 0);
        copy_b(task, unit, copies, step, 0, b_high, b_low, PLANES * A_BYTES, 0);
      }
      BARRIER;
      if (half < 0) continue;
      for (int i = 0; i < SUMS; ++i) {
        const int row = row_of(half, i), column = column_of(half, i);
        const auto part = [&](std::int64_t at, bool turned, int own, int k) {
          const std::int64_t place = turned ? (own / 64 * 64 + k) * 64 + own % 64 : own * 64 + k;
          return WIDENED_PART(stage[static_cast<std::size_t>(at / 2 + place)]);
        };
        for (int k = 0; k < 64; ++k) {
          float x[PLANES], w[PLANES];
          for (int plane = 0; plane < PLANES; ++plane) {
            x[plane] = part(plane * A_BYTES, A_TURNED, row, k);
            w[plane] = part(PLANES * A_BYTES + plane * B_BYTES, B_TURNED, column, k);
          }
          // Of planes that together are no lower than the last.
          for (int low = PLANES - 1; low >= 0; --low)
            for (int plane = 0; plane <= low; ++plane) sums[i] += x[plane] * w[low - plane];
        }
      }
    }
    if (half >= 0) store_tile(task, unit, arrays, scale_of(arrays), half, sums, staging + half * STAGING);
  });
  std::copy_n(workspace + largest_at, 4, memory.largest.begin());
  memory.are_parts = have_parts(arrays);
  if (task.parts == 1) return;
  const std::int64_t quads = std::int64_t{task.batch} * task.m * ((task.n + 3) / 4);
  launch(static_cast<int>((quads + 255) / 256), 256, [&] {
    add_parts(task, memory.a, 0, memory.b, 0, memory.c, 0, memory.bias, 0, workspace, parts_at, largest_at);
  });
}

#undef TRANSPOSED_A
#undef TRANSPOSED_B
#undef BIAS
#undef ACCUMULATE
#undef RELU
#undef OUTPUT
#undef TILES
#undef TYPE
#undef PART
#undef SCALED
#undef SAMPLED
#undef A_TURNED
#undef B_TURNED
#undef WORDS
#undef WIDENED
