// The operations, one line each.
#include <array>

#include "omniconv/activation.h"
#include "omniconv/add.h"
#include "omniconv/batch.h"
#include "omniconv/batch_norm.h"
#include "omniconv/bias_add.h"
#include "omniconv/conv2d.h"
#include "omniconv/dropout.h"
#include "omniconv/filter2d.h"
#include "omniconv/gemm.h"
#include "omniconv/loss.h"
#include "omniconv/norm.h"
#include "omniconv/pool2d.h"
#include "omniconv/update.h"
#include "operations/operation.h"

namespace omniconv::operations {

std::span<const Operation* const> operations() {
  static const std::array<const Operation*, 13> all = {
      &operation_of(static_cast<const Filter2dProblem*>(nullptr)),
      &operation_of(static_cast<const GemmProblem*>(nullptr)),
      &operation_of(static_cast<const Pool2dProblem*>(nullptr)),
      &operation_of(static_cast<const ActivationProblem*>(nullptr)),
      &operation_of(static_cast<const BiasAddProblem*>(nullptr)),
      &operation_of(static_cast<const AddProblem*>(nullptr)),
      &operation_of(static_cast<const DropoutProblem*>(nullptr)),
      &operation_of(static_cast<const BatchNormProblem*>(nullptr)),
      &operation_of(static_cast<const LossProblem*>(nullptr)),
      &operation_of(static_cast<const NormProblem*>(nullptr)),
      &operation_of(static_cast<const UpdateProblem*>(nullptr)),
      &operation_of(static_cast<const BatchProblem*>(nullptr)),
      &operation_of(static_cast<const Conv2dProblem*>(nullptr)),
  };
  return all;
}

}  // namespace omniconv::operations
