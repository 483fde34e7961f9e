// Convolution forward of groups of three or four channels with even strides along rows, on the matrix units of compute
// capability 9.0, which read pixels at a tap from a patch of x as it lies. fp32 by parts of fp16, 16-bit numbers as
// they are.
#include <algorithm>
#include <optional>

#include "embedded/few_channels_strided.kernel.h"
#include "embedded/few_channels_strided_units.kernel.h"
#include "operations/conv2d/few_channels/forward_plan.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations {
namespace few_channels {
namespace {

namespace split = split_gemm;

constexpr std::int64_t most_width = 112;  // whose sums the registers hold twice

std::span<const Tunable> strided_tunables() {
  static const std::vector<Tunable> all = {{"width", {8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112}},
                                           {"rows", {1, 2, 3, 4}}};
  return all;
}

// Cycles of a compute unit of 9.0. README.md, "Even strides", has what they stand for.
double cycles_of(const Conv2dShape& g, const StridedForm& form, const split::Numbers& numbers,
                 const devices::Device& device) {
  const Task task = task_of(g, form);
  const double width = static_cast<double>(form.width),
               of_sixteen = static_cast<double>(numbers.products) * std::max({width / 2, 16 + width / 4, 32.0}),
               of_row = 1.25 * static_cast<double>(form.sixteens()) * of_sixteen + 2 * width,
               of_patch = 1.4 * static_cast<double>(form.patch_h() * form.patch_w()) + 600,
               of_filters = 3000 + static_cast<double>(form.filter_bytes()) / 32 / 512 * 500;
  const std::int64_t units = device.info().compute_units, of_set = groups_of(task, 1, units) / task.sets,
                     tiles = std::max(divide_up(std::int64_t{task.tiles} * task.sets, units),
                                      divide_up(task.tiles, of_set));
  return of_filters + of_patch +
         static_cast<double>(tiles) * (std::max(static_cast<double>(form.tile_rows()) * of_row, of_patch) + 300);
}

// The form of the fewest cycles, and these.
struct Chosen {
  StridedForm form = {};
  double cycles = 0;
};
std::optional<Chosen> best_form(const Conv2dProblem& problem, const devices::Device& device,
                                const SolverOptions& request) {
  const Conv2dShape g(problem);
  const split::Numbers numbers = split::numbers_of(problem.type);
  std::optional<Chosen> best;
  const Tuning wanted = Tuning::parse(request.tuning);
  for_each_tuning(strided_tunables(), [&](const Tuning& each) {
    if (!wanted.is_empty() && !(each == wanted)) return;
    const StridedForm form{.channels = g.c_group,
                           .taps_h = g.r,
                           .taps_w = g.s,
                           .stride_h = g.stride_h,
                           .stride_w = g.stride_w,
                           .dilation_h = g.dilation_h,
                           .width = each.at("width"),
                           .rows = each.at("rows"),
                           .parts = numbers.planes()};
    constexpr std::int64_t rest = 1024 + 256;  // what the device keeps of each group's, and what the text declares
    if (form.local_bytes() > device.facts().most_local_memory_bytes - rest) return;
    const double cycles = cycles_of(g, form, numbers, device);
    if (!best || cycles < best->cycles) best = {.form = form, .cycles = cycles};
  });
  return best;
}

std::string refusal_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.pass != Pass::forward) return "convolves forward alone";
  if (g.c_group < 3 || g.c_group > most_channels)
    return fmt::format("groups have {} channels, and it is for those of 3 or 4", g.c_group);
  // A sixteen's two pairs of columns lie in one direction.
  if (g.stride_w != 2 && g.stride_w % 4 != 0)
    return fmt::format(
        "the stride along rows is {}, and pixels' columns lie in pairs at strides of 2 and of multiples of 4",
        g.stride_w);
  if (g.dilation_w > 1) return "taps of a row are apart, and the units read them side by side";
  return extent_refusal(g);
}

class StridedPlan final : public ForwardPlan {
 public:
  StridedPlan(const Conv2dProblem& problem, devices::Device& device, const StridedForm& form)
      : ForwardPlan(problem, device, task_of(Conv2dShape(problem), form), 1), form_(form) {
    build(device, few_channels_strided_units_kernel, few_channels_strided_kernel,
          {{"CHANNELS", form.channels},
           {"TAPS_H", form.taps_h},
           {"TAPS_W", form.taps_w},
           {"STRIDE_H", form.stride_h},
           {"STRIDE_W", form.stride_w},
           {"DILATION_H", form.dilation_h},
           {"DILATION_W", 1},
           {"SIDE", 1},
           {"COLUMNS", StridedForm::columns},
           {"HELD", 1},
           {"WIDTH", form.width},
           {"ROWS", form.rows},
           {"TILE_H", form.tile_rows()},
           {"FOLD", 1},
           {"WORKERS", StridedForm::workers},
           {"FILLING", 1},
           {"LOOKERS", form.items()},
           {"RECORDS", form.records()},
           {"SIXTEENS", form.sixteens()},
           {"BODY", StridedForm::body},
           {"PATCH_H", form.patch_h()},
           {"PATCH_W", form.patch_w()},
           {"PLANE_W", form.plane_w()},
           {"BOXED", 0}});
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    append_launch(sequence, run, "few_channels_strided", groups_of(task_, 1, units_), form_.items(),
                  form_.local_bytes(), {});
  }

 private:
  StridedForm form_;
};

class FewChannelsStridedGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/few_channels/gpu-strided.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, 512); !reason.empty()) return reason;
    if (std::string reason = split::tensor_refusal(*device); !reason.empty()) return reason;
    if (std::string reason = refusal_of(problem); !reason.empty()) return reason;
    const std::optional<Chosen> best = best_form(problem, *device, request);
    if (!best) return "64 filters and two patches of x that a tile meets do not fit local memory";
    const StridedForm form = best->form;
    const Task task = task_of(Conv2dShape(problem), form);
    if (groups_of(task, 1, device->info().compute_units) > most_groups)
      return fmt::format("has {} sets of filters, and a launch counts {} groups", task.sets, most_groups);
    Offer offer = forward_offer(problem, *device, best->cycles, form.bodies(), StridedForm::body);
    offer.tuning = {{"width", form.width}, {"rows", form.rows}};
    offer.plan = [=] { return std::make_shared<StridedPlan>(problem, *device, form); };
    return offer;
  }
  std::span<const Tunable> tunables() const override { return strided_tunables(); }
};

}  // namespace
}  // namespace few_channels

const Conv2dSolver& conv2d_few_channels_strided_gpu() {
  static const few_channels::FewChannelsStridedGpu solver;
  return solver;
}

}  // namespace omniconv::operations
