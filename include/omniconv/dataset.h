// Labelled images for training: sets in their classical files, and folders of images, read whole into memory.
//
//   IDX (MNIST, Fashion-MNIST)   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
//                                t10k-labels-idx1-ubyte, each of them as it is or compressed (.gz)
//   CIFAR-10, its binary form    data_batch_1.bin to data_batch_5.bin and test_batch.bin; batches.meta.txt if it is
//   there
//   folders of images            train/CLASS/IMAGE and test/CLASS/IMAGE, or CLASS/IMAGE, of which some are kept apart
//                                for the test
//
// A sample of Fashion-MNIST comes with omniconv, and coloured shapes are made by it, so that there is always something
// to learn.
//
// Files are taken for hostile: what they say is checked before memory is taken for it, and errors name the file, the
// record, and what was expected.
#pragma once

#include <cstdint>
#include <functional>
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
  // Where the folder has no images for the test, and images for training were kept apart: what these files' names hash
  // to, by which a later one knows whether they are the same. Empty: it has some.
  std::string kept_apart = {};

  std::int64_t image_bytes() const { return channels * height * width; }
};

// A set that lies in a folder, not read yet.
struct DatasetPlace {
  enum class Format : std::uint8_t { idx, cifar, folders };

  Format format = Format::idx;
  std::string name, folder;
  // 0 of one that is damaged. Of folders 0 until they are set: images are made as large, grey or coloured.
  std::int64_t channels = 0, height = 0, width = 0;
  std::string damage = {};  // why its images' extents are not known; empty: they are
};

// The sets in a folder, and in its folders mnist, fashion-mnist, fashion-mnist-sample and cifar-10-batches-bin, those
// of names that the folder itself has left out. Behind them folders of images: the folder itself, or else its folders;
// they are called as the folder is.
std::vector<DatasetPlace> find_datasets(const std::string& folder);

// The folder of the sets that come with omniconv, share/omniconv where the library was installed or built: for
// find_datasets(). Empty where there is none.
std::string bundled_datasets();

// Called now and then, of one thread, while many files are read: how many images are there, of how many; false ends it
// (ErrorKind::interrupted).
using ReadingProgress = std::function<bool(std::int64_t done, std::int64_t all)>;

// At most so many images of each part, the first ones; negative: all. Of folders' images, which are in the order of
// classes and names, ones that are drawn; where there are none for the test, so many of those for training are kept
// apart, or else a tenth. The draws depend on the numbers of images alone.
Dataset read_dataset(const DatasetPlace& place, std::int64_t train_images = -1, std::int64_t test_images = -1,
                     const ReadingProgress& progress = {});

// The set "shapes": 3 x 32 x 32, ten classes of figures (disk, ring, square, ...), each of any size, place, slant and
// colours, and noise. Image i is of class i mod 10. The same bytes everywhere: Philox4x32-10 of the seed, counted by
// part, image and pixel, and integers alone. Two to the twentieth images of a part at most.
Dataset make_shapes(std::int64_t train_images = 8000, std::int64_t test_images = 2000, std::uint64_t seed = 1);

}  // namespace omniconv
