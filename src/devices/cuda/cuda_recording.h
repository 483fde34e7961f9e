// A sequence as a CUDA graph.
#pragma once

#include "devices/cuda/cuda_launch.h"
#include "devices/recording.h"

namespace omniconv::devices::cuda {

// Captured on a stream of its own, so that the graph holds what a stream would be given: clusters, overlaps and native
// calls too. Sequences that call anew at each replay, or cannot be captured, stay lists of steps.
class CudaRecording final : public Recording {
 public:
  // Of a sequence that was checked.
  CudaRecording(std::shared_ptr<const Sequence> sequence, std::string device_id,
                std::shared_ptr<SharedContext> context);
  ~CudaRecording() override;

  // On a stream of the context, which is current: first gives the launches whose scalars have changed their new values.
  void enqueue(CUstream stream) const;

 private:
  // A launch with scalars that may change, and those that the graph has.
  struct Changing {
    const Sequence::Launch* launch = nullptr;
    CUgraphNode node = nullptr;
    std::vector<float> values = {};
  };

  void capture();
  // An argument of the launch is a changing scalar.
  bool changes(const Sequence::Launch& launch) const;
  void note_values(Changing& changing, const LaunchValues& values) const;
  bool has_changed(const Changing& changing) const;
  void update(Changing& changing) const;
  void destroy() noexcept;

  const std::shared_ptr<SharedContext> context_;
  CUgraph captured_ = nullptr;
  CUgraphExec graph_ = nullptr;
  mutable std::mutex mutex_;  // of what the graph has
  mutable std::vector<Changing> changing_;
};

}  // namespace omniconv::devices::cuda
