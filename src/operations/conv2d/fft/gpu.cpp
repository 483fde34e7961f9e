// Convolution by Fourier transforms of tiles on OpenCL and CUDA devices.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "embedded/fft_conv2d.kernel.h"
#include "operations/conv2d/fft/gpu_blocks.h"
#include "operations/conv2d/fft/twiddles.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations {
namespace {

// Of exp(-2 pi i j / side) the real parts and the imaginary ones, as lines of a text that define them.
template <std::int64_t side>
std::string twiddles_of() {
  const auto line = [](const char* symbol, const auto& values) {
    std::string numbers;
    for (const float value : values) numbers += fmt::format("{:.8e}f, ", value);  // all digits that fp32 has
    return fmt::format("#define {} {{{}}}\n", symbol, numbers);
  };
  return line("COSINES", fft_twiddles<side, float>.re) + line("SINES", fft_twiddles<side, float>.im);
}
std::string twiddles_text(std::int64_t side) {
  switch (side) {
    case 16: return twiddles_of<16>();
    case 32: return twiddles_of<32>();
    case 64: return twiddles_of<64>();
    default: return twiddles_of<128>();
  }
}

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const FftGpuBlocks& cut) {
  std::vector<devices::Definition> all = conv2d_definitions(problem);
  const FftShape& shape = cut.shape;
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  const auto add_long = [&](const char* symbol, std::int64_t value) {
    all.push_back({symbol, fmt::format("({}L)", value)});
  };
  add("SIDE", shape.side), add("ENTRIES", cut.group.entries), add("PITCH", cut.group.pitch());
  add("TILES_OF_LAUNCH", cut.group.of_launch);
  add("RESIDENT", cut.group.resident), add("RESIDENT_OF_FILTERS", cut.group.resident_of_filters);
  add("TO_DATA", problem.pass == Pass::backward_data), add("TO_FILTER", shape.of_filter);
  add("DEPTHWISE", cut.fused), add("TURNED", shape.turned);
  add_long("TOP", shape.top), add_long("LEFT", shape.left), add_long("GROUPS", shape.groups);
  // Numbers of 31 bits where they suffice, a group of work items and a tile beyond the last included.
  constexpr std::int64_t most_of_int = std::int64_t{1} << 30;
  const auto type = [](std::int64_t most) { return most < most_of_int ? "int" : "long"; };
  const bool nhwc = problem.layout == Layout::nhwc;
  const auto image = [&](std::int64_t h, std::int64_t w, std::int64_t channels) {
    return h * w * (nhwc ? channels * shape.groups : 1);
  };
  all.push_back({"PLACE", type(std::max({shape.tiles, image(shape.source_h, shape.source_w, shape.source),
                                         image(shape.target_h, shape.target_w, shape.target),
                                         problem.r * problem.s * (problem.c / problem.groups), std::abs(shape.top),
                                         std::abs(shape.left)}))});
  all.push_back({"ITEM", type(shape.groups * std::max(std::max(shape.source, shape.target) * cut.block_tiles,
                                                      shape.source * shape.target))});
  return all;
}

std::vector<const char*> kernels_of(const FftGpuBlocks& cut) {
  if (cut.shape.of_filter) return {"transform_inputs", "transform_targets", "transform_sums"};
  if (cut.fused) return {"transform_filters", "filter_tiles"};
  return {"transform_inputs", "transform_filters", "transform_outputs"};
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const FftGpuBlocks& cut)
      : Conv2dPlanBody(problem), cut_(cut) {
    const std::string text = std::string(kernels::gemm_elements()) + std::string(kernels::conv2d_shape()) +
                             twiddles_text(cut.shape.side) + std::string(fft_conv2d_kernel);
    // Transforms are long texts, which compile longer than all else: one of them a program.
    std::vector<std::function<void()>> builds;
    for (const char* const kernel : kernels_of(cut))
      builds.push_back([&problem, &device, &cut, &text, kernel, &program = programs_[kernel]] {
        std::vector<devices::Definition> definitions = definitions_of(problem, cut);
        definitions.push_back({fmt::format("MAKES_{}", kernel), "1"});
        program = device.build(text, definitions, {.expected_seconds = 0.45, .starts_quickly = true});
      });
    for (const auto& [of, offer] : cut.products)
      builds.push_back([&offer, &product = products_[of]] { product = plan_of(offer); });
    build_seconds_ = device.do_builds(builds);
  }
  double compile_seconds() const override {
    double seconds = 0;
    for (const auto& [of, program] : programs_) seconds += program->compile_seconds();
    for (const auto& [of, product] : products_) seconds += product->compile_seconds();
    return std::min(seconds, build_seconds_);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool to_data = problem().pass == Pass::backward_data;
    const Operand &source = to_data ? run.y : run.x, &target = to_data ? run.x : run.y, inputs{run.workspace, 0},
                  targets{run.workspace, cut_.targets_at()},
                  filters = cut_.prepared ? run.w : Operand{run.workspace, cut_.filters_at()};
    // Without a bias some buffer stands in its place, which is not read.
    const Operand& bias = problem().bias ? run.bias : source;
    GemmArrays arrays;
    arrays.workspace = {run.workspace, cut_.rest_at()};
    if (cut_.shape.of_filter) {
      arrays.a = targets, arrays.b = inputs, arrays.c = filters;
      for (std::int64_t i = 0; i < cut_.blocks(); ++i) {
        const FftGpuBlock block = cut_.block(i);
        append_tiles(sequence, "transform_inputs", cut_.shape.source, source, inputs, block);
        append_tiles(sequence, "transform_targets", cut_.shape.target, target, targets, block);
        products_.at(block.product())->append(sequence, arrays);
      }
      append_filters(sequence, "transform_sums", filters, run.w);
      return;
    }
    if (!cut_.prepared) append_filters(sequence, "transform_filters", run.w, filters);
    if (cut_.fused) return append_fused(sequence, source, filters, target, bias);
    arrays.a = inputs, arrays.b = filters, arrays.c = targets;
    for (std::int64_t i = 0; i < cut_.blocks(); ++i) {
      const FftGpuBlock block = cut_.block(i);
      append_tiles(sequence, "transform_inputs", cut_.shape.source, source, inputs, block);
      products_.at(block.product())->append(sequence, arrays);
      append_outputs(sequence, targets, target, bias, block);
    }
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    append_filters(sequence, "transform_filters", from, to);
  }

 private:
  // So many entries; `arguments_from` says those of a launch, by its first group.
  template <typename Arguments>
  void launch(devices::Sequence& sequence, const char* kernel, std::int64_t entries,
              const Arguments& arguments_from) const {
    const std::int64_t items = cut_.group.items();
    launch_groups(divide_up(entries, cut_.group.entries), [&](std::int64_t first, std::int64_t groups) {
      const auto arguments = arguments_from(first);
      sequence.launch(programs_.at(kernel), kernel, {{groups * items, 1}, {items, 1}}, arguments,
                      {.local_memory_bytes = cut_.group.of_launch ? cut_.group.local_bytes() : 0});
    });
  }
  void append_filters(devices::Sequence& sequence, const char* kernel, const Operand& from, const Operand& to) const {
    const std::int64_t entries = cut_.shape.groups * cut_.shape.source * cut_.shape.target;
    launch(sequence, kernel, entries, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 6>{
          from.buffer.impl().get(), from.offset_bytes / 4, to.buffer.impl().get(), to.offset_bytes / 4, entries, first};
    });
  }
  // A block of images of so many channels a group.
  void append_tiles(devices::Sequence& sequence, const char* kernel, std::int64_t channels, const Operand& images,
                    const Operand& to, const FftGpuBlock& block) const {
    launch(sequence, kernel, cut_.shape.groups * channels * block.count, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 7>{images.buffer.impl().get(),
                                                    images.offset_bytes / 4,
                                                    to.buffer.impl().get(),
                                                    to.offset_bytes / 4,
                                                    block.first,
                                                    block.count,
                                                    first};
    });
  }
  void append_outputs(devices::Sequence& sequence, const Operand& products, const Operand& target, const Operand& bias,
                      const FftGpuBlock& block) const {
    launch(sequence, "transform_outputs", cut_.shape.groups * cut_.shape.target * block.count, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 9>{products.buffer.impl().get(),
                                                    products.offset_bytes / 4,
                                                    target.buffer.impl().get(),
                                                    target.offset_bytes / 4,
                                                    bias.buffer.impl().get(),
                                                    bias.offset_bytes / 4,
                                                    block.first,
                                                    block.count,
                                                    first};
    });
  }
  void append_fused(devices::Sequence& sequence, const Operand& source, const Operand& filters, const Operand& target,
                    const Operand& bias) const {
    launch(sequence, "filter_tiles", cut_.shape.groups * cut_.shape.tiles, [&](std::int64_t first) {
      return std::array<devices::KernelArgument, 10>{source.buffer.impl().get(),
                                                     source.offset_bytes / 4,
                                                     filters.buffer.impl().get(),
                                                     filters.offset_bytes / 4,
                                                     target.buffer.impl().get(),
                                                     target.offset_bytes / 4,
                                                     bias.buffer.impl().get(),
                                                     bias.offset_bytes / 4,
                                                     cut_.shape.tiles,
                                                     first};
    });
  }

  FftGpuBlocks cut_;
  double build_seconds_ = 0;                                                // in all, of what is built side by side
  std::map<std::string_view, std::shared_ptr<devices::Program>> programs_;  // of each kernel its own
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const GemmPlanBody>> products_;  // that blocks take
};

class FftGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/fft/gpu.1"; }
  std::span<const Tunable> tunables() const override { return fft_gpu_tunables(); }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override;
};

Answer offer_of(const Conv2dProblem& problem, std::int64_t side, const DevicePointer& device,
                const SolverOptions& request, std::int64_t workspace_limit) {
  if (std::max(problem.r, problem.s) > side)
    return fmt::format("tiles of {} x {} do not hold filters of {} x {}", side, side, problem.r, problem.s);
  const bool prepared = !request.prepared.empty();
  const std::int64_t tiles = Tuning::parse(request.tuning).find("tiles").value_or(0);
  const auto answer = FftGpuBlocks::cut(problem, side, device, tiles, workspace_limit, prepared);
  if (const auto* const reason = std::get_if<std::string>(&answer)) return *reason;
  const auto& cut = std::get<FftGpuBlocks>(answer);
  if (const std::int64_t bytes = cut.workspace_bytes(), most = device->info().max_buffer_bytes; bytes > most)
    return fmt::format("takes {} bytes of workspace, and a buffer has {} at most", bytes, most);
  std::map<std::size_t, PreparedFormat> formats;
  if (prepared) formats[1] = cut.format(problem);
  return Offer{.cost = {cut.cost(problem, *device)},
               .counted = cut.counted(problem),
               .bound = cut.bound(problem),
               .workspace_bytes = cut.workspace_bytes(),
               .prepared = formats,
               .tuning = cut.tuning(),
               .plan = [=] { return std::make_shared<Plan>(problem, *device, cut); }};
}

// The cheapest tile that keeps the limits. A workspace limit changes the tile, and so the results, only where the
// cheapest one cannot keep it. Where none keeps them the smallest tile is offered, which comes nearest.
Answer cheapest(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  std::optional<Answer> best, first;
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t side : fft_gpu_sides) {
    if (std::max(problem.r, problem.s) > side) continue;
    const std::int64_t limit = request.max_workspace_bytes;
    const Answer answer = offer_of(problem, side, device, request, limit);
    const Offer* const offer = answer.offer();
    if (!first || (first->offer() == nullptr && offer != nullptr)) first = answer;
    if (offer == nullptr || offer->bound.amplification > request.max_error ||
        (limit >= 0 && offer->workspace_bytes > limit))
      continue;
    const Answer free = limit < 0 ? answer : offer_of(problem, side, device, request, -1);
    if (free.offer() == nullptr || free.offer()->cost.multiply_adds >= least) continue;
    best = answer, least = free.offer()->cost.multiply_adds;
  }
  return best ? *best : *first;
}

Answer FftGpu::offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const {
  if (std::string reason = conv2d_gpu_refusal(problem, *device, fft_gpu_sides.front() / 2); !reason.empty())
    return reason;
  if (size_of(problem.type) < 4) return "serves f32 and tf32: transforms of stored halves would round them";
  constexpr std::int64_t largest = fft_gpu_sides.back();
  if (std::max(problem.r, problem.s) > largest)
    return fmt::format("serves filters of up to {} x {}: larger tiles do not fit local memory", largest, largest);
  if (const char* const refusal = fft_refusal(problem); *refusal != '\0') return refusal;
  if (request.relative_error) return "its errors follow the largest input of a tile, not an element's own terms";
  if (!request.prepared.empty() && request.prepared != std::vector<std::string>{"w"})
    return "has a prepared form of w alone";
  if (!request.prepared.empty() && problem.pass == Pass::backward_filter) return "reads no w on the way to the filter";
  if (const auto side = Tuning::parse(request.tuning).find("tile"))
    return offer_of(problem, *side, device, request, request.max_workspace_bytes);
  return cheapest(problem, device, request);
}

}  // namespace

const Conv2dSolver& conv2d_fft_gpu() {
  static const FftGpu solver;
  return solver;
}

}  // namespace omniconv::operations
