// Files of tensors: eight bytes, little-endian, how long the header is; the header, JSON; the numbers.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/checked.h"
#include "image/atomic_file.h"
#include "image/input_file.h"
#include "omniconv/checkpoint.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using Json = nlohmann::ordered_json;
static_assert(std::endian::native == std::endian::little, "numbers lie in the file as they do in memory");

constexpr std::int64_t most_header = 100 << 20;  // as the format has it

NamedTensor entry_of(const std::string& path, const std::string& name, const Json& entry, std::int64_t bytes,
                     std::int64_t& begin) {
  const auto refuse = [&](const std::string& what) { throw bad_input(fmt::format("{}: {}: {}", path, name, what)); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
    refuse("its entry has no dtype, shape and data_offsets");
  if (entry["dtype"] != "F32") refuse("its type is not F32, the only one that is read");
  const Json &shape = entry["shape"], &offsets = entry["data_offsets"];
  const auto is_whole = [](const Json& one) { return one.is_number_unsigned(); };
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_whole))
    refuse("its shape is no list of numbers");
  if (!offsets.is_array() || offsets.size() != 2 || !is_whole(offsets[0]) || !is_whole(offsets[1]))
    refuse("its data_offsets are not two numbers");
  NamedTensor tensor{.name = name, .extents = {}, .values = {}};
  std::int64_t elements = 1;
  for (const Json& extent : shape) {
    tensor.extents.push_back(extent.get<std::int64_t>());
    if (tensor.extents.back() < 0) refuse("an extent is too large");
    elements = checked_multiply(elements, tensor.extents.back(), name);
  }
  const auto from = offsets[0].get<std::int64_t>(), to = offsets[1].get<std::int64_t>();
  if (from < 0 || to < from || to > bytes || to - from != checked_multiply(elements, 4, name))
    refuse(
        fmt::format("its data are said to be bytes {} to {} of {}, and it has {} numbers", from, to, bytes, elements));
  begin = from;
  tensor.values.resize(static_cast<std::size_t>(elements));
  return tensor;
}

}  // namespace

void write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  Json header;
  header["__metadata__"] = {{"format", "omniconv"}};
  std::int64_t end = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::int64_t begin = end;
    end = checked_add(end, checked_multiply(std::ssize(tensor.values), 4, tensor.name), "the tensors");
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.extents}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize(static_cast<std::size_t>(round_up(std::ssize(text), 8)), ' ');
  const std::uint64_t length = text.size();
  image::AtomicFile file(path);
  file.reserve(std::ssize(text) + 8 + end);
  file.write_at(0, &length, 8);
  file.write_at(8, text.data(), std::ssize(text));
  std::int64_t at = 8 + std::ssize(text);
  for (const NamedTensor& tensor : tensors) {
    const std::int64_t bytes = std::ssize(tensor.values) * 4;
    file.write_at(at, tensor.values.data(), bytes);
    at += bytes;
  }
  file.commit();
}

std::vector<NamedTensor> read_tensors(const std::string& path) {
  const image::InputFile file(path);
  std::uint64_t length = 0;
  if (file.size() < 8) throw bad_input(fmt::format("{}: it ends within its first eight bytes", path));
  file.read_at(0, &length, 8);
  if (length > static_cast<std::uint64_t>(std::min(most_header, file.size() - 8)))
    throw bad_input(
        fmt::format("{}: its header is said to have {} bytes, and the file has {}", path, length, file.size()));
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read_at(8, text.data(), std::ssize(text));
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) throw bad_input(fmt::format("{}: its header is no JSON object", path));
  const std::int64_t data = 8 + std::ssize(text), bytes = file.size() - data;
  std::vector<NamedTensor> tensors;
  std::int64_t all = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    std::int64_t begin = 0;
    tensors.push_back(entry_of(path, name, entry, bytes, begin));
    NamedTensor& tensor = tensors.back();
    all = checked_add(all, std::ssize(tensor.values) * 4, "the tensors");
    if (all > bytes) throw bad_input(fmt::format("{}: {}: tensors share bytes", path, name));
    file.read_at(data + begin, tensor.values.data(), std::ssize(tensor.values) * 4);
  }
  return tensors;
}

}  // namespace omniconv
