#include "labelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/suggest.h"
#include "omniconv/error.h"
#include "progress.h"

namespace omniconv::cli {
namespace {

constexpr std::string_view sample = "fashion-mnist-sample", shapes = "shapes";
constexpr std::string_view datasets[] = {"mnist", "fashion-mnist", "cifar-10", sample, shapes};
constexpr const char* usual = "/usr/share/datasets";  // Debian's dataset-fashion-mnist

std::string list_of(const std::vector<DatasetPlace>& all) {
  std::string list;
  for (const DatasetPlace& place : all)
    list += fmt::format("{}{} ({}: {})", list.empty() ? "" : ", ", place.name, place.folder,
                        !place.damage.empty() ? "damaged"
                        : place.format == DatasetPlace::Format::folders
                            ? "folders of images"
                            : print({place.channels, place.height, place.width}));
  return list;
}

Error no_fit(const DataOptions& options, const Model& model, const std::string& found) {
  return bad_input(fmt::format("no {}data set fits the model {}, which takes {}: found {}",
                               options.dataset.empty() ? "" : options.dataset + " ", model.name, print(model.input),
                               found));
}

// The one that the model's input fits, and that has the name, if one is asked for; none where none does. Folders of
// images, which fit every model, where no other set does.
std::optional<DatasetPlace> fitting(const std::vector<DatasetPlace>& places, const DataOptions& options,
                                    const Model& model) {
  std::vector<DatasetPlace> found, folders;
  for (const DatasetPlace& place : places) {
    if (!options.dataset.empty() && options.dataset != place.name) continue;
    const bool is_named = !options.dataset.empty() || places.size() == 1;
    if (!place.damage.empty() && is_named) throw bad_input(place.damage);
    if (place.format == DatasetPlace::Format::folders && place.damage.empty()) {
      DatasetPlace& own = folders.emplace_back(place);
      own.channels = model.input.channels, own.height = model.input.height, own.width = model.input.width;
    }
    if (ModelShape{place.channels, place.height, place.width} == model.input) found.push_back(place);
  }
  if (found.empty() && options.dataset.empty() && !folders.empty())
    for (const DatasetPlace& place : places)
      if (!place.damage.empty() && place.format != DatasetPlace::Format::folders)
        throw bad_input(
            fmt::format("{}; --dataset {} takes the images of folders beside it", place.damage, folders.front().name));
  if (found.empty()) found = folders;
  if (found.empty()) return std::nullopt;
  if (found.size() > 1)
    throw bad_input(
        fmt::format("several data sets fit the model {}: name one by --dataset: {}", model.name, list_of(found)));
  return found.front();
}

// Of a folder that is named its own sets' names are known, too.
void require_known(const std::string& name, const std::vector<DatasetPlace>& places, const char* mend = "") {
  std::vector<std::string_view> known(std::begin(datasets), std::end(datasets));
  for (const DatasetPlace& place : places)
    if (std::find(known.begin(), known.end(), place.name) == known.end()) known.push_back(place.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw bad_input(fmt::format("unknown data set '{}': {}{}", name, suggest(name, known), mend));
}

DatasetPlace place_in_folder(const DataOptions& options, const Model& model) {
  const std::vector<DatasetPlace> places = find_datasets(options.data);
  if (!options.dataset.empty()) require_known(options.dataset, places);
  if (places.empty())
    throw bad_input(
        fmt::format("{}: neither it nor its mnist, fashion-mnist and cifar-10-batches-bin hold a data set: IDX "
                    "files as train-images-idx3-ubyte, CIFAR-10's data_batch_1.bin, or folders of images, one for "
                    "each class",
                    options.data));
  if (const std::optional<DatasetPlace> place = fitting(places, options, model)) return *place;
  throw no_fit(options, model, list_of(places));
}

Dataset made_shapes(const DataOptions& options) {
  constexpr std::int64_t usual_train = 8000, usual_test = 2000;
  return make_shapes(options.train_images < 0 ? usual_train : options.train_images,
                     options.test_images < 0 ? usual_test : options.test_images);
}

// Where no folder is named: the usual one's, or the sample that comes along, or else shapes.
Dataset without_a_folder(const DataOptions& options, const Model& model) {
  std::vector<DatasetPlace> all;
  for (const std::string& folder : {std::string(usual), read_environment().data}) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) continue;
    std::vector<DatasetPlace> places = find_datasets(folder);
    std::erase_if(places, [](const DatasetPlace& one) { return one.format == DatasetPlace::Format::folders; });
    if (const std::optional<DatasetPlace> place = fitting(places, options, model))
      return read_dataset(*place, options.train_images, options.test_images);
    all.insert(all.end(), places.begin(), places.end());
  }
  const auto is_there = [&](const DatasetPlace& place) { return place.name == options.dataset; };
  if (options.dataset == sample && std::none_of(all.begin(), all.end(), is_there))
    throw bad_input(
        fmt::format("{} is not beside the program, in share/omniconv: name the folder that holds it by --data, or by "
                    "OMNICONV_DATA_DIR",
                    sample));
  constexpr ModelShape of_shapes = {3, 32, 32};
  if (options.dataset.empty() && model.input == of_shapes) return made_shapes(options);
  throw no_fit(options, model,
               fmt::format("{}{}; give --data DIR, a folder with MNIST's, Fashion-MNIST's or CIFAR-10's files",
                           list_of(all), all.empty() ? "none" : ""));
}

// How many images of each class were taken for which.
void print_confusion(const Dataset& dataset, const Evaluation& result) {
  const std::size_t classes = dataset.classes.size();
  std::vector<std::vector<std::string>> table = {{"of (rows) found as"}};
  for (std::size_t c = 0; c < classes; ++c) table[0].push_back(std::to_string(c));
  table[0].emplace_back("right");
  for (std::size_t of = 0; of < classes; ++of) {
    std::int64_t all = 0;
    std::vector<std::string> row = {
        fmt::format("{} {}", of, dataset.classes[of] == std::to_string(of) ? "" : dataset.classes[of])};
    for (std::size_t c = 0; c < classes; ++c) {
      const std::int64_t count = result.confusion[of * classes + c];
      all += count;
      row.push_back(count == 0 ? "." : std::to_string(count));
    }
    row.push_back(all == 0 ? ""
                           : fmt::format("{:.1f} %", 100.0 * static_cast<double>(result.confusion[of * classes + of]) /
                                                         static_cast<double>(all)));
    table.push_back(row);
  }
  print_table(table);
}

}  // namespace

std::string print(const ModelShape& shape) {
  return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

void add_data(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data", options.data,
                  "the folder of the data set, or of its folder; else /usr/share/datasets, or what comes along")
      ->type_name("DIR")
      ->check(not_empty());
  command.add_option("--dataset", options.dataset, "the set, where several fit the model")
      ->type_name("NAME")
      ->check(known_words({std::begin(datasets), std::end(datasets)}));
  command
      .add_option("--test-size", options.test_images,
                  "only so many images for the test, the first ones; of folders drawn ones")
      ->type_name("N")
      ->check(whole_number(1, 1 << 28));
}

void add_chunk(CLI::App& command, std::int64_t& chunk) {
  command
      .add_option("--chunk", chunk,
                  "bring so many images to the device at a time; else all that its memory has room for")
      ->type_name("N")
      ->check(whole_number(1, 1 << 28));
}

void require_chunk(std::int64_t chunk, std::int64_t batch) {
  if (chunk > 0 && chunk < batch)
    throw bad_input(fmt::format("--chunk {} beside --batch {}: a chunk holds a batch at least", chunk, batch));
}

std::string print_chunk(std::int64_t images) {
  return images == 0 ? "" : fmt::format("images are brought to the device in chunks of {}\n", images);
}

void add_solvers(CLI::App& command, std::vector<std::string>& solvers) {
  command.add_option("--solver", solvers, "the solver of an operation, or what its id begins with")
      ->type_name("OPERATION=ID");
}

std::map<std::string, std::string> parse_solvers(const std::vector<std::string>& given) {
  std::map<std::string, std::string> solvers;
  for (const std::string& one : given) {
    const std::size_t at = one.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == one.size())
      throw bad_input(fmt::format("--solver '{}': it is OPERATION=ID, as in conv2d=conv2d/im2col_gemm", one));
    solvers[one.substr(0, at)] = one.substr(at + 1);
  }
  return solvers;
}

Dataset labelled_images(const DataOptions& options, const Model& model, bool shows_progress) {
  if (!options.dataset.empty() && options.data.empty())
    require_known(options.dataset, {}, "; one of your own is named by --data DIR");
  if (options.dataset == shapes) {
    if (!options.data.empty())
      throw bad_input("--data beside --dataset shapes, whose images are made and not read: leave one of them out");
    Dataset made = made_shapes(options);
    if (const ModelShape shape{made.channels, made.height, made.width}; shape != model.input)
      throw no_fit(options, model, print(shape));
    return made;
  }
  if (options.data.empty()) return without_a_folder(options, model);
  ProgressBar bar(read_environment().progress && shows_progress, 1);
  return read_dataset(place_in_folder(options, model), options.train_images, options.test_images,
                      [&](std::int64_t done, std::int64_t all) {
                        bar.update(done, all, "images");
                        return !interrupted();
                      });
}

Json describe(const Dataset& dataset, bool with_training) {
  Json json = {{"name", dataset.name}, {"origin", dataset.origin}};
  if (with_training) json["train"] = dataset.train.count;
  json["test"] = dataset.test.count;
  if (!dataset.kept_apart.empty()) json["test_is_of_training"] = true;
  return json;
}

std::string print(const Dataset& dataset, bool with_training) {
  const std::string training = with_training ? fmt::format(" {} images for training,", dataset.train.count) : "";
  return fmt::format("{}:{} {}{}{} for the test ({})", dataset.name, training, dataset.test.count,
                     with_training ? "" : " images", dataset.kept_apart.empty() ? "" : " kept apart", dataset.origin);
}

Json describe(const Evaluation& result) {
  return {{"images", result.images},
          {"right", result.right},
          {"accuracy", result.accuracy()},
          {"loss", result.loss},
          {"confusion", result.confusion}};
}

void print_evaluation(const Dataset& dataset, const Evaluation& result) {
  fmt::print("\ntest accuracy {:.2f} %: {} of {} images\n\n", 100 * result.accuracy(), result.right, result.images);
  print_confusion(dataset, result);
}

}  // namespace omniconv::cli
