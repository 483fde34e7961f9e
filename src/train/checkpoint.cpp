#include "omniconv/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "core/fnv.h"
#include "image/atomic_file.h"
#include "image/input_file.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view schema = "omniconv-checkpoint/1", of_losses = "progress.losses", ending = ".json",
                           of_tensors = ".safetensors", beginning = "step-";
constexpr std::int64_t most_json = 64 << 20;

std::string checksum_of(const std::string& path) {
  const image::InputFile file(path);
  std::uint64_t sum = fnv_hash({});
  std::array<char, 1 << 16> piece{};
  for (std::int64_t at = 0; at < file.size(); at += std::ssize(piece)) {
    const std::int64_t here = std::min(file.size() - at, std::ssize(piece));
    file.read_at(at, piece.data(), here);
    sum = fnv_hash({piece.data(), static_cast<std::size_t>(here)}, sum);
  }
  return fmt::format("{:016x}", sum);
}

Json json_of(const EpochReport& report) {
  return {{"epoch", report.epoch},
          {"steps", report.steps},
          {"loss", report.loss},
          {"rate", report.rate},
          {"seconds", report.seconds},
          {"images_per_second", report.images_a_second},
          {"validation_images", report.validation_images},
          {"validation_loss", report.validation_loss},
          {"validation_accuracy", report.validation_accuracy}};
}
EpochReport report_of(const Json& json) {
  return {.epoch = json.at("epoch"),
          .steps = json.at("steps"),
          .loss = json.at("loss"),
          .rate = json.at("rate"),
          .seconds = json.at("seconds"),
          .images_a_second = json.at("images_per_second"),
          .validation_images = json.at("validation_images"),
          .validation_loss = json.at("validation_loss"),
          .validation_accuracy = json.at("validation_accuracy")};
}

std::string tensors_beside(const std::string& json_path) {
  return json_path.substr(0, json_path.size() - ending.size()) + std::string(of_tensors);
}

bool is_missing(const std::string& path) {
  std::error_code failed;
  return std::filesystem::status(path, failed).type() == std::filesystem::file_type::not_found;
}

// The numbers of steps by their digits: of more digits, or greater ones.
bool is_later(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// What to do without the checkpoint: the last one of its folder before it.
std::string older_than(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  for (const std::string& other : find_checkpoints(folder_of(path)))
    if (is_later(name, std::filesystem::path(other).filename()))
      return fmt::format("; {} is older: name that one", other);
  return "";
}

// What is wrong is thrown, as bad_input or by the JSON library.
Checkpoint read(const std::string& path) {
  const image::InputFile file(path);
  if (file.size() > most_json) throw bad_input(fmt::format("it has {} bytes, more than any checkpoint", file.size()));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, text.data(), file.size());
  const Json json = Json::parse(text);
  if (json.at("schema") != schema) throw bad_input(fmt::format("its schema is not {}", schema));
  Checkpoint found{.model = parse_model(json.at("model").get<std::string>(), json.at("name").get<std::string>()),
                   .dataset = json.at("dataset"),
                   .classes = json.at("classes"),
                   .standard = {.mean = json.at("mean"), .deviation = json.at("deviation")},
                   .options = json.at("options"),
                   .solvers = json.at("solvers")};
  if (std::ssize(found.standard.mean) != found.model.input.channels ||
      std::ssize(found.standard.deviation) != found.model.input.channels)
    throw bad_input("its means and deviations are not as many as the model's channels");
  if (found.classes.empty() || std::ssize(found.classes) > found.model.classes())
    throw bad_input(
        fmt::format("it has {} classes, and the model {} outputs", found.classes.size(), found.model.classes()));
  const Json& progress = json.at("progress");
  found.progress = {.epoch = progress.at("epoch"), .step = progress.at("step"), .updates = progress.at("updates")};
  if (found.progress.epoch < 1 || found.progress.step < 0 || found.progress.updates < 0)
    throw bad_input("its epoch, step or updates are negative");
  for (const Json& epoch : progress.at("epochs")) found.progress.epochs.push_back(report_of(epoch));
  const std::string tensors = tensors_beside(path);
  if (checksum_of(tensors) != json.at("tensors_checksum"))
    throw bad_input(fmt::format("{} does not match its checksum", tensors));
  for (NamedTensor& tensor : read_tensors(tensors))
    if (tensor.name == of_losses)
      found.progress.losses = std::move(tensor.values);
    else
      found.tensors.push_back(std::move(tensor));
  return found;
}

// Whether it had to be made.
bool make_folder(const std::string& folder) {
  std::error_code failed;
  const bool is_new = std::filesystem::create_directories(folder, failed);
  if (failed)
    throw bad_input(
        fmt::format("{}: the folder of checkpoints cannot be made: {}; name another one", folder, failed.message()));
  return is_new;
}

}  // namespace

bool make_checkpoint_folder(const std::string& folder) {
  const bool is_new = make_folder(folder);
  try {
    const image::AtomicFile file(fmt::format("{}/{}{}", folder, beginning, ending));  // never put in its place
  } catch (const Error& error) {
    std::error_code ignored;
    if (is_new) std::filesystem::remove(folder, ignored);
    throw bad_input(fmt::format("{}: no checkpoint can be kept there: {}; name another folder", folder, error.what()));
  }
  return is_new;
}

std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, int kept) {
  make_folder(folder);
  std::error_code failed;
  const std::string path = fmt::format("{}/{}{:08}{}", folder, beginning, checkpoint.progress.updates, ending);
  std::vector<NamedTensor> tensors = checkpoint.tensors;
  tensors.push_back({std::string(of_losses), {std::ssize(checkpoint.progress.losses)}, checkpoint.progress.losses});
  // One of this step that is there already is none any more while its tensors change.
  std::filesystem::remove(path, failed);
  write_tensors(tensors_beside(path), tensors);
  Json json = {{"schema", schema},
               {"name", checkpoint.model.name},
               {"model", to_text(checkpoint.model)},
               {"dataset", checkpoint.dataset},
               {"classes", checkpoint.classes},
               {"mean", checkpoint.standard.mean},
               {"deviation", checkpoint.standard.deviation},
               {"options", checkpoint.options},
               {"progress",
                {{"epoch", checkpoint.progress.epoch},
                 {"step", checkpoint.progress.step},
                 {"updates", checkpoint.progress.updates},
                 {"epochs", Json::array()}}},
               {"tensors_checksum", checksum_of(tensors_beside(path))},
               {"solvers", checkpoint.solvers}};
  for (const EpochReport& report : checkpoint.progress.epochs) json["progress"]["epochs"].push_back(json_of(report));
  const std::string text = json.dump(1) + "\n";
  image::AtomicFile file(path);
  file.write_at(0, text.data(), std::ssize(text));
  file.commit();
  const std::vector<std::string> all = find_checkpoints(folder);
  for (std::size_t i = static_cast<std::size_t>(kept); i < all.size(); ++i) {
    std::filesystem::remove(all[i], failed);
    std::filesystem::remove(tensors_beside(all[i]), failed);
  }
  return path;
}

std::vector<std::string> find_checkpoints(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    const bool has_digits = name.size() > beginning.size() + ending.size() &&
                            std::all_of(name.begin() + beginning.size(), name.end() - ending.size(),
                                        [](char c) { return c >= '0' && c <= '9'; });
    if (name.starts_with(beginning) && name.ends_with(ending) && has_digits) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(), is_later);
  return found;
}

Network network_of(const Context& context, const Checkpoint& checkpoint, const NetworkOptions& options) {
  Network network(context, checkpoint.model, options);
  std::vector<NamedTensor> own;
  if (options.trains) {
    own = checkpoint.tensors;
  } else {
    std::copy_if(checkpoint.tensors.begin(), checkpoint.tensors.end(), std::back_inserter(own),
                 [](const NamedTensor& tensor) { return tensor.name.starts_with("layers."); });
  }
  std::vector<NamedTensor> wanted;
  network.read_tensors(wanted).wait();
  for (const NamedTensor& tensor : wanted)
    if (std::none_of(own.begin(), own.end(), [&](const NamedTensor& one) { return one.name == tensor.name; }))
      throw bad_input(fmt::format("the checkpoint of {} lacks {}", checkpoint.model.name, tensor.name));
  network.set_tensors(own);
  network.set_updates(checkpoint.progress.updates);
  return network;
}

Checkpoint load_checkpoint(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::vector<std::string> all = is_folder ? find_checkpoints(path) : std::vector<std::string>{path};
  if (all.empty()) throw bad_input(fmt::format("{}: no checkpoint lies there", path));
  const std::string& named = all.front();
  if (!named.ends_with(ending))
    throw bad_input(fmt::format("{}: a checkpoint is named by its file step-NUMBER.json, or by its folder", named));
  for (const std::string& file : {named, tensors_beside(named)})
    if (is_missing(file))
      throw bad_input(fmt::format("{}: the checkpoint is not whole: {} is missing{}", named, file, older_than(named)));
  std::string damage;
  try {
    return read(named);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    damage = error.what();
  } catch (const Json::exception& error) {
    damage = error.what();
  }
  throw bad_input(fmt::format("{}: the checkpoint is damaged: {}{}", named, damage, older_than(named)));
}

}  // namespace omniconv
