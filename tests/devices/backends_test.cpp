// What every kind of device answers, found or not.
#include <gtest/gtest.h>

#include "devices/device.h"
#include "devices/unknown_device.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

std::string message_of(const Backend& backend, const std::string& rest) {
  try {
    backend.open(rest, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Backends, SayWhatIsThereOrWhyNot) {
  for (const Backend* const backend : {&cpu_backend(), &cuda_backend(), &opencl_backend()}) {
    DeviceListing listing;
    backend->list(listing);
    EXPECT_FALSE(listing.found.empty() && listing.missing.empty()) << backend->prefix;
    for (const DeviceListing::Missing& missing : listing.missing) {
      EXPECT_EQ(missing.id.find(backend->prefix), 0u);
      EXPECT_GT(missing.reason.size(), 10u) << missing.id;
    }
  }
}

TEST(Backends, AnIndexThatDoesNotExistListsThoseThatDo) {
  for (const Backend* const backend : {&cuda_backend(), &opencl_backend()}) {
    DeviceListing listing;
    backend->list(listing);
    const std::string id = std::string(backend->prefix) + ":99", message = message_of(*backend, "99");
    EXPECT_NE(message.find("device " + id), std::string::npos) << message;
    for (const DeviceInfo& info : listing.found) {
      EXPECT_NE(message.find(info.id + " (" + info.name + ")"), std::string::npos) << message;
    }
    if (listing.found.empty()) {
      EXPECT_NE(message.find(listing.missing.front().reason), std::string::npos) << message;
    }
  }
}

DeviceListing listing_of(const std::vector<std::string>& found) {
  DeviceListing listing;
  for (const std::string& id : found) {
    listing.found.emplace_back();
    listing.found.back().id = id;
    listing.found.back().name = "a GPU";
  }
  return listing;
}

TEST(Backends, UnknownDevicesAreOfTheListing) {
  DeviceListing listing = listing_of({"cuda:0", "cuda:2"});
  listing.missing.push_back({"cuda:1", "an old GPU: too old"});
  const Error another = unknown_device("cuda:3", listing), missing = unknown_device("cuda:1", listing);
  EXPECT_EQ(std::string(another.what()), "device cuda:3 does not exist; there are: cuda:0 (a GPU), cuda:2 (a GPU)");
  EXPECT_EQ(another.kind(), ErrorKind::bad_input);
  EXPECT_EQ(std::string(missing.what()), "device cuda:1: an old GPU: too old");
  EXPECT_EQ(missing.kind(), ErrorKind::environment);
  DeviceListing nothing;
  nothing.missing.push_back({"cuda", "no CUDA driver"});
  EXPECT_EQ(std::string(unknown_device("cuda:3", nothing).what()), "device cuda:3: no CUDA driver");
}

TEST(Backends, OrdinaryMemoryStandsForPageLockedMemory) {
  const std::shared_ptr<Device> cpu = cpu_backend().open("", {});
  const std::shared_ptr<HostMemory> memory = cpu->allocate_host(100);
  EXPECT_EQ(memory->bytes(), 100);
  EXPECT_FALSE(memory->is_page_locked());
  EXPECT_THROW(cpu->allocate_host(-1), Error);
  EXPECT_EQ(cpu->free_bytes(), cpu->info().memory_bytes);
}

}  // namespace
}  // namespace omniconv::devices
