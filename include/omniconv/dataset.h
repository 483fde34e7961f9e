// Labelled images for training: sets in their classical files, read whole into memory.
//
//   IDX (MNIST, Fashion-MNIST)   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
//                                t10k-labels-idx1-ubyte, each of them as it is or compressed (.gz)
//   CIFAR-10, its binary form    data_batch_1.bin to data_batch_5.bin and test_batch.bin; batches.meta.txt if it is
//   there
//
// Files are taken for hostile: what they say is checked before memory is taken for it, and errors name the file, the
// record, and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace omniconv {

// So many images, one after the other, each n,c,h,w in u8, and their classes, counted from 0.
struct Examples {
  std::int64_t count = 0;
  std::vector<std::uint8_t> pixels = {}, labels = {};
};

// Pixels as numbers of mean 0 and deviation 1 for each channel: (p / 255 - mean) / deviation. A channel whose deviation
// is 0 becomes 0.
struct Standard {
  std::vector<double> mean = {}, deviation = {};  // of each channel, of p / 255
};

struct Dataset {
  std::string name;  // "fashion-mnist"
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::string> classes;  // their names
  Examples train = {}, test = {};
  Standard standard = {};  // empty: that of the images for training

  std::int64_t image_bytes() const { return channels * height * width; }
};

// A set that lies in a folder, not read yet.
struct DatasetPlace {
  enum class Format : std::uint8_t { idx, cifar };

  Format format = Format::idx;
  std::string name, folder;
  std::int64_t channels = 0, height = 0, width = 0;  // 0 of one that is damaged
  std::string damage = {};                           // why its images' extents are not known; empty: they are
};

// The sets in a folder, and in its folders mnist, fashion-mnist and cifar-10-batches-bin, those of names that the
// folder itself has left out.
std::vector<DatasetPlace> find_datasets(const std::string& folder);

// At most so many images of each part, the first ones; negative: all.
Dataset read_dataset(const DatasetPlace& place, std::int64_t train_images = -1, std::int64_t test_images = -1);

}  // namespace omniconv
