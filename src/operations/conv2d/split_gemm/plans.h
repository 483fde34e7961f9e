// The plans of the solver's two texts: for pixels, forward and backward of the data, and for filters.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/split_gemm/geometry.h"
#include "operations/conv2d/split_gemm/numbers.h"

namespace omniconv::operations::split_gemm {

// How planes are made (split_planes.kernel), and by how many groups.
enum class Form : std::int32_t { any, turned, lines, folded };
Form form_of(const Planes& planes, const Operand& source, DataType type, bool nhwc);
// FORMS of the text: those that planes may ask for, wherever their source begins.
std::int64_t forms_of(const Planes& planes, DataType type, bool nhwc);
std::int64_t groups_for(const Planes& planes, Form form);
// Bytes that making them moves, the look for the largest magnitude included.
double bytes_moved(const Planes& planes, const Numbers& numbers, DataType type);

// Of both plans: maxima and the largest of them, planes of the first operand and of the second, parts of sums. In
// bytes.
struct Workspace : Sections {
  Workspace(std::int64_t a_elements, std::int64_t b_elements, const Numbers& numbers, std::int64_t sums)
      : maxima(take(2 * split_gemm::maxima, 4)),
        largest(take(2, 4)),
        a(take(a_elements, 2 * numbers.planes())),
        b(take(b_elements, 2 * numbers.planes())),
        parts(take(sums, 4)) {}

  std::int64_t maxima, largest, a, b, parts;
};

// What a run multiplies, and where its result goes.
struct Product {
  const Operand &a, &b, &out, &bias;
  Operand workspace;
};

// What both plans launch alike.
class ProductPlan : public Conv2dPlanBody {
 public:
  double compile_seconds() const override { return program_->compile_seconds(); }

 protected:
  ProductPlan(const Conv2dProblem& problem, const devices::Device& device, const Tile& tile,
              const Workspace& workspace);
  // The two texts between parts.kernel and tile_products.kernel.
  void build(devices::Device& device, std::string_view planes_text, std::string_view tiles_text,
             std::span<const devices::Definition> definitions);

  // The largest magnitudes of so many elements of a and of b, where numbers are scaled.
  void append_scan(devices::Sequence& sequence, const Product& product, std::int64_t a_count,
                   std::int64_t b_count) const;
  // All tiles, over planes of so many elements, by maps without buffers; then add_parts by so many groups, if any.
  void append_products(devices::Sequence& sequence, const Product& product, std::span<const std::byte> task,
                       const devices::TensorMap& a, std::int64_t a_elements, const devices::TensorMap& b,
                       std::int64_t b_elements, std::int64_t tiles, std::int64_t adding_groups) const;
  std::int64_t size() const { return size_of(problem().type); }

  Numbers numbers_;
  Tile tile_;
  Workspace workspace_;
  std::int64_t units_;
  std::shared_ptr<devices::Program> program_;
};

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const PixelTask& task,
                   const SolverOptions& request);
Answer filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const FilterTask& task,
                    const SolverOptions& request);

}  // namespace omniconv::operations::split_gemm
