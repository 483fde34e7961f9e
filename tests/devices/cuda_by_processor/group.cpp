#include "group.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "products.h"
#include "tensor_maps.h"

namespace omniconv::by_processor {
namespace {

constexpr std::size_t stack_bytes = 256 << 10;
constexpr int warp_items = 32, warpgroup_items = 128;

[[noreturn]] void fail(const char* reason) {
  std::fprintf(stderr, "kernel by processor: %s\n", reason);
  std::abort();
}

// A meeting of work items: all that it waits for have come `generation` times.
struct Meeting {
  int come = 0, generation = 0;
  bool any = false, any_before = false;
};

// A copy that has been asked for, and has not been made.
struct Copy {
  std::function<void()> make;
  std::uint32_t bytes;
};
struct Barrier {
  int expected = 0, pending = 0, parity = 0;
  std::int64_t bytes = 0;
  std::vector<Copy> copies;

  void settle() {
    if (pending == 0 && bytes == 0) parity ^= 1, pending = expected;
  }
  void make_copies() {
    std::vector<Copy> all;
    all.swap(copies);
    for (const Copy& copy : all) copy.make(), bytes -= copy.bytes;
    settle();
  }
};

// What a fibre waits for, asked in its name.
struct Condition {
  bool (*holds)(const void* of) = nullptr;
  const void* of = nullptr;
};

// What a lane gives to its warp.
struct Held {
  std::uint16_t* row = nullptr;
  std::array<std::uint32_t, 4> rows{};
  std::array<std::uint32_t, 2> columns{};
};

// It begins in its context, and goes on from where it jumped away.
struct Fibre {
  ucontext_t context;
  jmp_buf place;
  Condition condition;
  bool has_begun = false;
  std::unique_ptr<std::byte[]> stack;
  Item item;
  bool has_ended = false;
  std::vector<Copy> copies;  // not committed
  std::deque<std::vector<Copy>> commitments;
  std::vector<Copy> boxes;  // to be stored
  std::deque<std::vector<Copy>> committed_boxes;
  std::vector<Product> products;
  std::deque<std::vector<Product>> committed_products;
  std::uint32_t value = 0;
  Held held;
};

// The group that runs. One at a time, whatever thread of the process it is.
struct Group {
  const Launch* launch = nullptr;
  jmp_buf scheduler;
  std::vector<Fibre> fibres;
  std::size_t running = 0;
  Item item;
  bool has_moved = false;  // any work item, since the last look
  std::map<int, Meeting> meetings;
  std::vector<Meeting> of_warps, of_warpgroups;
  std::map<std::uint32_t, Barrier> barriers;
  std::uint32_t chance = 1;

  Fibre& own() { return fibres[running]; }
  std::size_t warp() const { return running / warp_items; }
  std::size_t warpgroup() const { return running / warpgroup_items; }
  bool flips_coin() {
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 16 & 1) != 0;
  }
};
Group& group() {
  static Group instance;
  return instance;
}

template <typename Holds>
void wait_until(const Holds& holds) {
  Group& g = group();
  if (!holds()) {
    Fibre& own = g.own();
    own.condition = {[](const void* of) { return (*static_cast<const Holds*>(of))(); }, &holds};
    if (_setjmp(own.place) == 0) _longjmp(g.scheduler, 1);
  }
  g.has_moved = true;
}

int alive(std::size_t first, std::size_t count) {
  const auto& fibres = group().fibres;
  int number = 0;
  for (std::size_t i = first; i < std::min(first + count, fibres.size()); ++i) number += !fibres[i].has_ended;
  return number;
}

// Until so many have come; the last one does what `last` says.
template <typename Needed, typename Last>
void meet_at(Meeting& meeting, const Needed& needed, const Last& last) {
  const int generation = meeting.generation;
  ++meeting.come;
  wait_until([&] {
    if (meeting.generation == generation && meeting.come >= needed()) {
      last();
      meeting.come = 0, ++meeting.generation;
    }
    return meeting.generation != generation;
  });
}

int is_any(int number, int items, int is_so) {
  Meeting& meeting = group().meetings[number];
  meeting.any = meeting.any || is_so != 0;
  meet_at(
      meeting, [&] { return items > 0 ? items : alive(0, group().fibres.size()); },
      [&] { meeting.any_before = meeting.any, meeting.any = false; });
  return meeting.any_before;
}
void meet(int number, int items) {
  is_any(number, items, 0);
}

void meet_warp() {
  const std::size_t first = group().warp() * warp_items;
  meet_at(
      group().of_warps[group().warp()], [&] { return alive(first, warp_items); }, [] {});
}
std::uint32_t largest_of_warp(std::uint32_t value) {
  Group& g = group();
  g.own().value = value;
  meet_warp();
  std::uint32_t largest = 0;
  const std::size_t first = g.warp() * warp_items;
  for (std::size_t i = first; i < std::min(first + warp_items, g.fibres.size()); ++i)
    if (!g.fibres[i].has_ended) largest = std::max(largest, g.fibres[i].value);
  meet_warp();
  return largest;
}

std::byte* at(std::uint32_t address) {
  return group().launch->local.begin + address - LocalMemory::first_address;
}

void make_barrier(std::uint32_t barrier, int arrivals) {
  Barrier& made = group().barriers[barrier];
  made = {};
  made.expected = made.pending = arrivals;
}
Barrier& barrier_at(std::uint32_t address) {
  const auto found = group().barriers.find(address);
  if (found == group().barriers.end()) fail("a barrier is used that was not made");
  return found->second;
}
void arrive(std::uint32_t address, std::uint32_t bytes_expected) {
  Barrier& barrier = barrier_at(address);
  if (barrier.pending == 0) fail("more arrive at a barrier than it expects");
  barrier.bytes += bytes_expected;
  --barrier.pending;
  barrier.settle();
  group().has_moved = true;
}
void await(std::uint32_t address, int parity) {
  Barrier& barrier = barrier_at(address);
  wait_until([&] {
    if (!barrier.copies.empty()) barrier.make_copies();
    return barrier.parity != parity;
  });
}

void give(std::uint32_t address, std::uint32_t bytes, std::function<void()> make) {
  Barrier& barrier = barrier_at(address);
  if (group().flips_coin()) {
    make(), barrier.bytes -= bytes, barrier.settle();
    group().has_moved = true;
  } else {
    barrier.copies.push_back({std::move(make), bytes});
  }
}

// Byte `offset` of a box, in local memory.
std::byte* swizzled(std::uint32_t to, std::int64_t offset, int swizzle) {
  std::uint32_t address = to + static_cast<std::uint32_t>(offset);
  if (swizzle > 0) address ^= (address >> 7 & ((1u << swizzle) - 1)) << 4;
  const Launch& launch = *group().launch;
  std::byte* const place = at(address);
  const bool is_of_launch =
      place >= launch.local.of_launch && place < launch.local.of_launch + LocalMemory::most_of_launch;
  if (place < launch.local.begin || place >= launch.local.end ||
      (is_of_launch && place >= launch.local.of_launch + launch.local_bytes))
    fail("a copy goes beyond the local memory that its launch asks for, and its text declares");
  return place;
}

// One element at coordinates of the map, into local memory, or from there.
void copy_element(const EncodedMap& map, const std::int64_t (&coordinates)[5], std::byte* local, bool stores) {
  bool is_inside = true;
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
    is_inside = is_inside && coordinates[d] >= 0 && coordinates[d] < map.extents[d];
    offset += coordinates[d] * (d == 0 ? map.element_bytes : map.strides_bytes[d - 1]);
  }
  const auto bytes = static_cast<std::size_t>(map.element_bytes);
  if (stores) {
    if (is_inside) std::memcpy(map.begin + offset, local, bytes);
  } else if (is_inside) {
    std::memcpy(local, map.begin + offset, bytes);
  } else {
    std::memset(local, map.fills_with_nan ? 0xff : 0, bytes);
  }
}

// A box at coordinates of the map, in local memory.
Copy box_copy(std::uint32_t local, const void* argument, const int (&at_box)[3], bool stores) {
  const EncodedMap& map = map_of(argument);
  if (map.is_im2col || map.rank != 3) fail("a copy of a box by a map of another kind");
  const std::int64_t elements = map.box[0] * map.box[1] * map.box[2];
  const std::array<std::int64_t, 3> first{at_box[0], at_box[1], at_box[2]};
  const auto make = [&map, local, first, elements, stores] {
    for (std::int64_t i = 0; i < elements; ++i) {
      const std::int64_t coordinates[5] = {first[0] + i % map.box[0], first[1] + i / map.box[0] % map.box[1],
                                           first[2] + i / map.box[0] / map.box[1]};
      copy_element(map, coordinates, swizzled(local, i * map.element_bytes, map.swizzle), stores);
    }
  };
  return {make, static_cast<std::uint32_t>(elements * map.element_bytes)};
}

void copy_box(std::uint32_t to, const void* map, const int (&from)[3], std::uint32_t barrier) {
  Copy copy = box_copy(to, map, from, false);
  give(barrier, copy.bytes, std::move(copy.make));
}
void copy_pixels(std::uint32_t to, const void* argument, const int (&from)[4], int along, int down,
                 std::uint32_t barrier) {
  const EncodedMap& map = map_of(argument);
  if (!map.is_im2col || map.rank != 4) fail("a copy of pixels by a map of another kind");
  const std::array<std::int64_t, 4> first{from[0], from[1], from[2], from[3]};
  const std::int64_t line = std::int64_t{map.channels} * map.element_bytes;
  give(barrier, static_cast<std::uint32_t>(line * map.pixels), [&map, to, first, along, down, line] {
    std::int64_t column = first[1], row = first[2], image = first[3];
    for (std::int64_t pixel = 0; pixel < map.pixels; ++pixel) {
      for (std::int64_t c = 0; c < map.channels; ++c) {
        const std::int64_t coordinates[5] = {first[0] + c, column + along, row + down, image};
        copy_element(map, coordinates, swizzled(to, pixel * line + c * map.element_bytes, map.swizzle), false);
      }
      if ((column += map.steps[1]) < map.extents[1] + map.upper[0]) continue;
      column = map.lower[0];
      if ((row += map.steps[2]) < map.extents[2] + map.upper[1]) continue;
      row = map.lower[1], ++image;
    }
  });
}

// At once or when it is waited for.
void store_box(std::uint32_t from, const void* map, const int (&to)[3]) {
  if (to[0] < 0 || to[1] < 0 || to[2] < 0) fail("a box is stored at negative coordinates");
  if (from % 128 != 0) fail("a box is stored from no multiple of 128 bytes");
  const EncodedMap& encoded = map_of(map);
  if (encoded.extents[0] * encoded.element_bytes % 16 != 0)
    fail("a box is stored whose lines' ends are no multiples of 16 bytes, which are written whole");
  Copy copy = box_copy(from, map, to, true);
  if (group().flips_coin())
    copy.make();
  else
    group().own().boxes.push_back(std::move(copy));
}

void make_all(std::vector<Copy>& copies) {
  for (const Copy& copy : copies) copy.make();
  copies.clear();
}
void copy_bytes(void* to, const void* from, int bytes, int is_there) {
  if (reinterpret_cast<std::uintptr_t>(to) % static_cast<std::uintptr_t>(bytes) != 0 ||
      (is_there && reinterpret_cast<std::uintptr_t>(from) % static_cast<std::uintptr_t>(bytes) != 0))
    fail("a copy of bytes at no multiple of them");
  const auto make = [=] {
    if (is_there)
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    else
      std::memset(to, 0, static_cast<std::size_t>(bytes));
  };
  if (group().flips_coin())
    make();
  else
    group().own().copies.push_back({make, 0});
}
void commit_copies() {
  Fibre& own = group().own();
  own.commitments.emplace_back(std::move(own.copies));
  own.copies.clear();
}
void await_copies(int but) {
  Fibre& own = group().own();
  for (; static_cast<int>(own.commitments.size()) > but; own.commitments.pop_front()) make_all(own.commitments.front());
}

void commit_boxes() {
  Fibre& own = group().own();
  own.committed_boxes.emplace_back(std::move(own.boxes));
  own.boxes.clear();
}
void await_boxes(int but) {
  auto& committed = group().own().committed_boxes;
  for (; static_cast<int>(committed.size()) > but; committed.pop_front()) make_all(committed.front());
}

// What the lanes of the running fibre's warp hold, until all have read it.
template <typename Reads>
void exchange(const Held& held, const Reads& reads) {
  Group& g = group();
  g.own().held = held;
  meet_warp();
  reads(&g.fibres[g.warp() * warp_items]);
  meet_warp();
}

void load_matrices(std::uint32_t (&parts)[4], const void* row, int turns) {
  const std::size_t lane = group().running % warp_items;
  exchange({.row = const_cast<std::uint16_t*>(static_cast<const std::uint16_t*>(row))}, [&](const Fibre* lanes) {
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      const auto number = [&](std::size_t line, std::size_t place) {
        return std::uint32_t{lanes[matrix * 8 + line].held.row[place]};
      };
      const std::size_t line = lane / 4, place = lane % 4 * 2;
      parts[matrix] = turns ? number(place, line) | number(place + 1, line) << 16
                            : number(line, place) | number(line, place + 1) << 16;
    }
  });
}

void store_matrices(void* row, const std::uint32_t (&parts)[4], int turns) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) fail("a line of a matrix is stored at no multiple of 16 bytes");
  const std::size_t lane = group().running % warp_items;
  Held held{.row = static_cast<std::uint16_t*>(row)};
  std::copy_n(parts, held.rows.size(), held.rows.begin());
  // Each lane writes the line whose address is its own.
  exchange(held, [&](const Fibre* lanes) {
    const std::size_t matrix = lane / 8, line = lane % 8;
    for (std::size_t place = 0; place < 8; ++place) {
      const std::size_t row_of = turns ? place : line, column = turns ? line : place;
      held.row[place] = static_cast<std::uint16_t>(lanes[row_of * 4 + column / 2].held.rows[matrix] >> column % 2 * 16);
    }
  });
}

// The sums of the running lane, of two rows by two columns: product_of(lanes, row, column, sum before).
template <typename ProductOf>
void multiply_lanes(float* upper, float* lower, const std::uint32_t* rows, const std::uint32_t* columns, int begins,
                    const ProductOf& product_of) {
  const std::size_t lane = group().running % warp_items;
  Held held;
  std::copy_n(rows, held.rows.size(), held.rows.begin());
  std::copy_n(columns, held.columns.size(), held.columns.begin());
  exchange(held, [&](const Fibre* lanes) {
    for (std::size_t i = 0; i < 4; ++i) {
      float& sum = (i / 2 == 0 ? upper : lower)[i % 2];
      sum = product_of(lanes, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2, begins ? 0.0f : sum);
    }
  });
}
void multiply_by_warp(float* upper, float* lower, const std::uint32_t* rows, const std::uint32_t* columns, int begins,
                      int is_bf16) {
  multiply_lanes(
      upper, lower, rows, columns, begins, [&](const Fibre* lanes, std::size_t row, std::size_t column, float before) {
        std::array<std::uint16_t, 16> a, b;
        for (std::size_t term = 0; term < 16; ++term) {
          const std::size_t of_pair = term % 8 / 2, shift = term % 2 * 16;
          a[term] = static_cast<std::uint16_t>(lanes[row % 8 * 4 + of_pair].held.rows[row / 8 + term / 8 * 2] >> shift);
          b[term] = static_cast<std::uint16_t>(lanes[column * 4 + of_pair].held.columns[term / 8] >> shift);
        }
        return sum_of_products(a, b, is_bf16 != 0, before);
      });
}
void multiply_tf32_by_warp(float* upper, float* lower, const std::uint32_t* rows, const std::uint32_t* columns,
                           int begins) {
  multiply_lanes(upper, lower, rows, columns, begins,
                 [](const Fibre* lanes, std::size_t row, std::size_t column, float before) {
                   std::array<std::uint32_t, 8> a, b;
                   for (std::size_t term = 0; term < 8; ++term) {
                     a[term] = lanes[row % 8 * 4 + term % 4].held.rows[row / 8 + term / 4 * 2];
                     b[term] = lanes[column * 4 + term % 4].held.columns[term / 4];
                   }
                   return sum_of_tf32_products(a, b, before);
                 });
}

void multiply(const Product& product) {
  group().own().products.push_back(product);
}
void commit_products() {
  Fibre& own = group().own();
  own.committed_products.emplace_back(std::move(own.products));
  own.products.clear();
}

// Of all work items of a warpgroup, the products of their oldest commitment.
void make_products(std::size_t first) {
  auto& fibres = group().fibres;
  if (first + warpgroup_items > fibres.size()) fail("products of less than a warpgroup");
  const std::size_t count = fibres[first].committed_products.front().size();
  for (std::size_t number = 0; number < count; ++number) {
    std::array<const Product*, warpgroup_items> of_items;
    for (std::size_t i = 0; i < warpgroup_items; ++i) {
      const auto& all = fibres[first + i].committed_products.front();
      if (all.size() != count || !are_alike(all[number], fibres[first].committed_products.front()[number]))
        fail("work items of a warpgroup multiply unlike operands");
      of_items[i] = &all[number];
    }
    add_product(of_items, at(0));
  }
  for (std::size_t i = 0; i < warpgroup_items; ++i) fibres[first + i].committed_products.pop_front();
}
void await_products(int but) {
  Group& g = group();
  const std::size_t first = g.warpgroup() * warpgroup_items;
  meet_at(
      g.of_warpgroups[g.warpgroup()], [&] { return alive(first, warpgroup_items); },
      [&] {
        while (static_cast<int>(g.fibres[first].committed_products.size()) > but) make_products(first);
      });
}

void begin_fibre() {
  Group& g = group();
  g.launch->kernel();
  g.own().has_ended = true, g.has_moved = true;
  _longjmp(g.scheduler, 1);
}

// The running fibre, until it waits or ends.
void go_on() {
  Group& g = group();
  if (_setjmp(g.scheduler) != 0) return;
  Fibre& own = g.own();
  if (own.has_begun) _longjmp(own.place, 1);
  own.has_begun = true;
  setcontext(&own.context);
}

// Local memory that nobody has written is no numbers, and behind what a launch asks for it stays so.
constexpr std::byte unwritten{0xff};
void poison(const Launch& launch) {
  std::fill(launch.local.begin, launch.local.end, unwritten);
}
void check_rest(const Launch& launch) {
  const std::byte *const rest = launch.local.of_launch + launch.local_bytes, *const end = launch.local.of_launch +
                                                                                          LocalMemory::most_of_launch;
  const std::byte* const written = std::find_if(rest, end, [](std::byte each) { return each != unwritten; });
  if (written == end) return;
  std::fprintf(stderr, "byte %td of local memory is written, and the launch asks for %zu\n",
               written - launch.local.of_launch, launch.local_bytes);
  fail("work items write beyond the local memory that their launch asks for");
}

void run_group(const Launch& launch, const long (&id)[3]) {
  Group& g = group();
  g.launch = &launch;
  poison(launch);
  g.meetings.clear(), g.barriers.clear();
  const auto count = static_cast<std::size_t>(launch.items[0]) * static_cast<std::size_t>(launch.items[1]) *
                     static_cast<std::size_t>(launch.items[2]);
  if (g.fibres.size() != count) g.fibres = std::vector<Fibre>(count);
  g.of_warps.assign(count / warp_items + 1, {}), g.of_warpgroups.assign(count / warpgroup_items + 1, {});
  for (std::size_t i = 0; i < count; ++i) {
    Fibre& fibre = g.fibres[i];
    if (!fibre.stack) fibre.stack = std::make_unique<std::byte[]>(stack_bytes);
    fibre.has_ended = fibre.has_begun = false;
    fibre.condition = {};
    fibre.copies.clear(), fibre.commitments.clear(), fibre.boxes.clear(), fibre.committed_boxes.clear(),
        fibre.products.clear(), fibre.committed_products.clear();
    const int x = launch.items[0], y = launch.items[1], number = static_cast<int>(i);
    fibre.item = {.local = {number % x, number / x % y, number / x / y},
                  .group = {id[0], id[1], id[2]},
                  .items = {x, y, launch.items[2]},
                  .groups = {launch.groups[0], launch.groups[1], launch.groups[2]}};
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get(), fibre.context.uc_stack.ss_size = stack_bytes;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, begin_fibre, 0);
  }
  for (std::size_t left = count; left > 0;) {
    g.has_moved = false;
    for (g.running = 0; g.running < count; ++g.running) {
      Fibre& fibre = g.own();
      if (fibre.has_ended || (fibre.condition.holds != nullptr && !fibre.condition.holds(fibre.condition.of))) continue;
      fibre.condition = {};
      g.item = fibre.item;
      go_on();
      left -= fibre.has_ended;
    }
    if (!g.has_moved) fail("all work items of a group wait, and none will go on");
  }
  check_rest(launch);
  for (std::size_t i = 0; i < count; ++i)
    if (!g.fibres[i].products.empty() || !g.fibres[i].committed_products.empty())
      fail("a work item ends before its products do");
  for (const Fibre& fibre : g.fibres)
    if (!fibre.boxes.empty() || !fibre.committed_boxes.empty()) fail("a work item ends before its boxes are stored");
}

}  // namespace

const Engine& engine() {
  static const Engine instance{.item = &group().item,
                               .meet = meet,
                               .is_any = is_any,
                               .meet_warp = meet_warp,
                               .largest_of_warp = largest_of_warp,
                               .make_barrier = make_barrier,
                               .arrive = arrive,
                               .await = await,
                               .copy_box = copy_box,
                               .copy_pixels = copy_pixels,
                               .store_box = store_box,
                               .commit_boxes = commit_boxes,
                               .await_boxes = await_boxes,
                               .copy_bytes = copy_bytes,
                               .commit_copies = commit_copies,
                               .await_copies = await_copies,
                               .load_matrices = load_matrices,
                               .store_matrices = store_matrices,
                               .multiply_by_warp = multiply_by_warp,
                               .multiply_tf32_by_warp = multiply_tf32_by_warp,
                               .multiply = multiply,
                               .commit_products = commit_products,
                               .await_products = await_products};
  return instance;
}

void run(const Launch& launch) {
  group().chance = 1;
  for (long z = 0; z < launch.groups[2]; ++z)
    for (long y = 0; y < launch.groups[1]; ++y)
      for (long x = 0; x < launch.groups[0]; ++x) run_group(launch, {x, y, z});
}

}  // namespace omniconv::by_processor
