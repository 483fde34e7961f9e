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
  const bool are_eights = planes.source_channels % 8 == 0 && is_multiple_of(source, 4 * size_of(type));
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

namespace {

// Where form any has a work item for all channels of a pixel.
bool has_whole_pixels(const Planes& planes) {
  constexpr std::int64_t many_pixels = 1 << 17;  // of split_any
  return planes.padded <= 64 && std::int64_t{planes.images} * planes.groups * planes.h * planes.w >= many_pixels;
}

}  // namespace

bool read_all_once(const Planes& planes, Form form) {
  const bool is_folded = planes.have_taps() || planes.fold_dilation_w != 0;
  return !is_folded && (form != Form::any || !has_whole_pixels(planes));
}

std::int64_t groups_for(const Planes& planes, Form form) {
  const std::int64_t images = std::int64_t{planes.images} * planes.groups, pixels = std::int64_t{planes.h} * planes.w,
                     chunks = planes.padded / 8;
  if (form == Form::turned) {
    const std::int64_t side = (planes.padded - 1) % 64 < 32 ? 32 : 64;  // of the text
    return images * divide_up(pixels, 4096 / side) * divide_up(planes.padded, side);
  }
  const bool has_pixels = form == Form::any && has_whole_pixels(planes);
  return divide_up(images * pixels * (has_pixels ? 1 : chunks), pass_group * (form == Form::lines ? 2 : 1));
}

double bytes_moved(const Planes& planes, const Numbers& numbers, std::int64_t sampling, DataType type) {
  const double source = static_cast<double>(planes.source_elements() * size_of(type)),
               looked_at = source / static_cast<double>(sampling);
  // Taps among the channels are found one by one, at a third of the rate.
  const double made = static_cast<double>(planes.elements() * 2 * numbers.planes()) * (planes.have_taps() ? 3 : 1);
  return source + (numbers.are_scaled ? looked_at : 0) + made;
}

OperandMaps ProductPlan::append_array_maps(devices::Sequence& sequence, devices::TensorMap map, const Operand& operand,
                                           std::int64_t count, const Product& product, std::int64_t copy_at) const {
  map.buffer = operand.buffer.impl().get(), map.offset_bytes = operand.offset_bytes;
  if (!is_aligned(operand)) {
    const std::int64_t at = product.workspace.offset_bytes + copy_at;
    const devices::KernelArgument arguments[] = {map.buffer, map.offset_bytes / size(), count,
                                                 product.workspace.buffer.impl().get(), at / size()};
    const std::int64_t groups = std::min(divide_up(count, pass_group), 8 * units_);
    sequence.launch(passes_, "align_array", {{groups * pass_group, 1}, {pass_group, 1}}, arguments, {.overlaps = true});
    map.buffer = product.workspace.buffer.impl().get(), map.offset_bytes = at;
  }
  return {map, map};
}

}  // namespace split_gemm

namespace {

// Where all arrays lie as channels last have them, too, since images and filters are single pixels: as those, which
// copies read as they lie.
Conv2dProblem channels_last(Conv2dProblem problem) {
  const Conv2dShape g(problem);
  if (g.h == 1 && g.w == 1 && g.p == 1 && g.q == 1 && g.r == 1 && g.s == 1) problem.layout = Layout::nhwc;
  return problem;
}

class SplitGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/split_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, split_gemm::most_product_group); !reason.empty())
      return reason;
    if (std::string reason = split_gemm::tensor_refusal(*device); !reason.empty()) return reason;
    const Conv2dProblem as_it_lies = channels_last(problem);
    return problem.pass == Pass::backward_filter ? split_gemm::filter_offer(as_it_lies, device, request)
                                                 : split_gemm::pixel_offer(as_it_lies, device, request);
  }
  std::span<const Tunable> tunables() const override { return split_gemm::tile_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_split_gemm_gpu() {
  static const SplitGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
