#include "operations/update/host_plan.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t piece_elements = 4096;  // some microseconds

class Plan final : public UpdatePlanBody {
 public:
  Plan(const UpdateProblem& problem, const DevicePointer& device, const UpdateByPieces& by_pieces)
      : UpdatePlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        by_pieces_(by_pieces) {}

  void append(devices::Sequence& sequence, const UpdateArrays& run, std::span<const Scalar> numbers,
              const Scalar& number) const override {
    std::array<Scalar, most_update_numbers + 1> all;
    std::copy(numbers.begin(), numbers.end(), all.begin());
    all[numbers.size()] = number;
    sequence.call(devices::HostTask(
                      [self = shared_from_this(), this, run](std::span<const double> values) { execute(run, values); }),
                  std::span(all).first(numbers.size() + 1));
  }

 private:
  // `values`: the numbers, and behind them what stop becomes.
  void execute(const UpdateArrays& run, std::span<const double> values) const {
    const std::span<const double> numbers = values.first(values.size() - 1);
    const double number = values.back();
    if (is_stopped(run, number)) {
      if (run.copy.buffer) for_pieces(run, [&](const UpdatePiece& piece) { by_pieces_.copy(problem(), piece); });
      return;
    }
    std::atomic<bool> is_finite = true;
    for_pieces(run, [&](const UpdatePiece& piece) {
      if (!by_pieces_.update(problem(), piece, numbers)) is_finite.store(false, std::memory_order_relaxed);
    });
    if (problem().guarded && !is_finite) store_element(DataType::s32, number, host(run.stop));
  }

  // By an earlier step.
  bool is_stopped(const UpdateArrays& run, double number) const {
    if (!problem().guarded) return false;
    const double stop = load_element(DataType::s32, host(run.stop));
    return stop != 0 && stop != number;
  }

  template <typename Call>
  void for_pieces(const UpdateArrays& run, const Call& call) const {
    const UpdateProblem& p = problem();
    const double factor = p.scaled ? load_element(state_type(p), host(run.factor)) : 1;
    cpu_.parallel_for(divide_up(p.n, piece_elements), [&](std::int64_t i, int) {
      const std::int64_t first = i * piece_elements;
      const auto at = [&](const Operand& array, DataType type) {
        return array.buffer ? host(array) + first * size_of(type) : nullptr;
      };
      const DataType type = state_type(p);
      call({.g = at(run.g, p.type),
            .w = at(run.w, type),
            .m = at(run.m, type),
            .v = at(run.v, type),
            .copy = at(run.copy, p.type),
            .elements = std::min(piece_elements, p.n - first),
            .factor = factor});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  UpdateByPieces by_pieces_;
};

}  // namespace

std::shared_ptr<UpdatePlanBody> update_on_host(const UpdateProblem& problem, const DevicePointer& device,
                                               const UpdateByPieces& by_pieces) {
  return std::make_shared<Plan>(problem, device, by_pieces);
}

}  // namespace omniconv::operations
