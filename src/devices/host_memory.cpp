#include <fmt/format.h>

#include <vector>

#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

class OrdinaryMemory final : public HostMemory {
 public:
  explicit OrdinaryMemory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {}
  std::byte* data() override { return bytes_.data(); }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(bytes_.size()); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::shared_ptr<HostMemory> Device::allocate_host(std::int64_t bytes) {
  if (bytes < 0) throw bad_input(fmt::format("host memory of {} bytes: the size must be at least 0", bytes));
  return std::make_shared<OrdinaryMemory>(bytes);
}

}  // namespace omniconv::devices
