// The host's memory and threads, as checks use them.
#include "checking/host.h"

#include <atomic>
#include <utility>

#include "conformance.h"

namespace omniconv {
namespace {

TEST(Host, MemoryIsUsedAgain) {
  const Context context({.device = "cpu"});
  checking::Host host(context);
  checking::Host::Memory large = host.take(3 << 20), small = host.take(1 << 20);
  const std::byte *const of_large = large.data(), *const of_small = small.data();
  EXPECT_EQ(large.bytes().size(), std::size_t{3} << 20);
  large = {};
  small = {};
  checking::Host::Memory first = host.take(1000);
  EXPECT_EQ(first.data(), of_small) << "the smallest that will do";
  EXPECT_EQ(first.bytes().size(), 1000U);
  checking::Host::Memory second = host.take(2000);
  EXPECT_EQ(second.data(), of_large);
  EXPECT_NE(host.take(10).data(), of_large) << "both are taken";
  std::swap(first, second);
  EXPECT_EQ(first.data(), of_large);
}

TEST(Host, PartsAreAllOfIt) {
  const Context context({.device = "cpu"});
  checking::Host host(context);
  for (const std::int64_t count : {0, 1, 7, 8, 1000}) {
    std::atomic<std::int64_t> sum = 0, parts = 0;
    host.in_parts(count, 7, [&](std::int64_t first, std::int64_t so_many) {
      ++parts;
      EXPECT_LE(so_many, 7);
      for (std::int64_t i = first; i < first + so_many; ++i) sum += i;
    });
    EXPECT_EQ(sum, count * (count - 1) / 2);
    EXPECT_EQ(parts, (count + 6) / 7);
  }
}

}  // namespace
}  // namespace omniconv
