#include "cases.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "data.h"

namespace omniconv::hashes {
namespace {

// The first three are those that GPUs have. Seven types of pixels, and turns of three, four and five: all meet.
constexpr DataType matrix_types[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::tf32, DataType::f64};
constexpr std::size_t gpu_types = 3;
constexpr DataType pixel_types[] = {DataType::s16, DataType::f16, DataType::f32, DataType::u16,
                                    DataType::s32, DataType::u8,  DataType::f64};

// `odd` of shrunk().
std::vector<bool> ways_of_shrinking(std::size_t place, bool thorough) {
  return thorough ? std::vector{false, true} : std::vector{place % 2 == 1};
}

// floor((extent + padding - dilation * (window - 1) - 1) / stride) + 1; not positive where nothing fits.
std::int64_t output_extent(std::int64_t extent, std::int64_t padding, std::int64_t window, std::int64_t dilation,
                           std::int64_t stride) {
  const std::int64_t room = extent + padding - dilation * (window - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}
std::int64_t output_rows(const Conv2dProblem& p) {
  return output_extent(p.h, p.pad_top + p.pad_bottom, p.r, p.dilation_h, p.stride_h);
}
std::int64_t output_columns(const Conv2dProblem& p) {
  return output_extent(p.w, p.pad_left + p.pad_right, p.s, p.dilation_w, p.stride_w);
}

struct Extent {
  std::int64_t* value;
  std::int64_t least;
  bool was_halved = false;
};

void shrink(std::vector<Extent> extents, bool odd, const std::function<bool()>& is_small) {
  while (!is_small()) {
    Extent* largest = nullptr;
    for (Extent& extent : extents)
      if (*extent.value / 2 >= extent.least && (!largest || *extent.value > *largest->value)) largest = &extent;
    if (!largest) return;
    *largest->value /= 2;
    largest->was_halved = true;
  }
  for (const Extent& extent : extents)
    if (odd && extent.was_halved) *extent.value |= 1;
}

}  // namespace

double multiply_adds(const Filter2dProblem& p) {
  return static_cast<double>(p.h) * static_cast<double>(p.w) * static_cast<double>(p.c) *
         static_cast<double>(p.r * p.s);
}
double multiply_adds(const Conv2dProblem& p) {
  return static_cast<double>(p.n * p.k) * static_cast<double>(output_rows(p) * output_columns(p)) *
         static_cast<double>(p.c / p.groups * p.r * p.s);
}
double multiply_adds(const GemmProblem& p) {
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.batch);
}

#if HAS_POOL2D
double multiply_adds(const Pool2dProblem& p) {
  return static_cast<double>(p.n * p.c) * static_cast<double>(P(p) * Q(p)) * static_cast<double>(p.r * p.s);
}
#endif
#if HAS_ACTIVATION
double multiply_adds(const ActivationProblem& p) {
  return static_cast<double>(p.n * p.c) * static_cast<double>(p.h * p.w);
}
#endif
#if HAS_BIAS_ADD
double multiply_adds(const BiasAddProblem& p) {
  return static_cast<double>(p.n * p.c) * static_cast<double>(p.h * p.w);
}
#endif
#if HAS_ADD
double multiply_adds(const AddProblem& p) {
  return static_cast<double>(p.n * std::max(p.c * p.h * p.w, p.k * P(p) * Q(p)));
}
#endif
#if HAS_DROPOUT
double multiply_adds(const DropoutProblem& p) {
  return static_cast<double>(p.n);
}
#endif
#if HAS_BATCH_NORM
double multiply_adds(const BatchNormProblem& p) {
  return static_cast<double>(p.n * p.c) * static_cast<double>(p.h * p.w);
}
#endif
#if HAS_LOSS
double multiply_adds(const LossProblem& p) {
  return static_cast<double>(p.n) * static_cast<double>(p.c);
}
#endif
#if HAS_NORM
double multiply_adds(const NormProblem& p) {
  return static_cast<double>(p.n);
}
#endif
#if HAS_UPDATE
double multiply_adds(const UpdateProblem& p) {
  return static_cast<double>(p.n);
}
#endif
#if HAS_BATCH
double multiply_adds(const BatchProblem& p) {
  return static_cast<double>(p.n * p.c) * static_cast<double>(p.h * p.w);
}
#endif

Filter2dProblem shrunk(Filter2dProblem problem, bool odd) {
  const auto is_small = [&] {
    return multiply_adds(problem) <= most_of_filters &&
           static_cast<double>(problem.h * problem.w * problem.c) <= most_pixels;
  };
  shrink({{&problem.h, problem.r}, {&problem.w, problem.s}}, odd, is_small);
  return problem;
}

Conv2dProblem shrunk(Conv2dProblem problem, bool odd) {
  std::int64_t c = problem.c / problem.groups, k = problem.k / problem.groups;
  const auto is_small = [&] {
    problem.c = c * problem.groups, problem.k = k * problem.groups;
    return multiply_adds(problem) <= most_of_convolutions;
  };
  shrink({{&problem.n, 1}, {&problem.h, problem.r}, {&problem.w, problem.s}, {&c, 1}, {&k, 1}, {&problem.groups, 1}},
         odd, is_small);
  is_small();  // c and k of the groups that are left
  return problem;
}

GemmProblem shrunk(GemmProblem problem, bool odd) {
  shrink({{&problem.m, 1}, {&problem.n, 1}, {&problem.k, 1}}, odd,
         [&] { return multiply_adds(problem) <= most_of_products; });
  return problem;
}

#if HAS_POOL2D
Pool2dProblem shrunk(Pool2dProblem problem, bool odd) {
  const auto is_small = [&] {
    return multiply_adds(problem) <= most_of_filters &&
           static_cast<double>(problem.n * problem.c * problem.h * problem.w) <= most_pixels;
  };
  shrink({{&problem.n, 1}, {&problem.c, 1}, {&problem.h, problem.r}, {&problem.w, problem.s}}, odd, is_small);
  return problem;
}
#endif
#if HAS_ACTIVATION
ActivationProblem shrunk(ActivationProblem problem, bool odd) {
  shrink({{&problem.n, 1}, {&problem.c, 1}, {&problem.h, 1}, {&problem.w, 1}}, odd,
         [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_BIAS_ADD
BiasAddProblem shrunk(BiasAddProblem problem, bool odd) {
  shrink({{&problem.n, 1}, {&problem.c, 1}, {&problem.h, 1}, {&problem.w, 1}}, odd,
         [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_ADD
AddProblem shrunk(AddProblem problem, bool odd) {
  std::int64_t c = problem.c, beyond = problem.k - problem.c;
  const auto is_small = [&] {
    problem.c = c, problem.k = c + beyond;
    return multiply_adds(problem) <= most_pixels;
  };
  shrink({{&problem.n, 1}, {&c, 1}, {&problem.h, 1}, {&problem.w, 1}, {&beyond, 0}}, odd, is_small);
  is_small();  // c and k of what is left
  return problem;
}
#endif
#if HAS_DROPOUT
DropoutProblem shrunk(DropoutProblem problem, bool odd) {
  shrink({{&problem.n, 1}}, odd, [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_BATCH_NORM
BatchNormProblem shrunk(BatchNormProblem problem, bool odd) {
  // A channel keeps two elements, which have a variance.
  shrink({{&problem.n, std::min<std::int64_t>(problem.n, 2)}, {&problem.c, 1}, {&problem.h, 1}, {&problem.w, 1}}, odd,
         [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_LOSS
LossProblem shrunk(LossProblem problem, bool odd) {
  shrink({{&problem.n, 1}, {&problem.c, 1}}, odd, [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_NORM
NormProblem shrunk(NormProblem problem, bool odd) {
  shrink({{&problem.n, 1}}, odd, [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_UPDATE
UpdateProblem shrunk(UpdateProblem problem, bool odd) {
  shrink({{&problem.n, 1}}, odd, [&] { return multiply_adds(problem) <= most_pixels; });
  return problem;
}
#endif
#if HAS_BATCH
BatchProblem shrunk(BatchProblem problem, bool odd) {
  const auto is_small = [&] {
    const double set = static_cast<double>(problem.m * problem.c) * static_cast<double>(problem.h * problem.w);
    return multiply_adds(problem) <= most_pixels && set <= 4 * most_pixels;
  };
  const std::int64_t least = problem.shift + 1;
  shrink({{&problem.m, 1}, {&problem.n, 1}, {&problem.c, 1}, {&problem.h, least}, {&problem.w, least}}, odd, is_small);
  return problem;
}
#endif

std::vector<Filter2dProblem> cases_of(const Filter2dProblem& problem, std::size_t place, bool thorough) {
  std::vector<Filter2dProblem> cases;
  std::size_t turn = place;
  for (const bool odd : ways_of_shrinking(place, thorough)) {
    Filter2dProblem one = shrunk(problem, odd);
    one.name.clear();
    const auto add = [&](Filter2dProblem of_type) {
      if (problem.kernel != "random") return cases.push_back(of_type);
      for (std::size_t i = 0; i < (thorough ? std::size(weight_kinds) : 1); ++i, ++turn) {
        of_type.kernel = weight_kinds[turn % std::size(weight_kinds)];
        cases.push_back(of_type);
      }
    };
    add(one);
    Filter2dProblem other = one;
    other.alpha_channel = one.c - 1;
    if (one.c >= 2 && one.alpha_channel < 0 && !is_gradient(one)) add(other);
    other = one;
    other.input = pixel_types[place % std::size(pixel_types)];
    other.output = place % 3 == 2 ? one.output : other.input;
    add(other);
    other.input = other.output = DataType::f64;
    if (thorough) add(other);
  }
  return cases;
}

std::vector<Conv2dProblem> cases_of(const Conv2dProblem& problem, std::size_t place, bool thorough) {
  std::vector<Conv2dProblem> cases;
  const std::size_t types = thorough ? std::size(matrix_types) : gpu_types;
  std::size_t turn = place;
  for (const bool odd : ways_of_shrinking(place, thorough))
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_filter}) {
      Conv2dProblem one = shrunk(problem, odd);
      one.name.clear();
      one.pass = pass;
      if (pass != Pass::forward) one.bias = one.relu = false;
      if (thorough) cases.push_back(one);
      for (std::size_t i = 0; i < (thorough ? 2 * types : 1); ++i, ++turn) {
        one.type = matrix_types[turn % types];
        one.layout = turn / types % 2 == 0 ? Layout::nhwc : Layout::nchw;
        one.accumulate = turn % 4 == 1;
        one.bias = one.relu = pass == Pass::forward && turn % 4 == 2;
        cases.push_back(one);
      }
    }
  return cases;
}

std::vector<GemmProblem> cases_of(const GemmProblem& problem, std::size_t place, bool thorough) {
  std::vector<GemmProblem> cases;
  const std::size_t types = thorough ? std::size(matrix_types) : gpu_types;
  std::size_t turn = place;
  for (const bool odd : ways_of_shrinking(place, thorough)) {
    GemmProblem one = shrunk(problem, odd);
    one.name.clear();
    if (thorough) cases.push_back(one);
    for (std::size_t i = 0; i < (thorough ? types : 1); ++i, ++turn) {
      one.type = matrix_types[turn % types];
      cases.push_back(one);
    }
  }
  return cases;
}

namespace {

// Forward and backward, in types and, where there are any, layouts.
template <typename T>
std::vector<T> passes_of(const T& problem, std::size_t place, bool thorough) {
  constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::f64};
  const std::size_t count = thorough ? std::size(types) : gpu_types;
  std::vector<T> cases;
  std::size_t turn = place;
  for (const bool odd : ways_of_shrinking(place, thorough))
    for (const bool backward : {false, true}) {
      T one = shrunk(problem, odd);
      one.name.clear();
      one.backward = backward;
      constexpr bool has_layouts = requires {
        one.layout;
      };
      constexpr bool has_sums = requires {
        one.sums;
      };
      for (std::size_t i = 0; i < (thorough ? (has_layouts ? 2 : 1) * count : 1); ++i, ++turn) {
        one.type = types[turn % count];
        if constexpr (has_sums) one.sums = one.sums && backward;
        if constexpr (has_layouts) one.layout = turn / count % 2 == 0 ? Layout::nhwc : Layout::nchw;
        cases.push_back(one);
      }
    }
  return cases;
}

// As written, and in types.
template <typename T>
std::vector<T> types_of(const T& problem, std::size_t place, bool thorough) {
  constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::f64};
  const std::size_t count = thorough ? std::size(types) : gpu_types;
  std::vector<T> cases;
  for (const bool odd : ways_of_shrinking(place, thorough)) {
    T one = shrunk(problem, odd);
    one.name.clear();
    if (thorough) cases.push_back(one);
    for (std::size_t i = 0; i < (thorough ? count : 1); ++i) {
      one.type = types[(place + i) % count];
      cases.push_back(one);
    }
  }
  return cases;
}

}  // namespace

#if HAS_POOL2D
std::vector<Pool2dProblem> cases_of(const Pool2dProblem& problem, std::size_t place, bool thorough) {
  return passes_of(problem, place, thorough);
}
#endif
#if HAS_ACTIVATION
std::vector<ActivationProblem> cases_of(const ActivationProblem& problem, std::size_t place, bool thorough) {
  return passes_of(problem, place, thorough);
}
#endif
#if HAS_BIAS_ADD
std::vector<BiasAddProblem> cases_of(const BiasAddProblem& problem, std::size_t place, bool thorough) {
  return passes_of(problem, place, thorough);
}
#endif
#if HAS_ADD
std::vector<AddProblem> cases_of(const AddProblem& problem, std::size_t place, bool thorough) {
  std::vector<AddProblem> cases = passes_of(problem, place, thorough);
  for (AddProblem& one : cases) one.relu = one.relu && !one.backward;
  return cases;
}
#endif
#if HAS_BATCH_NORM
std::vector<BatchNormProblem> cases_of(const BatchNormProblem& problem, std::size_t place, bool thorough) {
  constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::f64};
  const std::size_t count = thorough ? std::size(types) : gpu_types;
  std::vector<BatchNormProblem> cases;
  std::size_t turn = place;
  for (const bool odd : ways_of_shrinking(place, thorough)) {
    BatchNormProblem one = shrunk(problem, odd);
    one.name.clear();
    for (std::size_t i = 0; i < (thorough ? 2 * count : 1); ++i, ++turn) {
      one.type = types[turn % count];
      one.layout = turn / count % 2 == 0 ? Layout::nhwc : Layout::nchw;
      cases.push_back(one);
    }
  }
  return cases;
}
#endif
#if HAS_LOSS
std::vector<LossProblem> cases_of(const LossProblem& problem, std::size_t place, bool thorough) {
  return passes_of(problem, place, thorough);
}
#endif
#if HAS_DROPOUT
std::vector<DropoutProblem> cases_of(const DropoutProblem& problem, std::size_t place, bool thorough) {
  return types_of(problem, place, thorough);
}
#endif
#if HAS_NORM
std::vector<NormProblem> cases_of(const NormProblem& problem, std::size_t place, bool thorough) {
  return types_of(problem, place, thorough);
}
#endif
#if HAS_UPDATE
std::vector<UpdateProblem> cases_of(const UpdateProblem& problem, std::size_t place, bool thorough) {
  return types_of(problem, place, thorough);
}
#endif
#if HAS_BATCH
std::vector<BatchProblem> cases_of(const BatchProblem& problem, std::size_t place, bool thorough) {
  constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16, DataType::f64};
  const std::size_t count = thorough ? std::size(types) : gpu_types;
  std::vector<BatchProblem> cases;
  std::size_t turn = place;
  for (const bool odd : ways_of_shrinking(place, thorough)) {
    BatchProblem one = shrunk(problem, odd);
    one.name.clear();
    for (std::size_t i = 0; i < (thorough ? 2 * count : 1); ++i, ++turn) {
      one.type = types[turn % count];
      one.layout = turn / count % 2 == 0 ? Layout::nhwc : Layout::nchw;
      cases.push_back(one);
    }
  }
  return cases;
}
#endif

}  // namespace omniconv::hashes
