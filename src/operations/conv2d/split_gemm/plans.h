// The plans of the solver's two texts: for pixels, forward and backward of the data, and for filters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "omniconv/error.h"
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
// Whether these groups read each number of the source once, all before they make parts of the first.
bool read_all_once(const Planes& planes, Form form);
// Bytes that making them moves, the look for the largest magnitude included.
double bytes_moved(const Planes& planes, const Numbers& numbers, std::int64_t sampling, DataType type);

// Planes' worth of the workspace for each of the source: its parts, or a raw source that begins at no multiple of 16
// bytes.
inline std::int64_t planes_of_source(const Tile& tile, const Numbers& numbers) {
  return tile.is_raw && numbers.planes() == 1 ? 2 : 1;
}

// From the largest magnitude to a measured array.
constexpr std::int64_t measured_bytes = 256;

// Places of conv2d's arrays.
enum : std::size_t { x_array, w_array, y_array };

// Which operands of a product runs give prepared, or behind their largest magnitude; and whether they leave that of
// what they write before it.
struct Prepared {
  bool a = false, b = false;
  bool measured_a = false, measured_b = false, measures = false;

  std::int64_t bits() const { return (a ? 1 : 0) | (b ? 2 : 0); }  // PREPARED of the text
  bool all() const { return a && b; }
};
// Those that the request names, of the arrays that a, b and the output are. Or why others have no such form.
std::variant<Prepared, std::string> prepared_of(const SolverOptions& request, const Numbers& numbers,
                                                std::string_view a, std::string_view b, std::string_view out);
// Of an array of so many numbers behind the largest magnitude of them.
PreparedFormat measured_format(std::int64_t elements);
// Of planes, whichever array and pass they serve; and of filters, alike for taps of a row that share a window.
PreparedFormat format_of(const Planes& planes, const Conv2dProblem& problem, const PreparedOperand& operand);
PreparedFormat format_of(const PixelTask& task, const Conv2dProblem& problem, bool is_shared,
                         const PreparedOperand& operand);

// The same where samples may be looked at, and operands not be plain arrays.
inline std::int64_t most_meeting(const devices::Device& device, const Numbers& numbers, const Tile& tile,
                                 const Prepared& prepared, const Sampling& sampling) {
  const bool are_plain = prepared.bits() == 0 && !prepared.measured_a && !prepared.measured_b;
  return are_plain && sampling.bits() == 0 ? most_meeting(device, numbers, tile) : 0;
}

// What both plans launch alike.
class ProductPlan : public Conv2dPlanBody, protected ProductLaunches {
 public:
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }

 protected:
  ProductPlan(const Conv2dProblem& problem, const Numbers& numbers, const devices::Device& device, const Tile& tile,
              const Workspace& workspace)
      : Conv2dPlanBody(problem), ProductLaunches(problem.type, problem.type, numbers, device, tile, workspace) {}

  // The array that kernels are given.
  static Operand array_in(const Operand& given, const std::optional<PreparedOperand>& prepared, bool is_measured) {
    const std::int64_t ahead = prepared ? prepared->array : is_measured ? measured_bytes : 0;
    return ahead > 0 ? Operand{given.buffer, given.offset_bytes + ahead} : given;
  }
  // Looks for the largest magnitudes of the operands that are not prepared, so many numbers of each.
  void append_look(devices::Sequence& sequence, const Product& product, std::int64_t a_count, std::int64_t b_count,
                   const Sampling& sampling) const;
  const PreparedOperand& preparable(bool of_b) const {
    const std::optional<PreparedOperand>& prepared = of_b ? prepared_b_ : prepared_a_;
    if (!prepared) throw bad_input("an array behind its largest magnitude is made by the run that writes it");
    return *prepared;
  }
  // Before all that writes an output that is measured.
  void append_zero(devices::Sequence& sequence, const Operand& out) const;
  OperandMaps maps_of(const devices::TensorMap& map, const Product& product, bool lies, const Operand& given,
                      const std::optional<PreparedOperand>& prepared, std::int64_t planes_at,
                      std::int64_t elements) const;
  // The largest magnitudes of a and of b, in words, of which make_parts writes the one that it finds where a prepared
  // operand has its own.
  static std::int64_t largest_for(const PreparedOperand& prepared, bool of_b) {
    return prepared.largest / 4 - (of_b ? 1 : 0);
  }
  // A copy of an array that is prepared, and the maxima of its magnitudes.
  void append_keeping(devices::Sequence& sequence, const Operand& from, const Operand& to,
                      const PreparedOperand& operand) const;
  // Of these samples. Parts may have to be made again where there are such: a raw first operand has none.
  Parts parts_of(const Sampling& sampling) const {
    return (tile_.is_raw ? sampling.bits() & 2 : sampling.bits()) != 0 ? Parts::of_samples : Parts::of_all;
  }
  // By a map without a buffer: of so many elements of the operand itself; or, where copies cannot read it, of a copy of
  // it at a section of the workspace.
  OperandMaps append_array_maps(devices::Sequence& sequence, devices::TensorMap map, const Operand& operand,
                                std::int64_t count, const Product& product, std::int64_t copy_at) const;

  Prepared prepared_;
  std::optional<PreparedOperand> prepared_a_, prepared_b_;
  std::int64_t most_meeting_ = 0;
};

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request);
Answer filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request);

}  // namespace omniconv::operations::split_gemm
