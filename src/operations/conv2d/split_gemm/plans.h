// The plans of the solver's two texts: for pixels, forward and backward of the data, and for filters.
#pragma once

#include <cstdint>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/split_gemm/geometry.h"
#include "operations/split/products.h"

namespace omniconv::operations::split_gemm {

// How planes are made (split_planes.kernel), and by how many groups.
enum class Form : std::int32_t { any, turned, lines, folded };
Form form_of(const Planes& planes, const Operand& source, DataType type, bool nhwc);
// FORMS of the text: those that planes may ask for, wherever their source begins.
std::int64_t forms_of(const Planes& planes, DataType type, bool nhwc);
std::int64_t groups_for(const Planes& planes, Form form);
// Bytes that making them moves, the look for the largest magnitude included.
double bytes_moved(const Planes& planes, const Numbers& numbers, std::int64_t sampling, DataType type);

// Whether copies can read what lies there.
bool is_aligned(const Operand& operand);

// What both plans launch alike.
class ProductPlan : public Conv2dPlanBody, protected ProductLaunches {
 public:
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }

 protected:
  ProductPlan(const Conv2dProblem& problem, const devices::Device& device, const Tile& tile, const Workspace& workspace)
      : Conv2dPlanBody(problem), ProductLaunches(problem.type, problem.type, device, tile, workspace) {}
};

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request);
Answer filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const FilterTask& task,
                    const SolverOptions& request);

}  // namespace omniconv::operations::split_gemm
