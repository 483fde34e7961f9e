#include "omniconv/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#if OMNICONV_HAS_ZLIB
#include <zlib.h>
#endif

#include "omniconv/error.h"
#include "train/folders.h"

namespace omniconv {
namespace {

namespace fs = std::filesystem;

// Of what is read; a set of more is no such set.
constexpr std::int64_t most_side = 1 << 16, most_images = 1 << 28, most_bytes = std::int64_t{1} << 33,
                       most_cifar_records = 1 << 17;
constexpr std::int64_t cifar_side = 32, cifar_image = 3 * cifar_side * cifar_side, cifar_record = 1 + cifar_image;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// A file's bytes from the first on, compressed or not.
class Bytes {
 public:
  explicit Bytes(std::string path) : path_(std::move(path)) {
    if (path_.ends_with(".gz")) {
#if OMNICONV_HAS_ZLIB
      compressed_.reset(gzopen(path_.c_str(), "rb"));
      if (!compressed_) throw bad_input(fmt::format("{}: it cannot be opened", path_));
      return;
#else
      throw environment_error(
          fmt::format("{}: this omniconv was built without zlib, and reads no compressed files: gunzip it", path_));
#endif
    }
    plain_.open(path_, std::ios::binary);
    if (!plain_) throw bad_input(fmt::format("{}: it cannot be opened", path_));
  }

  // As many as there are, up to `bytes`.
  std::int64_t read(std::uint8_t* to, std::int64_t bytes) {
#if OMNICONV_HAS_ZLIB
    if (compressed_) {
      std::int64_t done = 0;
      while (done < bytes) {
        constexpr std::int64_t at_once = 1 << 20;
        const int got = gzread(compressed_.get(), to + done, static_cast<unsigned>(std::min(at_once, bytes - done)));
        int status = Z_OK;
        gzerror(compressed_.get(), &status);
        if (got < 0 || (got == 0 && status != Z_OK && status != Z_STREAM_END))  // a file that is cut off, too
          throw bad_input(
              fmt::format("{}: it is no gzip file, or is damaged behind byte {} of what it holds", path_, read_));
        if (got == 0) break;
        done += got, read_ += got;
      }
      return done;
    }
#endif
    plain_.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(bytes));
    return static_cast<std::int64_t>(plain_.gcount());
  }
  // The next `bytes`, or as many as there are; memory is taken as they come, whatever a header says.
  std::vector<std::uint8_t> take(std::int64_t bytes) {
    constexpr std::int64_t at_once = 1 << 22;
    std::vector<std::uint8_t> all;
    while (static_cast<std::int64_t>(all.size()) < bytes) {
      const auto before = static_cast<std::int64_t>(all.size());
      const std::int64_t wanted = std::min(at_once, bytes - before);
      all.resize(static_cast<std::size_t>(before + wanted));
      const std::int64_t got = read(all.data() + before, wanted);
      all.resize(static_cast<std::size_t>(before + got));
      if (got < wanted) break;
    }
    return all;
  }
  bool is_at_end() {
    std::uint8_t next = 0;
    return read(&next, 1) == 0;
  }
  const std::string& path() const {
    return path_;
  }

 private:
  std::string path_;
  std::ifstream plain_;
  std::int64_t read_ = 0;  // of a compressed one
#if OMNICONV_HAS_ZLIB
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> compressed_;
#endif
};

// With .gz where the file is compressed; empty where there is none.
std::string idx_file(const fs::path& folder, const std::string& name) {
  for (const char* const end : {"", ".gz"})
    if (const fs::path path = folder / (name + end); is_file(path)) return path.string();
  return {};
}

constexpr std::uint32_t images_magic = 0x803, labels_magic = 0x801;

struct IdxHeader {
  std::int64_t count = 0, height = 0, width = 0;
};

IdxHeader read_header(Bytes& file, std::uint32_t magic) {
  const std::size_t words = magic == images_magic ? 4 : 2;
  std::array<std::uint8_t, 16> bytes{};
  if (file.read(bytes.data(), static_cast<std::int64_t>(4 * words)) < static_cast<std::int64_t>(4 * words))
    throw bad_input(fmt::format("{}: it ends within its header of {} bytes", file.path(), 4 * words));
  const auto word = [&](std::size_t i) {
    return static_cast<std::uint32_t>(bytes[4 * i]) << 24 | static_cast<std::uint32_t>(bytes[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
  };
  if (word(0) != magic)
    throw bad_input(fmt::format("{}: it begins with {:#010x}, and an IDX file of {} with {:#010x}", file.path(),
                                word(0), magic == images_magic ? "images" : "labels", magic));
  IdxHeader header{.count = word(1)};
  if (magic == images_magic) header.height = word(2), header.width = word(3);
  if (header.count < 1 || header.count > most_images)
    throw bad_input(fmt::format("{}: it has {} records: must be 1 to {}", file.path(), header.count, most_images));
  if (magic == images_magic &&
      (std::min(header.height, header.width) < 1 || std::max(header.height, header.width) > most_side))
    throw bad_input(fmt::format("{}: its images are {} x {} pixels: must be 1 to {} along each side", file.path(),
                                header.height, header.width, most_side));
  if (magic == images_magic && header.count * header.height > most_bytes / header.width)
    throw bad_input(fmt::format("{}: its {} images of {} x {} pixels pass the {} bytes that are read", file.path(),
                                header.count, header.height, header.width, most_bytes));
  return header;
}

void check_labels(const std::string& path, const std::vector<std::uint8_t>& labels, std::size_t classes) {
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](std::uint8_t label) { return label >= classes; });
  if (wrong != labels.end())
    throw bad_input(
        fmt::format("{}: label {} of record {}: must be 0 to {}", path, *wrong, wrong - labels.begin(), classes - 1));
}

Examples read_idx(const DatasetPlace& place, const char* part, std::size_t classes, std::int64_t most) {
  Bytes images(idx_file(place.folder, fmt::format("{}-images-idx3-ubyte", part))),
      labels(idx_file(place.folder, fmt::format("{}-labels-idx1-ubyte", part)));
  const IdxHeader of_images = read_header(images, images_magic), of_labels = read_header(labels, labels_magic);
  if (of_images.count != of_labels.count)
    throw bad_input(fmt::format("{}: it has {} images, and {} has {} labels", images.path(), of_images.count,
                                labels.path(), of_labels.count));
  if (of_images.height != place.height || of_images.width != place.width)
    throw bad_input(fmt::format("{}: its images are {} x {} pixels, and those for training {} x {}", images.path(),
                                of_images.height, of_images.width, place.height, place.width));
  Examples examples{.count = most < 0 ? of_images.count : std::min(most, of_images.count)};
  const std::int64_t image = place.height * place.width;
  examples.pixels = images.take(examples.count * image);
  if (const auto got = static_cast<std::int64_t>(examples.pixels.size()); got < examples.count * image)
    throw bad_input(fmt::format("{}: it ends within record {}: {} images of {} bytes are said to be there",
                                images.path(), got / image, of_images.count, image));
  examples.labels = labels.take(examples.count);
  if (const auto got = static_cast<std::int64_t>(examples.labels.size()); got < examples.count)
    throw bad_input(fmt::format("{}: it ends behind record {}: {} labels are said to be there", labels.path(), got - 1,
                                of_labels.count));
  if (examples.count == of_images.count) {
    if (!images.is_at_end())
      throw bad_input(fmt::format("{}: bytes follow its {} images", images.path(), of_images.count));
    if (!labels.is_at_end())
      throw bad_input(fmt::format("{}: bytes follow its {} labels", labels.path(), of_labels.count));
  }
  check_labels(labels.path(), examples.labels, classes);
  return examples;
}

void read_cifar(const std::string& path, std::int64_t most, Examples& to) {
  const std::int64_t left = most < 0 ? most_cifar_records : std::min(most - to.count, most_cifar_records);
  if (left <= 0) return;
  Bytes file(path);
  const std::vector<std::uint8_t> all = file.take(left * cifar_record);
  const auto bytes = static_cast<std::int64_t>(all.size());
  if (bytes == 0) throw bad_input(fmt::format("{}: it is empty", path));
  if (bytes % cifar_record != 0)
    throw bad_input(fmt::format("{}: its {} bytes are no whole number of records of {}: it ends within record {}", path,
                                bytes, cifar_record, bytes / cifar_record));
  if (left == most_cifar_records && !file.is_at_end())
    throw bad_input(fmt::format("{}: it has more than {} records", path, most_cifar_records));
  std::vector<std::uint8_t> labels;
  for (std::int64_t at = 0; at < bytes; at += cifar_record) {
    const auto record = all.begin() + at;
    labels.push_back(*record);
    to.pixels.insert(to.pixels.end(), record + 1, record + cifar_record);
  }
  check_labels(path, labels, 10);
  to.labels.insert(to.labels.end(), labels.begin(), labels.end());
  to.count += bytes / cifar_record;
}

std::vector<std::string> numbers(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> class_names(const DatasetPlace& place) {
  if (place.name == "fashion-mnist" || place.name == "fashion-mnist-sample")
    return {"T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"};
  if (place.format == DatasetPlace::Format::cifar) {
    std::vector<std::string> names;
    std::ifstream file(fs::path(place.folder) / "batches.meta.txt");
    for (std::string line; names.size() < 10 && std::getline(file, line);)
      if (!line.empty() && line.size() < 64 &&
          std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }))
        names.push_back(line);
    if (names.size() == 10) return names;
    return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  }
  return numbers(10);
}

using Format = DatasetPlace::Format;

// Named after their folders.
constexpr std::string_view idx_sets[] = {"mnist", "fashion-mnist", "fashion-mnist-sample"};

void add_idx(const fs::path& folder, const std::string& name, std::vector<DatasetPlace>& to) {
  const std::string images = idx_file(folder, "train-images-idx3-ubyte");
  if (images.empty()) return;
  DatasetPlace place{.format = Format::idx, .name = name, .folder = folder.string()};
  try {
    Bytes file(images);
    const IdxHeader header = read_header(file, images_magic);
    place.channels = 1, place.height = header.height, place.width = header.width;
  } catch (const Error& error) {
    place.damage = error.what();  // who asks for another set is not told
  }
  to.push_back(std::move(place));
}
void add_cifar(const fs::path& folder, std::vector<DatasetPlace>& to) {
  if (is_file(folder / "data_batch_1.bin"))
    to.push_back({Format::cifar, "cifar-10", folder.string(), 3, cifar_side, cifar_side});
}

}  // namespace

std::vector<DatasetPlace> find_datasets(const std::string& folder) {
  std::vector<DatasetPlace> places;
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) throw bad_input(fmt::format("{}: there is no such folder of data", folder));
  const fs::path whole = fs::weakly_canonical(folder, failed);
  const std::string own = whole.filename().string();
  add_idx(folder, std::find(std::begin(idx_sets), std::end(idx_sets), own) == std::end(idx_sets) ? "mnist" : own,
          places);
  add_cifar(folder, places);
  const auto is_there = [&](std::string_view name) {
    return std::any_of(places.begin(), places.end(), [&](const DatasetPlace& place) { return place.name == name; });
  };
  for (const std::string_view name : idx_sets)
    if (!is_there(name)) add_idx(fs::path(folder) / name, std::string(name), places);
  if (!is_there("cifar-10")) add_cifar(fs::path(folder) / "cifar-10-batches-bin", places);
  training::add_folders(folder, places);
  return places;
}

Dataset read_dataset(const DatasetPlace& place, std::int64_t train_images, std::int64_t test_images,
                     const ReadingProgress& progress) {
  if (!place.damage.empty()) throw bad_input(place.damage);
  if (place.format == Format::folders) return training::read_folders(place, train_images, test_images, progress);
  Dataset set{.name = place.name,
              .channels = place.channels,
              .height = place.height,
              .width = place.width,
              .classes = class_names(place),
              .origin = place.folder};
  if (place.format == Format::idx) {
    for (const char* const part : {"train", "t10k"})
      for (const char* const file : {"images-idx3-ubyte", "labels-idx1-ubyte"})
        if (const std::string name = fmt::format("{}-{}", part, file); idx_file(place.folder, name).empty())
          throw bad_input(fmt::format("{}: it has no {}, compressed (.gz) or not", place.folder, name));
    set.train = read_idx(place, "train", set.classes.size(), train_images);
    set.test = read_idx(place, "t10k", set.classes.size(), test_images);
    return set;
  }
  for (int batch = 1; batch <= 5; ++batch)
    read_cifar((fs::path(place.folder) / fmt::format("data_batch_{}.bin", batch)).string(), train_images, set.train);
  read_cifar((fs::path(place.folder) / "test_batch.bin").string(), test_images, set.test);
  return set;
}

}  // namespace omniconv
