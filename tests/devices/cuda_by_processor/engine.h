// What compiled kernel text asks of the processor that runs it in the place of a device of compute capability 9.0: who
// a work item is, and all that work items do together. Groups follow each other; the work items of one are fibres.
//
// Copies that a barrier or a wait stands for are made at once or when they are waited for, by chance: text that does
// not wait reads numbers that are none. Products are made when they are waited for, of what local memory then holds.
#pragma once

#include <cstdint>

namespace omniconv::by_processor {

// Ids of the work item that runs, and extents of the launch.
struct Item {
  int local[3];
  long group[3];
  int items[3];
  long groups[3];
};

// Of 16 terms: 64 rows by so many columns, of which a work item has columns / 2 sums. Rows are at a descriptor, or, of
// four registers of each work item, in these.
struct Product {
  float* sums;
  int columns;
  bool is_bf16, rows_turned, columns_turned, adds;
  std::uint64_t rows, terms_of_columns;
  bool rows_in_registers;
  std::uint32_t registers[4];
};

struct Engine {
  const Item* item;
  // All of the group that have not ended (number 0), or so many work items that name one number.
  void (*meet)(int number, int items);
  int (*is_any)(int number, int items, int is_so);
  void (*meet_warp)();
  std::uint32_t (*largest_of_warp)(std::uint32_t value);
  // Barriers in local memory, by their addresses.
  void (*make_barrier)(std::uint32_t barrier, int arrivals);
  void (*arrive)(std::uint32_t barrier, std::uint32_t bytes_expected);
  void (*await)(std::uint32_t barrier, int parity);
  // Boxes of tensor maps: of coordinates, the innermost first; of images also offsets of a tap.
  void (*copy_box)(std::uint32_t to, const void* map, const int (&at)[3], std::uint32_t barrier);
  void (*copy_pixels)(std::uint32_t to, const void* map, const int (&at)[4], int along, int down,
                      std::uint32_t barrier);
  // From local memory: a work item's own, by commitments. Nothing where the map has no such elements.
  void (*store_box)(std::uint32_t from, const void* map, const int (&at)[3]);
  void (*commit_boxes)();
  void (*await_boxes)(int but);
  // Copies of a work item's own, zeros where nothing is there.
  void (*copy_bytes)(void* to, const void* from, int bytes, int is_there);
  void (*commit_copies)();
  void (*await_copies)(int but);
  // Of a warp: four matrices of 8 x 8 numbers of 16 bits, of whose rows each lane has the address of one, as they lie
  // or turned; 16 products of 16 rows by 8 columns, of two pairs of which a lane has the sums.
  void (*load_matrices)(std::uint32_t (&parts)[4], const void* row, int turns);
  void (*store_matrices)(void* row, const std::uint32_t (&parts)[4], int turns);
  void (*multiply_by_warp)(float* upper, float* lower, const std::uint32_t* rows, const std::uint32_t* columns,
                           int begins, int is_bf16);
  // Eight products likewise, of numbers of 11 bits in words.
  void (*multiply_tf32_by_warp)(float* upper, float* lower, const std::uint32_t* rows, const std::uint32_t* columns,
                                int begins);
  // Of the warpgroup.
  void (*multiply)(const Product& product);
  void (*commit_products)();
  void (*await_products)(int but);
};

}  // namespace omniconv::by_processor
