#include "omniconv/filter2d_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "choice/plan_record.h"
#include "core/checked.h"
#include "omniconv/error.h"
#include "operations/filter2d/filter2d.h"
#include "streaming/host_copy.h"
#include "streaming/strip_flow.h"

namespace omniconv {
namespace {

constexpr std::int64_t strip_bytes_wanted = std::int64_t{16} << 20;  // input and output

// Half of the host's for each direction, but for the two that submit strips and wait for them.
int copy_threads(int wanted) {
  if (wanted > 0) return wanted;
  return std::max((static_cast<int>(std::thread::hardware_concurrency()) - 2) / 2, 1);
}

template <typename Byte>
struct HostImage {
  HostRows<Byte> rows;
  std::int64_t bytes = 0;  // from the first row to the last one's end

  bool is_packed(std::int64_t row_bytes) const { return rows.stride_bytes == row_bytes; }
};

template <typename Byte>
HostImage<Byte> checked_image(const char* name, Byte* memory, std::int64_t stride, std::int64_t row_bytes,
                              std::int64_t rows, std::int64_t element_bytes) {
  if (memory == nullptr) throw bad_input(fmt::format("the {} is a null pointer", name));
  if (stride == 0) stride = row_bytes;
  if (stride < row_bytes || stride % element_bytes != 0)
    throw bad_input(fmt::format("the {} stride of {} bytes must be a multiple of {} and at least {}", name, stride,
                                element_bytes, row_bytes));
  return {{memory, stride}, checked_add(checked_multiply(rows - 1, stride, "the image"), row_bytes, "the image")};
}

// The caller's memory at both ends.
class MemoryEnds final : public StripEnds {
 public:
  MemoryEnds(const HostImage<const std::byte>& input, const HostImage<std::byte>& output, std::int64_t h,
             const StripLayout& layout, const HostCopier* in, const HostCopier* out)
      : input_(input.rows), output_(output.rows), h_(h), layout_(layout), in_(in), out_(out) {}

  const std::byte* read(const Strip& strip, std::byte* staging) override {
    if (!in_) return input_.first + strip.input.first * input_.stride_bytes;
    const std::int64_t row_bytes = layout_.input_row_bytes();
    for (std::int64_t row = strip.input.first; row < strip.input.last;) {
      const std::int64_t real = ((row % h_) + h_) % h_;  // rows outside the image wrap around
      const std::int64_t count = std::min(strip.input.last - row, h_ - real);
      in_->copy({input_.first + real * input_.stride_bytes, input_.stride_bytes},
                {staging + (row - strip.input.first) * row_bytes, row_bytes}, row_bytes, count);
      row += count;
    }
    return staging;
  }

  std::byte* place(const Strip& strip, std::byte* staging) override {
    return out_ ? staging : output_.first + strip.output_first * output_.stride_bytes;
  }

  void complete(const Strip&, const std::byte*, std::byte*) override {}

  void write(const Strip& strip, const std::byte* output) override {
    if (!out_) return;
    const std::int64_t row_bytes = layout_.output_row_bytes();
    out_->copy({output, row_bytes}, {output_.first + strip.output_first * output_.stride_bytes, output_.stride_bytes},
               row_bytes, strip.output_rows);
  }

 private:
  const HostRows<const std::byte> input_;
  const HostRows<std::byte> output_;
  const std::int64_t h_;
  const StripLayout& layout_;
  const HostCopier *const in_, *const out_;  // null: direct
};

}  // namespace

class HostFilter2d::Body {
 public:
  Body(const Context& context, const Filter2dPlan& plan, const Options& options)
      : context_(context), plan_(plan), options_(options), problem_(plan.problem()) {
    if (options.in_flight < 1 || options.strip_rows < 0 || options.device_memory_bytes < 0 || options.copy_threads < 0)
      throw bad_input(fmt::format(
          "in_flight={} must be at least 1, and strip_rows={}, device_memory_bytes={} and copy_threads={} at least 0",
          options.in_flight, options.strip_rows, options.device_memory_bytes, options.copy_threads));
    if (plan.plan().record().device != context.impl())
      throw bad_input("the plan was made for another context's device: make both with one context");
    const StripLayout row(plan, 1, 1);
    if (filters_in_place(context)) {
      layout_ = StripLayout(plan, P(problem_), 1);
      queue_ = context.make_queue();
      workspace_ = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
      return;
    }
    const std::int64_t chosen = strip_bytes_wanted / (row.input_row_bytes() + row.output_row_bytes());
    const std::int64_t rows = options.strip_rows > 0 ? options.strip_rows : std::max(chosen, problem_.r);
    layout_ = StripLayout(plan, rows, options.in_flight);
    if (options.device_memory_bytes > 0) fit_to_limit(options.device_memory_bytes, layout_);
    fit_to_device(context, layout_);
    slots_.emplace(context_, plan_, layout_);
    if (options.copies == HostCopies::staged) stage();
  }

  HostFilter2dReport run(const void* input, std::int64_t input_stride, void* output, std::int64_t output_stride) {
    const auto start = std::chrono::steady_clock::now();
    const auto from = checked_image("input", static_cast<const std::byte*>(input), input_stride,
                                    layout_.input_row_bytes(), problem_.h, size_of(problem_.input));
    const auto to = checked_image("output", static_cast<std::byte*>(output), output_stride, layout_.output_row_bytes(),
                                  P(problem_), size_of(problem_.output));
    const std::less<const std::byte*> before;
    if (before(from.rows.first, to.rows.first + to.bytes) && before(to.rows.first, from.rows.first + from.bytes))
      throw bad_input("input and output overlap: a filter would read pixels that it has overwritten; keep them apart");
    HostFilter2dReport report;
    if (slots_)
      filter_strips(from, to, report);
    else
      filter_in_place(from, to, report);
    report.strip_rows = layout_.strips().rows();
    report.strips = layout_.strips().count();
    report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  }

 private:
  void stage() {
    staging_.emplace(context_, layout_);
    in_.emplace(copy_threads(options_.copy_threads));
    out_.emplace(copy_threads(options_.copy_threads));
  }

  void filter_in_place(const HostImage<const std::byte>& from, const HostImage<std::byte>& to,
                       HostFilter2dReport& report) {
    Filter2dRun run{.workspace = workspace_};
    run.input = context_.borrow(const_cast<std::byte*>(from.rows.first), from.bytes);  // which nobody writes
    run.output = context_.borrow(to.rows.first, to.bytes);
    run.input_stride_bytes = from.rows.stride_bytes;
    run.output_stride_bytes = to.rows.stride_bytes;
    Event event = plan_.run(queue_, run);
    event.wait();
    report.kernel_seconds = event.seconds();
  }

  void filter_strips(const HostImage<const std::byte>& from, const HostImage<std::byte>& to,
                     HostFilter2dReport& report) {
    const bool direct = options_.copies == HostCopies::direct && from.is_packed(layout_.input_row_bytes()) &&
                        to.is_packed(layout_.output_row_bytes()) && problem_.border.mode != BorderMode::wrap;
    if (!direct && !staging_) stage();
    const StripStaging none(layout_);
    MemoryEnds ends(from, to, problem_.h, layout_, direct ? nullptr : &*in_, direct ? nullptr : &*out_);
    const DeviceSeconds before = slots_->seconds();
    const FlowSeconds seconds = run_strips(layout_, *slots_, direct ? none : *staging_, ends);
    report.device_bytes = layout_.device_bytes();
    report.page_locked = !direct && staging_->is_page_locked();
    report.stage_in_seconds = direct ? 0 : seconds.read;
    report.stage_out_seconds = direct ? 0 : seconds.write;
    report.upload_seconds = slots_->seconds().upload - before.upload;
    report.kernel_seconds = slots_->seconds().kernels - before.kernels;
    report.download_seconds = slots_->seconds().download - before.download;
  }

  const Context context_;
  const Filter2dPlan plan_;
  const Options options_;
  const Filter2dProblem problem_;
  StripLayout layout_;
  Queue queue_;  // these two on the CPU alone, what follows elsewhere
  Buffer workspace_;
  std::optional<HostCopier> in_, out_;
  std::optional<StripStaging> staging_;
  std::optional<StripSlots> slots_;  // goes first, since work that was submitted uses the staging
};

HostFilter2d::HostFilter2d(const Context& context, const Filter2dPlan& plan, const Options& options)
    : body_(std::make_unique<Body>(context, plan, options)) {}
HostFilter2d::~HostFilter2d() = default;
HostFilter2d::HostFilter2d(HostFilter2d&&) noexcept = default;
HostFilter2d& HostFilter2d::operator=(HostFilter2d&&) noexcept = default;

HostFilter2dReport HostFilter2d::run(const void* input, std::int64_t input_stride_bytes, void* output,
                                     std::int64_t output_stride_bytes) {
  if (!body_) throw bad_input("the filter was moved from: keep the one that it was moved to");
  return body_->run(input, input_stride_bytes, output, output_stride_bytes);
}

}  // namespace omniconv
