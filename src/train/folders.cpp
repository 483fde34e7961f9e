#include "train/folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/checked.h"
#include "core/fnv.h"
#include "core/problem_rules.h"
#include "image/formats/extension.h"
#include "omniconv/error.h"
#include "train/picture.h"
#include "train/shuffle.h"

namespace omniconv::training {
namespace {

namespace fs = std::filesystem;

// Labels are bytes. What is read at once is as of other sets.
constexpr std::int64_t most_classes = 256, most_entries = 1 << 24, most_bytes = std::int64_t{1} << 33;

// A folder's names that are not hidden, by their bytes.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
    if (std::ssize(names) > most_entries)
      throw bad_input(fmt::format("{}: it has more than {} files", folder.string(), most_entries));
  }
  if (failed) throw bad_input(fmt::format("{}: the folder cannot be read: {}", folder.string(), failed.message()));
  std::sort(names.begin(), names.end());
  return names;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) { return !is_folder(folder / name); });
  return names;
}

// By names alone, which says whether a folder is worth being taken for a class; what files are is for those who read
// them. One that cannot be read may be.
bool may_be_class(const fs::path& folder) {
  constexpr std::array<std::string_view, 16> known = {"png", "tif", "tiff", "webp", "bmp", "gif", "pnm", "pgm",
                                                      "ppm", "pbm", "pam",  "pfm",  "npy", "jp2", "tga", "exr"};
  std::error_code failed;
  for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string(), extension = image::extension_of(name);
    if (!name.starts_with('.') &&
        (image::is_jpeg_extension(extension) || std::find(known.begin(), known.end(), extension) != known.end()))
      return true;
  }
  return static_cast<bool>(failed);
}

bool has_classes(const fs::path& folder) {
  const std::vector<std::string> names = folders_in(folder);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return may_be_class(folder / name); });
}

std::optional<DatasetPlace> place_of(const fs::path& folder, bool may_hold_classes) {
  std::error_code ignored;
  DatasetPlace place{.format = DatasetPlace::Format::folders,
                     .name = fs::weakly_canonical(folder, ignored).filename().string(),
                     .folder = folder.string()};
  if (place.name.empty()) place.name = "images";
  try {
    if ((is_folder(folder / "train") && !folders_in(folder / "train").empty()) ||
        (may_hold_classes && has_classes(folder)))
      return place;
  } catch (const Error& error) {
    place.damage = error.what();  // who asks for another set is not told
    return place;
  }
  return std::nullopt;
}

// As the name of a set or class, which goes into checkpoints and reports.
void require_plain(const std::string& name, const fs::path& above) {
  if (const std::optional<BrokenRule> broken = name_rule(name))
    throw bad_input(
        fmt::format("{}: of a folder in it the {}: rename it", above.empty() ? "." : above.string(), broken->message));
}

// Files of one part, in the order of classes and names.
struct Part {
  std::vector<std::string> files;
  std::vector<std::uint8_t> labels;
};

void add_class(const fs::path& folder, std::uint8_t label, Part& to) {
  const std::vector<std::string> names = names_in(folder);
  if (names.empty()) throw bad_input(fmt::format("{}: the folder of a class has no image", folder.string()));
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    if (failed && status.type() != fs::file_type::not_found)
      throw bad_input(fmt::format("{}: it cannot be read: {}", path.string(), failed.message()));
    if (status.type() == fs::file_type::directory)
      throw bad_input(fmt::format("{}: a folder in the folder of a class, which holds images alone", path.string()));
    if (status.type() != fs::file_type::regular)
      throw bad_input(fmt::format("{}: {}, and the folder of a class holds images alone", path.string(),
                                  fs::is_symlink(path, failed) ? "a link to nothing that is there" : "no file"));
    to.files.push_back(path.string()), to.labels.push_back(label);
    if (std::ssize(to.files) > most_entries)
      throw bad_input(fmt::format("{}: with it the set has more than {} images", path.string(), most_entries));
  }
}

std::vector<std::string> classes_in(const fs::path& folder) {
  const std::vector<std::string> classes = folders_in(folder);
  for (const std::string& name : classes) require_plain(name, folder);
  if (classes.size() < 2 || std::ssize(classes) > most_classes)
    throw bad_input(fmt::format("{}: it has {} {}, one for each class: must be 2 to {}", folder.string(),
                                classes.size(), classes.size() == 1 ? "folder" : "folders", most_classes));
  return classes;
}

Part part_in(const fs::path& folder, const std::vector<std::string>& classes) {
  Part part;
  for (std::size_t label = 0; label < classes.size(); ++label)
    add_class(folder / classes[label], static_cast<std::uint8_t>(label), part);
  return part;
}

// What is drawn: each use of the generator has a stream of its own.
enum : std::uint32_t { kept_apart = 1, of_training = 2, of_test = 3 };

std::vector<std::int32_t> drawn(std::size_t count, std::uint32_t stream) {
  constexpr std::uint64_t seed = 1;  // not a training's: sets are the same for all
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, PhiloxStream(seed, PhiloxUse::split, stream));
  return order;
}

// The images of these numbers, in their order in the part.
Part those(const Part& from, std::span<const std::int32_t> numbers) {
  std::vector<std::int32_t> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  Part to;
  for (const std::int32_t i : sorted)
    to.files.push_back(from.files[static_cast<std::size_t>(i)]),
        to.labels.push_back(from.labels[static_cast<std::size_t>(i)]);
  return to;
}

Part some_of(Part part, std::int64_t most, std::uint32_t stream) {
  if (most < 0 || most >= std::ssize(part.files)) return part;
  const std::vector<std::int32_t> order = drawn(part.files.size(), stream);
  return those(part, std::span(order).first(static_cast<std::size_t>(most)));
}

// Those for the test are the same, whatever is taken of the others.
std::pair<Part, Part> split(const Part& all, const std::string& folder, std::int64_t train_images,
                            std::int64_t test_images) {
  const std::int64_t count = std::ssize(all.files),
                     test = test_images < 0 ? std::max<std::int64_t>(count / 10, 1) : test_images,
                     most = train_images == 0 ? count : count - 1;
  if (test > most)
    throw bad_input(
        fmt::format("{}: {} images for the test, of {} that are there: at most {}", folder, test, count, most));
  const std::vector<std::int32_t> order = drawn(all.files.size(), kept_apart);
  const std::span rest = std::span(order).first(static_cast<std::size_t>(count - test));
  const auto wanted =
      static_cast<std::size_t>(train_images < 0 ? std::ssize(rest) : std::min(train_images, std::ssize(rest)));
  return {those(all, rest.first(wanted)), those(all, std::span(order).last(static_cast<std::size_t>(test)))};
}

std::string hash_of_names(const Part& part, const fs::path& folder) {
  std::uint64_t hash = fnv_hash("");
  for (const std::string& file : part.files)
    hash = fnv_hash(fs::path(file).lexically_relative(folder).generic_string() + '\n', hash);
  return fmt::format("{:016x}", hash);
}

// Many files at once, by as many threads as there are cores. The error is that of the first file that has one.
class Reading {
 public:
  Reading(const ModelShape& shape, std::int64_t all, const ReadingProgress& progress)
      : shape_(shape), all_(all), progress_(progress) {}

  Examples read(const Part& part) {
    Examples examples{.count = std::ssize(part.files)};
    examples.labels = part.labels;
    examples.pixels.resize(static_cast<std::size_t>(examples.count * shape_.elements()));
    next_ = 0, failed_ = examples.count;
    const auto own = [&](bool tells) {
      for (std::int64_t i = 0; (i = next_++) < failed_;) read_one(part, i, examples, tells);
    };
    {
      constexpr std::int64_t of_thread = 16;  // images that make a thread worth it
      const auto threads =
          std::min<std::int64_t>(std::max(std::thread::hardware_concurrency(), 1u), examples.count / of_thread);
      std::vector<std::jthread> others;
      for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(own, false);
      own(true);
    }
    if (error_) std::rethrow_exception(error_);
    return examples;
  }

 private:
  void read_one(const Part& part, std::int64_t i, Examples& to, bool tells) {
    try {
      const std::vector<std::uint8_t> pixels = read_picture(part.files[static_cast<std::size_t>(i)], shape_);
      std::copy(pixels.begin(), pixels.end(), to.pixels.begin() + i * shape_.elements());
      ++done_;
      if (tells && progress_ && !progress_(done_, all_)) throw Error(ErrorKind::interrupted, "interrupted");
    } catch (...) {
      stop(i, std::current_exception());
    }
  }
  void stop(std::int64_t i, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && i >= failed_) return;
    error_ = std::move(error), failed_ = i;
  }

  ModelShape shape_;
  std::int64_t all_;
  const ReadingProgress& progress_;
  std::atomic<std::int64_t> next_ = 0, done_ = 0,
                            failed_ = 0;  // failed_: the first file with an error, or their number
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void add_folders(const std::string& folder, std::vector<DatasetPlace>& places) {
  if (std::optional<DatasetPlace> own = place_of(folder, places.empty())) {
    places.push_back(std::move(*own));
    return;
  }
  std::vector<std::string> names;
  try {
    names = folders_in(folder);
  } catch (const Error&) {  // nothing is found in it
    return;
  }
  for (const std::string& name : names) {
    const fs::path inside = fs::path(folder) / name;
    if (std::any_of(places.begin(), places.end(), [&](const DatasetPlace& place) { return place.folder == inside; }))
      continue;
    if (std::optional<DatasetPlace> own = place_of(inside, true)) places.push_back(std::move(*own));
  }
}

Dataset read_folders(const DatasetPlace& place, std::int64_t train_images, std::int64_t test_images,
                     const ReadingProgress& progress) {
  const ModelShape shape{place.channels, place.height, place.width};
  if (std::min({shape.channels, shape.height, shape.width}) < 1)
    throw bad_input(fmt::format("{}: its images are made {} x {} x {}: name channels, rows and columns of at least 1",
                                place.folder, shape.channels, shape.height, shape.width));
  const fs::path folder = place.folder;
  require_plain(place.name, folder.parent_path());
  const bool has_parts = is_folder(folder / "train") && !folders_in(folder / "train").empty();
  const fs::path of_train = has_parts ? folder / "train" : folder;
  Dataset set{.name = place.name,
              .channels = place.channels,
              .height = place.height,
              .width = place.width,
              .classes = classes_in(of_train),
              .origin = place.folder};
  std::pair<Part, Part> parts;
  if (!has_parts || !is_folder(folder / "test")) {
    parts = split(part_in(of_train, set.classes), place.folder, train_images, test_images);
    set.kept_apart = hash_of_names(parts.second, of_train);
  } else {
    const fs::path of_tests = folder / "test";
    if (const std::vector<std::string> classes = classes_in(of_tests); classes != set.classes)
      throw bad_input(fmt::format("{}: its {} folders are other classes than the {} of {}: name them alike",
                                  of_tests.string(), classes.size(), set.classes.size(), of_train.string()));
    if (train_images != 0) parts.first = some_of(part_in(of_train, set.classes), train_images, of_training);
    parts.second = some_of(part_in(of_tests, set.classes), test_images, of_test);
  }
  const std::int64_t count = std::ssize(parts.first.files) + std::ssize(parts.second.files);
  const std::int64_t of_image = checked_multiply(checked_multiply(shape.channels, shape.height, "an image"),
                                                 shape.width, "an image"),
                     bytes = checked_multiply(count, of_image, "the set's images");
  if (bytes > most_bytes)
    throw bad_input(fmt::format("{}: its {} images of {} x {} x {} pass the {} bytes that are read: take fewer of them",
                                place.folder, count, shape.channels, shape.height, shape.width, most_bytes));
  Reading reading(shape, count, progress);
  set.train = reading.read(parts.first);
  set.test = reading.read(parts.second);
  return set;
}

}  // namespace omniconv::training
