// Two CUDA devices of a driver without hardware: which calls copy between them, in which order, and what their errors
// become.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "../error_testing.h"
#include "devices/device.h"
#include "fake_cuda/fake_cuda.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using Calls = std::vector<std::string>;

class CudaPeers : public testing::Test {
 protected:
  CudaPeers() {
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    fake_cuda::set_peers(true);
    fake_cuda::take_calls();
  }
  static std::vector<std::uint8_t> content(const Context& context, const Buffer& buffer) {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(buffer.bytes()));
    context.make_queue().download(values.data(), buffer, 0, buffer.bytes()).wait();
    return values;
  }
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(8);
};

TEST_F(CudaPeers, AreListed) {
  for (const bool reach : {true, false}) {
    fake_cuda::set_peers(reach);
    DeviceListing listing;
    devices::cuda_backend().list(listing);
    ASSERT_EQ(listing.found.size(), 2u) << (listing.missing.empty() ? "" : listing.missing[0].reason);
    EXPECT_EQ(listing.found[0].peers, reach ? Calls{"cuda:1"} : Calls());
    EXPECT_EQ(listing.found[1].peers, reach ? Calls{"cuda:0"} : Calls());
  }
}

TEST_F(CudaPeers, CopyByTheDriverAfterTheOtherQueuesWork) {
  const Context first({.device = "cuda:0"}), second({.device = "cuda:1"});
  const Buffer from = first.allocate(8), to = second.allocate(8);
  Queue source = first.make_queue(), target = second.make_queue();
  target.upload(to, 0, std::vector<std::uint8_t>(8, 99).data(), 8).wait();
  const Event uploaded = source.upload(from, 0, bytes.data(), 8);
  target.copy(to, 3, from, 1, 4, uploaded).wait();
  EXPECT_EQ(content(second, to), (std::vector<std::uint8_t>{99, 99, 99, 2, 3, 4, 5, 99}));
  const Calls calls = fake_cuda::take_calls();
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuCtxEnablePeerAccess 0 to 1"), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuCtxEnablePeerAccess 1 to 0"), 1);
  const auto waited = std::find(calls.begin(), calls.end(), "cuStreamWaitEvent of 0 on 1");
  EXPECT_NE(std::find(waited, calls.end(), "cuMemcpyPeerAsync 4 bytes 0 > 1 on 1"), calls.end());
  // By the queue of the source, which is in order itself, and back.
  source.copy(to, 0, from, 0, 8).wait();
  source.copy(from, 0, to, 0, 0).wait();
  EXPECT_EQ(content(second, to), bytes);
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuMemcpyPeerAsync 8 bytes 0 > 1 on 0"});
}

TEST_F(CudaPeers, OutOfReachTheDriverCopiesAllTheSame) {
  fake_cuda::set_peers(false);
  const Context first({.device = "cuda:0"}), second({.device = "cuda:1"});
  const Buffer from = first.allocate(8), to = second.allocate(8);
  Queue source = first.make_queue();
  source.upload(from, 0, bytes.data(), 8);
  source.copy(to, 0, from, 0, 8).wait();
  EXPECT_EQ(content(second, to), bytes);
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuMemcpyPeerAsync 8 bytes 0 > 1 on 0"});
}

TEST_F(CudaPeers, OneDeviceCopiesWithinItself) {
  const Context context({.device = "cuda:1"}), again({.device = "cuda:1"});
  const Buffer from = context.allocate(8), to = again.allocate(8);
  Queue queue = context.make_queue();
  queue.upload(from, 0, bytes.data(), 8);
  queue.copy(to, 0, from, 0, 8).wait();
  EXPECT_EQ(content(context, to), bytes);
  EXPECT_EQ(fake_cuda::take_calls(), Calls{"cuMemcpyAsync 8 bytes on 1"});
}

// Memory of the host that one device has mapped, which the other need not know.
TEST_F(CudaPeers, BorrowedMemoryGoesThroughTheHost) {
  const Context first({.device = "cuda:0"}), second({.device = "cuda:1"});
  const Buffer from = first.borrow(bytes.data(), 8), to = second.allocate(8);
  second.make_queue().copy(to, 0, from, 0, 8).wait();
  EXPECT_EQ(content(second, to), bytes);
  EXPECT_EQ(fake_cuda::take_calls(), Calls());
}

TEST_F(CudaPeers, ErrorsAreTheQueues) {
  const Context first({.device = "cuda:0"}), second({.device = "cuda:1"}), cpu({.device = "cpu"});
  const Buffer from = first.allocate(8), to = second.allocate(8);
  Queue queue = second.make_queue();
  EXPECT_NE(error_of([&] { queue.copy(from, 0, cpu.allocate(8), 0, 8); }, ErrorKind::bad_input)
                .find("of the queue's device cuda:1"),
            std::string::npos);
  fake_cuda::fail_next("cuMemcpyPeerAsync", 719);
  Event event = queue.copy(to, 0, from, 0, 8);
  EXPECT_EQ(error_of([&] { event.wait(); }, ErrorKind::environment),
            "device cuda:1: cuMemcpyPeerAsync failed: CUDA_ERROR_NAME (719): a text; the device is lost to this "
            "process: start it again");
  // What comes after the work of a queue that has failed is not begun.
  Queue other = first.make_queue();
  EXPECT_NE(error_of([&] { other.copy(to, 0, from, 0, 8, event); }, ErrorKind::environment).find("device is lost"),
            std::string::npos);
}

TEST_F(CudaPeers, LackOfMemoryIsToldFromALostDevice) {
  const Context context({.device = "cuda:0"});
  fake_cuda::fail_next("cuMemAlloc", 2);
  EXPECT_NE(error_of([&] { context.allocate(8); }, ErrorKind::out_of_memory).find("no room for a buffer of 8 bytes"),
            std::string::npos);
  fake_cuda::fail_next("cuMemAlloc", 719);
  EXPECT_NE(error_of([&] { context.allocate(8); }, ErrorKind::environment).find("device is lost"), std::string::npos);
}

}  // namespace
}  // namespace omniconv
