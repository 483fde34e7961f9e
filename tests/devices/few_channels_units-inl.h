// What the matrix units make of few_channels_units.kernel's products, element by element, for a processor: included
// where COLUMNS, SIXTEENS and PRODUCTS are known.
// Of the matrix units: a descriptor's address, the step from eight columns to the next, and the swizzle by 32 bytes.
inline float filter_term(ulong descriptor, int column, int term) {
  const ulong start = (descriptor & 0x3fff) << 4, step = (descriptor >> 32 & 0x3fff) << 4;
  EXPECT_EQ(descriptor >> 62, 3U);
  ulong at = start + static_cast<ulong>(column / 8) * step + static_cast<ulong>(column % 8 * 32 + term * 2);
  at ^= (at >> 7 & 1) << 4;
#ifdef MOST_FILTER_BYTES  // of local memory, where all parts of filters lie
  EXPECT_LE(at - launch_address + 2, static_cast<ulong>(MOST_FILTER_BYTES));
#endif
  ushort bits;
  std::memcpy(&bits, launch_memory + at - launch_address, 2);
  return widened(DataType::f16, bits);
}
// Of the registers that the work items of a warpgroup give: four of two terms each, of high parts and then of low ones.
inline float row_term(int row, int sixteen, int term, int low) {
  const int item = this_item / 128 * 128 + row / 16 * 32 + row % 8 * 4 + term % 8 / 2,
            number = 4 * low + term / 8 * 2 + row % 16 / 8;
  const uint pair = given[static_cast<std::size_t>(item)][sixteen][number];
  return widened(DataType::f16, static_cast<ushort>(pair >> 16 * (term % 2)));
}
template <int COUNT>
inline void multiply_rows(float (&sum)[32], const uint (&a)[COUNT][8], const ulong b) {
  std::memcpy(given[static_cast<std::size_t>(this_item)], a, sizeof a);
  meet_warpgroup();
  for (int i = 0; i < COLUMNS / 2; ++i) {
    const int t = this_item % 128, row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2),
              column = i / 4 * 8 + t % 4 * 2 + i % 2;
    sum[i] = 0;
    for (int k = 0; k < COUNT; ++k)
      for (int term = 0; term < 16; ++term) {
        const ulong next = b + static_cast<ulong>(k * COLUMNS * 32 / 16),
                    low = next + static_cast<ulong>(SIXTEENS * COLUMNS * 32 / 16);
        const float x = row_term(row, k, term, 0), w = filter_term(next, column, term);
        sum[i] += x * w;
        if (PRODUCTS == 3) sum[i] += row_term(row, k, term, 1) * w + x * filter_term(low, column, term);
      }
  }
  meet_warpgroup();
}
template <int COUNT>
inline void end_products(float (&)[32], const uint (&)[COUNT][8]) {}
