// Trained networks as ONNX files (onnx.ai), for other programs and from them.
//
// A file that export_onnx writes has operators of opset 13, an input "input", N x C x H x W in f32, of pixels that are
// standardised, with an N that is left open, and an output "logits", N x classes. The model's name is the graph's. The
// set's name, its classes, and the means and deviations of its channels are in the file's metadata, as
// omniconv.dataset, omniconv.classes, omniconv.mean and omniconv.deviation (JSON); import_onnx finds them again.
//
// import_onnx takes networks that a Model can say: one chain of layers, and shortcuts that are added to it.
// docs/training.md has the operators. Files are taken for hostile; what cannot be taken is named by its node.
#pragma once

#include <string>

#include "omniconv/checkpoint.h"

namespace omniconv {

// The parameters alone: not what the optimiser has, nor where the training is. Throws environment_error in a build
// without ONNX, and bad_input for a checkpoint that lacks a tensor.
void export_onnx(const Checkpoint& checkpoint, const std::string& path);

// A checkpoint before the first update. Where the file does not say, the classes are "0", "1", ..., and pixels are
// taken from 0 to 1, as they are: means of 0, deviations of 1.
Checkpoint import_onnx(const std::string& path);

}  // namespace omniconv
