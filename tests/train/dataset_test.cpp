// Data sets: what files hold, and what is said of those that are damaged or lie.
#include "omniconv/dataset.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "folder_testing.h"

namespace omniconv::dataset_tests {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

class Datasets : public FolderTest {
 protected:
  void put(const std::string& name, const Bytes& bytes) const {
    FolderTest::put(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  static Bytes header(std::initializer_list<std::uint32_t> words) {
    Bytes bytes;
    for (const std::uint32_t word : words)
      for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
    return bytes;
  }
  static Bytes images(std::uint32_t count, std::uint32_t h, std::uint32_t w) {
    Bytes bytes = header({0x803, count, h, w});
    for (std::uint32_t i = 0; i < count * h * w; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7));
    return bytes;
  }
  static Bytes labels(const Bytes& values) {
    Bytes bytes = header({0x801, static_cast<std::uint32_t>(values.size())});
    bytes.insert(bytes.end(), values.begin(), values.end());
    return bytes;
  }
  // A right set of 3 and 2 images of 2 x 4.
  void put_idx(const std::string& inside) const {
    put(inside + "train-images-idx3-ubyte", images(3, 2, 4)),
        put(inside + "train-labels-idx1-ubyte", labels({9, 0, 4}));
    put(inside + "t10k-images-idx3-ubyte", images(2, 2, 4)), put(inside + "t10k-labels-idx1-ubyte", labels({1, 2}));
  }
  Dataset read(std::int64_t train = -1, std::int64_t test = -1) const {
    const std::vector<DatasetPlace> places = find_datasets(folder.string());
    EXPECT_EQ(places.size(), 1u);
    return read_dataset(places.at(0), train, test);
  }
  std::string refusal() const {
    return error_of([&] { read(); }, ErrorKind::bad_input);
  }
  void expect_refusal(const std::string& part) const {
    const std::string text = refusal();
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

TEST_F(Datasets, Idx) {
  put_idx("");
  const Dataset set = read();
  EXPECT_EQ(set.name, "mnist");
  EXPECT_EQ(set.channels, 1);
  EXPECT_EQ(set.height, 2);
  EXPECT_EQ(set.width, 4);
  EXPECT_EQ(set.classes.size(), 10u);
  EXPECT_EQ(set.train.count, 3);
  EXPECT_EQ(set.test.count, 2);
  EXPECT_EQ(set.train.labels, (Bytes{9, 0, 4}));
  EXPECT_EQ(set.test.labels, (Bytes{1, 2}));
  ASSERT_EQ(set.train.pixels.size(), 24u);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(set.train.pixels[i], i * 7 % 256);
  const Dataset some = read(2, 1);
  EXPECT_EQ(some.train.count, 2);
  EXPECT_EQ(some.train.pixels.size(), 16u);
  EXPECT_EQ(some.test.labels, (Bytes{1}));
}

TEST_F(Datasets, FoldersInside) {
  put_idx("mnist/"), put_idx("fashion-mnist/");
  const std::vector<DatasetPlace> places = find_datasets(folder.string());
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].name, "mnist");
  EXPECT_EQ(places[1].name, "fashion-mnist");
  EXPECT_EQ(read_dataset(places[1]).classes.at(9), "ankle boot");
  EXPECT_EQ(find_datasets((folder / "fashion-mnist").string()).at(0).name, "fashion-mnist");
  EXPECT_EQ(find_datasets((folder / "fashion-mnist").string() + "/").at(0).name, "fashion-mnist");
}

TEST_F(Datasets, CifarBinary) {
  for (int batch = 1; batch <= 6; ++batch) {
    Bytes bytes;
    for (int record = 0; record < 2; ++record) {
      bytes.push_back(static_cast<std::uint8_t>(batch + record));
      bytes.insert(bytes.end(), 3072, static_cast<std::uint8_t>(10 * batch + record));
    }
    put(batch == 6 ? "test_batch.bin" : fmt::format("data_batch_{}.bin", batch), bytes);
  }
  const Dataset set = read();
  EXPECT_EQ(set.name, "cifar-10");
  EXPECT_EQ(set.channels, 3);
  EXPECT_EQ(set.height, 32);
  EXPECT_EQ(set.width, 32);
  EXPECT_EQ(set.train.count, 10);
  EXPECT_EQ(set.test.count, 2);
  EXPECT_EQ(set.train.labels, (Bytes{1, 2, 2, 3, 3, 4, 4, 5, 5, 6}));
  EXPECT_EQ(set.train.pixels[3 * 3072], 21);
  EXPECT_EQ(set.test.pixels.back(), 61);
  EXPECT_EQ(read(3, 1).train.labels, (Bytes{1, 2, 2}));
  put("data_batch_3.bin", Bytes(3073 + 100, 0));
  expect_refusal("data_batch_3.bin: its 3173 bytes are no whole number of records of 3073: it ends within record 1");
  put("data_batch_3.bin", Bytes(3073, 11));
  expect_refusal("data_batch_3.bin: label 11 of record 0: must be 0 to 9");
  fs::remove(folder / "data_batch_3.bin");
  expect_refusal("data_batch_3.bin: it cannot be opened");
}

TEST_F(Datasets, WhatIsDamagedIsNamed) {
  put_idx("");
  Bytes cut = images(3, 2, 4);
  cut.resize(cut.size() - 9);
  put("train-images-idx3-ubyte", cut);
  expect_refusal("train-images-idx3-ubyte: it ends within record 1: 3 images of 8 bytes");
  put("train-images-idx3-ubyte", images(2, 2, 4));
  expect_refusal("it has 2 images, and ");
  Bytes long_one = images(3, 2, 4);
  long_one.push_back(0);
  put("train-images-idx3-ubyte", long_one);
  expect_refusal("bytes follow its 3 images");
  put("train-images-idx3-ubyte", Bytes{0, 0, 8});
  expect_refusal("it ends within its header");
  put("train-images-idx3-ubyte", header({0x801, 3, 2, 4}));
  expect_refusal("it begins with 0x00000801, and an IDX file of images with 0x00000803");
  // What a header says is not believed: neither memory nor time is taken for it.
  put("train-images-idx3-ubyte", header({0x803, 0xFFFFFFFF, 2, 4}));
  expect_refusal("it has 4294967295 records");
  put("train-images-idx3-ubyte", header({0x803, 1 << 28, 1 << 16, 1 << 16}));
  expect_refusal("its 268435456 images of 65536 x 65536 pixels pass the 8589934592 bytes that are read");
  put("train-images-idx3-ubyte", header({0x803, 1 << 20, 64, 64}));
  put("train-labels-idx1-ubyte", header({0x801, 1 << 20}));
  expect_refusal("it ends within record 0");
  put("train-images-idx3-ubyte", header({0x803, 3, 0, 4}));
  expect_refusal("its images are 0 x 4 pixels");
  put_idx("");
  put("train-labels-idx1-ubyte", labels({9, 10, 4}));
  expect_refusal("train-labels-idx1-ubyte: label 10 of record 1: must be 0 to 9");
  put_idx("");
  put("t10k-images-idx3-ubyte", images(2, 4, 2));
  expect_refusal("its images are 4 x 2 pixels, and those for training 2 x 4");
  fs::remove(folder / "t10k-labels-idx1-ubyte");
  expect_refusal("it has no t10k-labels-idx1-ubyte, compressed (.gz) or not");
}

// gzip is there wherever these tests are built.
TEST_F(Datasets, CompressedFiles) {
  put_idx("");
  const Dataset plain = read();
  ASSERT_EQ(std::system(("gzip -q " + (folder / "*-ubyte").string()).c_str()), 0);
  ASSERT_TRUE(fs::exists(folder / "train-images-idx3-ubyte.gz"));
  const Dataset set = read();
  EXPECT_EQ(set.train.pixels, plain.train.pixels);
  EXPECT_EQ(set.test.labels, plain.test.labels);
  const fs::path images = folder / "train-images-idx3-ubyte.gz";
  const auto bytes = fs::file_size(images);
  fs::resize_file(images, bytes - 4);  // within what checks the rest
  expect_refusal("it is no gzip file, or is damaged behind byte ");
  fs::resize_file(images, bytes / 2);
  expect_refusal("it is no gzip file, or is damaged behind byte ");
}

TEST_F(Datasets, OneThatIsDamagedStandsBesideOthers) {
  put_idx("fashion-mnist/");
  put("mnist/train-images-idx3-ubyte", Bytes{1, 2, 3});
  const std::vector<DatasetPlace> places = find_datasets(folder.string());
  ASSERT_EQ(places.size(), 2u);
  EXPECT_NE(places[0].damage.find("it ends within its header"), std::string::npos);
  EXPECT_EQ(places[1].damage, "");
  EXPECT_EQ(read_dataset(places[1]).train.count, 3);
  EXPECT_NE(error_of([&] { read_dataset(places[0]); }, ErrorKind::bad_input).find("header"), std::string::npos);
}

TEST_F(Datasets, FoldersHoldWhatTheirNamesSay) {
  put_idx(""), put_idx("mnist/"), put_idx("cifar-10-batches-bin/");
  put("mnist/data_batch_1.bin", Bytes(3073));
  const std::vector<DatasetPlace> places = find_datasets(folder.string());
  ASSERT_EQ(places.size(), 1u);  // the folder's own
  EXPECT_EQ(places[0].folder, folder.string());
}

TEST_F(Datasets, NoFolder) {
  EXPECT_NE(error_of([&] { find_datasets((folder / "none").string()); }, ErrorKind::bad_input).find("no such folder"),
            std::string::npos);
  EXPECT_TRUE(find_datasets(folder.string()).empty());
}

}  // namespace
}  // namespace omniconv::dataset_tests
