#include "operations/split/products.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/device_text.h"

namespace omniconv::operations::split_gemm {
namespace {

// What the launches before the tiles do not depend on, with a value that all their programs have: layers whose tiles
// differ share them. Of a window these ask only whether there is one. A test compares the code.
std::vector<devices::Definition> of_passes(std::span<const devices::Definition> definitions) {
  constexpr std::pair<std::string_view, const char*> tile_definitions[] = {
      {"TILE_M", "128"}, {"TILE_N", "128"}, {"PAIRED", "0"}, {"TERMS", "64"},      {"STAGES", "3"},
      {"RESIDENT", "1"}, {"WINDOWS", "0"},  {"KEPT", "0"},   {"COLUMN_TAPS", "0"}, {"PLAIN", "1"},
      {"RAGGED", "0"},   {"BOXED", "0"},    {"BIAS", "0"},   {"ACCUMULATE", "0"},  {"RELU", "0"}};
  std::vector<devices::Definition> all = {{"TILES", "2"}};
  for (const devices::Definition& one : definitions) {
    if (one.name == "WINDOW_TERMS" || one.name == "LINE_BYTES") continue;
    const auto* const found = std::find_if(std::begin(tile_definitions), std::end(tile_definitions),
                                           [&](const auto& of_tile) { return of_tile.first == one.name; });
    const bool is_window = one.name == "WINDOW" && one.value != "0";
    all.push_back({one.name, found != std::end(tile_definitions) ? found->second : is_window ? "1" : one.value});
  }
  return all;
}

}  // namespace

std::int64_t most_meeting(const devices::Device& device, const Numbers& numbers, const Tile& tile) {
  if (!device.facts().has_meetings || !numbers.are_scaled || numbers.products == 6 || tile.is_raw) return 0;
  constexpr std::int64_t resident = 4;  // groups of a compute unit, as the text has it; each leaves a maximum
  return std::min<std::int64_t>(resident * device.info().compute_units, 2 * maxima);
}

ProductLaunches::ProductLaunches(DataType type, DataType output, const Numbers& numbers, const devices::Device& device,
                                 const Tile& tile, const Workspace& workspace)
    : numbers_(numbers),
      size_(size_of(type)),
      output_size_(size_of(output)),
      tile_(tile),
      workspace_(workspace),
      units_(device.info().compute_units) {}

void ProductLaunches::build(devices::Device& device, std::string_view planes_text, std::string_view tiles_text,
                            std::span<const devices::Definition> definitions, bool has_launches_behind) {
  const std::string text = std::string(kernels::gemm_elements()) + std::string(kernels::plain_sums()) +
                           std::string(kernels::tensor_tiles()) + std::string(kernels::box_copies()) +
                           std::string(kernels::tensor_units()) + std::string(kernels::scales()) +
                           std::string(kernels::parts()) + std::string(kernels::tile_boxes()) +
                           std::string(planes_text) + std::string(tiles_text),
                    text_of_tiles = text + std::string(kernels::tile_products());
  std::vector<devices::Definition> of_tiles(definitions.begin(), definitions.end()), of_behind = of_tiles;
  of_tiles.push_back({"TILES", "1"}), of_behind.push_back({"TILES", "3"});
  const std::vector<devices::Definition> before = of_passes(definitions);
  const devices::Device::Source sources[] = {
      {text_of_tiles,
       of_tiles,
       {.target = "sm_90a", .expected_seconds = tile_.is_raw ? 0.75 : 0.5, .starts_quickly = true}},
      {text, before, {.target = "sm_90a", .expected_seconds = tile_.is_raw ? 0.3 : 0.4, .starts_quickly = true}},
      {text, of_behind, {.target = "sm_90a", .expected_seconds = 0.15}}};
  const auto programs = device.build_all(std::span(sources).first(has_launches_behind ? 3 : 2));
  tiles_ = programs[0], passes_ = programs[1];
  if (has_launches_behind) behind_ = programs[2];
}

void ProductLaunches::append_scan(devices::Sequence& sequence, const Product& product, std::int64_t a_count,
                                  std::int64_t b_count, const Sampling& sampling) const {
  if (!numbers_.are_scaled) return;
  const devices::KernelArgument arguments[] = {product.a.buffer.impl().get(),
                                               product.a.offset_bytes / size(),
                                               a_count,
                                               static_cast<std::int32_t>(sampling.a),
                                               product.b.buffer.impl().get(),
                                               product.b.offset_bytes / size(),
                                               b_count,
                                               static_cast<std::int32_t>(sampling.b),
                                               product.workspace.buffer.impl().get(),
                                               (product.workspace.offset_bytes + workspace_.maxima) / 4,
                                               (product.workspace.offset_bytes + workspace_.largest) / 4};
  sequence.launch(passes_, "find_largest", {{2 * maxima * pass_group, 1}, {pass_group, 1}}, arguments);
}

void ProductLaunches::append_parts(devices::Sequence& sequence, std::span<const devices::KernelArgument> arguments,
                                   std::int64_t groups, Parts parts) const {
  constexpr std::int32_t makes = 0, mends = 1, meets = 2;  // of parts.kernel
  const bool do_meet = parts == Parts::of_groups_that_meet;
  std::vector<devices::KernelArgument> all(arguments.begin(), arguments.end());
  all.emplace_back(do_meet ? meets : makes);
  sequence.launch(passes_, "make_parts", {{groups * pass_group, 1}, {pass_group, 1}}, all,
                  {.overlaps = numbers_.are_scaled && !do_meet, .meets = do_meet});
  if (!numbers_.are_scaled || parts != Parts::of_samples) return;
  all.back() = mends;
  const std::int64_t mending = std::min(groups, units_);
  sequence.launch(passes_, "make_parts", {{mending * pass_group, 1}, {pass_group, 1}}, all, {.overlaps = true});
}

OperandMaps ProductLaunches::maps_of(const devices::TensorMap& map, const Product& product, bool lies,
                                     const Operand& operand, std::int64_t planes_at, std::int64_t elements) const {
  devices::TensorMap first = map;
  first.buffer = (lies ? operand : product.workspace).buffer.impl().get();
  first.offset_bytes = lies ? operand.offset_bytes : product.workspace.offset_bytes + planes_at;
  return lies ? OperandMaps{first, first} : maps_of_planes(first, numbers_, elements);
}

void ProductLaunches::append_products(devices::Sequence& sequence, const Product& product,
                                      std::span<const std::byte> task, const OperandMaps& a, const OperandMaps& b,
                                      std::int64_t tiles, std::int64_t adding_groups, std::int64_t sampled_rows,
                                      bool overlaps) const {
  const std::int64_t workspace = product.workspace.offset_bytes;
  const devices::KernelArgument arguments[] = {a.data(),
                                               &a[1],
                                               b.data(),
                                               &b[1],
                                               product.boxes ? &*product.boxes : &b[1],
                                               task,
                                               product.a.buffer.impl().get(),
                                               product.a.offset_bytes / size(),
                                               product.b.buffer.impl().get(),
                                               product.b.offset_bytes / size(),
                                               product.out.buffer.impl().get(),
                                               product.out.offset_bytes / output_size_,
                                               product.bias.buffer.impl().get(),
                                               product.bias.offset_bytes / size(),
                                               product.workspace.buffer.impl().get(),
                                               (workspace + workspace_.parts) / 4,
                                               (workspace + workspace_.largest) / 4,
                                               static_cast<std::int32_t>(product.has_boxes ? 1 : 0),
                                               std::int32_t{0}};
  const std::int64_t groups = std::min(tiles, units_ * tile_.resident);
  const auto launch_tiles = [&](std::span<const devices::KernelArgument> all) {
    sequence.launch(tiles_, "tile_products", {{groups * tile_.group(), 1}, {tile_.group(), 1}}, all,
                    {.overlaps = overlaps, .local_memory_bytes = local_bytes(tile_, numbers_)});
  };
  launch_tiles(arguments);
  if (sampled_rows > 0) {
    const devices::KernelArgument of_look[] = {product.a.buffer.impl().get(), product.a.offset_bytes / size(),
                                               sampled_rows, product.workspace.buffer.impl().get(),
                                               (workspace + workspace_.largest) / 4};
    sequence.launch(behind_, "find_beyond", {{2 * units_ * pass_group, 1}, {pass_group, 1}}, of_look,
                    {.overlaps = true});
    std::vector<devices::KernelArgument> again(std::begin(arguments), std::end(arguments));
    again.back() = std::int32_t{1};
    launch_tiles(again);
  }
  if (adding_groups == 0) return;
  sequence.launch(behind_, "add_parts", {{adding_groups * pass_group, 1}, {pass_group, 1}},
                  std::span(arguments).subspan(5, std::size(arguments) - 7), {.overlaps = true});
}

}  // namespace omniconv::operations::split_gemm
