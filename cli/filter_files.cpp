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
    if (put < 0 && errno == EINTR) continue;
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

std::string extension_of_input(const std::string& path) {
  return extension_of_format(image::open_image(path, 1)->info().format);
}

}  // namespace

FilterFiles::FilterFiles(const FileOptions& options) : is_into_folder_(!options.into.empty()) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (!std::all_of(options.format.begin(), options.format.end(), is_word))
    throw bad_input(fmt::format("--format '{}' is no extension: write one without its dot, as in png", options.format));
  if (is_into_folder_)
    pair_with_folder(options);
  else
    pair_up(options);
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
  const std::vector<std::string>& files = options.files;
  if (files.size() < 2 || files[0].empty() || files[1].empty())
    throw bad_input("filter needs an input and an output file: omniconv filter IN OUT --kernel K");
  if (files.size() > 2)
    throw bad_input(
        fmt::format("unexpected argument '{}': filter takes one input and one output, or any number of "
                    "inputs and a folder for the results, --into DIR",
                    files[2]));
  FilePair pair{files[0], files[0], files[1], files[1]};
  if (!options.format.empty() && pair.output != "-")
    throw bad_input(
        fmt::format("--format is for --into and for - as the output, whose names have no extension; {} has "
                    "a name: leave it out",
                    pair.output));
  if (pair.input == "-") read_stdin(pair);
  if (pair.output == "-") write_stdout(options.format, pair);
  pairs_.push_back(pair);
}

void FilterFiles::pair_with_folder(const FileOptions& options) {
  const std::filesystem::path folder = options.into;
  if (options.files.empty())
    throw bad_input(
        fmt::format("--into {}: no input is named: omniconv filter IN... --into DIR --kernel K", options.into));
  if (!std::filesystem::is_directory(folder))
    throw bad_input(fmt::format("--into {}: there is no such folder; make it first", options.into));
  std::set<std::string> outputs;
  for (const std::string& input : options.files) {
    if (input == "-") throw bad_input(fmt::format("- has no name for a file in {}: name an output file", options.into));
    std::filesystem::path name = std::filesystem::path(input).filename();
    if (!options.format.empty()) name.replace_extension(options.format);
    const std::string output = (folder / name).string();
    if (!outputs.insert(output).second)
      throw bad_input(
          fmt::format("{} and an input before it would both become {}: filter them into two folders", input, output));
    if (is_same_file(input, output))
      throw bad_input(fmt::format("--into {} would replace {}: name another folder, or filter it alone as {} {}",
                                  options.into, input, input, input));
    pairs_.push_back({input, input, output, output});
  }
}

void FilterFiles::read_stdin(FilePair& pair) {
  pair.input = stdin_name;
  // A file from its beginning can be opened once more.
  struct stat status {};
  const bool is_file = ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0) {
    pair.input_path = "/proc/self/fd/0";
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
  pair.input_path = fmt::format("/proc/self/fd/{}", stdin_copy_);
}

void FilterFiles::write_stdout(const std::string& format, FilePair& pair) {
  if (::isatty(STDOUT_FILENO) == 1)
    throw bad_input("- is the standard output, which is a terminal: pipe it into a program, or name a file");
  const std::string extension = format.empty() ? extension_of_input(pair.input_path) : format;
  std::string name = (temporary_folder() / "omniconv-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw environment_error(fmt::format("cannot make a folder in {}: {}; TMPDIR names another",
                                        temporary_folder().string(), std::strerror(errno)));
  stdout_folder_ = name;
  pair.output = "the standard output";
  pair.output_path = stdout_folder_ + "/image." + extension;
}

void FilterFiles::send_to_stdout() {
  const image::InputFile result(pairs_.front().output_path);
  remove_folder();  // the file is open
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::byte> block;
  for (std::int64_t at = 0; at < result.size(); at += static_cast<std::int64_t>(block.size())) {
    block = result.read_some(at, 1 << 20);
    if (const int error = write_all(STDOUT_FILENO, reinterpret_cast<const char*>(block.data()), block.size()))
      throw environment_error(fmt::format("the standard output takes no more: {}", std::strerror(error)));
  }
}

std::string page_path(const std::string& path, int number) {
  const std::filesystem::path whole = path;
  std::filesystem::path result = whole;
  result.replace_filename(fmt::format("{}-{}{}", whole.stem().string(), number, whole.extension().string()));
  return result.string();
}

}  // namespace omniconv::cli
