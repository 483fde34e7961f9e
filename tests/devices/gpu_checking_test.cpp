// What checks and measurements do with a device: copies in pieces, and plans that are made ahead.
#include <algorithm>
#include <cstring>

#include "checking/plans_ahead.h"
#include "checking/transfers.h"
#include "gpu_testing.h"
#include "omniconv/gemm.h"

namespace omniconv {
namespace {

class GpuChecking : public Gpu {};

TEST_F(GpuChecking, LargeArraysGoThereAndBack) {
  const Context context(device);
  checking::Host host(context);
  checking::Transfers transfers(context, host);
  constexpr std::int64_t bytes = 2 * checking::Host::piece_bytes + 12;  // three pieces
  checking::Host::Memory data = host.take(bytes);
  for (std::int64_t i = 0; i < bytes; ++i) data.data()[i] = static_cast<std::byte>(i * 7 + i / 251);
  const Buffer buffer = transfers.put(data.data(), bytes, checking::guard_bytes);
  EXPECT_TRUE(transfers.holds(buffer, data.bytes()));
  const std::vector<std::byte> whole = transfers.get(buffer, checking::guard_bytes, bytes);
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), data.bytes().begin()));
  // Few are fetched by themselves, many out of the whole.
  for (const std::int64_t step : {bytes / 4 / 5, std::int64_t{1000}}) {
    std::vector<std::int64_t> places = {bytes / 4 - 1};
    for (std::int64_t place = 0; place < bytes / 4; place += step) places.push_back(place);
    const std::vector<std::byte> elements = transfers.get_elements(buffer, 4, places);
    for (std::size_t i = 0; i < places.size(); ++i)
      ASSERT_EQ(std::memcmp(elements.data() + i * 4, data.data() + places[i] * 4, 4), 0) << places[i];
  }
  for (const std::int64_t at : {std::int64_t{0}, checking::Host::piece_bytes, bytes - 1}) {
    data.data()[at] ^= std::byte{1};
    EXPECT_FALSE(transfers.holds(buffer, data.bytes())) << at;
    data.data()[at] ^= std::byte{1};
  }
  EXPECT_TRUE(transfers.holds(buffer, data.bytes()));
  for (const std::int64_t at : {std::int64_t{0}, buffer.bytes() - 1}) {
    transfers.fill(buffer, at, 1, 0x41);
    EXPECT_FALSE(transfers.holds(buffer, data.bytes())) << at;
    transfers.fill(buffer, at, 1, 0xFF);
  }
  EXPECT_TRUE(transfers.are_guards_intact(transfers.put(nullptr, bytes, checking::guard_bytes)));
}

TEST_F(GpuChecking, PlansAreMadeAhead) {
  const Context context(device);
  const auto planned = [](const char* text, const SolverOptions& options) {
    return checking::Planned{parse_problem(text), checking::MeasureOptions{.solver = options}};
  };
  const std::vector<checking::Planned> all = {planned("gemm f32 nn m17n18k19 \"named\"", {}),
                                              planned("gemm f32 nn m18n18k19", {.solver = "gemm/packed/cpu.1"}),
                                              {parse_problem("gemm f32 nn m19n18k19"), {}}};
  checking::PlansAhead ahead;
  EXPECT_EQ(ahead.make(context, all, [] { return false; }), all.size());
  EXPECT_EQ(ahead.most_at_once(), 1);
  SolverOptions chosen;
  chosen.solver = Plan(context, all[0].problem).solver();
  const auto made = ahead.take(all[0].problem, chosen);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->plan.solver(), chosen.solver);
  EXPECT_GT(made->seconds, 0);
  EXPECT_FALSE(ahead.take(all[0].problem, chosen).has_value()) << "it is handed over once";
  EXPECT_FALSE(ahead.take(all[1].problem, {.solver = "gemm/packed/cpu.1"}).has_value()) << "it serves no GPU";
  EXPECT_FALSE(ahead.take(all[2].problem, chosen).has_value()) << "it is not measured";
  EXPECT_EQ(ahead.make(context, all, [] { return true; }), 1U);
  EXPECT_FALSE(ahead.take(all[0].problem, chosen).has_value());
}

}  // namespace
}  // namespace omniconv
