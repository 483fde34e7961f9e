#include "arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "common.h"
#include "core/checked.h"
#include "image/formats/npy/npy_array.h"
#include "omniconv/error.h"
#include "operations/operation.h"

namespace omniconv::cli {
namespace {

using operations::ArrayHelp;
using operations::Operation;

// Where an extent was said.
struct Said {
  std::string array;
  std::int64_t value = 0;
};

// What an axis says: "h", or "c/g", which is c when it is multiplied by g.
struct Axis {
  std::string letters, divisor;
};

std::vector<Axis> axes_of(const ArraySpec& array) {
  std::vector<Axis> axes;
  for (std::size_t at = 0; at < array.axes.size();) {
    const std::size_t end = std::min(array.axes.find(", ", at), array.axes.size());
    const std::string axis = array.axes.substr(at, end - at);
    const std::size_t slash = axis.find('/');
    axes.push_back({axis.substr(0, slash), slash == std::string::npos ? "" : axis.substr(slash + 1)});
    at = end + 2;
  }
  return axes;
}

// The extents that the array of this shape says, into the problem, where its text left them out.
Problem with_extents_of(Problem problem, const ArraySpec& array, const std::vector<std::int64_t>& shape,
                        std::map<std::string, Said>& said) {
  const Operation& operation = problem.operation();
  const std::vector<std::string_view> letters = operation.letters();
  const std::vector<Axis> axes = axes_of(array);
  if (shape.size() != axes.size())
    throw bad_input(fmt::format("--{}: the array has {} axes, and {} has {} ({})", array.name, shape.size(), array.name,
                                axes.size(), array.axes));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& [axis, divisor] = axes[i];
    if (std::find(letters.begin(), letters.end(), axis) == letters.end()) continue;
    const std::int64_t times = divisor.empty() ? 1 : std::max<std::int64_t>(operation.extent(problem, divisor), 1);
    const std::int64_t value = checked_multiply(shape[i], times, "an extent that an array says");
    const auto [known, is_new] = said.try_emplace(axis, Said{array.name, value});
    if (!is_new && known->second.value != value)
      throw bad_input(fmt::format("{} is {} by --{} and {} by --{}: these arrays do not belong together", axis,
                                  known->second.value, known->second.array, value, array.name));
    if (operation.extent(problem, axis) == 0) problem = operation.with_letters(problem, axis, value);
  }
  return problem;
}

void check_names(const std::string& text, const std::vector<ArraySpec>& arrays, const ArrayFiles& files) {
  std::string names;
  for (const ArraySpec& array : arrays) names += fmt::format("{}--{}", names.empty() ? "" : ", ", array.name);
  for (const auto& [name, path] : files)
    if (std::none_of(arrays.begin(), arrays.end(), [&](const ArraySpec& array) { return array.name == name; }))
      throw bad_input(fmt::format("{} has no array --{}: it has {}; leave it out", text, name, names));
}

// Not of a pipe.
bool can_be_read_twice(const std::string& path) {
  std::error_code ignored;
  return path != "-" && !std::filesystem::is_fifo(path, ignored);
}

}  // namespace

void add_array_options(CLI::App& app, ArrayFiles& files) {
  std::vector<std::pair<std::string, std::string>> options;  // with what each means
  const auto add = [&](const std::string& name, const std::string& meaning) {
    const auto known = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.first == name; });
    if (known == options.end())
      options.emplace_back(name, meaning);
    else if (known->second != meaning)
      known->second += "; " + meaning;
  };
  for (const Operation* const operation : operations::operations())
    for (const ArrayHelp& array : operation->array_help()) {
      add(array.name, fmt::format("{}: {}", operation->name(), array.meaning));
      if (!array.alias.empty()) add(array.alias, "the same");
    }
  for (const auto& [name, meaning] : options)
    app.add_option_function<std::string>(
           "--" + name, [&files, name = name](const std::string& path) { files[name] = path; }, meaning)
        ->type_name("FILE")
        ->check(not_empty());
}

ArrayFiles by_name(const Problem& problem, ArrayFiles files) {
  for (const ArraySpec& array : problem.operation().arrays(problem))
    for (const ArrayHelp& help : problem.operation().array_help()) {
      const auto given = files.find(help.alias);
      if (help.name != array.name || array.role == ArrayRole::out || given == files.end()) continue;
      if (files.contains(array.name))
        throw bad_input(fmt::format("--{} and --{} are the same array: give one of them", array.name, help.alias));
      files[array.name] = given->second;
      files.erase(given);
    }
  return files;
}

Problem completed_problem(const std::string& text, const ArrayFiles& given) {
  Problem problem = operations::parse_partial_problem(text);
  const ArrayFiles files = by_name(problem, given);
  if (problem.operation().missing(problem).empty()) return parse_problem(text);
  const std::vector<ArraySpec> arrays = problem.operation().arrays(problem);
  check_names(text, arrays, files);
  std::map<std::string, Said> said;
  for (const ArraySpec& array : arrays) {
    const auto file = files.find(array.name);
    if (file == files.end() || array.role == ArrayRole::out || !can_be_read_twice(file->second)) continue;
    problem = with_extents_of(problem, array, image::npy_shape(file->second), said);
  }
  const std::string missing = problem.operation().missing(problem);
  if (!missing.empty() && said.empty()) return parse_problem(text);  // throws, with the column
  if (!missing.empty())
    throw bad_input(fmt::format("problem text '{}' leaves out {}, which none of these arrays says", text, missing));
  validate(problem);
  return problem;
}

void check_files(const Problem& problem, const std::vector<ArraySpec>& arrays, const ArrayFiles& files) {
  std::string from_stdin;
  for (const ArraySpec& array : arrays) {
    const auto file = files.find(array.name);
    if (file == files.end() && array.role != ArrayRole::out)
      throw bad_input(fmt::format("{} reads --{} ({}): name its .npy file", to_text(problem), array.name, array.axes));
    if (file == files.end() || file->second != "-" || array.role == ArrayRole::out) continue;
    if (!from_stdin.empty())
      throw bad_input(
          fmt::format("--{} and --{} are both -: the standard input holds one array; name a file for the other",
                      from_stdin, array.name));
    from_stdin = array.name;
  }
  check_names(to_text(problem), arrays, files);
}

}  // namespace omniconv::cli
