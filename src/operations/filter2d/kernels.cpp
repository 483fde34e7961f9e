#include "operations/filter2d/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/quoted.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "operations/filter2d/motion_kernel.h"
#include "operations/filter2d/weights.h"

namespace omniconv {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The arguments of a named kernel, as written.
class Arguments {
 public:
  Arguments(std::string_view call, std::vector<std::string_view> values) : call_(call), values_(std::move(values)) {}

  std::size_t count() const { return values_.size(); }

  // SIZE: a whole number from `least` to largest_kernel_side.
  std::int64_t size(std::size_t index, std::int64_t least = 1, std::string_view name = "SIZE") const {
    std::int64_t value = 0;
    const std::string_view text = values_[index];
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || value < least || value > largest_kernel_side)
      refuse(index, name, fmt::format("a whole number from {} to {}", least, largest_kernel_side));
    return value;
  }

  // SIZE, or WIDTHxHEIGHT.
  std::pair<std::int64_t, std::int64_t> extents(std::size_t index) const {
    const std::string_view text = values_[index];
    const auto cross = text.find('x');
    if (cross == std::string_view::npos) return {size(index), size(index)};
    const Arguments sides(call_, {text.substr(0, cross), text.substr(cross + 1)});
    return {sides.size(0, 1, "WIDTH"), sides.size(1, 1, "HEIGHT")};
  }

  double number(std::size_t index, std::string_view name, std::string_view rule,
                const std::function<bool(double)>& allowed) const {
    double value = 0;
    const std::string_view text = values_[index];
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || !allowed(value))
      refuse(index, name, rule);
    return value;
  }

  double sigma(std::size_t index) const {
    return number(index, "SIGMA", "a finite number above 0", [](double value) { return value > 0; });
  }

  [[noreturn]] void refuse(std::size_t index, std::string_view name, std::string_view rule) const {
    throw bad_input(
        fmt::format("kernel {}: {} is {}; it must be {}", quoted(call_), name, quoted(values_[index]), rule));
  }

 private:
  std::string_view call_;
  std::vector<std::string_view> values_;
};

template <std::size_t Rows, std::size_t Columns>
Kernel matrix(const double (&weights)[Rows][Columns]) {
  Kernel kernel{.r = Rows, .s = Columns};
  for (const auto& row : weights) kernel.weights.insert(kernel.weights.end(), std::begin(row), std::end(row));
  return kernel;
}

Kernel transposed(const Kernel& kernel) {
  Kernel result{.r = kernel.s, .s = kernel.r};
  for (std::int64_t j = 0; j < kernel.s; ++j)
    for (std::int64_t i = 0; i < kernel.r; ++i)
      result.weights.push_back(kernel.weights[static_cast<std::size_t>(i * kernel.s + j)]);
  return result;
}

Kernel outer_product(const std::vector<double>& column, const std::vector<double>& row) {
  Kernel kernel{.r = std::ssize(column), .s = std::ssize(row)};
  kernel.weights.reserve(column.size() * row.size());
  for (const double a : column)
    for (const double b : row) kernel.weights.push_back(a * b);
  return kernel;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// The distance of tap i from the middle of `size` taps, in taps; exact.
double offset(std::int64_t i, std::int64_t size) {
  return static_cast<double>(i) - static_cast<double>(size - 1) / 2;
}

// exp(-x^2 / (2 sigma^2)) at the taps, divided by its sum; mirror-symmetric to the bit. Taken relative to the tap
// nearest to the middle, which is 1 before the division however small sigma is.
std::vector<double> gaussian_factor(std::int64_t size, double sigma) {
  const double nearest = size % 2 == 1 ? 0 : 0.5;
  std::vector<double> factor;
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = std::abs(offset(i, size));
    const double exponent = (x - nearest) / sigma * ((x + nearest) / sigma) / 2;
    factor.push_back(x == nearest ? 1 : std::exp(-exponent));
  }
  const double total = sum(factor);
  for (double& value : factor) value /= total;
  return factor;
}

// Rule 3 of docs/arithmetic.md, or the simpler rule 2.
bool is_separable_in_f32(const Kernel& kernel) {
  Filter2dProblem problem;
  problem.h = problem.r = kernel.r;
  problem.w = problem.s = kernel.s;
  Filter filter;
  filter.weights = kernel.weights;
  return analyse(problem, filter).form != WeightForm::general;
}

// The weights are products of the 1-D weights, which sum to 1. Rounded to fp32 they carry five roundings where the
// rank-one rule grants two ulp, and one Gaussian in five fails it. Those that fail are replaced by 1-D weights whose
// products with the middle one are fp32 values, again divided by their sum: two roundings are left, and what that
// division adds. Where it adds too much, the middle product is moved on to the next fp32 value; 4900 sizes and sigmas
// that were tried needed two such steps at most. The weights stay within 2^-20 of the formula, relatively.
Kernel gaussian(std::int64_t size, double sigma) {
  const std::vector<double> exact = gaussian_factor(size, sigma);
  Kernel kernel = outer_product(exact, exact);
  if (size == 1 || is_separable_in_f32(kernel)) return kernel;
  const double peak = exact[static_cast<std::size_t>(size / 2)];
  for (int step = 0; step <= 4; ++step) {  // 0, 1, -1, 2, -2 fp32 values away
    auto middle = static_cast<float>(peak * peak);
    for (int i = 0; i < (step + 1) / 2; ++i) middle = std::nextafter(middle, step % 2 == 1 ? 1.0f : 0.0f);
    const double root = std::sqrt(static_cast<double>(middle));
    std::vector<double> factor;
    for (const double value : exact)
      factor.push_back((value == peak ? middle : static_cast<float>(value * root)) / root);
    const double total = sum(factor);
    for (double& value : factor) value /= total;
    Kernel candidate = outer_product(factor, factor);
    if (is_separable_in_f32(candidate)) return candidate;
  }
  return kernel;
}

Kernel make_gaussian(const Arguments& arguments) {
  const std::int64_t size = arguments.size(0);
  const double middle = static_cast<double>(size - 1) / 2;
  return gaussian(size, arguments.count() == 2 ? arguments.sigma(1) : 0.3 * (middle - 1) + 0.8);
}

// As many taps as SciPy's gaussian_filter takes: to four sigma on either side, beyond which lie 6e-5 of the weights.
Kernel make_blur(const Arguments& arguments) {
  constexpr std::int64_t largest = (largest_kernel_side / 2 - 1) / 4;
  const double sigma =
      arguments.number(0, "SIGMA", fmt::format("a number above 0, at most {}", largest),
                       [](double value) { return value > 0 && value <= static_cast<double>(largest); });
  return gaussian(2 * static_cast<std::int64_t>(4 * sigma + 0.5) + 1, sigma);
}

Kernel make_box(const Arguments& arguments) {
  const auto [columns, rows] = arguments.extents(0);
  const std::int64_t count = rows * columns;
  return {.r = rows,
          .s = columns,
          .weights = std::vector<double>(static_cast<std::size_t>(count), 1 / static_cast<double>(count))};
}

// (x^2 + y^2 - 2 sigma^2) / sigma^4 times the Gaussian of sum 1, less its mean.
Kernel make_log(const Arguments& arguments) {
  const std::int64_t size = arguments.size(0, 3);
  const double sigma = arguments.sigma(1);
  const std::vector<double> factor = gaussian_factor(size, sigma);
  Kernel kernel = outer_product(factor, factor);
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j < size; ++j) {
      const double y = offset(i, size) / sigma, x = offset(j, size) / sigma;
      double& weight = kernel.weights[static_cast<std::size_t>(i * size + j)];
      if (weight != 0) weight *= (y * y + x * x - 2) / sigma / sigma;
    }
  const double mean = sum(kernel.weights) / static_cast<double>(size * size);
  for (double& weight : kernel.weights) weight -= mean;
  return kernel;
}

// The image, and AMOUNT times what the Gaussian takes from it.
Kernel make_unsharp(const Arguments& arguments) {
  const std::int64_t size = arguments.size(0);
  if (size % 2 == 0)
    arguments.refuse(0, "SIZE", "odd: the image itself stands in the middle, and an even size has none");
  const double sigma = arguments.sigma(1);
  const double amount = arguments.number(2, "AMOUNT", "a finite number", [](double) { return true; });
  const std::vector<double> factor = gaussian_factor(size, sigma);
  Kernel kernel = outer_product(factor, factor);
  double& middle = kernel.weights[kernel.weights.size() / 2];
  const double taken = 1 - middle;
  for (double& weight : kernel.weights) weight = 0 - amount * weight;
  middle = 1 + amount * taken;
  return kernel;
}

Kernel make_motion(const Arguments& arguments) {
  constexpr double longest = static_cast<double>(largest_kernel_side) - 2;
  const double length = arguments.number(0, "LENGTH", fmt::format("a number from 1 to {}", longest),
                                         [](double value) { return value >= 1 && value <= longest; });
  return motion_kernel(length, arguments.number(1, "DEGREES", "a finite number", [](double) { return true; }));
}

Kernel sobel_x() {
  return matrix({{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}});
}
Kernel prewitt_x() {
  return matrix({{-1, 0, 1}, {-1, 0, 1}, {-1, 0, 1}});
}
Kernel scharr_x() {
  return matrix({{-3, 0, 3}, {-10, 0, 10}, {-3, 0, 3}});
}

// The magnitude of a kernel and its transpose.
Kernel with_transpose(Kernel kernel) {
  kernel.second_weights = transposed(kernel).weights;
  return kernel;
}

struct Named {
  std::string_view name;
  std::size_t fewest = 0, most = 0;  // arguments
  Kernel (*make)(const Arguments&);
  std::string_view meaning;
  std::string_view usage = name;
};

constexpr std::array named = {
    Named{"identity", 0, 0, [](const Arguments&) { return matrix({{1}}); }, "the image itself"},
    Named{"box", 1, 1, make_box, "mean of SIZE x SIZE pixels; box:WIDTHxHEIGHT of others", "box:SIZE"},
    Named{"average", 1, 1, make_box, "the same as box", "average:SIZE"},
    Named{"blur", 1, 1, make_blur, "Gaussian blur as large as its SIGMA in pixels needs: to four SIGMA either side",
          "blur:SIGMA"},
    Named{"gaussian", 1, 2, make_gaussian, "Gaussian blur; SIGMA in pixels, by default 0.3 ((SIZE - 1) / 2 - 1) + 0.8",
          "gaussian:SIZE[,SIGMA]"},
    Named{"laplacian", 0, 0,
          [](const Arguments&) {
            return matrix({{0, 1, 0}, {1, -4, 1}, {0, 1, 0}});
          },
          "second derivatives, four neighbours"},
    Named{"log", 2, 2, make_log, "Laplacian of a Gaussian, sum 0", "log:SIZE,SIGMA"},
    Named{"sobel", 0, 0, [](const Arguments&) { return with_transpose(sobel_x()); },
          "strength of edges: magnitude of sobel-x and sobel-y"},
    Named{"sobel-x", 0, 0, [](const Arguments&) { return sobel_x(); }, "change along a row, smoothed 1 2 1"},
    Named{"sobel-y", 0, 0, [](const Arguments&) { return transposed(sobel_x()); }, "the same down a column"},
    Named{"prewitt", 0, 0, [](const Arguments&) { return with_transpose(prewitt_x()); },
          "the same of prewitt-x and prewitt-y"},
    Named{"prewitt-x", 0, 0, [](const Arguments&) { return prewitt_x(); }, "change along a row, smoothed 1 1 1"},
    Named{"prewitt-y", 0, 0, [](const Arguments&) { return transposed(prewitt_x()); }, "the same down a column"},
    Named{"scharr", 0, 0, [](const Arguments&) { return with_transpose(scharr_x()); },
          "the same of scharr-x and scharr-y"},
    Named{"scharr-x", 0, 0, [](const Arguments&) { return scharr_x(); }, "change along a row, smoothed 3 10 3"},
    Named{"scharr-y", 0, 0, [](const Arguments&) { return transposed(scharr_x()); }, "the same down a column"},
    Named{"sharpen", 0, 0,
          [](const Arguments&) {
            return matrix({{0, -1, 0}, {-1, 5, -1}, {0, -1, 0}});
          },
          "the image less its laplacian"},
    Named{"unsharp", 3, 3, make_unsharp, "the image and AMOUNT times what gaussian:SIZE,SIGMA takes from it",
          "unsharp:SIZE,SIGMA,AMOUNT"},
    Named{"emboss", 0, 0,
          [](const Arguments&) {
            return matrix({{-2, -1, 0}, {-1, 1, 1}, {0, 1, 2}});
          },
          "relief lit from the upper left"},
    Named{"motion", 2, 2, make_motion, "smear along a line LENGTH pixels long, DEGREES from the horizontal",
          "motion:LENGTH,DEGREES"},
};

const Named& find_named(std::string_view name) {
  const auto found = std::find_if(named.begin(), named.end(), [&](const Named& entry) { return entry.name == name; });
  if (found != named.end()) return *found;
  std::vector<std::string_view> names;
  for (const Named& entry : named) names.push_back(entry.name);
  throw bad_input(fmt::format("unknown kernel {}: {}", quoted(name), suggest(name, names)));
}

}  // namespace

void validate(const Kernel& kernel, std::string_view source) {
  if (kernel.r < 1 || kernel.s < 1 || kernel.r > largest_kernel_side || kernel.s > largest_kernel_side)
    throw bad_input(fmt::format("{}: the kernel is {} x {}; it must have 1 to {} rows and columns", source, kernel.r,
                                kernel.s, largest_kernel_side));
  bool all_zero = true;
  for (std::size_t i = 0; i < kernel.weights.size(); ++i) {
    const double weight = kernel.weights[i];
    const auto position = static_cast<std::int64_t>(i);
    if (!std::isfinite(weight))
      throw bad_input(fmt::format("{}: the weight in row {}, column {} is {}; weights must be finite", source,
                                  position / kernel.s + 1, position % kernel.s + 1, weight));
    all_zero = all_zero && weight == 0;
  }
  if (all_zero) throw bad_input(fmt::format("{}: all weights are zero; at least one must not be", source));
}

std::span<const KernelDescription> named_kernels() {
  static const auto descriptions = [] {
    std::array<KernelDescription, named.size()> result;
    std::transform(named.begin(), named.end(), result.begin(), [](const Named& entry) {
      return KernelDescription{entry.usage, entry.meaning};
    });
    return result;
  }();
  return descriptions;
}

Kernel named_kernel(std::string_view text) {
  const std::string_view call = trimmed(text);
  const auto colon = call.find(':');
  const Named& entry = find_named(trimmed(call.substr(0, colon)));
  std::vector<std::string_view> values;
  for (auto rest = colon; rest != std::string_view::npos;) {
    const auto comma = call.find(',', rest + 1);
    values.push_back(trimmed(call.substr(rest + 1, comma == std::string_view::npos ? comma : comma - rest - 1)));
    rest = comma;
  }
  if (values.size() < entry.fewest || values.size() > entry.most) {
    const std::string takes = entry.most == 0 ? "no arguments"
                              : entry.fewest == entry.most
                                  ? fmt::format("{} argument{}", entry.most, entry.most == 1 ? "" : "s")
                                  : fmt::format("{} to {} arguments", entry.fewest, entry.most);
    throw bad_input(fmt::format("kernel {}: {} given; {} takes {}: write {}", quoted(call), values.size(), entry.name,
                                takes, entry.usage));
  }
  Kernel kernel = entry.make(Arguments(call, std::move(values)));
  validate(kernel, fmt::format("kernel {}", quoted(call)));
  return kernel;
}

Filter filter_of(const Kernel& kernel) {
  return {.weights = kernel.weights,
          .anchor_y = kernel.anchor_y,
          .anchor_x = kernel.anchor_x,
          .second_weights = kernel.second_weights};
}

Kernel turned_to_stored(const Kernel& kernel, int orientation) {
  // A step down or right in the upright picture is a step along one stored axis, forwards or backwards.
  const bool transposed = orientation >= 5 && orientation <= 8;
  const bool rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Kernel turned{.r = transposed ? kernel.s : kernel.r,
                .s = transposed ? kernel.r : kernel.s,
                .weights = kernel.weights,
                .second_weights = kernel.second_weights};
  struct Tap {
    std::int64_t row, column;
  };
  const auto stored = [&](std::int64_t r, std::int64_t s) {
    const std::int64_t row = transposed ? s : r, column = transposed ? r : s;
    return Tap{rows_back ? turned.r - 1 - row : row, columns_back ? turned.s - 1 - column : column};
  };
  for (std::int64_t r = 0; r < kernel.r; ++r)
    for (std::int64_t s = 0; s < kernel.s; ++s) {
      const auto [row, column] = stored(r, s);
      const auto to = static_cast<std::size_t>(row * turned.s + column),
                 from = static_cast<std::size_t>(r * kernel.s + s);
      turned.weights[to] = kernel.weights[from];
      // Each kernel of a pair is turned by itself and keeps its place, so that the magnitude has the upright bits.
      if (!kernel.second_weights.empty()) turned.second_weights[to] = kernel.second_weights[from];
    }
  const auto [anchor_y, anchor_x] =
      stored(kernel.anchor_y.value_or(kernel.r / 2), kernel.anchor_x.value_or(kernel.s / 2));
  turned.anchor_y = anchor_y;
  turned.anchor_x = anchor_x;
  return turned;
}

void normalize(Kernel& kernel) {
  if (!kernel.second_weights.empty())
    throw bad_input(
        "the kernel cannot be normalized: it is a pair, whose magnitude is no weighted sum; leave the normalization "
        "out, or give --scale");
  const double total = sum(kernel.weights);
  double magnitudes = 0;
  for (const double weight : kernel.weights) magnitudes += std::abs(weight);
  if (!std::isfinite(magnitudes))
    throw bad_input(
        "the kernel cannot be normalized: the sum of its weights passes the largest double; scale them down");
  // Adding n doubles errs by at most (n - 1) epsilon times the sum of magnitudes.
  const double rounding =
      static_cast<double>(kernel.weights.size()) * std::numeric_limits<double>::epsilon() * magnitudes;
  if (std::abs(total) <= rounding)
    throw bad_input("the kernel cannot be normalized: its weights sum to zero; leave the normalization out");
  for (double& weight : kernel.weights) weight /= total;
}

}  // namespace omniconv
