// Convolution as long products on the matrix units of compute capability 9.0, fp32 by parts of fp16.
#include <algorithm>
#include <array>

#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations {
namespace split_gemm {

// Whether a group's table and its numbers hold all that stands among the channels.
static bool has_table(const Planes& planes) {
  const std::int64_t row = std::int64_t{planes.source_w} * planes.groups * planes.source_channels,
                     taps = planes.channels / planes.source_channels;
  constexpr std::int64_t entries = 2080, most_reach = 1 << 15, most = std::int64_t{1} << 30;
  const std::int64_t down = taps / planes.folded_w * planes.fold_dilation_h,
                     along = std::int64_t{planes.folded_w} * planes.fold_dilation_w;
  return planes.padded <= entries && std::max(down, along) < most_reach && (planes.source_h + down + 1) * row < most;
}

Form form_of(const Planes& planes, const Operand& source, DataType type, bool nhwc) {
  if (planes.have_taps()) return has_table(planes) ? Form::folded : Form::any;
  if (!nhwc) return Form::turned;
  const std::uintptr_t buffer = source.buffer ? source.buffer.impl()->place().address : 0,
                       address = buffer + static_cast<std::uintptr_t>(source.offset_bytes);
  const bool are_eights =
      planes.source_channels % 8 == 0 && address % static_cast<std::uintptr_t>(4 * size_of(type)) == 0;
  return are_eights ? Form::lines : Form::any;
}

std::int64_t forms_of(const Planes& planes, DataType type, bool nhwc) {
  std::int64_t forms = 0;
  for (const std::int64_t offset : {std::int64_t{0}, size_of(type)}) {
    Operand source;
    source.offset_bytes = offset;
    forms |= std::int64_t{1} << static_cast<int>(form_of(planes, source, type, nhwc));
  }
  return forms;
}

std::int64_t groups_for(const Planes& planes, Form form) {
  const std::int64_t images = std::int64_t{planes.images} * planes.groups, pixels = std::int64_t{planes.h} * planes.w,
                     chunks = planes.padded / 8;
  if (form == Form::turned) return images * divide_up(pixels, 64) * divide_up(planes.padded, 64);
  const bool whole_pixels = form == Form::any && chunks <= 8;
  return divide_up(images * pixels * (whole_pixels ? 1 : chunks), pass_group);
}

double bytes_moved(const Planes& planes, const Numbers& numbers, DataType type) {
  return static_cast<double>(planes.source_elements() * size_of(type) * (numbers.are_scaled ? 2 : 1)) +
         static_cast<double>(planes.elements() * 2 * numbers.planes());
}

ProductPlan::ProductPlan(const Conv2dProblem& problem, const devices::Device& device, const Tile& tile,
                         const Workspace& workspace)
    : Conv2dPlanBody(problem),
      numbers_(numbers_of(problem.type)),
      tile_(tile),
      workspace_(workspace),
      units_(device.info().compute_units) {}

void ProductPlan::build(devices::Device& device, std::string_view planes_text, std::string_view tiles_text,
                        std::span<const devices::Definition> definitions) {
  program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::tensor_units()) +
                              std::string(kernels::parts()) + std::string(planes_text) + std::string(tiles_text) +
                              std::string(kernels::tile_products()),
                          definitions, {.target = "sm_90a"});
}

void ProductPlan::append_scan(devices::Sequence& sequence, const Product& product, std::int64_t a_count,
                              std::int64_t b_count) const {
  if (!numbers_.are_scaled) return;
  const devices::KernelArgument arguments[] = {product.a.buffer.impl().get(),
                                               product.a.offset_bytes / size(),
                                               a_count,
                                               product.b.buffer.impl().get(),
                                               product.b.offset_bytes / size(),
                                               b_count,
                                               product.workspace.buffer.impl().get(),
                                               workspace_.maxima / 4};
  sequence.launch(program_, "find_largest", {{2 * maxima * pass_group, 1}, {pass_group, 1}}, arguments);
}

void ProductPlan::append_products(devices::Sequence& sequence, const Product& product, std::span<const std::byte> task,
                                  const devices::TensorMap& a, std::int64_t a_elements, const devices::TensorMap& b,
                                  std::int64_t b_elements, std::int64_t tiles, std::int64_t adding_groups) const {
  std::array<devices::TensorMap, 4> maps = {a, a, b, b};  // high and low
  const std::int64_t low = numbers_.planes() - 1;         // where there is one
  for (devices::TensorMap& map : maps) map.buffer = product.workspace.buffer.impl().get();
  maps[0].offset_bytes = workspace_.a;
  maps[1].offset_bytes = workspace_.a + low * 2 * a_elements;
  maps[2].offset_bytes = workspace_.b;
  maps[3].offset_bytes = workspace_.b + low * 2 * b_elements;
  const devices::KernelArgument arguments[] = {&maps[0],
                                               &maps[1],
                                               &maps[2],
                                               &maps[3],
                                               task,
                                               product.a.buffer.impl().get(),
                                               product.a.offset_bytes / size(),
                                               product.b.buffer.impl().get(),
                                               product.b.offset_bytes / size(),
                                               product.out.buffer.impl().get(),
                                               product.out.offset_bytes / size(),
                                               product.bias.buffer.impl().get(),
                                               product.bias.offset_bytes / size(),
                                               product.workspace.buffer.impl().get(),
                                               workspace_.parts / 4,
                                               workspace_.largest / 4};
  const std::int64_t groups = std::min(tiles, units_ * tile_.resident);
  sequence.launch(program_, "tile_products", {{groups * product_group, 1}, {product_group, 1}}, arguments,
                  {.overlaps = true, .local_memory_bytes = local_bytes(tile_, numbers_)});
  if (adding_groups == 0) return;
  sequence.launch(program_, "add_parts", {{adding_groups * pass_group, 1}, {pass_group, 1}},
                  std::span(arguments).subspan(4), {.overlaps = true});
}

}  // namespace split_gemm

namespace {

class SplitGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/split_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, split_gemm::product_group); !reason.empty())
      return reason;
    if (std::string reason = split_gemm::tensor_refusal(*device); !reason.empty()) return reason;
    const auto answer = [&](const auto& made, const auto& offer) -> Answer {
      if (const auto* const reason = std::get_if<std::string>(&made)) return *reason;
      return offer(problem, device, std::get<0>(made), request);
    };
    return problem.pass == Pass::backward_filter ? answer(split_gemm::filter_task(problem), split_gemm::filter_offer)
                                                 : answer(split_gemm::pixel_task(problem), split_gemm::pixel_offer);
  }
  std::span<const Tunable> tunables() const override { return split_gemm::tile_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_split_gemm_gpu() {
  static const SplitGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
