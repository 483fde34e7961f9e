// Which files `filter` reads and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "omniconv/error.h"

namespace omniconv::cli {

// As they are written on the command line.
struct FileOptions {
  std::vector<std::string> files;  // IN OUT, or with `into` any number of inputs
  std::string into;                // a folder, or empty
  std::string format;              // an extension without its dot, for outputs that have no name; empty: the input's
  std::string page;                // a number, "all", or empty: the only one
};

// Every file that the options name, and those that they make of names: what a report must not replace.
std::vector<std::string> names_of(const FileOptions& options);

// Throws unless there are as many as it takes.
void check_operands(const FileOptions& options);

// One input and what becomes of it: by the names that the user knows, and by those under which they are opened.
struct FilterFile {
  std::string input, input_path, output, output_path;
  int first_page = 0, pages = 1;               // 0: the only one
  bool is_numbered = false;                    // each page goes to a file of its own
  std::optional<Error> failure = {};           // of counting the pages
  std::string page_path(int page) const;       // of the output
  Error with_names(const Error& error) const;  // of the user
};

// The files that were asked for. No output is one of the inputs, but for the output of a single one, and no two are the
// same. "-" is copied to a file that ends with the process, where it can only be read once.
class FilterFiles {
 public:
  // After check_operands(). What counts pages holds at most `max_memory` bytes, as in open_image().
  FilterFiles(const FileOptions& options, std::int64_t max_memory);
  ~FilterFiles();
  FilterFiles(const FilterFiles&) = delete;
  FilterFiles& operator=(const FilterFiles&) = delete;

  const std::vector<FilterFile>& files() const { return files_; }
  std::int64_t count_images() const;
  bool is_into_folder() const { return is_into_folder_; }
  bool is_to_stdout() const { return !stdout_folder_.empty(); }
  // The result that is meant for the standard output goes there. Throws environment_error where that takes no more.
  void send_to_stdout();

 private:
  void pair_up(const FileOptions& options);
  void pair_with_folder(const FileOptions& options);
  void choose_pages(const std::string& page);
  void refuse_collisions() const;
  void read_stdin(FilterFile& file);
  void write_stdout(const std::string& format, FilterFile& file);
  void remove_folder();

  std::vector<FilterFile> files_;
  std::int64_t max_memory_;
  bool is_into_folder_ = false;
  int stdin_copy_ = -1;
  std::string stdout_folder_;
};

}  // namespace omniconv::cli
