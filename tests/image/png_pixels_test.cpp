// PNG files that several threads compress.
#include <gtest/gtest.h>

#include <algorithm>

#include "files.h"

namespace omniconv::image {
namespace {

class PngPixelsTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }

  // Writes `rows` rows at a time and returns the file's bytes.
  std::string written(const Image& image, int threads, std::int64_t rows) const {
    const auto writer = create_image(file("image.png"), image.info, {.threads = threads});
    const std::int64_t bytes = bytes_per_row(image.info);
    for (std::int64_t y = 0; y < image.info.h; y += rows)
      writer->write_rows(y, std::min(rows, image.info.h - y), image.pixels.data() + y * bytes, bytes);
    writer->finish();
    return read_file(file("image.png"));
  }

  TemporaryFolder folder_;
};

// Pieces have at least 256 KiB: the sizes give one of a single row, many of many rows, and remainders.
// The sanitizers look at every byte; threads meet the same way in both types.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t channels[] = {3};
#else
constexpr std::int64_t channels[] = {1, 2, 3, 4};
#endif
#if defined(__SANITIZE_THREAD__)
constexpr DataType types[] = {DataType::u8};
#else
constexpr DataType types[] = {DataType::u8, DataType::u16};
#endif

TEST_F(PngPixelsTest, EveryPixelIsReadBackAndThreadsDoNotMatter) {
  struct Size {
    std::int64_t h, w;
  };
  for (const DataType type : types)
    for (const std::int64_t c : channels)
      for (const Size size : {Size{1, 1}, {7, 1}, {1, 5}, {2, 300001 / c}, {611, 1003}}) {
        const Image image = random_image(size.h, size.w, c, type, 5);
        const std::string one = written(image, 1, 1000000);
        for (const std::int64_t rows : {std::int64_t{1000000}, size.h / 2 + 1}) {
          EXPECT_TRUE(written(image, 3, rows) == one)
              << size.h << " x " << size.w << " x " << c << ' ' << name(type) << ", " << rows << " rows at a time";
          EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels)
              << size.h << " x " << size.w << " x " << c << ' ' << name(type) << ", " << rows << " rows at a time";
        }
      }
}

// Nor does it matter how the rows come: by one, by fewer and by more than a piece has (87 here), by whole pieces.
TEST_F(PngPixelsTest, StripsDoNotMatter) {
  const Image image = random_image(611, 1003, 3, DataType::u8, 6);
  const std::string whole = written(image, 2, 1000000);
  for (const std::int64_t rows : {1, 10, 86, 87, 88, 174, 300}) {
    EXPECT_TRUE(written(image, 2, rows) == whole) << rows;
    EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels) << rows;
  }
}

// Each of these is zero after one of the filters; what is left is less than a bit a pixel.
TEST_F(PngPixelsTest, RowsAreFiltered) {
  Image image = random_image(1200, 1000, 3, DataType::u8, 7);
  const auto fill = [&image](auto value) {
    for (std::int64_t y = 0; y < 1200; ++y)
      for (std::int64_t x = 0; x < 3000; ++x)
        image.pixels[static_cast<std::size_t>(y * 3000 + x)] = static_cast<std::byte>(value(y, x));
  };
  const std::vector<std::byte> noise = image.pixels;
  const auto of_column = [&noise](std::int64_t x) { return std::to_integer<int>(noise[static_cast<std::size_t>(x)]); };
  const auto of_row = [&noise](std::int64_t y) { return std::to_integer<int>(noise[static_cast<std::size_t>(9 * y)]); };
  const std::size_t few = image.pixels.size() / 100;
  fill([&](std::int64_t, std::int64_t x) { return of_column(x); });
  EXPECT_LT(written(image, 2, 500).size(), few);
  EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels);
  fill([&](std::int64_t y, std::int64_t) { return of_row(y); });
  EXPECT_LT(written(image, 2, 500).size(), few);
  EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels);
  fill([&](std::int64_t y, std::int64_t x) { return 7 * y + 3 * (x / 3); });
  EXPECT_LT(written(image, 2, 500).size(), few);
  EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels);
}

// Dark rows of steps up and down: a bit a pixel to the left one, several as they are. Steps down count as small.
TEST_F(PngPixelsTest, StepsDownAreAsGoodAsStepsUp) {
  Image image = random_image(400, 1000, 1, DataType::u8, 9);
  for (std::size_t y = 0; y < 400; ++y) {
    int value = 20;
    for (std::size_t x = 0; x < 1000; ++x) {
      std::byte& pixel = image.pixels[y * 1000 + x];
      const bool rises = value == 0 || (value < 40 && std::to_integer<int>(pixel) % 2 == 0);
      pixel = static_cast<std::byte>(value += rises ? 1 : -1);
    }
  }
  EXPECT_LT(written(image, 2, 400).size(), image.pixels.size() / 5);
  EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels);
}

// What stands 30000 bytes before is found across the ends of pieces: noise that repeats every ten rows of 3001 bytes.
TEST_F(PngPixelsTest, PiecesKnowWhatStandsBeforeThem) {
  Image image = random_image(1000, 1000, 3, DataType::u8, 8);
  for (std::size_t i = 30000; i < image.pixels.size(); ++i) image.pixels[i] = image.pixels[i - 30000];
  // Alone, each of the twelve pieces would hold the 30000 bytes of noise again.
  EXPECT_LT(written(image, 2, 1000).size(), 3u * 30000);
  EXPECT_TRUE(read_image(file("image.png")).pixels == image.pixels);
}

TEST_F(PngPixelsTest, SaysWhatItHolds) {
  const ImageInfo info = random_image(4, 4, 3, DataType::u8, 9).info;
  const auto held = [&](int threads) {
    return create_image(file("image.png"), info, {.threads = threads})->resident_bytes();
  };
  // Two pieces, of each the pixels, what they become by the filters and by deflate, and what deflate holds itself.
  EXPECT_GT(held(1), 2 * 4 * 256 * 1024);
  EXPECT_LT(held(1), 4 << 20);
  EXPECT_GT(held(4), 3 * held(1));
}

}  // namespace
}  // namespace omniconv::image
