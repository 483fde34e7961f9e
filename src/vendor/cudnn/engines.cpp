// cuDNN's backend: an operation graph of one convolution, and what its heuristics list for it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "vendor/cudnn/convolution.h"

namespace omniconv::vendor::cudnn {
namespace {

// A descriptor of the backend, which refers to others but does not own them.
class Descriptor {
 public:
  explicit Descriptor(int kind) { check("cudnnBackendCreateDescriptor", api().BackendCreateDescriptor(kind, &raw_)); }
  ~Descriptor() {
    if (raw_ != nullptr) api().BackendDestroyDescriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  cudnnBackendDescriptor_t get() const { return raw_; }

  template <typename T>
  Descriptor& set(int attribute, int type, std::span<const T> values) {
    check("cudnnBackendSetAttribute",
          api().BackendSetAttribute(raw_, attribute, type, static_cast<std::int64_t>(values.size()), values.data()));
    return *this;
  }
  template <typename T>
  Descriptor& set(int attribute, int type, const T& value) {
    return set(attribute, type, std::span<const T>(&value, 1));
  }
  Descriptor& set(int attribute, const Descriptor& value) {
    return set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  Descriptor& finalize() {
    check("cudnnBackendFinalize", api().BackendFinalize(raw_));
    return *this;
  }
  // How many values there are; `room` of them are filled in.
  template <typename T>
  std::int64_t get(int attribute, int type, std::int64_t room, T* values) const {
    std::int64_t count = 0;
    check("cudnnBackendGetAttribute", api().BackendGetAttribute(raw_, attribute, type, room, &count, values));
    return count;
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

enum Id : std::int64_t { id_of_x = 1, id_of_w, id_of_y };

// Strides of n, c, h, w in elements, of what lies in memory in the layout.
Descriptor tensor(std::int64_t id, const Conv2dProblem& problem, const std::array<std::int64_t, 4>& extents) {
  const auto [n, c, h, w] = extents;
  const std::array<std::int64_t, 4> strides = problem.layout == Layout::nhwc
                                                  ? std::array<std::int64_t, 4>{h * w * c, 1, w * c, c}
                                                  : std::array<std::int64_t, 4>{c * h * w, h * w, w, 1};
  constexpr std::int64_t alignment = 16;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(problem.type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const std::int64_t>(strides))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment)
      .finalize();
  return made;
}

Descriptor convolution(const Conv2dProblem& problem) {
  constexpr std::int64_t dimensions = 2;
  const std::array<std::int64_t, 2> stride = {problem.stride_h, problem.stride_w},
                                    dilation = {problem.dilation_h, problem.dilation_w},
                                    before = {problem.pad_top, problem.pad_left},
                                    behind = {problem.pad_bottom, problem.pad_right};
  const int mode = problem.flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, dimensions)
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, mode)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(before))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(behind))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(dilation))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, std::span<const std::int64_t>(stride))
      .finalize();
  return made;
}

// The attributes of a pass: those of alpha, beta and the convolution follow each other.
struct Names {
  int operation, alpha, x, w, y;
};
Names names_of(Pass pass) {
  switch (pass) {
    case Pass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case Pass::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    case Pass::forward: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
}

// All that the graph's descriptors refer to.
class Graph {
 public:
  Graph(const Conv2dProblem& problem, cudnnHandle_t handle)
      : x_(tensor(id_of_x, problem, {problem.n, problem.c, problem.h, problem.w})),
        w_(tensor(id_of_w, problem, {problem.k, problem.c / problem.groups, problem.r, problem.s})),
        y_(tensor(id_of_y, problem, {problem.n, problem.k, P(problem), Q(problem)})),
        convolution_(convolution(problem)),
        operation_(names_of(problem.pass).operation),
        graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const Names names = names_of(problem.pass);
    const float alpha = 1, beta = problem.accumulate ? 1.0F : 0.0F;
    operation_.set(names.alpha, CUDNN_TYPE_FLOAT, alpha)
        .set(names.alpha + 1, CUDNN_TYPE_FLOAT, beta)
        .set(names.alpha + 2, convolution_)
        .set(names.x, x_)
        .set(names.w, w_)
        .set(names.y, y_)
        .finalize();
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_)
        .finalize();
  }
  const Descriptor& get() const { return graph_; }

 private:
  Descriptor x_, w_, y_, convolution_, operation_, graph_;
};

// What an engine says of its arithmetic.
struct Engine {
  std::int64_t index = -1;
  bool is_fp32 = true, is_deterministic = true;
};

Engine engine_of(const Descriptor& configuration) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  Engine found;
  engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &found.index);
  std::array<int, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t count =
      engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), notes.data());
  for (const int note : std::span(notes).first(static_cast<std::size_t>(std::min<std::int64_t>(count, notes.size())))) {
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
        note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
      found.is_fp32 = false;
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) found.is_deterministic = false;
  }
  return found;
}

// The knobs of a configuration, and what they are set to, which together with the engine's number say all of it; empty
// where it does not tell.
std::string knobs_of(const Descriptor& configuration) try {
  constexpr std::int64_t most = 64;
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i)
    raw.push_back(choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).get());
  const std::int64_t count =
      configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  if (count > most) return {};
  std::string text = "knobs";
  for (std::int64_t i = 0; i < count; ++i) {
    const Descriptor& choice = choices[static_cast<std::size_t>(i)];
    int type = 0;
    std::int64_t value = 0;
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    text += fmt::format(" {}={}", type, value);
  }
  return text;
} catch (const Error&) {
  return {};
}

class EnginePlan final : public Convolution {
 public:
  EnginePlan(std::shared_ptr<const Graph> graph, std::shared_ptr<const Descriptor> configuration, const Engine& engine,
             CudnnHandle& handle)
      : graph_(std::move(graph)),
        configuration_(std::move(configuration)),
        engine_(engine),
        handle_(handle),
        plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle.raw)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *configuration_)
        .finalize();
    plan_.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace_bytes_);
  }

  Run on(const Arrays& arrays) const override {
    const std::array<std::int64_t, 3> ids = {id_of_x, id_of_w, id_of_y};
    const std::array<void*, 3> addresses = {arrays.x, arrays.w, arrays.y};
    const auto pack = std::make_shared<Descriptor>(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack->set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(ids))
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(addresses))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, arrays.workspace)
        .finalize();
    return [this, pack](CUstream stream) {
      const std::lock_guard one_at_a_time(handle_.mutex);
      check("cudnnSetStream", api().SetStream(handle_.raw, stream));
      return api().BackendExecute(handle_.raw, plan_.get(), pack->get());
    };
  }
  std::int64_t workspace_bytes() const override { return workspace_bytes_; }
  operations::Tuning name() const override { return {{"engine", engine_.index}}; }
  bool is_deterministic() const override { return engine_.is_deterministic; }

 private:
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Descriptor> configuration_;
  Engine engine_;
  CudnnHandle& handle_;
  Descriptor plan_;
  std::int64_t workspace_bytes_ = 0;
};

// Nothing where the heuristics know nothing.
std::vector<std::shared_ptr<const Descriptor>> configurations(const Graph& graph, int mode) {
  constexpr std::int64_t most = 128;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  std::vector<std::shared_ptr<const Descriptor>> made;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i) {
    made.push_back(std::make_shared<const Descriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(made.back()->get());
  }
  std::int64_t count = 0;
  try {
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get())
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
        .finalize();
    count = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  } catch (const Error&) {
    count = 0;
  }
  made.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, most)));
  return made;
}

}  // namespace

std::vector<MakeConvolution> engines_for(const Conv2dProblem& problem, CudnnHandle& handle) {
  std::vector<MakeConvolution> all;
  const std::lock_guard listing(handle.mutex);
  std::shared_ptr<const Graph> graph;
  try {
    graph = std::make_shared<const Graph>(problem, handle.raw);
  } catch (const Error&) {
    return all;  // no graph of this problem
  }
  std::set<std::string> seen;  // the modes list many alike
  for (const int mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const std::shared_ptr<const Descriptor>& configuration : configurations(*graph, mode)) {
      const Engine engine = engine_of(*configuration);
      if (needs_fp32(problem) && !engine.is_fp32) continue;
      const std::string knobs = knobs_of(*configuration);
      if (!knobs.empty() && !seen.insert(fmt::format("{} {}", engine.index, knobs)).second) continue;
      all.push_back([=, &handle](std::int64_t most_workspace) -> std::shared_ptr<const Convolution> {
        const std::lock_guard one_at_a_time(handle.mutex);
        try {
          auto plan = std::make_shared<const EnginePlan>(graph, configuration, engine, handle);
          if (plan->workspace_bytes() <= most_workspace) return plan;
        } catch (const Error&) {  // listed, and refused all the same
        }
        return nullptr;
      });
    }
  }
  return all;
}

}  // namespace omniconv::vendor::cudnn
