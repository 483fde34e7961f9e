#include "filter_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "common.h"
#include "image/image.h"
#include "image/input_file.h"
#include "omniconv/error.h"

namespace omniconv::cli {
namespace {

constexpr const char* stdin_name = "the standard input";

std::filesystem::path temporary_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error)
    throw environment_error(fmt::format("no folder for temporary files: {}; TMPDIR names one", error.message()));
  return folder;
}

// A file without a name, which ends with the process.
int open_temporary() {
  const std::filesystem::path folder = temporary_folder();
  int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    std::string name = (folder / "omniconv-XXXXXX").string();
    descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor >= 0) ::unlink(name.c_str());
  }
  if (descriptor < 0)
    throw environment_error(fmt::format("cannot keep the standard input in {}: {}; TMPDIR names another folder",
                                        folder.string(), std::strerror(errno)));
  return descriptor;
}

// Calls take(block, bytes) until the standard input ends.
template <typename Take>
void read_all_of_stdin(const Take& take) {
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && errno == EINTR && !interrupted()) continue;
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted; nothing was written");
    if (got < 0) throw bad_input(fmt::format("cannot read {}: {}", stdin_name, std::strerror(errno)));
    if (got == 0) return;
    take(block.data(), static_cast<std::size_t>(got));
  }
}

// All of it, or the error's number.
int write_all(int descriptor, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor, from, bytes);
    if (put < 0 && errno == EINTR && !interrupted()) continue;
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    if (put <= 0) return put < 0 ? errno : ENOSPC;
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return 0;
}

// What an image of this format is written as.
std::string extension_of_format(const std::string& format) {
  static constexpr std::pair<std::string_view, std::string_view> other[] = {
      {"jpeg", "jpg"}, {"tiff", "tif"}, {"openexr", "exr"}, {"targa", "tga"}, {"jpeg2000", "jp2"}};
  for (const auto& [name, extension] : other)
    if (format == name) return std::string(extension);
  return format;
}

std::string name_in(const std::string& folder, const std::string& input, const std::string& format) {
  std::filesystem::path name = std::filesystem::path(input).filename();
  if (!format.empty()) name.replace_extension(format);
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

std::vector<std::string> names_of(const FileOptions& options) {
  std::vector<std::string> names = options.files;
  if (!options.into.empty())
    for (const std::string& input : options.files) names.push_back(name_in(options.into, input, options.format));
  return names;
}

void check_operands(const FileOptions& options) {
  if (!options.into.empty() && options.files.empty())
    throw bad_input(
        fmt::format("--into {}: no input is named: omniconv filter IN... --into DIR --kernel K", options.into));
  if (!options.into.empty()) return;
  const std::vector<std::string>& files = options.files;
  if (files.size() < 2 || files[0].empty() || files[1].empty())
    throw bad_input("filter needs an input and an output file: omniconv filter IN OUT --kernel K");
  if (files.size() > 2)
    throw bad_input(
        fmt::format("unexpected argument '{}': filter takes one input and one output, or any number of "
                    "inputs and a folder for the results, --into DIR",
                    files[2]));
}

std::string FilterFile::page_path(int page) const {
  if (!is_numbered) return output_path;
  const std::filesystem::path whole = output_path;
  std::filesystem::path result = whole;
  result.replace_filename(fmt::format("{}-{}{}", whole.stem().string(), page, whole.extension().string()));
  return result.string();
}

Error FilterFile::with_names(const Error& error) const {
  std::string text = error.what();
  for (const auto& [path, name] : {std::pair(input_path, input), std::pair(output_path, output)})
    if (path != name)
      for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos; at += name.size())
        text.replace(at, path.size(), name);
  return Error(error.kind(), text);
}

FilterFiles::FilterFiles(const FileOptions& options, std::int64_t max_memory)
    : max_memory_(max_memory), is_into_folder_(!options.into.empty()) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (!std::all_of(options.format.begin(), options.format.end(), is_word))
    throw bad_input(fmt::format("--format '{}' is no extension: write one without its dot, as in png", options.format));
  if (is_into_folder_)
    pair_with_folder(options);
  else
    pair_up(options);
  choose_pages(options.page);
  refuse_collisions();
}

FilterFiles::~FilterFiles() {
  if (stdin_copy_ >= 0) ::close(stdin_copy_);
  remove_folder();
}

void FilterFiles::remove_folder() {
  std::error_code ignored;
  if (is_to_stdout()) std::filesystem::remove_all(stdout_folder_, ignored);
}

void FilterFiles::pair_up(const FileOptions& options) {
  FilterFile& file = files_.emplace_back();
  file.input = file.input_path = options.files[0];
  file.output = file.output_path = options.files[1];
  if (!options.format.empty() && file.output != "-")
    throw bad_input(
        fmt::format("--format is for --into and for - as the output, whose names have no extension; {} has "
                    "a name: leave it out",
                    file.output));
  if (file.input == "-") read_stdin(file);
  if (file.output == "-") write_stdout(options.format, file);
}

void FilterFiles::pair_with_folder(const FileOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.into, ignored))
    throw bad_input(fmt::format("--into {}: there is no such folder; make it first", options.into));
  for (const std::string& input : options.files) {
    if (input == "-") throw bad_input(fmt::format("- has no name for a file in {}: name an output file", options.into));
    FilterFile& file = files_.emplace_back();
    file.input = file.input_path = input;
    file.output = file.output_path = name_in(options.into, input, options.format);
  }
}

// What cannot be counted fails when its turn comes.
void FilterFiles::choose_pages(const std::string& page) {
  for (FilterFile& file : files_) {
    if (page != "all") {
      file.first_page = page.empty() ? 0 : std::stoi(page);
      continue;
    }
    file.first_page = 1;
    try {
      file.pages = image::count_images(file.input_path, max_memory_);
    } catch (const Error& error) {
      file.failure = error;
    }
    file.is_numbered = file.pages > 1 && !image::holds_pages(file.output_path);
    if (file.is_numbered && is_to_stdout())
      throw bad_input(
          fmt::format("{} holds {} images, and - takes one file: --format tif holds them all, or --page N "
                      "chooses one",
                      file.input, file.pages));
  }
}

// A file that is written before another is read, or written twice, would be lost.
void FilterFiles::refuse_collisions() const {
  std::map<std::string, std::string> inputs;
  std::set<std::string> outputs;
  for (const FilterFile& file : files_) inputs.emplace(place_of(file.input_path), file.input);
  for (const FilterFile& file : files_)
    for (int page = 1; page <= (file.is_numbered ? file.pages : 1); ++page) {
      const std::string path = file.page_path(page), place = place_of(path);
      if (!outputs.insert(place).second)
        throw bad_input(fmt::format("two results would become {}: filter {} into another folder", path, file.input));
      const auto replaced = inputs.find(place);
      if (replaced != inputs.end() && (is_into_folder_ || file.is_numbered))
        throw bad_input(fmt::format("{} would replace the input {}: name another {}", path, replaced->second,
                                    is_into_folder_ ? "folder" : "output"));
    }
}

std::int64_t FilterFiles::count_images() const {
  std::int64_t images = 0;
  for (const FilterFile& file : files_) images += file.pages;
  return images;
}

void FilterFiles::read_stdin(FilterFile& file) {
  file.input = stdin_name;
  // A file from its beginning can be opened once more.
  struct stat status {};
  const bool is_file = ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 && ::access("/proc/self/fd/0", R_OK) == 0) {
    file.input_path = "/proc/self/fd/0";
    return;
  }
  if (::isatty(STDIN_FILENO) == 1)
    throw bad_input("- is the standard input, which is a terminal: pipe an image into it, or name a file");
  stdin_copy_ = open_temporary();
  read_all_of_stdin([&](const char* block, std::size_t bytes) {
    if (const int error = write_all(stdin_copy_, block, bytes))
      throw environment_error(fmt::format("cannot keep the standard input in {}: {}; TMPDIR names another folder",
                                          temporary_folder().string(), std::strerror(error)));
  });
  file.input_path = fmt::format("/proc/self/fd/{}", stdin_copy_);
}

void FilterFiles::write_stdout(const std::string& format, FilterFile& file) {
  if (::isatty(STDOUT_FILENO) == 1)
    throw bad_input("- is the standard output, which is a terminal: pipe it into a program, or name a file");
  std::string extension = format;
  try {
    if (format.empty())
      extension = extension_of_format(image::open_image(file.input_path, 1, max_memory_)->info().format);
  } catch (const Error& error) {
    throw file.with_names(error);
  }
  std::string name = (temporary_folder() / "omniconv-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw environment_error(fmt::format("cannot make a folder in {}: {}; TMPDIR names another",
                                        temporary_folder().string(), std::strerror(errno)));
  stdout_folder_ = name;
  file.output = "the standard output";
  file.output_path = stdout_folder_ + "/image." + extension;
}

void FilterFiles::send_to_stdout() {
  const image::InputFile result(files_.front().output_path);
  remove_folder();  // the file is open
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::byte> block;
  for (std::int64_t at = 0; at < result.size(); at += static_cast<std::int64_t>(block.size())) {
    block = result.read_some(at, 1 << 20);
    if (const int error = write_all(STDOUT_FILENO, reinterpret_cast<const char*>(block.data()), block.size()))
      throw environment_error(fmt::format("the standard output takes no more: {}", std::strerror(error)));
  }
}

}  // namespace omniconv::cli
