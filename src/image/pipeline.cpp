#include "image/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "core/checked.h"
#include "core/opacity.h"
#include "core/weights.h"
#include "image/channel.h"
#include "image/image.h"

namespace omniconv::image {
namespace {

constexpr int in_flight = 3;  // strips on each side: one being read (written), one in work, one on its way
constexpr std::int64_t strip_bytes_wanted = std::int64_t{8} << 20;  // input and output; more gains nothing

class Seconds {
 public:
  double get() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

struct Strip {
  std::int64_t output_first = 0, output_rows = 0;
  RowSpan input;
};

// How an output is cut into strips; each is computed when it is needed, however many there are.
class Strips {
 public:
  Strips() = default;
  Strips(const Filter2dTask& task, std::int64_t strip_rows)
      : task_(&task), strip_rows_(strip_rows), count_(divide_up(P(task.problem), strip_rows)) {
    first_ = cut(0);
    last_ = cut(count_ - 1);
  }

  std::int64_t count() const { return count_; }
  std::int64_t rows() const { return strip_rows_; }

  // Input rows only ever stream in: no strip begins before its predecessor or ends behind its successor. Near the top
  // and bottom a border may send a strip to rows that otherwise the first or last one alone would need.
  Strip operator[](std::int64_t i) const {
    Strip strip = cut(i);
    strip.input.first = std::min(strip.input.first, last_.input.first);
    strip.input.last = std::max(strip.input.last, first_.input.last);
    return strip;
  }

  // Of the largest strip. Only strips whose windows come near the top or the bottom differ from those in the middle.
  std::int64_t most_input_rows() const {
    const std::int64_t near = 2 * task_->problem.r / strip_rows_ + 2;
    std::int64_t most = 0;
    const auto consider = [&](std::int64_t i) {
      const Strip strip = (*this)[i];
      most = std::max(most, strip.input.last - strip.input.first);
    };
    for (std::int64_t i = 0; i < std::min(near, count_); ++i) consider(i);
    for (std::int64_t i = std::max<std::int64_t>(count_ - near, 0); i < count_; ++i) consider(i);
    consider(count_ / 2);
    return most;
  }

 private:
  Strip cut(std::int64_t i) const {
    const std::int64_t first = i * strip_rows_, rows = std::min(strip_rows_, P(task_->problem) - first);
    return {first, rows, input_rows_for(*task_, first, rows)};
  }

  const Filter2dTask* task_ = nullptr;
  std::int64_t strip_rows_ = 0, count_ = 0;
  Strip first_, last_;
};

// Everything that is known before the first row is read. Stays where it is: strips point to the task.
struct Job {
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  FilterReport report;
  Filter2dTask task;
  std::unique_ptr<ImageReader> reader;
  ImageInfo output;
  Strips strips;
  std::int64_t input_row_bytes = 0, output_row_bytes = 0, input_rows = 0;  // rows: of the largest strip
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
  Filter filter{.weights = kernel.weights,
                .anchor_y = kernel.anchor_y,
                .anchor_x = kernel.anchor_x,
                .scale = job.scale,
                .bias = job.bias,
                .second_weights = kernel.second_weights};
  if (job.rescale) {
    const double ratio = white(input, problem.output) / white(input, problem.input);
    filter.scale *= ratio;
    filter.bias *= ratio;
  }
  filter.opaque_input = white(input, problem.input);
  filter.opaque_output = white(input, problem.output);
  return filter;
}

// Bytes of strips, codecs and workspace for strips of so many rows.
std::int64_t planned_bytes(const Job& job, const Filter2dPlan& plan, bool host_device, std::int64_t writer_bytes,
                           std::int64_t strip_rows, std::int64_t input_rows) {
  const std::int64_t input = checked_multiply(input_rows, job.input_row_bytes, "a strip");
  const std::int64_t output = checked_multiply(strip_rows, job.output_row_bytes, "a strip");
  const std::int64_t strips =
      checked_multiply(checked_add(input, output, "a strip"), in_flight + (host_device ? 0 : 1), "the strips");
  const bool wraps = job.task.problem.border.mode == BorderMode::wrap;
  const std::int64_t readers =
      checked_multiply(job.reader->info().resident_bytes, wraps ? 2 : 1, "the decoders' memory");
  return checked_add(checked_add(strips, readers, "memory"),
                     checked_add(writer_bytes, plan.workspace_bytes(), "memory"), "memory");
}

// The tallest strips that the limit allows, up to a size beyond which nothing is gained.
void choose_strips(const FilterJob& wanted, const Filter2dPlan& plan, bool host_device, std::int64_t writer_bytes,
                   Job& job) {
  const std::int64_t rows = P(job.task.problem);
  const std::int64_t wanted_rows = strip_bytes_wanted / (job.input_row_bytes + job.output_row_bytes);
  std::int64_t strip_rows = wanted.strip_rows > 0 ? wanted.strip_rows : std::max<std::int64_t>(wanted_rows, 8);
  strip_rows = std::min(strip_rows, rows);
  for (;; strip_rows = std::max<std::int64_t>(strip_rows / 2, 1)) {
    job.strips = Strips(job.task, strip_rows);
    job.input_rows = job.strips.most_input_rows();
    job.report.planned_bytes = planned_bytes(job, plan, host_device, writer_bytes, strip_rows, job.input_rows);
    if (job.report.planned_bytes <= wanted.max_memory_bytes) break;
    if (strip_rows == 1 || wanted.strip_rows > 0)
      throw bad_input(fmt::format("--max-memory of {} bytes is too small for {}: the least that works is {} bytes",
                                  wanted.max_memory_bytes, wanted.input, job.report.planned_bytes));
  }
  job.report.strip_rows = strip_rows;
  job.report.strips = job.strips.count();
}

void prepare(const FilterJob& wanted, Job& job) {
  job.reader = open_image(wanted.input, wanted.page, wanted.max_memory_bytes);
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
  job.input_row_bytes = checked_multiply(checked_multiply(input.w, input.c, "a row"), size_of(input.type), "a row");
  job.output_row_bytes =
      checked_multiply(checked_multiply(job.output.w, input.c, "a row"), size_of(job.output.type), "a row");
}

// Reads strips in order: rows shared with the strip before are copied from its buffer, the others come from the file.
class StripReader {
 public:
  StripReader(const FilterJob& wanted, Job& job) : wanted_(wanted), job_(job) {}

  // Fills `to` with the strip's rows; `from` is the buffer of the strip before (possibly the same), null for the first.
  void fill(const Strip& strip, std::byte* to, const std::byte* from, RowSpan before) {
    std::int64_t row = strip.input.first;
    if (from != nullptr && before.last > row) {
      const std::int64_t shared = std::min(before.last, strip.input.last) - row;
      std::memmove(to, from + (row - before.first) * job_.input_row_bytes,
                   static_cast<std::size_t>(shared * job_.input_row_bytes));
      row += shared;
    }
    const std::int64_t h = job_.task.problem.h;
    while (row < strip.input.last) {
      const bool inside = row >= 0 && row < h;
      const std::int64_t real = ((row % h) + h) % h;
      const std::int64_t count = std::min(strip.input.last - row, h - real);
      reader(inside).read_rows(real, count, to + (row - strip.input.first) * job_.input_row_bytes,
                               job_.input_row_bytes);
      row += count;
    }
  }

 private:
  // Rows that wrap around come from a second reader, so that the first only streams.
  ImageReader& reader(bool inside) {
    if (inside) return *job_.reader;
    if (wrapping_ == nullptr) wrapping_ = open_image(wanted_.input, wanted_.page, wanted_.max_memory_bytes);
    return *wrapping_;
  }

  const FilterJob& wanted_;
  Job& job_;
  std::unique_ptr<ImageReader> wrapping_;
};

// Runs one strip after the other: in place on the CPU, through buffers of its own elsewhere.
class StripRunner {
 public:
  StripRunner(const Context& context, const Filter2dPlan& plan, const Job& job)
      : context_(context),
        plan_(plan),
        job_(job),
        queue_(context.make_queue()),
        workspace_(context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))) {
    if (context.device().id == "cpu") return;
    input_ = context.allocate(job.input_rows * job.input_row_bytes);
    output_ = context.allocate(job.report.strip_rows * job.output_row_bytes);
  }

  void run(const Strip& strip, std::byte* input, std::byte* output) {
    try {
      filter(strip, input, output);
    } catch (...) {
      // What was submitted before the error still reads the strip's memory.
      try {
        queue_.finish();
      } catch (const Error&) {
      }
      throw;
    }
    if (job_.opacity_copy) copy_opacity(strip, input, output);
  }

 private:
  void filter(const Strip& strip, std::byte* input, std::byte* output) {
    const std::int64_t input_bytes = (strip.input.last - strip.input.first) * job_.input_row_bytes;
    const std::int64_t output_bytes = strip.output_rows * job_.output_row_bytes;
    const bool in_place = !input_;
    Filter2dRun run{.input = in_place ? context_.borrow(input, input_bytes) : input_,
                    .output = in_place ? context_.borrow(output, output_bytes) : output_,
                    .workspace = workspace_};
    run.input_first = strip.input.first;
    run.input_rows = strip.input.last - strip.input.first;
    run.output_first = strip.output_first;
    run.output_rows = strip.output_rows;
    if (!in_place) queue_.upload(input_, 0, input, input_bytes);
    Event event = plan_.run(queue_, run);
    if (!in_place) event = queue_.download(output, output_, 0, output_bytes);
    event.wait();
  }

  void copy_opacity(const Strip& strip, const std::byte* input, std::byte* output) const {
    const RowWindow x{input, job_.input_row_bytes, strip.input.first, strip.input.last - strip.input.first};
    for (std::int64_t p = 0; p < strip.output_rows; ++p)
      job_.opacity_copy->run(x, strip.output_first + p, 0, Q(job_.task.problem), output + p * job_.output_row_bytes);
  }

  const Context& context_;
  const Filter2dPlan& plan_;
  const Job& job_;
  Queue queue_;
  Buffer workspace_, input_, output_;
};

struct Filled {
  std::int64_t strip;
  std::byte* memory;
};

// The three stages; buffers go round between neighbours, so that memory is bounded.
class Pipeline {
 public:
  Pipeline(const FilterJob& wanted, Job& job, StripRunner& runner, ImageWriter& writer, const Progress& progress)
      : wanted_(wanted), job_(job), runner_(runner), writer_(writer), progress_(progress) {
    for (int i = 0; i < in_flight; ++i) {
      input_memory_[static_cast<std::size_t>(i)].resize(static_cast<std::size_t>(job.input_rows * job.input_row_bytes));
      output_memory_[static_cast<std::size_t>(i)].resize(
          static_cast<std::size_t>(job.report.strip_rows * job.output_row_bytes));
      free_inputs_.put(input_memory_[static_cast<std::size_t>(i)].data());
      free_outputs_.put(output_memory_[static_cast<std::size_t>(i)].data());
    }
  }

  void run() {
    {
      std::jthread reading, writing;
      guard([&] {
        reading = std::jthread([this] { guard([this] { read(); }); });
        writing = std::jthread([this] { guard([this] { write(); }); });
        compute();
      });
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // The first error of any stage stops all; closing the channels wakes whoever waits.
  template <typename Stage>
  void guard(const Stage& stage) {
    try {
      stage();
    } catch (...) {
      if (!stopping_.exchange(true)) error_ = std::current_exception();
      free_inputs_.close();
      free_outputs_.close();
    }
    if (stopping_) inputs_.close(), outputs_.close();
  }

  void read() {
    StripReader reader(wanted_, job_);
    const std::byte* before = nullptr;
    RowSpan before_rows;
    for (std::int64_t i = 0; i < job_.strips.count() && !stopping_; ++i) {
      const auto memory = free_inputs_.take();
      if (!memory) return;
      const Seconds seconds;
      const Strip strip = job_.strips[i];
      reader.fill(strip, *memory, before, before_rows);
      job_.report.read_seconds += seconds.get();
      before = *memory;
      before_rows = strip.input;
      inputs_.put({i, *memory});
    }
    inputs_.close();
  }

  void compute() {
    while (const auto filled = inputs_.take()) {
      const auto memory = free_outputs_.take();
      if (!memory || stopping_) return;
      const Seconds seconds;
      runner_.run(job_.strips[filled->strip], filled->memory, *memory);
      job_.report.compute_seconds += seconds.get();
      free_inputs_.put(filled->memory);
      outputs_.put({filled->strip, *memory});
    }
    outputs_.close();
  }

  void write() {
    while (const auto filled = outputs_.take()) {
      if (stopping_) return;
      const Strip strip = job_.strips[filled->strip];
      const Seconds seconds;
      writer_.write_rows(strip.output_first, strip.output_rows, filled->memory, job_.output_row_bytes);
      job_.report.write_seconds += seconds.get();
      free_outputs_.put(filled->memory);
      if (progress_ && !progress_(strip.output_first + strip.output_rows, P(job_.task.problem), Q(job_.task.problem)))
        throw Error(ErrorKind::interrupted, fmt::format("interrupted; {} was not written", wanted_.output));
    }
  }

  const FilterJob& wanted_;
  Job& job_;
  StripRunner& runner_;
  ImageWriter& writer_;
  const Progress& progress_;
  std::array<std::vector<std::byte>, in_flight> input_memory_, output_memory_;
  Channel<std::byte*> free_inputs_, free_outputs_;
  Channel<Filled> inputs_, outputs_;
  std::atomic<bool> stopping_ = false;
  std::exception_ptr error_;
};

// For compressing; a GPU leaves the processor free.
int threads_of(const Context& context) {
  if (context.device().id == "cpu") return context.device().compute_units;
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

FilterReport process(const Context& context, const FilterJob& wanted, const Progress& progress, bool write) {
  const Seconds total;
  Job job;
  prepare(wanted, job);
  const std::unique_ptr<ImageWriter> writer = create_image(wanted.output, job.output, threads_of(context));
  const Seconds planning;
  const Filter2dPlan plan(context, job.report.problem, job.report.filter, {.solver = wanted.solver});
  job.report.plan_seconds = planning.get();
  job.report.compile_seconds = plan.compile_seconds();
  job.report.solver = plan.solver();
  choose_strips(wanted, plan, context.device().id == "cpu", writer->resident_bytes(), job);
  if (write) {
    StripRunner runner(context, plan, job);
    Pipeline(wanted, job, runner, *writer, progress).run();
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
