// What a network is made of, for the files of this folder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "omniconv/training.h"
#include "omniconv/update.h"
#include "train/layers.h"

namespace omniconv {

// Elements of an array of all parameters between the begins of two layers' arrays: 256 bytes.
inline constexpr std::int64_t parameter_alignment = 64;

struct Network::State {
  State(const Context& of, Model given, const NetworkOptions& asked);

  // All parameters of one type of gradients, in one array, which one update changes.
  struct Group {
    DataType type = DataType::f32;
    std::int64_t elements = 0;
    Buffer w, g, m, v, copy;  // copy: w in the type, where that is not f32

    Operand read(std::int64_t at) const { return copy ? Operand{copy, at * size_of(type)} : Operand{w, at * 4}; }
    Operand gradient(std::int64_t at) const { return {g, at * size_of(type)}; }
  };
  // Where a layer's are, in elements of its group; running: of its means and variances among all layers' in `running`.
  struct Parts {
    std::size_t group = 0;
    std::int64_t weights = 0, biases = 0, running = -1;
    std::int64_t folded = -1;  // of filters and biases with the batch_norm behind them, in `folded`
  };

  struct Tensor {
    NamedTensor named;  // without its values
    Operand place = {};
    const Group* copied = nullptr;  // the group whose copy it has, too, from element `begin`
    std::int64_t begin = 0;

    std::int64_t elements() const {
      std::int64_t all = 1;
      for (const std::int64_t extent : named.extents) all *= extent;
      return all;
    }
  };

  Buffer allocate(std::int64_t bytes);
  void place_parameters(bool folds);
  void require_memory(std::int64_t passing_bytes) const;
  void require_solvers_fit() const;
  void allocate_lasting();
  training::NetworkArrays arrays() const;
  bool sums_losses() const;                                                 // steps add theirs to what `losses` has
  bool is_scaled() const { return loss_scale != 1 || options.clips_norm; }  // updates multiply gradients
  void add_norms();
  void add_updates();
  void set_rates(const Rates& rates);
  Recording recorded(const training::Steps& of) const;
  void zero(const Buffer& buffer);
  std::int64_t image_bytes() const;

  const ModelLayer& layer_at(std::size_t layer) const;
  std::vector<float> part_of(std::size_t layer, Buffer Group::*which);
  void write_part(std::size_t layer, Buffer Group::*which, std::span<const float> values);
  void write_running(std::size_t layer, std::span<const float> means, std::span<const float> variances);
  void write_copy(const Group& group, std::int64_t begin, std::span<const float> values);
  std::vector<Tensor> tensors() const;
  void upload_images(const float* from);
  // Of a network that does not train: what is made of its parameters for its runs, where they have changed.
  void follow_parameters();
  void fold(std::size_t layer);

  Context context;
  Model model;
  NetworkOptions options;
  DataType type = DataType::f32;  // of what passes between layers
  float loss_scale = 1;           // gradients are so many times those of the loss; the update divides them
  Queue queue;
  std::array<Group, 2> groups;  // of filters and biases; of batch_norm's where the type is not f32
  std::vector<Parts> parts;     // of each layer
  std::int64_t running_elements = 0, folded_elements = 0, memory_bytes = 0, updates = 0;
  bool is_stale = true;  // what follow_parameters() makes
  Buffer images, labels, losses, stop, factor, squares, running, folded, passing, workspace;
  Buffer no_losses;  // zeros for `losses`, where steps add theirs
  Scalar rate = Scalar::changing(0), momentum = Scalar::changing(0), l1 = Scalar::changing(0), l2 = Scalar::changing(0),
         clip = Scalar::changing(0), clip_norm = Scalar::changing(0), correction1 = Scalar::changing(1),
         correction2 = Scalar::changing(1),
         number = Scalar::changing(1);  // of the step, from 1
  training::Steps training;
  training::Evaluating evaluating;
  std::vector<NetworkStep> steps;
  Recording train_recording, evaluate_recording;  // on images that are there
  std::optional<Recording> prepare_recording;
};

}  // namespace omniconv
