// The cases that a problem of a list stands for: small enough to run every solver of, and varied in what the lists say
// once.
#pragma once

#include <omniconv/conv2d.h>
#include <omniconv/filter2d.h>
#include <omniconv/gemm.h>

#include <cstdint>
#include <vector>

#if __has_include(<omniconv/pool2d.h>)
#include <omniconv/pool2d.h>
#define HAS_POOL2D 1
#else
#define HAS_POOL2D 0  // a commit from before there was pooling
#endif

#if __has_include(<omniconv/activation.h>)
#include <omniconv/activation.h>
#define HAS_ACTIVATION 1
#else
#define HAS_ACTIVATION 0  // or activations
#endif

#if __has_include(<omniconv/bias_add.h>)
#include <omniconv/bias_add.h>
#define HAS_BIAS_ADD 1
#else
#define HAS_BIAS_ADD 0  // or biases
#endif
#if __has_include(<omniconv/add.h>)
#include <omniconv/add.h>
#define HAS_ADD 1
#else
#define HAS_ADD 0  // or shortcuts
#endif
#if __has_include(<omniconv/dropout.h>)
#include <omniconv/dropout.h>
#define HAS_DROPOUT 1
#else
#define HAS_DROPOUT 0  // or dropout
#endif
#if __has_include(<omniconv/batch_norm.h>)
#include <omniconv/batch_norm.h>
#define HAS_BATCH_NORM 1
#else
#define HAS_BATCH_NORM 0  // or batch normalisations
#endif
#if __has_include(<omniconv/loss.h>)
#include <omniconv/loss.h>
#define HAS_LOSS 1
#else
#define HAS_LOSS 0  // or losses
#endif
#if __has_include(<omniconv/norm.h>)
#include <omniconv/norm.h>
#define HAS_NORM 1
#else
#define HAS_NORM 0  // or norms
#endif
#if __has_include(<omniconv/update.h>)
#include <omniconv/update.h>
#define HAS_UPDATE 1
#else
#define HAS_UPDATE 0  // or updates
#endif
#if __has_include(<omniconv/batch.h>)
#include <omniconv/batch.h>
#define HAS_BATCH 1
#else
#define HAS_BATCH 0  // or batches
#endif

namespace omniconv::hashes {

// Multiply-adds of the largest problem that is run, and of the largest that a reference runs.
inline constexpr double most_of_filters = 0x1p24, most_of_convolutions = 0x1p24, most_of_products = 0x1p28,
                        most_of_references = 0x1p22;
// Elements of the largest image: under few taps its random numbers take longer than the filter.
inline constexpr double most_pixels = 0x1p20;

double multiply_adds(const Filter2dProblem& problem);
double multiply_adds(const Conv2dProblem& problem);
double multiply_adds(const GemmProblem& problem);
#if HAS_POOL2D
double multiply_adds(const Pool2dProblem& problem);  // what windows read
#endif
#if HAS_ACTIVATION
double multiply_adds(const ActivationProblem& problem);  // elements
#endif
#if HAS_BIAS_ADD
double multiply_adds(const BiasAddProblem& problem);  // elements
#endif
#if HAS_ADD
double multiply_adds(const AddProblem& problem);  // elements of the largest array
#endif
#if HAS_DROPOUT
double multiply_adds(const DropoutProblem& problem);  // elements
#endif
#if HAS_BATCH_NORM
double multiply_adds(const BatchNormProblem& problem);  // elements
#endif
#if HAS_LOSS
double multiply_adds(const LossProblem& problem);  // elements
#endif
#if HAS_NORM
double multiply_adds(const NormProblem& problem);  // elements
#endif
#if HAS_UPDATE
double multiply_adds(const UpdateProblem& problem);  // elements
#endif
#if HAS_BATCH
double multiply_adds(const BatchProblem& problem);  // elements of the batch
#endif

// Shrunk: the largest extent (h and w of images; n, h, w, and c and k of a group, of convolutions, or groups; m, n and
// k of products; n, c, h and w of poolings, activations, biases and batch normalisations; n, c, h, w and what k has
// beyond c of shortcuts; n and c of losses; n of dropout, norms and updates; m, n, c, h and w of batches) is halved,
// again and again, until the problem is small enough; h and w never below the filter's. Then the extents that were
// halved are made odd (`odd`: no tile is whole), or not.
Filter2dProblem shrunk(Filter2dProblem problem, bool odd);
Conv2dProblem shrunk(Conv2dProblem problem, bool odd);
GemmProblem shrunk(GemmProblem problem, bool odd);
#if HAS_POOL2D
Pool2dProblem shrunk(Pool2dProblem problem, bool odd);
#endif
#if HAS_ACTIVATION
ActivationProblem shrunk(ActivationProblem problem, bool odd);
#endif
#if HAS_BIAS_ADD
BiasAddProblem shrunk(BiasAddProblem problem, bool odd);
#endif
#if HAS_ADD
AddProblem shrunk(AddProblem problem, bool odd);
#endif
#if HAS_DROPOUT
DropoutProblem shrunk(DropoutProblem problem, bool odd);
#endif
#if HAS_BATCH_NORM
BatchNormProblem shrunk(BatchNormProblem problem, bool odd);
#endif
#if HAS_LOSS
LossProblem shrunk(LossProblem problem, bool odd);
#endif
#if HAS_NORM
NormProblem shrunk(NormProblem problem, bool odd);
#endif
#if HAS_UPDATE
UpdateProblem shrunk(UpdateProblem problem, bool odd);
#endif
#if HAS_BATCH
BatchProblem shrunk(BatchProblem problem, bool odd);
#endif

// The cases that a problem stands for: it is shrunk, loses its name, and is varied in what the lists say once.
//
// Thorough, for devices that compile nothing: shrunk both ways, and of each
// - a filter: every kind of weights, where its text asks for random ones; that again with alpha in the last of two or
//   more channels, with another type of pixels, and with f64;
// - a convolution: the three passes as written, and in all types and layouts, by turns with bias and relu, or acc;
// - a product: as written, and in all types;
// - a pooling, an activation, a bias, a shortcut, a loss: forward and backward, in all types and both layouts, where
// there
//   are any;
// - a batch normalisation: as written, in all types and both layouts;
// - dropout, a norm, an update: as written, and in all types;
// - a batch: in all types and both layouts.
// Else shrunk one way or the other, by turns, since each program costs a second of compilation:
// - a filter: one kind of weights, where its text asks for random ones; another with alpha, and with another type;
// - a convolution: the three passes, types, layouts, bias and relu, and acc changing by turns;
// - a product: types changing by turns;
// - a pooling, an activation, a bias, a shortcut, a loss: forward and backward, types and layouts changing by turns;
// - a batch normalisation: types and layouts changing by turns;
// - dropout, a norm, an update: types changing by turns;
// - a batch: types and layouts changing by turns.
// And of the problems of a list that shrink to the same one, the first stands for all.
// `place` of the problem in its list: where the turns begin.
std::vector<Filter2dProblem> cases_of(const Filter2dProblem& problem, std::size_t place, bool thorough);
std::vector<Conv2dProblem> cases_of(const Conv2dProblem& problem, std::size_t place, bool thorough);
std::vector<GemmProblem> cases_of(const GemmProblem& problem, std::size_t place, bool thorough);
#if HAS_POOL2D
std::vector<Pool2dProblem> cases_of(const Pool2dProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_ACTIVATION
std::vector<ActivationProblem> cases_of(const ActivationProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_BIAS_ADD
std::vector<BiasAddProblem> cases_of(const BiasAddProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_ADD
std::vector<AddProblem> cases_of(const AddProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_DROPOUT
std::vector<DropoutProblem> cases_of(const DropoutProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_BATCH_NORM
std::vector<BatchNormProblem> cases_of(const BatchNormProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_LOSS
std::vector<LossProblem> cases_of(const LossProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_NORM
std::vector<NormProblem> cases_of(const NormProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_UPDATE
std::vector<UpdateProblem> cases_of(const UpdateProblem& problem, std::size_t place, bool thorough);
#endif
#if HAS_BATCH
std::vector<BatchProblem> cases_of(const BatchProblem& problem, std::size_t place, bool thorough);
#endif

}  // namespace omniconv::hashes
