#include "operations/conv2d/im2col_gemm/plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "core/checked.h"
#include "operations/conv2d/im2col_gemm/images.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t alignment = 256;  // of the workspace's arrays

DataType accumulating(DataType type) {
  return type == DataType::f64 ? DataType::f64 : DataType::f32;
}

// Elements of a column: all that an output pixel reads, of all groups.
std::int64_t column_elements(const Conv2dShape& g) {
  return checked_multiply(g.c, g.r * g.s, "a column");
}

std::int64_t column_size(const Conv2dProblem& problem) {
  return size_of(problem.pass == Pass::backward_data ? accumulating(problem.type) : problem.type);
}

bool reads_x_as_it_is(const Conv2dShape& g) {
  return g.r == 1 && g.s == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 && g.pad_left == 0 &&
         g.p == g.h && g.q == g.w;
}

// Of one run: each is some steps of a sequence.
constexpr std::int64_t most_parts = std::int64_t{1} << 18;

std::int64_t part_count(const Conv2dShape& g, const Parting& parting) {
  return checked_multiply(divide_up(g.n, parting.images), divide_up(g.p, parting.rows), "the parts of the columns");
}
ColumnPart part_of(const Conv2dShape& g, const Parting& parting, std::int64_t i) {
  const std::int64_t of_image = divide_up(g.p, parting.rows);
  const std::int64_t n = i / of_image * parting.images, p = i % of_image * parting.rows;
  return {n, std::min(parting.images, g.n - n), p, std::min(parting.rows, g.p - p)};
}
std::vector<ColumnPart> parts_of(const Conv2dShape& g, const Parting& parting) {
  std::vector<ColumnPart> parts;
  for (std::int64_t i = 0; i < part_count(g, parting); ++i) parts.push_back(part_of(g, parting, i));
  return parts;
}

// Partial filters follow each other; each part's first images add to the same ones as the part's before.
bool accumulates(const Conv2dProblem& problem, std::int64_t part) {
  return problem.pass == Pass::backward_filter ? part > 0 : problem.accumulate;
}

// Images that share one product, since their columns follow each other in memory as its rows do.
bool merges_images(const Conv2dProblem& problem, const Parting& parting) {
  return problem.layout == Layout::nhwc && (problem.pass != Pass::backward_filter || parting.partials == 1);
}

// Groups that are the batch of one product, an image at a time. A bias of their own for each matrix is not to be had.
bool batches_groups(const Conv2dProblem& problem) {
  return problem.groups > 1 && problem.layout == Layout::nchw && !problem.bias;
}

std::int64_t products_of_a_part(const Conv2dProblem& problem) {
  return batches_groups(problem) ? 1 : problem.groups;
}

// Bytes of what one image of a part has in the workspace: columns, or its padded copy.
std::int64_t image_bytes(const Conv2dProblem& problem, const Parting& parting, std::int64_t rows) {
  const Conv2dShape g(problem);
  if (!parting.reads_images)
    return checked_multiply(column_elements(g) * column_size(problem), rows * g.q, "the columns of an image");
  const PaddedImages copy(g, rows);
  const std::int64_t row = checked_multiply(g.c * size_of(accumulating(problem.type)), copy.along.extent(), "a row");
  return checked_multiply(row, copy.down.extent(), "a padded image");
}

// Whether reading images moves no more elements than writing columns: every part has its own copy, with all that lies
// between its taps. In reals, since copies may be of any size. Fewer rows of a part make it no better.
bool copies_pay(const Conv2dProblem& problem, std::int64_t rows) {
  const Conv2dShape g(problem);
  const auto copied = [&](std::int64_t of_rows) {
    const PaddedImages copy(g, of_rows);
    return static_cast<double>(copy.down.extent()) * static_cast<double>(copy.along.extent());
  };
  const std::int64_t rest = g.p % rows;
  const double copies = static_cast<double>(g.p / rows) * copied(rows) + (rest > 0 ? copied(rest) : 0);
  return copies <= static_cast<double>(g.r * g.s) * static_cast<double>(g.p * g.q);
}

// What a limit of the workspace (negative: none) leaves for the products'.
std::int64_t limit_of_products(const Parting& parting, std::int64_t limit) {
  return limit < 0 ? -1 : std::max<std::int64_t>(limit - parting.columns_bytes - parting.partials_bytes, 0);
}

// With the part's sizes chosen: what it all takes.
Parting sized(const Conv2dProblem& problem, const DevicePointer& device, Parting parting, std::int64_t limit) {
  const Conv2dShape g(problem);
  const auto bytes = [](std::int64_t a, std::int64_t b, const char* what) {
    return round_up(checked_multiply(a, b, what), alignment);
  };
  if (parting.has_columns)
    parting.columns_bytes =
        bytes(image_bytes(problem, parting, parting.rows), parting.images, "what a part has in the workspace");
  if (problem.pass == Pass::backward_filter)
    parting.partials_bytes =
        bytes(parting.partials, elements_of(problem).w * size_of(accumulating(problem.type)), "the partial filters");
  const std::int64_t gemm_limit = limit_of_products(parting, limit);
  const std::int64_t count = part_count(g, parting);
  for (const std::int64_t i : {std::int64_t{0}, std::min<std::int64_t>(1, count - 1), count - 1}) {
    const GemmTask task = product_for(problem, parting, part_of(g, parting, i), accumulates(problem, i));
    parting.gemm_bytes = std::max(parting.gemm_bytes, best_gemm(task, device, gemm_limit).workspace_bytes);
  }
  return parting;
}

// Products that read images, or that read columns.
Parting cut(const Conv2dProblem& problem, const DevicePointer& device, const PartSizes& sizes, bool reads_images,
            std::int64_t limit) {
  const Conv2dShape g(problem);
  Parting whole{.reads_images = reads_images, .has_prepared_filters = sizes.has_prepared_filters, .rows = g.p};
  whole.has_columns = reads_images ? !reads_x_itself(problem) : !reads_x_as_it_is(g);
  std::int64_t target =
      std::min(reads_images ? sizes.image_bytes : sizes.column_bytes, device->info().max_buffer_bytes / 2);
  if (limit >= 0) target = std::min(target, limit);
  // A first row has beside it the rows that its taps reach.
  const std::int64_t row_bytes = image_bytes(problem, whole, 1), all_bytes = image_bytes(problem, whole, g.p),
                     next_row_bytes = image_bytes(problem, whole, 2) - row_bytes,
                     filter_bytes = elements_of(problem).w * size_of(accumulating(problem.type));
  for (;; target /= 2) {
    Parting parting = whole;
    parting.images = std::clamp<std::int64_t>(target / all_bytes, 1, g.n);
    if (all_bytes > target && problem.pass != Pass::backward_data)
      parting.rows = std::clamp<std::int64_t>(1 + (target - row_bytes) / next_row_bytes, 1, g.p);
    if (!parting.has_columns) parting.images = g.n, parting.rows = g.p;
    if (batches_groups(problem) && !parting.reads_images) parting.images = 1;
    if (problem.pass == Pass::backward_filter) {
      parting.partials = 1;
      if (sizes.images_side_by_side && !batches_groups(problem))
        parting.partials = parting.images =
            std::clamp<std::int64_t>(target / std::max(all_bytes, filter_bytes), 1, g.n);
      else if (!g.nhwc)
        parting.images = 1;  // their sums are added up one after the other
    }
    parting = sized(problem, device, parting, limit);
    if (limit < 0 || parting.bytes() <= limit || target == 0) return parting;
  }
}

// Under a limit that images pass, columns may fit, or take less.
Parting parting_for(const Conv2dProblem& problem, const DevicePointer& device, const PartSizes& sizes,
                    std::int64_t limit) {
  const bool may_read = sizes.image_bytes > 0 && problem.pass == Pass::forward && problem.layout == Layout::nchw;
  if (!may_read || (!reads_x_itself(problem) && !copies_pay(problem, P(problem))))
    return cut(problem, device, sizes, false, limit);
  const Parting reading = cut(problem, device, sizes, true, limit);
  const bool pays = !reading.has_columns || copies_pay(problem, reading.rows);
  if (pays && (limit < 0 || reading.bytes() <= limit)) return reading;
  const Parting writing = cut(problem, device, sizes, false, limit);
  return pays && reading.bytes() <= writing.bytes() ? reading : writing;
}

// Of the products: the first operand, or the second.
bool filters_are_a(const Conv2dProblem& problem) {
  return problem.layout == Layout::nchw;
}

// Products by what they depend on: images and rows of their part, and whether they add to what is there.
using ProductKey = std::tuple<std::int64_t, std::int64_t, bool>;

ProductKey key_of(const Conv2dProblem& problem, const std::vector<ColumnPart>& parts, std::size_t i) {
  return {parts[i].images, parts[i].rows, accumulates(problem, static_cast<std::int64_t>(i))};
}

class Im2colPlan final : public Conv2dPlanBody {
 public:
  Im2colPlan(const Conv2dProblem& problem, const Parting& parting, const std::map<ProductKey, Offer>& products,
             std::shared_ptr<const Columns> columns, std::int64_t prepared_bytes)
      : Conv2dPlanBody(problem),
        shape_(problem),
        parting_(parting),
        columns_(std::move(columns)),
        parts_(parts_of(shape_, parting)),
        prepared_bytes_(prepared_bytes) {
    for (const auto& [key, offer] : products) products_[key] = plan_of(offer);
  }

  double compile_seconds() const override {
    double seconds = columns_->compile_seconds();
    for (const auto& [key, product] : products_) seconds += product->compile_seconds();
    return seconds;
  }
  void append(devices::Sequence& sequence, const Conv2dRun& run) const override;
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override;

 private:
  GemmArrays arrays(const Conv2dRun& run, const ColumnPart& part, std::int64_t group) const;

  Conv2dShape shape_;
  Parting parting_;
  std::shared_ptr<const Columns> columns_;
  std::vector<ColumnPart> parts_;
  std::map<ProductKey, std::shared_ptr<const GemmPlanBody>> products_;
  std::int64_t prepared_bytes_;  // of a product's filters, where they are prepared
};

}  // namespace

static GemmTask product_over_columns(const Conv2dProblem& problem, const Parting& parting, const ColumnPart& part,
                                     bool accumulate) {
  const Conv2dShape g(problem);
  const std::int64_t taps = g.c_group * g.r * g.s, column = g.c * g.r * g.s, pixels = part.rows * g.q;
  const bool merged = merges_images(problem, parting);
  GemmTask task;
  GemmProblem& product = task.problem;
  product.type = problem.type;
  product.batch = merged ? 1 : part.images;
  const std::int64_t positions = merged ? part.images * pixels : pixels;
  task.accumulate = accumulate;
  task.output = problem.type;
  switch (problem.pass) {
    case Pass::forward:
      task.relu = problem.relu;
      if (g.nhwc) {  // y[positions, k] = columns[positions, taps] * w[k, taps]
        product.m = positions, product.n = g.k_group, product.k = taps;
        product.transpose_b = true;
        task.lda = column, task.ldb = taps, task.ldc = g.k;
        task.bias = problem.bias ? BiasAlong::columns : BiasAlong::none;
      } else {  // y[k, pixels] = w[k, taps] * columns[taps, pixels]
        product.m = g.k_group, product.n = pixels, product.k = taps;
        task.lda = taps, task.ldb = pixels, task.ldc = g.p * g.q;
        task.batch_b = column * pixels, task.batch_c = g.k * g.p * g.q;
        task.bias = problem.bias ? BiasAlong::rows : BiasAlong::none;
      }
      break;
    case Pass::backward_data:
      if (parting.has_columns) {
        task.output = accumulating(problem.type);
        task.accumulate = false;  // x is added to where the columns are
      }
      if (g.nhwc) {  // columns[positions, taps] = y[positions, k] * w[k, taps]
        product.m = positions, product.n = taps, product.k = g.k_group;
        task.lda = g.k, task.ldb = taps, task.ldc = column;
      } else {  // columns[taps, pixels] = w[k, taps]' * y[k, pixels]
        product.m = taps, product.n = pixels, product.k = g.k_group;
        product.transpose_a = true;
        task.lda = taps, task.ldb = g.p * g.q, task.ldc = pixels;
        task.batch_b = g.k * g.p * g.q, task.batch_c = column * pixels;
      }
      break;
    case Pass::backward_filter:
      task.output = accumulating(problem.type);
      product.m = g.k_group, product.n = taps, product.k = positions;
      if (g.nhwc) {  // w[k, taps] = y[positions, k]' * columns[positions, taps]
        product.transpose_a = true;
        task.lda = g.k, task.ldb = column, task.ldc = taps;
        task.batch_a = g.k * pixels, task.batch_b = column * pixels;
      } else {  // w[k, taps] = y[k, pixels] * columns[taps, pixels]'
        product.transpose_b = true;
        task.lda = g.p * g.q, task.ldb = pixels, task.ldc = taps;
        task.batch_a = g.k * g.p * g.q, task.batch_b = column * pixels;
      }
      task.batch_c = g.k * taps;
      break;
  }
  if (batches_groups(problem)) {
    const std::int64_t of_w = g.k_group * taps, of_y = g.k_group * g.p * g.q, of_columns = taps * pixels;
    product.batch = g.groups;
    task.batch_a = problem.pass == Pass::backward_filter ? of_y : of_w;
    task.batch_b = problem.pass == Pass::backward_data ? of_y : of_columns;
    task.batch_c = problem.pass == Pass::forward ? of_y : problem.pass == Pass::backward_data ? of_columns : of_w;
  }
  return task;
}

GemmTask product_for(const Conv2dProblem& problem, const Parting& parting, const ColumnPart& part, bool accumulate) {
  GemmTask task = parting.reads_images
                      ? product_over_images(problem, part, parting.has_columns, batches_groups(problem))
                      : product_over_columns(problem, parting, part, accumulate);
  // Else the bits of a pixel would follow from how images and rows are cut into parts.
  const bool has_parts = problem.n > 1 || part.rows < P(problem);
  task.is_whole = !has_parts;
  if (problem.pass == Pass::forward && problem.layout == Layout::nchw) task.may_set_last_apart = !has_parts;
  if (parting.has_prepared_filters) (filters_are_a(problem) ? task.prepared_a : task.prepared_b) = true;
  return task;
}

GemmArrays Im2colPlan::arrays(const Conv2dRun& run, const ColumnPart& part, std::int64_t group) const {
  const Conv2dProblem& problem = this->problem();
  const Conv2dShape& g = shape_;
  const std::int64_t size = size_of(problem.type), taps = g.c_group * g.r * g.s, pixels = part.rows * g.q;
  const auto at = [](const Operand& operand, std::int64_t elements, std::int64_t bytes) {
    return Operand{operand.buffer, operand.offset_bytes + elements * bytes};
  };
  const Operand w =
      parting_.has_prepared_filters ? at(run.w, group, prepared_bytes_) : at(run.w, group * g.k_group * taps, size);
  const Operand y = at(run.y, g.y_at(part.n, group * g.k_group, part.p, 0), size);
  const Operand x = problem.pass == Pass::backward_data && !parting_.has_columns
                        ? at(run.x, g.x_at(part.n, group * g.c_group, 0, 0), size)
                        : run.x;
  // Where columns are not needed x has their form.
  const std::int64_t before = parting_.reads_images ? g.c_group * PaddedImages(g, part.rows).channel()
                              : g.nhwc              ? taps
                                                    : taps * pixels;
  const std::int64_t column_bytes = parting_.reads_images ? size_of(accumulating(problem.type)) : column_size(problem);
  const Operand columns = parting_.has_columns ? at({run.workspace, 0}, group * before, column_bytes)
                                               : at(run.x, g.x_at(part.n, group * g.c_group, 0, 0), size);
  const Operand partials =
      at({run.workspace, parting_.columns_bytes}, group * g.k_group * taps, size_of(accumulating(problem.type)));
  GemmArrays arrays;
  arrays.workspace = {run.workspace, parting_.columns_bytes + parting_.partials_bytes};
  switch (problem.pass) {
    case Pass::forward:
      arrays.a = g.nhwc ? columns : w, arrays.b = g.nhwc ? w : columns, arrays.c = y;
      if (problem.bias) arrays.bias = at(run.bias, group * g.k_group, size);
      break;
    case Pass::backward_data:
      arrays.a = g.nhwc ? y : w, arrays.b = g.nhwc ? w : y, arrays.c = parting_.has_columns ? columns : x;
      break;
    case Pass::backward_filter: arrays.a = y, arrays.b = columns, arrays.c = partials; break;
  }
  return arrays;
}

void Im2colPlan::append(devices::Sequence& sequence, const Conv2dRun& run) const {
  const Conv2dProblem& problem = this->problem();
  const Operand columns{run.workspace, 0}, partials{run.workspace, parting_.columns_bytes};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const ColumnPart& part = parts_[i];
    if (parting_.has_columns && problem.pass != Pass::backward_data) columns_->gather(sequence, run.x, columns, part);
    for (std::int64_t group = 0; group < products_of_a_part(problem); ++group)
      products_.at(key_of(problem, parts_, i))->append(sequence, arrays(run, part, group));
    if (parting_.has_columns && problem.pass == Pass::backward_data) columns_->scatter(sequence, columns, run.x, part);
  }
  if (problem.pass == Pass::backward_filter) columns_->reduce(sequence, partials, parting_.partials, run.w);
}

// Filters of a group, or of all where they are the batch of one product.
void Im2colPlan::append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from,
                                const Operand& to) const {
  const std::int64_t filters = shape_.k_group * shape_.c_group * shape_.r * shape_.s * size_of(problem().type);
  for (std::int64_t group = 0; group < products_of_a_part(problem()); ++group)
    products_.begin()->second->append_prepare(sequence, filters_are_a(problem()),
                                              Operand{from.buffer, from.offset_bytes + group * filters},
                                              Operand{to.buffer, to.offset_bytes + group * prepared_bytes_});
}

static std::string format_of(const Offer& product) {
  return product.prepared.empty() ? std::string() : product.prepared.begin()->second.text;
}

// The products', and what is added up after them. Smaller parts at the ends cut sums into shorter ones.
static ErrorBound bound_of(const Conv2dProblem& problem, const Parting& parting, ErrorBound bound) {
  if (problem.pass == Pass::backward_data && parting.has_columns)
    bound.chain += static_cast<double>(problem.r * problem.s);
  if (problem.pass == Pass::backward_filter)
    bound.chain += static_cast<double>(problem.n * P(problem));  // parts of a row, at the least
  return bound;
}

// A work item of a GPU gathers its taps one after the other: on an H200 350 cycles each, of which a compute unit does
// 128 multiply-adds. Few channels that stand last are stored apart from each other.
static double gather_cost(const Conv2dProblem& problem, const devices::Device& device, double bytes) {
  constexpr double cycles = 350, multiply_adds = 128, line = 8;
  const Conv2dShape g(problem);
  const double apart = g.nhwc ? std::max(1.0, line / static_cast<double>(g.c_group)) : 1,
               of_tap = cycles * multiply_adds * std::max(device.info().compute_units, 1);
  return std::max(2 * byte_cost(device) * bytes * apart,
                  of_tap * static_cast<double>(g.r * g.s) * std::min(apart, 2.0));
}

// Of nchw's products on an H200 to the data; and where rows of pixels, or under nhwc of columns, begin anywhere.
static double unaligned_cost(const Conv2dProblem& problem, const devices::Device& device, bool has_columns) {
  const Conv2dShape g(problem);
  const double launch = launch_cost(device);
  if (problem.pass == Pass::backward_filter || (g.nhwc && problem.pass == Pass::backward_data)) return 0;
  if (g.nhwc) return has_columns && g.r * g.s * g.c_group % 4 != 0 ? 0.4 * launch : 0;
  if (problem.pass == Pass::backward_data) return (has_columns && device.facts().has_overlap ? 1 : 2) * launch;
  return has_columns || g.p * g.q % 4 == 0 ? 0 : 1.5 * launch;
}

// Instructions of adding up columns on a GPU: of an element of x, and of each tap that it tries.
static double scatter_cost(const Conv2dProblem& problem) {
  constexpr double of_element = 60, of_tap = 16;
  const Conv2dShape g(problem);
  const std::int64_t down = divide_up(g.r, g.dilation_h == 1 ? g.stride_h : 1),
                     along = divide_up(g.s, g.dilation_w == 1 ? g.stride_w : 1);
  return static_cast<double>(g.n * g.c * g.h * g.w) * (of_element + of_tap * static_cast<double>(down * along));
}

Answer im2col_offer(const Conv2dProblem& problem, const DevicePointer& device, PartSizes sizes,
                    const SolverOptions& request, const MakeColumns& make_columns) {
  sizes.has_prepared_filters = !request.prepared.empty();
  if (sizes.has_prepared_filters &&
      (request.prepared != std::vector<std::string>{"w"} || problem.pass == Pass::backward_filter ||
       device->kind() != devices::DeviceKind::cpu))
    return "has a prepared form of w alone, where it is read, on the CPU";
  Parting parting = parting_for(problem, device, sizes, request.max_workspace_bytes);
  const Tuning tuning = Tuning::parse(request.tuning).inner("gemm");
  const std::int64_t part_number = part_count(Conv2dShape(problem), parting);
  if (part_number > most_parts)
    return fmt::format("its columns would be cut into {} parts, and {} are the most: take fewer images at a time",
                       part_number, most_parts);
  const std::vector<ColumnPart> parts = parts_of(Conv2dShape(problem), parting);
  const std::int64_t gemm_limit = limit_of_products(parting, request.max_workspace_bytes);
  // The products', and the columns' way to memory and back.
  const bool is_gpu = device->info().is_gpu, overlaps = device->facts().has_overlap;
  double cost = byte_cost(*device) * static_cast<double>(parting.partials_bytes);
  std::map<ProductKey, Offer> products;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ProductKey key = key_of(problem, parts, i);
    if (!products.contains(key)) {
      GemmTask task = product_for(problem, parting, parts[i], std::get<bool>(key));
      task.may_pair = may_pair(request);
      const Answer product =
          request.tuning.empty() ? best_gemm(task, device, gemm_limit) : tuned_gemm(task, device, gemm_limit, tuning);
      if (product.offer() == nullptr) return product;
      products[key] = *product.offer();
      // Unlike blocks, such as a limit of the workspace leaves to parts of unlike sizes.
      if (format_of(products[key]) != format_of(products.begin()->second))
        return "parts of unlike sizes would need filters of unlike forms: raise the limit of the workspace";
      parting.gemm_bytes = std::max(parting.gemm_bytes, products[key].workspace_bytes);
    }
    cost += static_cast<double>(products_of_a_part(problem)) * products[key].cost.multiply_adds;
    if (!parting.has_columns) continue;
    const double bytes =
        static_cast<double>(parts[i].images) * static_cast<double>(image_bytes(problem, parting, parts[i].rows));
    cost += is_gpu && problem.pass != Pass::backward_data ? gather_cost(problem, *device, bytes)
                                                          : 2 * byte_cost(*device) * bytes;
    if (is_gpu) cost += (overlaps && problem.pass == Pass::forward ? 0.2 : 1) * launch_cost(*device);
  }
  // On the CPU elements look for the taps that meet them one by one where strides part them.
  const bool is_parted = problem.stride_h > 1 || problem.stride_w > 1;
  if (!is_gpu && problem.pass == Pass::backward_data && parting.has_columns && is_parted)
    cost += 250 * static_cast<double>(elements_of(problem).x);
  if (is_gpu) cost += unaligned_cost(problem, *device, parting.has_columns);
  // And what launches wait.
  if (is_gpu && problem.pass == Pass::backward_filter) cost += (overlaps ? 0.5 : 2) * launch_cost(*device);
  if (is_gpu && problem.pass == Pass::backward_data && parting.has_columns) cost += scatter_cost(problem);
  const Offer& first = products.at(key_of(problem, parts, 0));
  const bool tuned_alike = std::all_of(products.begin(), products.end(),
                                       [&](const auto& product) { return product.second.tuning == first.tuning; });
  std::map<std::size_t, PreparedFormat> prepared;
  std::int64_t prepared_bytes = 0;
  if (sizes.has_prepared_filters) {
    constexpr std::size_t of_w = 1;
    const std::int64_t count = products_of_a_part(problem);
    prepared_bytes = first.prepared.begin()->second.bytes;
    const Conv2dShape g(problem);
    prepared[of_w] = {
        fmt::format("w of {} {} k{}c{}r{}s{}, {} of {}", problem.pass == Pass::forward ? "fwd" : "bwd_data",
                    g.nhwc ? "nhwc" : "nchw", g.k, g.c_group, g.r, g.s, count, format_of(first)),
        checked_multiply(count, prepared_bytes, "the prepared filters")};
  }
  return Offer{
      .cost = {cost},
      .bound = bound_of(problem, parting, first.bound),
      .workspace_bytes = parting.bytes(),
      .prepared = prepared,
      .tuning = tuned_alike ? first.tuning.prefixed("gemm") : Tuning(),  // no one text says it where they differ
      .plan =
          [=] {
            return std::make_shared<Im2colPlan>(problem, parting, products, make_columns(parting), prepared_bytes);
          },
  };
}

}  // namespace omniconv::operations
