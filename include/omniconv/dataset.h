// Labelled images for training: sets in their classical files, read whole into memory.
//
//   IDX (MNIST, Fashion-MNIST)   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
//                                t10k-labels-idx1-ubyte, each of them as it is or compressed (.gz)
//   CIFAR-10, its binary form    data_batch_1.bin to data_batch_5.bin and test_batch.bin; batches.meta.txt if it is
//   there
//
// A sample of Fashion-MNIST comes with omniconv, and coloured shapes are made by it, so that there is always something
// to learn.
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
  Standard standard = {};   // empty: that of the images for training
  std::string origin = {};  // the folder that it was read from, or how it was made

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

// The sets in a folder, and in its folders mnist, fashion-mnist, fashion-mnist-sample and cifar-10-batches-bin, those
// of names that the folder itself has left out.
std::vector<DatasetPlace> find_datasets(const std::string& folder);

// The folder of the sets that come with omniconv, share/omniconv where the library was installed or built: for
// find_datasets(). Empty where there is none.
std::string bundled_datasets();

// At most so many images of each part, the first ones; negative: all.
Dataset read_dataset(const DatasetPlace& place, std::int64_t train_images = -1, std::int64_t test_images = -1);

// The set "shapes": 3 x 32 x 32, ten classes of figures (disk, ring, square, ...), each of any size, place, slant and
// colours, and noise. Image i is of class i mod 10. The same bytes everywhere: Philox4x32-10 of the seed, counted by
// part, image and pixel, and integers alone. Two to the twentieth images of a part at most.
Dataset make_shapes(std::int64_t train_images = 8000, std::int64_t test_images = 2000, std::uint64_t seed = 1);

}  // namespace omniconv
