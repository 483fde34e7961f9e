// Where a run's arrays lie.
#pragma once

#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/fft/blocking.h"
#include "operations/conv2d/fft/lanes.h"
#include "operations/host_operand.h"

namespace omniconv::operations {

inline FftTransforms<float> fft_transforms(const FftBlocking& cut, float) {
  return fft_transforms_f32(cut.shape.side);
}
inline FftTransforms<double> fft_transforms(const FftBlocking& cut, double) {
  return fft_transforms_f64(cut.shape.side);
}

template <typename Real>
struct FftMemory {
  FftImages<Real> x, y;
  Real* w;
  const Real* bias;
  Real *scratch, *inputs, *filters, *sums;  // in the workspace

  FftMemory(const Conv2dShape& g, const FftBlocking& cut, const Conv2dRun& run)
      : x{real(run.x), g.c, g.h, g.w, g.nhwc},
        y{real(run.y), g.k, g.p, g.q, g.nhwc},
        w(real(run.w)),
        bias(real(run.bias)),
        scratch(real({run.workspace, 0})),
        inputs(scratch + cut.threads * cut.scratch),
        filters(cut.shape.is_depthwise() ? inputs : inputs + cut.shape.bins * cut.input_bin()),
        sums(cut.prepared ? filters : filters + cut.shape.bins * cut.filter_bin()) {
    if (cut.prepared) filters = w;
  }
  // To prepare filters: they, their spectra, and scratch.
  FftMemory(const Operand& from, const Operand& to, const devices::Buffer& of_threads)
      : x{},
        y{},
        w(real(from)),
        bias(nullptr),
        scratch(reinterpret_cast<Real*>(of_threads.host())),
        inputs(nullptr),
        filters(real(to)),
        sums(nullptr) {}

  static FftImages<const Real> read(const FftImages<Real>& images) {
    return {images.data, images.channels, images.h, images.w, images.nhwc};
  }

 private:
  static Real* real(const Operand& operand) { return reinterpret_cast<Real*>(host(operand)); }
};

}  // namespace omniconv::operations
