// Files and images for the tests of src/image.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../error_testing.h"
#include "image/image.h"

namespace omniconv::image {

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where that can be had: every output waits until its disk has it.
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = ::access(memory.c_str(), W_OK) == 0;
    std::string name =
        ((in_memory ? memory : std::filesystem::temp_directory_path()) / "omniconv-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) result.push_back(entry.path().filename());
    return result;
  }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string read_file(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

struct Image {
  ImageInfo info;
  std::vector<std::byte> pixels;
};

inline std::int64_t bytes_per_row(const ImageInfo& info) {
  return info.w * info.c * size_of(info.type);
}

// Reads `rows` rows at a time.
inline Image read_image(const std::string& path, int page = 0, std::int64_t rows = 1000000) {
  const auto reader = open_image(path, page);
  Image image{reader->info(), {}};
  const std::int64_t bytes = bytes_per_row(image.info);
  image.pixels.resize(static_cast<std::size_t>(image.info.h * bytes));
  for (std::int64_t y = 0; y < image.info.h; y += rows)
    reader->read_rows(y, std::min(rows, image.info.h - y), image.pixels.data() + y * bytes, bytes);
  return image;
}

inline void write_image(const std::string& path, const Image& image, std::int64_t rows = 1000000,
                        const WriteOptions& options = {}) {
  const auto writer = create_image(path, image.info, options);
  const std::int64_t bytes = bytes_per_row(image.info);
  for (std::int64_t y = 0; y < image.info.h; y += rows)
    writer->write_rows(y, std::min(rows, image.info.h - y), image.pixels.data() + y * bytes, bytes);
  writer->finish();
}

template <typename T>
std::vector<T> values(const Image& image) {
  std::vector<T> result(image.pixels.size() / sizeof(T));
  std::memcpy(result.data(), image.pixels.data(), result.size() * sizeof(T));
  return result;
}

// Random bits; floating values are kept finite.
inline Image random_image(std::int64_t h, std::int64_t w, std::int64_t c, DataType type, unsigned seed) {
  Image image;
  image.info.h = h;
  image.info.w = w;
  image.info.c = c;
  image.info.type = type;
  std::mt19937 random(seed);
  const auto fill = [&image, &random](auto make) {
    const std::size_t count = static_cast<std::size_t>(image.info.h * image.info.w * image.info.c);
    image.pixels.resize(count * sizeof(make(random)));
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = make(random);
      std::memcpy(image.pixels.data() + i * sizeof value, &value, sizeof value);
    }
  };
  switch (type) {
    case DataType::u8: fill([](auto& r) { return static_cast<std::uint8_t>(r()); }); break;
    case DataType::u16:
    case DataType::s16: fill([](auto& r) { return static_cast<std::uint16_t>(r()); }); break;
    case DataType::f16: fill([](auto& r) { return static_cast<std::uint16_t>(r() % 0x7C00u); }); break;
    case DataType::s32: fill([](auto& r) { return static_cast<std::uint32_t>(r()); }); break;
    case DataType::f64: fill([](auto& r) { return static_cast<double>(r()) / 4096.0 - 1000.0; }); break;
    default: fill([](auto& r) { return static_cast<float>(r() % 100000u) / 64.0f - 100.0f; }); break;
  }
  return image;
}

}  // namespace omniconv::image
