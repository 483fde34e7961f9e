#include "image/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "choice/plan_record.h"
#include "core/checked.h"
#include "image/image.h"
#include "image/opacity_dropped.h"
#include "omniconv/error.h"
#include "operations/filter2d/opacity.h"
#include "operations/filter2d/weights.h"
#include "streaming/strip_flow.h"

namespace omniconv::image {
namespace {

constexpr int most_slots = 4;  // strips on a device at a time: one on its way in, one out, one or two in work
constexpr std::int64_t strip_bytes_wanted = std::int64_t{8} << 20;  // input and output; more gains nothing

class Seconds {
 public:
  double get() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Everything that is known before the first row is read.
struct Job {
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  FilterReport report;
  Filter2dTask task;
  std::unique_ptr<ImageReader> reader;
  bool drops_opacity = false;
  ImageInfo output;
  StripLayout layout;
  std::optional<OpacityCopy> opacity_copy;
};

// Whether colours are to be multiplied by opacity: not where they are already, nor where there are none.
bool premultiplies(const FilterJob& job, const ImageInfo& input) {
  return input.alpha_channel >= 0 && job.alpha == Alpha::premultiply && !input.associated_alpha && input.c > 1;
}

// `kernel` is turned to the stored pixels.
Filter2dProblem problem_of(const FilterJob& job, const ImageInfo& input, const Kernel& kernel) {
  Filter2dProblem problem;
  problem.input = input.type;
  problem.output = job.depth.value_or(input.type);
  problem.h = input.h;
  problem.w = input.w;
  problem.c = input.c;
  problem.r = kernel.r;
  problem.s = kernel.s;
  problem.border = job.border;
  problem.flip = job.convolve;
  if (premultiplies(job, input) && kernel.second_weights.empty()) problem.alpha_channel = input.alpha_channel;
  if (job.border.mode == BorderMode::valid && (problem.h < problem.r || problem.w < problem.s))
    throw bad_input(
        fmt::format("{}: {}x{} pixels hold no whole {}x{} window (width x height): choose another border than valid",
                    job.input, problem.w, problem.h, problem.s, problem.r));
  validate(problem);
  return problem;
}

double white(const ImageInfo& info, DataType type) {
  if (!is_integer(type)) return 1;
  return info.max_value > 0 && type == info.type ? info.max_value : highest_value(type);
}

Filter filter_of(const FilterJob& job, const ImageInfo& input, const Kernel& kernel, const Filter2dProblem& problem) {
  Filter filter = omniconv::filter_of(kernel);
  filter.scale = job.scale;
  filter.bias = job.bias;
  if (job.rescale) {
    const double ratio = white(input, problem.output) / white(input, problem.input);
    filter.scale *= ratio;
    filter.bias *= ratio;
  }
  filter.opaque_input = white(input, problem.input);
  filter.opaque_output = white(input, problem.output);
  return filter;
}

// Bytes of strips, codecs and workspace. A GPU's memory is its own, any other device's is the host's.
std::int64_t planned_bytes(const Job& job, const Context& context, std::int64_t writer_bytes) {
  const StripLayout& layout = job.layout;
  const std::int64_t strips = checked_multiply(checked_add(layout.input_bytes(), layout.output_bytes(), "a strip"),
                                               std::max(StripStaging::count(layout), 1), "the strips");
  const bool wraps = job.task.problem.border.mode == BorderMode::wrap;
  const std::int64_t readers =
      checked_multiply(job.reader->info().resident_bytes, wraps ? 2 : 1, "the decoders' memory");
  std::int64_t device = 0;
  if (filters_in_place(context))
    device = layout.workspace_bytes();
  else if (!context.device().is_gpu)
    device = layout.device_bytes();
  return checked_add(checked_add(strips, readers, "memory"), checked_add(writer_bytes, device, "memory"), "memory");
}

void report_layout(const Context& context, std::int64_t writer_bytes, Job& job) {
  job.report.strip_rows = job.layout.strips().rows();
  job.report.strips = job.layout.strips().count();
  job.report.device_bytes = filters_in_place(context) ? 0 : job.layout.device_bytes();
  job.report.planned_bytes = planned_bytes(job, context, writer_bytes);
}

// Rows of a strip beyond which nothing is gained.
std::int64_t enough_rows(const Filter2dPlan& plan, bool in_place) {
  const StripLayout row(plan, 1, 1);
  const std::int64_t rows =
      std::max<std::int64_t>(strip_bytes_wanted / (row.input_row_bytes() + row.output_row_bytes()), 8);
  return in_place ? rows : std::max(rows, plan.problem().r);  // rows that strips share are copied to each
}

// Shrinks strips to --max-memory, unless the user chose their rows.
void fit_to_memory(const Context& context, const FilterJob& wanted, std::int64_t writer_bytes, Job& job) {
  for (;;) {
    const std::int64_t bytes = planned_bytes(job, context, writer_bytes);
    if (bytes <= wanted.max_memory_bytes) return;
    if (wanted.strip_rows > 0 || !job.layout.shrink())
      throw bad_input(fmt::format("--max-memory of {} bytes is too small for {}: the least that works is {} bytes",
                                  wanted.max_memory_bytes, wanted.input, bytes));
  }
}

// The tallest strips that the user's limits, and then the device, allow.
void choose_strips(const Context& context, const FilterJob& wanted, const Filter2dPlan& plan, std::int64_t writer_bytes,
                   Job& job) {
  const bool in_place = filters_in_place(context);
  const std::int64_t rows = wanted.strip_rows > 0 ? wanted.strip_rows : enough_rows(plan, in_place);
  job.layout = StripLayout(plan, rows, in_place ? 1 : most_slots);
  if (!in_place && wanted.device_memory_bytes > 0) fit_to_limit(wanted.device_memory_bytes, job.layout);
  fit_to_memory(context, wanted, writer_bytes, job);
  if (!in_place) fit_to_device(context, job.layout);
  report_layout(context, writer_bytes, job);
}

std::unique_ptr<ImageReader> open_input(const FilterJob& wanted, bool drops_opacity) {
  auto reader = open_image(wanted.input, wanted.page, wanted.max_memory_bytes);
  return drops_opacity ? drop_opacity(std::move(reader)) : std::move(reader);
}

// As --alpha drop asks, or because the output has no opacity and that of the input says nothing.
bool drops_opacity(const FilterJob& wanted, ImageReader& reader) {
  const ImageInfo& input = reader.info();
  if (input.alpha_channel < 0 || input.c == 1) return false;
  if (wanted.alpha == Alpha::drop) return true;
  if (holds_opacity(wanted.output)) return false;
  if (is_opaque(reader)) return true;
  throw bad_input(
      fmt::format("{}: its format holds no opacity, and {} is not opaque everywhere: write .png or .tif, or leave "
                  "opacity out with --alpha drop",
                  wanted.output, wanted.input));
}

void prepare(const FilterJob& wanted, Job& job) {
  job.reader = open_input(wanted, false);
  job.drops_opacity = drops_opacity(wanted, *job.reader);
  if (job.drops_opacity) job.reader = drop_opacity(std::move(job.reader));
  const ImageInfo& input = job.reader->info();
  const Kernel kernel = input.orientation == 1 ? wanted.kernel : turned_to_stored(wanted.kernel, input.orientation);
  job.report.problem = problem_of(wanted, input, kernel);
  job.report.filter = filter_of(wanted, input, kernel, job.report.problem);
  job.task = task_for(job.report.problem, job.report.filter);
  const bool pair = premultiplies(wanted, input) && job.task.second;
  const bool stays = pair || job.task.weights.alpha_rule == AlphaRule::copied;
  if (stays && !pair) {  // colours are filtered plainly, so that every solver may serve
    job.report.problem.alpha_channel = -1;
    job.task = task_for(job.report.problem, job.report.filter);
  }
  if (input.alpha_channel >= 0 && (stays || wanted.alpha == Alpha::ignore))
    job.opacity_copy.emplace(job.report.problem, input.alpha_channel, job.report.filter.opaque_input,
                             job.report.filter.opaque_output);
  job.output = input;
  job.output.type = job.report.problem.output;
  job.output.h = P(job.report.problem);
  job.output.w = Q(job.report.problem);
  if (job.output.type != input.type) job.output.max_value = 0;
}

// Rows of the file, in and out. Rows that a strip shares with the one before are copied from its memory, the others
// come from the file.
class FileEnds final : public StripEnds {
 public:
  FileEnds(const FilterJob& wanted, Job& job, ImageWriter& writer, const Progress& progress)
      : wanted_(wanted), job_(job), writer_(writer), progress_(progress) {}

  const std::byte* read(const Strip& strip, std::byte* staging) override {
    const std::int64_t row_bytes = job_.layout.input_row_bytes(), h = job_.task.problem.h;
    std::int64_t row = strip.input.first;
    if (before_ != nullptr && before_rows_.last > row) {
      const std::int64_t shared = std::min(before_rows_.last, strip.input.last) - row;
      std::memmove(staging, before_ + (row - before_rows_.first) * row_bytes,
                   static_cast<std::size_t>(shared * row_bytes));
      row += shared;
    }
    while (row < strip.input.last) {
      const bool inside = row >= 0 && row < h;
      const std::int64_t real = ((row % h) + h) % h;
      const std::int64_t count = std::min(strip.input.last - row, h - real);
      reader(inside).read_rows(real, count, staging + (row - strip.input.first) * row_bytes, row_bytes);
      row += count;
    }
    before_ = staging;
    before_rows_ = strip.input;
    return staging;
  }

  std::byte* place(const Strip&, std::byte* staging) override { return staging; }

  void complete(const Strip& strip, const std::byte* input, std::byte* output) override {
    if (!job_.opacity_copy) return;
    const RowWindow x{input, job_.layout.input_row_bytes(), strip.input.first, strip.input_rows()};
    for (std::int64_t p = 0; p < strip.output_rows; ++p)
      job_.opacity_copy->run(x, strip.output_first + p, 0, Q(job_.task.problem),
                             output + p * job_.layout.output_row_bytes());
  }

  void write(const Strip& strip, const std::byte* output) override {
    writer_.write_rows(strip.output_first, strip.output_rows, output, job_.layout.output_row_bytes());
    if (progress_ && !progress_(strip.output_first + strip.output_rows, P(job_.task.problem), Q(job_.task.problem)))
      throw Error(ErrorKind::interrupted, fmt::format("interrupted; {} was not written", wanted_.output));
  }

 private:
  // Rows that wrap around come from a second reader, so that the first only streams.
  ImageReader& reader(bool inside) {
    if (inside) return *job_.reader;
    if (wrapping_ == nullptr) wrapping_ = open_input(wanted_, job_.drops_opacity);
    return *wrapping_;
  }

  const FilterJob& wanted_;
  const Job& job_;
  ImageWriter& writer_;
  const Progress& progress_;
  std::unique_ptr<ImageReader> wrapping_;
  const std::byte* before_ = nullptr;
  RowSpan before_rows_;
};

void filter_strips(const Context& context, const FilterJob& wanted, const Filter2dPlan& plan, ImageWriter& writer,
                   const Progress& progress, Job& job) {
  StripSlots slots(context, plan, job.layout);
  report_layout(context, writer.resident_bytes(), job);
  const StripStaging staging(context, job.layout);
  FileEnds ends(wanted, job, writer, progress);
  const FlowSeconds seconds = run_strips(job.layout, slots, staging, ends);
  job.report.read_seconds = seconds.read;
  job.report.compute_seconds = seconds.compute;
  job.report.write_seconds = seconds.write;
  job.report.upload_seconds = slots.seconds().upload;
  job.report.kernel_seconds = slots.seconds().kernels;
  job.report.download_seconds = slots.seconds().download;
}

// For compressing; a GPU leaves the processor free.
int threads_of(const Context& context) {
  if (context.device().id == "cpu") return context.device().compute_units;
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

FilterReport process(const Context& context, const FilterJob& wanted, const Progress& progress, bool write) {
  const Seconds total;
  Job job;
  prepare(wanted, job);
  const std::unique_ptr<ImageWriter> writer = create_image(wanted.output, job.output,
                                                           {.threads = threads_of(context),
                                                            .quality = wanted.quality,
                                                            .compression = wanted.compression,
                                                            .pages = wanted.pages});
  const Seconds planning;
  const Filter2dPlan plan(context, job.report.problem, job.report.filter, wanted.solver);
  job.report.plan_seconds = planning.get();
  job.report.compile_seconds = plan.compile_seconds();
  job.report.solver = plan.solver();
  job.report.tuning = plan.plan().record().tuning.to_text();
  choose_strips(context, wanted, plan, writer->resident_bytes(), job);
  if (write) {
    filter_strips(context, wanted, plan, *writer, progress, job);
    const Seconds closing;
    writer->finish();
    job.report.write_seconds += closing.get();
  }
  job.report.total_seconds = total.get();
  return job.report;
}

}  // namespace

FilterReport plan_filter(const Context& context, const FilterJob& job) {
  return process(context, job, {}, false);
}

FilterReport filter_file(const Context& context, const FilterJob& job, const Progress& progress) {
  return process(context, job, progress, true);
}

}  // namespace omniconv::image
