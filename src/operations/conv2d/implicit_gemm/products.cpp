#include "operations/conv2d/implicit_gemm/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations::implicit_gemm {
namespace {

constexpr auto part_counts = std::to_array<std::int64_t>(
    {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,  22,  23,  24,  25,  26,
     27, 28, 29, 30, 31, 32, 34, 36, 38, 40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96, 112, 128, 160, 192, 224, 256});
constexpr std::int64_t most = std::int64_t{1} << 30;  // of what kernels count in 32 bits
constexpr std::int64_t alignment = 256;               // of the workspace's arrays

PixelAxis forward_axis(std::int64_t extent, std::int64_t positions, std::int64_t stride, std::int64_t dilation,
                       std::int64_t taps) {
  return {.source = extent, .out = positions, .positions = positions, .taps = taps, .step = stride, .apart = dilation};
}

// The pixels stride * i + a of x meet the taps t for which a + pad - t * dilation is a multiple of the stride: in row
// i + (a + pad - t * dilation) / stride of y. From the first such tap on, each stride / gcd taps further comes
// dilation / gcd rows before.
struct BackwardAxis {
  std::int64_t extent, y_extent, stride, dilation, taps, pad;

  // The row of y, from that of a position on, that a class reads at a tap; none where the tap does not meet it.
  std::optional<std::int64_t> offset(std::int64_t remainder, std::int64_t tap) const {
    const std::int64_t from = remainder + pad - tap * dilation;
    return from % stride == 0 ? std::optional(from / stride) : std::nullopt;
  }
};
PixelAxis backward_axis(const BackwardAxis& g, bool merges) {
  const std::int64_t common = std::gcd(g.stride, g.dilation);
  PixelAxis axis{.source = g.y_extent,
                 .out = g.extent,
                 .positions = divide_up(g.extent, g.stride),
                 .classes = std::min(g.stride, g.extent),
                 .taps = g.taps,
                 .apart = -(g.dilation / common),
                 .out_step = g.stride,
                 .tap_step = g.stride / common};
  constexpr std::int64_t most_joined = 8;  // what is looked at one by one
  // Where the stride divides the dilation a class meets all taps or none.
  axis.all_met = axis.tap_step == 1 && (axis.classes > 1 || g.offset(0, 0));
  if (g.stride == 1 || g.stride > most_joined) return axis;
  std::int64_t with_taps = 0, least = std::numeric_limits<std::int64_t>::max(), largest = -least;
  for (std::int64_t remainder = 0; remainder < axis.classes; ++remainder) {
    bool has_taps = false;
    for (std::int64_t tap = 0; tap < g.taps; ++tap)
      if (const auto offset = g.offset(remainder, tap)) {
        has_taps = true;
        least = std::min(least, *offset), largest = std::max(largest, *offset);
      }
    if (has_taps) ++with_taps, axis.own = remainder;
  }
  if (with_taps == 1) {
    axis.classes = 1, axis.filled = g.stride;
  } else if (merges && with_taps > 1) {
    axis.merged = axis.classes, axis.classes = 1;
    axis.taps = largest - least + 1, axis.first = least, axis.apart = axis.tap_step = 1;
    axis.all_met = true;
  }
  return axis;
}

// What a flat stage's own taps take, in multiply-adds of one that has one tap.
constexpr double flat_factor = 1.4, index_factor = 1.12;

// Whether a stage has several taps: where channels in stages of eight would be mostly padding.
bool is_flat(std::int64_t channels, std::int64_t classes) {
  const auto padded = static_cast<double>(round_up(channels, 8));
  return classes == 1 && padded * index_factor > static_cast<double>(channels) * flat_factor;
}

std::int64_t elements_of_output(const Conv2dProblem& problem) {
  const Conv2dElements elements = elements_of(problem);
  return problem.pass == Pass::forward ? elements.y : problem.pass == Pass::backward_data ? elements.x : elements.w;
}

TiledWork pixel_work(const Conv2dProblem& problem, const PixelProduct& product) {
  const std::int64_t channels = product.flat ? product.source_group : round_up(product.source_group, 8);
  TiledWork work{.m = product.out_group,
                 .n = product.positions(),
                 .k = std::max<std::int64_t>(channels * product.taps / product.classes(), 1),
                 .batch = product.groups * product.classes(),
                 .turned = product.nhwc ? 1u : 0u,
                 .bytes = least_bytes(problem)};
  if (product.nhwc) std::swap(work.m, work.n);
  return work;
}

TiledWork filter_work(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  return {.m = g.k_group,
          .n = g.c_group * g.r * g.s,
          .k = g.n * g.p * g.q,
          .batch = g.groups,
          .turned = reads_channels_at_once(g) ? 0u : 2u,
          .bytes = least_bytes(problem),
          .stored_bytes = static_cast<double>(elements_of(problem).w) * static_cast<double>(size_of(problem.type)) *
                          (problem.accumulate ? 2 : 1)};
}

// With a tile and parts of it: what a run takes.
ProductChoice product_of(const Conv2dProblem& problem, const TiledWork& work, const GemmChoice& tiles,
                         const devices::Device& device) {
  ProductChoice choice{.tile = tiles.tile, .parts = tiles.parts, .part_k = tiles.part_k};
  const std::int64_t of_part =
      checked_multiply(divide_up(work.m, tiles.tile.m), divide_up(work.n, tiles.tile.n), "the tiles of a convolution");
  choice.groups = checked_multiply(checked_multiply(of_part, work.batch, "the tiles of a convolution"), tiles.parts,
                                   "the tiles of a convolution");
  const bool overlaps = device.facts().has_overlap;
  double launches = tiles.parts > 1 ? 2 : 1, factor = index_factor, turned_bytes = 0;
  if (problem.pass != Pass::backward_filter) {
    const PixelProduct product(problem);
    const std::int64_t row =
        checked_multiply(product.panel_pitch(tiles.tile.m, tiles.tile.n), size_of(problem.type), "the filters");
    const std::int64_t bytes = checked_multiply(
        row, checked_multiply(product.groups, product.panel_rows(tiles.tile.k), "the filters"), "the filters");
    choice.panel_bytes = round_up(bytes, alignment);
    launches += 1, turned_bytes = 2 * static_cast<double>(bytes);
    if (product.flat)
      factor = flat_factor;
    else  // stages of more products than there are channels
      factor *= static_cast<double>(round_up(product.source_group, tiles.tile.k)) /
                static_cast<double>(round_up(product.source_group, 8));
    // What small layers waited for on an H200, under nchw longer, and to the data most; less where launches overlap.
    const bool nhwc = problem.layout == Layout::nhwc, forward = problem.pass == Pass::forward;
    if (overlaps)
      launches += nhwc ? -1 : forward ? -0.4 : -0.2;
    else
      launches += nhwc ? 0.5 : forward ? 1 : 1.7;
  }
  // Filters have more parts, whose sums the launch behind waits for.
  if (problem.pass == Pass::backward_filter && overlaps && tiles.parts > 1) launches += 0.6;
  if (tiles.parts > 1)
    choice.parts_bytes = checked_multiply(4 * tiles.parts, round_up(elements_of_output(problem), 4), "the parts");
  // The launch that adds up the parts is in the tiles' cost.
  choice.cost = (tiles.parts > 1 ? launches - 1 : launches) * launch_cost(device) + factor * tiles.cost +
                byte_cost(device) * turned_bytes;
  return choice;
}

std::string filter_refusal(const Conv2dProblem& problem) {
  constexpr std::int64_t most_reach = 1 << 15;
  const Conv2dShape g(problem);
  const std::int64_t down = (g.r - 1) * g.dilation_h, along = (g.s - 1) * g.dilation_w;
  if (std::max(down, along) >= most_reach)
    return fmt::format("a filter reaches over {} rows or columns, and its gradient is made of {} at most",
                       std::max(down, along) + 1, most_reach);
  // What taps and channels add to a pixel's place is one number of 32 bits.
  constexpr std::int64_t most_plane = most / 2, most_taps = most / 4;
  const std::int64_t row = g.nhwc ? g.w * g.c : g.w;
  if (g.c_group >= most_plane / g.h / g.w || down + 1 >= most_taps / row || along + 1 >= most_taps / (g.nhwc ? g.c : 1))
    return "elements of x that taps of one pixel meet lie 2^30 elements apart";
  return {};
}

}  // namespace

PixelProduct::PixelProduct(const Conv2dProblem& problem, bool merges) {
  const Conv2dShape g(problem);
  const bool data = problem.pass == Pass::backward_data;
  down = data ? backward_axis({g.h, g.p, g.stride_h, g.dilation_h, g.r, g.pad_top}, merges)
              : forward_axis(g.h, g.p, g.stride_h, g.dilation_h, g.r);
  along = data ? backward_axis({g.w, g.q, g.stride_w, g.dilation_w, g.s, g.pad_left}, merges)
               : forward_axis(g.w, g.q, g.stride_w, g.dilation_w, g.s);
  images = g.n, groups = g.groups, taps = down.taps * along.taps;
  source_group = data ? g.k_group : g.c_group, out_group = data ? g.c_group : g.k_group;
  out_rows = out_group * down.merged * along.merged;
  nhwc = g.nhwc;
  // With a stride beyond x's extent one class has some of the taps, or none, and no flat stage, which has all.
  flat = down.all_met && along.all_met && is_flat(source_group, classes());
}

std::int64_t PixelProduct::panel_rows(std::int64_t tile_k) const {
  const std::int64_t channels = flat ? source_group : round_up(source_group, tile_k);
  return round_up(checked_multiply(channels, taps, "the filters"), tile_k);
}

std::int64_t PixelProduct::panel_pitch(std::int64_t tile_m, std::int64_t tile_n) const {
  constexpr std::int64_t turned_at_once = 32;
  return round_up(out_rows, std::max(nhwc ? tile_n : tile_m, turned_at_once));
}

bool reads_channels_at_once(const Conv2dShape& g) {
  return g.nhwc && g.c_group % 4 == 0;
}

std::string product_refusal(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  constexpr std::int64_t most_extent = std::int64_t{1} << 28;
  for (const std::int64_t extent : {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.pad_top, g.pad_left, problem.pad_bottom,
                                    problem.pad_right, g.dilation_h, g.dilation_w, g.stride_h, g.stride_w})
    if (extent >= most_extent) return fmt::format("an extent of {} passes the {} that it counts", extent, most_extent);
  if (g.r * g.dilation_h >= most_extent || g.s * g.dilation_w >= most_extent)
    return fmt::format("a filter reaches over {} rows or columns, and it counts {}",
                       std::max(g.r * g.dilation_h, g.s * g.dilation_w), most_extent);
  constexpr std::int64_t padding = 64;  // of channels, to whole stages
  const std::int64_t channels = std::max(g.c_group, g.k_group) + padding;
  if (g.r * g.s >= most / channels) return fmt::format("sums pass the {} terms that it counts", most);
  for (const std::int64_t pixels : {round_up(g.h, g.stride_h) * round_up(g.w, g.stride_w), g.p * g.q})
    if (pixels >= most / g.n) return fmt::format("the images have more than the {} pixels that it counts", most);
  return problem.pass == Pass::backward_filter ? filter_refusal(problem) : std::string();
}

std::variant<ProductChoice, std::string> choose_product(const Conv2dProblem& problem, const devices::Device& device,
                                                        const SolverOptions& request) {
  const bool filter = problem.pass == Pass::backward_filter;
  const TiledWork work = filter ? filter_work(problem) : pixel_work(problem, PixelProduct(problem));
  const std::int64_t limit = request.max_workspace_bytes;
  constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
  const auto sized = [&](const GemmChoice& tiles) { return product_of(problem, work, tiles, device); };
  // The columns of a tile have their places in local memory.
  const auto local_bytes = [&](const GemmTile& tile) { return tile.local_bytes() + (filter ? 8 * tile.n : 0); };
  if (!request.tuning.empty()) {
    auto asked_for = tuned(Tuning::parse(request.tuning), work, device, -1);
    if (std::string* const reason = std::get_if<std::string>(&asked_for)) return *reason;
    const ProductChoice choice = sized(std::get<GemmChoice>(asked_for));
    if (std::string reason = local_memory_refusal(device, local_bytes(choice.tile)); !reason.empty())
      return "tuning: " + reason;
    if (choice.groups > most_groups)
      return fmt::format("a launch has at most {} groups, not {}", most_groups, choice.groups);
    if (limit >= 0 && choice.parts > 1 && choice.workspace_bytes() > limit)
      return fmt::format("tuning parts={}: the workspace would be {} bytes, and the limit is {}", choice.parts,
                         choice.workspace_bytes(), limit);
    return choice;
  }
  std::optional<ProductChoice> best;
  std::vector<GemmTile> known(gemm_tiles().begin(), gemm_tiles().end());
  if (device.facts().takes_occupancy) known.push_back(narrow_tile());  // as CUDA does
  for (const GemmTile& tile : tiles_taken_by(device, known)) {
    if (tile.quads_m * tile.quads_n > most_quads_for(device)) continue;
    if (local_bytes(tile) > device.info().local_memory_bytes) continue;
    for (const std::int64_t parts : part_counts) {
      const std::optional<GemmChoice> tiles = choice_of(tile, parts, work, device);
      if (!tiles || tiles->parts != parts) continue;
      const ProductChoice choice = sized(*tiles);
      if (choice.groups > most_groups || choice.parts_bytes >= most_bytes) continue;
      if (limit >= 0 && parts > 1 && choice.workspace_bytes() > limit) continue;
      if (!best || choice.cost < best->cost) best = choice;
    }
  }
  if (!best) return std::string("the device takes none of its tiles, or they would be more groups than a launch has");
  return *best;
}

std::span<const Tunable> product_tunables() {
  static const std::vector<Tunable> all = [] {
    std::vector<Tunable> tunables(tile_tunables().begin(), tile_tunables().end());
    tunables.back().values.assign(part_counts.begin(), part_counts.end());
    return tunables;
  }();
  return all;
}

Tuning tuning_of(const ProductChoice& choice) {
  return operations::tuning_of(GemmChoice{.tile = choice.tile, .parts = choice.parts});
}

double product_chain(const Conv2dProblem& problem, const ProductChoice& choice) {
  return longest_sum(problem) + static_cast<double>(choice.parts > 1 ? choice.parts : 0);
}

}  // namespace omniconv::operations::implicit_gemm
