// The sets that need no files of the user's: the sample that comes along, and shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "omniconv/dataset.h"
#include "omniconv/training.h"

namespace omniconv::bundled_tests {
namespace {

using Bytes = std::vector<std::uint8_t>;

// FNV-1a of 64 bits.
std::uint64_t hash(const Bytes& bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) sum = (sum ^ byte) * 0x100000001b3;
  return sum;
}

std::array<std::int64_t, 10> of_classes(const Examples& examples) {
  std::array<std::int64_t, 10> counts{};
  for (const std::uint8_t label : examples.labels) ++counts.at(label);
  return counts;
}

Bytes first(const Bytes& bytes, std::size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(Bundled, TheSampleIsFoundAndRead) {
  const std::string folder = bundled_datasets();
  ASSERT_NE(folder, "");
  const std::vector<DatasetPlace> places = find_datasets(folder);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].name, "fashion-mnist-sample");
  const Dataset set = read_dataset(places[0]);
  EXPECT_EQ(set.name, "fashion-mnist-sample");
  EXPECT_EQ(set.origin, places[0].folder);
  EXPECT_EQ(set.classes.at(9), "ankle boot");
  EXPECT_EQ(set.train.count, 4000);
  EXPECT_EQ(set.test.count, 1000);
  for (const std::int64_t count : of_classes(set.train)) EXPECT_EQ(count, 400);
  for (const std::int64_t count : of_classes(set.test)) EXPECT_EQ(count, 100);
  // As Fashion-MNIST's files begin, whose classes are even there.
  EXPECT_EQ(first(set.train.labels, 12), (Bytes{9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9}));
  EXPECT_EQ(first(set.test.labels, 12), (Bytes{9, 2, 1, 1, 6, 1, 4, 6, 5, 7, 4, 5}));
  EXPECT_EQ(hash(set.train.pixels), 0xad815b0a897f7621u);
  EXPECT_EQ(hash(set.test.pixels), 0x2fb9806b88faa7a8u);
  // The folder of the set itself is taken for it, too.
  EXPECT_EQ(find_datasets(places[0].folder).at(0).name, "fashion-mnist-sample");
}

// The sums are those of another program, which was written from the header's description and the figures' inequalities.
TEST(Bundled, ShapesAreTheSameEverywhere) {
  const Dataset set = make_shapes(30, 20);
  EXPECT_EQ(set.name, "shapes");
  EXPECT_EQ(set.origin, "made of seed 1");
  EXPECT_EQ(set.image_bytes(), 3 * 32 * 32);
  EXPECT_EQ(set.train.count, 30);
  EXPECT_EQ(set.test.count, 20);
  EXPECT_EQ(set.train.pixels.size(), 30u * 3072);
  for (const std::int64_t count : of_classes(set.train)) EXPECT_EQ(count, 3);
  for (const std::int64_t count : of_classes(set.test)) EXPECT_EQ(count, 2);
  EXPECT_EQ(set.classes.size(), 10u);
  EXPECT_EQ(hash(set.train.pixels), 0x5c8fc895610332afu);
  EXPECT_EQ(hash(set.test.pixels), 0x9b8f0df5946c3acau);
  const Dataset more = make_shapes(40, 0);
  EXPECT_EQ(first(more.train.pixels, 30 * 3072), set.train.pixels);
  EXPECT_EQ(more.test.count, 0);
  EXPECT_NE(make_shapes(30, 20, 2).train.pixels, set.train.pixels);
  EXPECT_NE(make_shapes(20, 20, 1).train.pixels, set.test.pixels);
}

TEST(Bundled, ShapesAreCounted) {
  EXPECT_EQ(error_of([] { make_shapes(-1, 1); }, ErrorKind::bad_input),
            "shapes: -1 images for training: must be 0 to 1048576");
  EXPECT_EQ(error_of([] { make_shapes(1, (1 << 20) + 1); }, ErrorKind::bad_input),
            "shapes: 1048577 images for the test: must be 0 to 1048576");
}

// Figures of any place, size and colours are no sums of pixels: one layer finds little more than by chance, two layers
// of convolutions most of them.
TEST(Bundled, ShapesAskForMoreThanOneLayer) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "minutes under a sanitizer, where Training.Learns runs the same code";
#endif
  const Dataset set = make_shapes(1500, 500);
  const Context context({.device = "cpu"});
  const auto accuracy = [&](const char* text, std::int64_t epochs) {
    Network network(context, parse_model(text, "net"), {.batch = 30});
    network.initialise(1);
    train(network, set, {.epochs = epochs, .rates = {.rate = 0.02}}, {});
    return evaluate(network, set, set.test).accuracy();
  };
  EXPECT_LT(accuracy("input 3 32 32\ndense 10", 5), 0.25);
  EXPECT_GT(accuracy("input 3 32 32\nconv 16 5x5 stride 2\nrelu\nconv 32 5x5 stride 2\nrelu\ndense 10", 8), 0.6);
}

}  // namespace
}  // namespace omniconv::bundled_tests
