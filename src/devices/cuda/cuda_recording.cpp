#include "devices/cuda/cuda_recording.h"

#include <algorithm>

#include "devices/cuda/cuda_steps.h"

namespace omniconv::devices::cuda {
namespace {

bool can_be_captured(const Sequence& sequence) {
  if (!api().GraphInstantiate || (sequence.changes() && !api().StreamGetCaptureInfo)) return false;
  return std::none_of(sequence.steps().begin(), sequence.steps().end(), [](const Sequence::Step& step) {
    const auto* const native = std::get_if<Sequence::Native>(&step);
    return native && !native->is_constant;
  });
}

// A stream that is being captured, which ends with it, whatever becomes of the capture.
class CapturedStream {
 public:
  CapturedStream() {
    check("cuStreamCreate", api().StreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    if (const CUresult code = api().StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED); code != CUDA_SUCCESS) {
      api().StreamDestroy(stream_);
      throw call_error("cuStreamBeginCapture", code);
    }
  }
  ~CapturedStream() {
    CUgraph unused = nullptr;
    if (!ended_ && api().StreamEndCapture(stream_, &unused) == CUDA_SUCCESS && unused) api().GraphDestroy(unused);
    api().StreamDestroy(stream_);
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;
  CUstream get() const { return stream_; }
  CUgraph end() {
    ended_ = true;
    CUgraph graph = nullptr;
    check("cuStreamEndCapture", api().StreamEndCapture(stream_, &graph));
    return graph;
  }

 private:
  CUstream stream_ = nullptr;
  bool ended_ = false;
};

// What the stream was given last.
CUgraphNode last_node(CUstream stream) {
  int status = 0;
  std::uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  check("cuStreamGetCaptureInfo",
        api().StreamGetCaptureInfo_v3
            ? api().StreamGetCaptureInfo_v3(stream, &status, &id, &graph, &nodes, &edges, &count)
            : api().StreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &count));
  if (count != 1) throw environment_error("cuStreamGetCaptureInfo: a launch is no single node");
  return nodes[0];
}

}  // namespace

CudaRecording::CudaRecording(std::shared_ptr<const Sequence> sequence, std::string device_id,
                             std::shared_ptr<SharedContext> context)
    : Recording(std::move(sequence), std::move(device_id), context->get()), context_(std::move(context)) {
  await_optimised(*this->sequence());
  if (!can_be_captured(*this->sequence())) return;
  const Current current(context_->get());
  try {
    capture();
  } catch (const Error&) {  // its steps say it again, to those who wait for them
    destroy();
  }
}

CudaRecording::~CudaRecording() {
  if (api().CtxPushCurrent(context_->get()) != CUDA_SUCCESS) return;
  destroy();
  CUcontext popped = nullptr;
  api().CtxPopCurrent(&popped);
}

void CudaRecording::destroy() noexcept {
  if (graph_) api().GraphExecDestroy(graph_);
  if (captured_) api().GraphDestroy(captured_);
  graph_ = nullptr;
  captured_ = nullptr;
}

void CudaRecording::capture() {
  CapturedStream stream;
  for (const Sequence::Step& step : sequence()->steps()) {
    const auto* const launch = std::get_if<Sequence::Launch>(&step);
    if (launch && !launch->is_empty() && changes(*launch)) {
      LaunchValues values(*sequence(), *launch);
      cuda::enqueue(*launch, values, *context_, stream.get());
      note_values(changing_.emplace_back(Changing{launch, last_node(stream.get())}), values);
    } else {
      enqueue_step(*sequence(), step, *context_, stream.get());
    }
  }
  captured_ = stream.end();
  check("cuGraphInstantiate", api().GraphInstantiate(&graph_, captured_, 0));
}

bool CudaRecording::changes(const Sequence::Launch& launch) const {
  const std::span<const Sequence::Argument> arguments = sequence()->arguments_of(launch);
  return std::any_of(arguments.begin(), arguments.end(), [](const Sequence::Argument& argument) {
    const auto* const scalar = std::get_if<Scalar>(&argument.value);
    return scalar && scalar->is_changing();
  });
}

void CudaRecording::note_values(Changing& changing, const LaunchValues& values) const {
  const std::span<const Sequence::Argument> arguments = sequence()->arguments_of(*changing.launch);
  changing.values.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (std::holds_alternative<Scalar>(arguments[i].value)) changing.values.push_back(values.scalar(i));
}

bool CudaRecording::has_changed(const Changing& changing) const {
  std::size_t i = 0;
  for (const Sequence::Argument& argument : sequence()->arguments_of(*changing.launch))
    if (const auto* const scalar = std::get_if<Scalar>(&argument.value))
      if (changing.values[i++] != static_cast<float>(scalar->value())) return true;
  return false;
}

void CudaRecording::update(Changing& changing) const {
  const Sequence::Launch& launch = *changing.launch;
  LaunchValues values(*sequence(), launch);
  const auto [groups, local] = shape_of(launch.grid);
  const CUDA_KERNEL_NODE_PARAMS_v1 parameters{function_of(launch, values),
                                              groups[0],
                                              groups[1],
                                              groups[2],
                                              local[0],
                                              local[1],
                                              local[2],
                                              static_cast<unsigned>(launch.options.local_memory_bytes),
                                              values.pointers(),
                                              nullptr};
  check("cuGraphExecKernelNodeSetParams", api().GraphExecKernelNodeSetParams(graph_, changing.node, &parameters));
  note_values(changing, values);
}

void CudaRecording::enqueue(CUstream stream) const {
  if (!graph_) return enqueue_steps(*sequence(), *context_, stream);
  const std::lock_guard lock(mutex_);
  for (Changing& changing : changing_)
    if (has_changed(changing)) update(changing);
  check("cuGraphLaunch", api().GraphLaunch(graph_, stream));
}

}  // namespace omniconv::devices::cuda
