// Convolution as products of pixels by filters on the matrix units of compute capability 9.0, fp32 by parts of fp16.
#include <algorithm>
#include <array>
#include <memory>

#include "core/checked.h"
#include "embedded/split_conv2d.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/geometry.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

using split_gemm::ConvGeometry;
using split_gemm::ConvTask;

constexpr std::int64_t pass_group = 256, product_group = 384, maxima = 528, alignment = 256;

// How numbers become parts: how many products of them make one, and of which type they are.
struct Parts {
  std::int64_t products = 1;
  bool is_scaled = false;
  DataType type = DataType::f16;

  std::int64_t planes() const { return products == 3 ? 2 : 1; }
};
Parts parts_of(DataType type) {
  switch (type) {
    case DataType::f32: return {.products = 3, .is_scaled = true};
    case DataType::tf32: return {.is_scaled = true};
    default: return {.type = type};
  }
}

struct Tile {
  std::int64_t columns = 128, stages = 3, parts = 1;
  double cycles = 0;  // of a compute unit

  std::int64_t local_bytes(const Parts& parts_of_numbers) const {
    return stages * stage_bytes(columns, parts_of_numbers) + 1024;
  }
  static std::int64_t stage_bytes(std::int64_t columns, const Parts& numbers) {
    return numbers.planes() * (split_gemm::tile_rows + columns) * 128;
  }
};

// What a compute unit of 9.0 takes, in its cycles, as an H200 does it, power included: 64 terms of a tile, the rest of a
// tile, a launch more.
double step_cycles(std::int64_t columns, const Parts& numbers) {
  const double of_three = columns == 128 ? 1900 : columns == 64 ? 1080 : 680;
  return of_three * static_cast<double>(numbers.products) / 3;
}
double tile_cycles(std::int64_t columns) { return 600 + 12 * static_cast<double>(columns); }
constexpr double launch_cycles = 4500;

Tile tile_for(const ConvGeometry& geometry, const Parts& numbers, const devices::Device& device) {
  const ConvTask& task = geometry.task;
  const std::int64_t units = device.info().compute_units,
                     tiles_m = divide_up(geometry.positions(), split_gemm::tile_rows);
  Tile best;
  for (const std::int64_t columns : {128, 64, 32}) {
    if (columns > 32 && columns / 2 >= task.filters) continue;
    const std::int64_t tiles = tiles_m * divide_up(task.filters, columns) * task.groups;
    for (std::int64_t parts = 1; parts <= 32; parts += parts < 4 ? 1 : parts / 2) {
      if (parts > 1 && (task.classes > 1 || parts * 2 > task.steps)) break;
      double cycles = 0;
      const std::int64_t rounds = divide_up(tiles * parts * task.classes, units);
      const double steps = static_cast<double>(divide_up(task.steps, parts)) / task.classes;
      cycles = static_cast<double>(rounds) * (steps * step_cycles(columns, numbers) + tile_cycles(columns));
      if (parts > 1) {
        const double bytes = 4.0 * static_cast<double>(parts + 1) * static_cast<double>(geometry.positions()) *
                             static_cast<double>(task.filters * task.groups);
        cycles += launch_cycles + bytes * byte_cost(device) / (128.0 * static_cast<double>(units));
      }
      if (best.cycles == 0 || cycles < best.cycles)
        best = {.columns = columns, .stages = 0, .parts = parts, .cycles = cycles};
    }
  }
  best.stages = std::min<std::int64_t>(
      8, (device.facts().most_local_memory_bytes - 1024) / Tile::stage_bytes(best.columns, numbers));
  return best;
}

// Where things lie in the workspace, in bytes.
struct Sections {
  std::int64_t maxima = 0, largest = 0, source = 0, filters = 0, parts = 0, bytes = 0;

  Sections(const ConvGeometry& geometry, const Parts& numbers, const Tile& tile) {
    const auto take = [&](std::int64_t count, std::int64_t size) {
      const std::int64_t at = bytes;
      bytes = checked_add(bytes, round_up(checked_multiply(count, size, "the workspace"), alignment), "the workspace");
      return at;
    };
    maxima = take(2 * operations::maxima, 4);
    largest = take(2, 4);
    source = take(geometry.source_plane(), 2 * numbers.planes());
    filters = take(geometry.filter_plane(), 2 * numbers.planes());
    const ConvTask& task = geometry.task;
    parts = bytes;
    if (tile.parts > 1)
      parts = take(checked_multiply(tile.parts * task.groups,
                                    round_up(geometry.positions(), split_gemm::tile_rows) *
                                        round_up(task.filters, tile.columns),
                                    "the parts of sums"),
                   4);
  }
};

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const ConvGeometry& geometry, const Tile& tile)
      : Conv2dPlanBody(problem),
        geometry_(geometry),
        numbers_(parts_of(problem.type)),
        tile_(tile),
        sections_(geometry, numbers_, tile),
        units_(device.info().compute_units) {
    ConvTask& task = geometry_.task;
    task.tiles_m = static_cast<std::int32_t>(divide_up(geometry.positions(), split_gemm::tile_rows));
    task.tiles_n = static_cast<std::int32_t>(divide_up(task.filters, tile.columns));
    task.parts = static_cast<std::int32_t>(tile.parts);
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::tensor_units()) +
                                std::string(kernels::parts()) + std::string(split_conv2d_kernel) +
                                std::string(kernels::tile_products()),
                            definitions(), {.target = "sm_90a"});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool forward = problem().pass == Pass::forward;
    const Operand &source = forward ? run.x : run.y, &out = forward ? run.y : run.x;
    if (numbers_.is_scaled) append_scan(sequence, source, run);
    append_parts(sequence, source, run);
    append_products(sequence, source, out, run);
  }

 private:
  std::vector<devices::Definition> definitions() const {
    const Conv2dProblem& p = problem();
    const std::string type = fmt::format("TYPE_{}", name(p.type == DataType::tf32 ? DataType::f32 : p.type));
    std::vector<devices::Definition> all = {{"TYPE", type}, {"OUTPUT", type}};
    all.push_back({"PART", fmt::format("TYPE_{}", name(numbers_.type))});
    const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
    add("PRODUCTS", numbers_.products), add("SCALED", numbers_.is_scaled), add("MAXIMA", maxima);
    add("NHWC", p.layout == Layout::nhwc), add("FORWARD", p.pass == Pass::forward);
    add("CHANNELS", geometry_.channels), add("A_LINE", 2 * geometry_.channels);
    add("TILE_N", tile_.columns), add("STAGES", tile_.stages), add("A_TURNED", 0), add("B_TURNED", 0);
    add("BIAS", p.bias ? 2 : 0), add("ACCUMULATE", p.accumulate), add("RELU", p.relu);
    return all;
  }
  std::span<const std::byte> task() const { return std::as_bytes(std::span(&geometry_.task, 1)); }
  std::int64_t size() const { return size_of(problem().type); }

  void append_scan(devices::Sequence& sequence, const Operand& source, const Conv2dRun& run) const {
    const Conv2dElements all = elements_of(problem());
    const devices::KernelArgument arguments[] = {source.buffer.impl().get(),
                                                 source.offset_bytes / size(),
                                                 problem().pass == Pass::forward ? all.x : all.y,
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 all.w,
                                                 run.workspace.impl().get(),
                                                 sections_.maxima / 4};
    sequence.launch(program_, "find_largest", {{2 * maxima * pass_group, 1}, {pass_group, 1}}, arguments);
  }

  // How split_any, split_turned and split_lines are named to the kernel.
  enum Form : std::int32_t { any, turned, lines };

  Form form_of(const Operand& source) const {
    if (geometry_.is_folded) return any;
    if (problem().layout == Layout::nchw) return turned;
    const std::int64_t eight = 8 * size();
    return geometry_.task.source_channels % 8 == 0 && source.offset_bytes % std::min<std::int64_t>(eight, 16) == 0
               ? lines
               : any;
  }

  std::int64_t groups_for_source(Form form) const {
    const ConvTask& t = geometry_.task;
    const std::int64_t images = std::int64_t{t.images} * t.groups, pixels = std::int64_t{t.planes_h} * t.planes_w,
                       chunks = t.padded / 8;
    if (form == turned) return images * divide_up(pixels, 64) * divide_up(t.padded, 64);
    return divide_up(images * pixels * (form == any && chunks <= 8 ? 1 : chunks), pass_group);
  }

  void append_parts(devices::Sequence& sequence, const Operand& source, const Conv2dRun& run) const {
    const Form form = form_of(source);
    const std::int64_t of_source = groups_for_source(form),
                       of_filters = divide_up(geometry_.filter_plane() / 8, pass_group);
    const devices::KernelArgument arguments[] = {task(),
                                                 source.buffer.impl().get(),
                                                 source.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 run.workspace.impl().get(),
                                                 sections_.maxima / 4,
                                                 sections_.largest / 4,
                                                 sections_.source / 2,
                                                 geometry_.source_plane(),
                                                 sections_.filters / 2,
                                                 geometry_.filter_plane(),
                                                 of_source,
                                                 static_cast<std::int32_t>(form)};
    sequence.launch(program_, "make_parts", {{(of_source + of_filters) * pass_group, 1}, {pass_group, 1}}, arguments,
                    {.overlaps = numbers_.is_scaled});
  }

  void append_products(devices::Sequence& sequence, const Operand& source, const Operand& out,
                       const Conv2dRun& run) const {
    const ConvTask& t = geometry_.task;
    std::array<devices::TensorMap, 4> maps = {
        split_gemm::map_of_source(geometry_), split_gemm::map_of_source(geometry_),
        split_gemm::map_of_filters(geometry_, tile_.columns), split_gemm::map_of_filters(geometry_, tile_.columns)};
    const bool has_low = numbers_.planes() == 2;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      maps[i].buffer = run.workspace.impl().get();
      maps[i].offset_bytes = i < 2 ? sections_.source : sections_.filters;
      if (i % 2 == 1 && has_low)
        maps[i].offset_bytes += 2 * (i < 2 ? geometry_.source_plane() : geometry_.filter_plane());
    }
    const std::int64_t tiles = std::int64_t{t.tiles_m} * t.tiles_n * t.groups * t.classes * t.parts;
    const Operand& bias = problem().bias ? run.bias : run.w;
    const devices::KernelArgument arguments[] = {&maps[0],
                                                 &maps[1],
                                                 &maps[2],
                                                 &maps[3],
                                                 task(),
                                                 source.buffer.impl().get(),
                                                 source.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 out.buffer.impl().get(),
                                                 out.offset_bytes / size(),
                                                 bias.buffer.impl().get(),
                                                 bias.offset_bytes / size(),
                                                 run.workspace.impl().get(),
                                                 sections_.parts / 4,
                                                 sections_.largest / 4};
    const std::int64_t groups = std::min<std::int64_t>(tiles, units_);
    sequence.launch(program_, "tile_products", {{groups * product_group, 1}, {product_group, 1}}, arguments,
                    {.overlaps = true, .local_memory_bytes = tile_.local_bytes(numbers_)});
    if (t.parts == 1) return;
    const std::int64_t items = geometry_.positions() * t.groups * t.filters;
    sequence.launch(program_, "add_parts", {{round_up(items, pass_group), 1}, {pass_group, 1}},
                    std::span(arguments).subspan(4), {.overlaps = true});
  }

  ConvGeometry geometry_;
  Parts numbers_;
  Tile tile_;
  Sections sections_;
  std::int64_t units_;
  std::shared_ptr<devices::Program> program_;
};

class SplitGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/split_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, product_group); !reason.empty()) return reason;
    const devices::DeviceFacts& facts = device->facts();
    if (facts.kind != devices::DeviceKind::cuda || facts.compute_capability != 90 || !facts.has_tensor_maps)
      return "multiplies on the matrix units of compute capability 9.0, through CUDA";
    auto made = split_gemm::geometry_of(problem);
    if (std::string* const reason = std::get_if<std::string>(&made)) return *reason;
    const auto& geometry = std::get<ConvGeometry>(made);
    const Parts numbers = parts_of(problem.type);
    const Tile tile = tile_for(geometry, numbers, *device);
    const std::int64_t tiles = checked_multiply(
        divide_up(geometry.positions(), split_gemm::tile_rows) * divide_up(geometry.task.filters, tile.columns),
        std::int64_t{geometry.task.groups} * geometry.task.classes * tile.parts, "the tiles");
    if (tiles > most_groups) return fmt::format("{} tiles pass the {} that it counts", tiles, most_groups);
    return Offer{
        .cost = {cost(geometry, numbers, tile, *device)},
        .bound = bound(problem, geometry, tile),
        .workspace_bytes = Sections(geometry, numbers, tile).bytes,
        .uses_only_fma = false,
        .plan = [=] { return std::make_shared<Plan>(problem, *device, geometry, tile); },
    };
  }

 private:
  // README.md derives them.
  static ErrorBound bound(const Conv2dProblem& problem, const ConvGeometry& geometry, const Tile& tile) {
    const auto additions = static_cast<double>(geometry.task.steps + tile.parts);
    const double terms = static_cast<double>(geometry.task.steps) * split_gemm::step_terms;
    if (problem.type == DataType::f32)
      return {.chain = additions, .constant = 7 + 5 * 4, .absolute = longest_sum(problem) * 0x1p-38};
    const double sums = 2 * 5 * terms / 16 + static_cast<double>(tile.parts);  // chain / 2 units
    if (problem.type == DataType::tf32)
      return {.chain = sums, .constant = 2 + 4096, .absolute = longest_sum(problem) * 0x1p-38};
    return {.chain = sums, .constant = 2};
  }

  static double cost(const ConvGeometry& geometry, const Parts& numbers, const Tile& tile,
                     const devices::Device& device) {
    const ConvTask& task = geometry.task;
    const double source = static_cast<double>(task.images) * task.groups * task.source_h * task.source_w *
                          task.source_channels,
                 planes = static_cast<double>(geometry.source_plane()) * 2 * static_cast<double>(numbers.planes()),
                 filters = static_cast<double>(geometry.filter_plane());
    const double bytes = source * 8 + planes + filters * 16;
    return gpu_launch_cost + tile.cycles * 128 * device.info().compute_units + bytes * byte_cost(device);
  }
};

}  // namespace

const Conv2dSolver& conv2d_split_gemm_gpu() {
  static const SplitGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
