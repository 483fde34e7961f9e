// Files of events: their bytes, and what becomes of them when something goes wrong.
#include "train/event_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "../error_testing.h"

namespace omniconv::event_file_tests {
namespace {

namespace fs = std::filesystem;
using training::crc32c;
using training::EventFile;

// Published values: RFC 3720, B.4, and the catalogue's check.
TEST(EventFiles, ChecksumsArePublishedOnes) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i), falling += static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(falling), 0x113FDB5Cu);
}

class EventFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder = (fs::temp_directory_path() / fmt::format("omniconv_events_{}", getpid())).string();
    fs::remove_all(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::uint64_t number(const std::string& bytes, std::size_t at, int count) {
    std::uint64_t value = 0;
    for (int i = 0; i < count; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + static_cast<std::size_t>(i)))} << 8 * i;
    return value;
  }
  // What is between lengths and checksums, which are checked.
  static std::vector<std::string> events_in(const std::string& bytes) {
    const auto expect_sum = [&](std::size_t at, const std::string& of) {
      const std::uint32_t sum = crc32c(of);
      EXPECT_EQ(number(bytes, at, 4), static_cast<std::uint32_t>((sum >> 15 | sum << 17) + 0xa282ead8u)) << at;
    };
    std::vector<std::string> events;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::uint64_t length = number(bytes, at, 8);
      expect_sum(at + 8, bytes.substr(at, 8));
      events.push_back(bytes.substr(at + 12, length));
      EXPECT_EQ(events.back().size(), length);
      expect_sum(at + 12 + length, events.back());
      at += 16 + length;
    }
    return events;
  }
  // Without the first field, the time.
  static std::string behind_time(const std::string& event) {
    EXPECT_EQ(event.at(0), '\x09');
    EXPECT_GT(std::bit_cast<double>(number(event, 1, 8)), 1.6e9);
    return event.substr(9);
  }

  std::string folder;
};

TEST_F(EventFolder, BytesAreThoseOfTheMessages) {
  std::string path;
  {
    EventFile file(folder, 300);
    path = file.path();
    file.add(5, std::array<training::NamedNumber, 2>{{{"a/b", 1.0}, {"c", -0.5}}});
    file.add(300, std::array<training::NamedNumber, 1>{{{"a/b", 3.0}}});
  }
  EXPECT_EQ(path.find(folder + "/events.out.tfevents."), 0u);
  const std::vector<std::string> events = events_in(read(path));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(behind_time(events[0]), std::string("\x10\x00\x1A\x0D", 4) + "brain.Event:2");
  EXPECT_EQ(behind_time(events[1]), std::string("\x10\xAD\x02\x3A\x02\x08\x01", 7));  // step 301, START
  EXPECT_EQ(behind_time(events[2]), std::string("\x10\x05\x2A\x16"
                                                "\x0A\x0A\x0A\x03"
                                                "a/b"
                                                "\x15\x00\x00\x80\x3F"
                                                "\x0A\x08\x0A\x01"
                                                "c"
                                                "\x15\x00\x00\x00\xBF",
                                                26));
  EXPECT_EQ(behind_time(events[3]), std::string("\x10\xAC\x02\x2A\x0C\x0A\x0A\x0A\x03"
                                                "a/b"
                                                "\x15\x00\x00\x40\x40",
                                                17));
}

// Each record is there, whole, as soon as it has been written; another training adds a file.
TEST_F(EventFolder, GrowsByWholeRecords) {
  EventFile one(folder, 0), two(folder, 7);
  EXPECT_NE(one.path(), two.path());
  for (int i = 1; i < 40; ++i) {
    one.add(i, std::array<training::NamedNumber, 1>{{{"loss", 1.0 / i}}});
    EXPECT_EQ(events_in(read(one.path())).size(), static_cast<std::size_t>(2 + i));
  }
  EXPECT_EQ(events_in(read(two.path())).size(), 2u);
}

TEST_F(EventFolder, WithoutNumbersNothingIsLeft) {
  { const EventFile file(folder, 0); }
  EXPECT_FALSE(fs::exists(folder));
  fs::create_directories(folder);
  { const EventFile file(folder, 0); }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(EventFolder, WhatCannotBeWrittenIsSaid) {
  std::ofstream(folder) << "a file";
  EXPECT_NE(error_of([&] { EventFile(folder, 0); }).find("the folder of events cannot be made"), std::string::npos);
  fs::remove(folder);
  const auto file = std::make_unique<EventFile>(folder, 0);
  file->add(1, std::array<training::NamedNumber, 1>{{{"loss", 1}}});
  const std::string before = read(file->path());
  // A disk that is full after a part of the record.
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{before.size() + 20, usual.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of(
      [&] {
        file->add(2, std::array<training::NamedNumber, 1>{{{"loss", 2}}});
      },
      ErrorKind::environment);
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(error.find(file->path() + ": it cannot be written: File too large"), std::string::npos) << error;
  EXPECT_EQ(read(file->path()), before);
  file->add(3, std::array<training::NamedNumber, 1>{{{"loss", 3}}});
  EXPECT_EQ(events_in(read(file->path())).size(), 4u);
}

}  // namespace
}  // namespace omniconv::event_file_tests
