// Which files `filter` reads and writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace omniconv::cli {

// As they are written on the command line.
struct FileOptions {
  std::vector<std::string> files;  // IN OUT, or with `into` any number of inputs
  std::string into;                // a folder, or empty
  std::string format;              // an extension without its dot, for outputs that have no name; empty: the input's
  std::string page;                // a number, "all", or empty: the only one
};

// One input, by the name that the user knows, and by that under which it is opened; the same of its output.
struct FilePair {
  std::string input, input_path, output, output_path;
};

// The input and output files that were asked for; each is checked as far as names tell. "-" is copied to a file that
// ends with the process, where it can only be read once.
class FilterFiles {
 public:
  explicit FilterFiles(const FileOptions& options);
  ~FilterFiles();

  const std::vector<FilePair>& pairs() const { return pairs_; }
  bool is_into_folder() const { return is_into_folder_; }
  bool is_to_stdout() const { return !stdout_folder_.empty(); }
  // The result that is meant for the standard output goes there. Throws environment_error where that takes no more.
  void send_to_stdout();

 private:
  void pair_up(const FileOptions& options);
  void pair_with_folder(const FileOptions& options);
  void read_stdin(FilePair& pair);
  void remove_folder();
  void write_stdout(const std::string& format, FilePair& pair);

  std::vector<FilePair> pairs_;
  bool is_into_folder_ = false;
  int stdin_copy_ = -1;
  std::string stdout_folder_;
};

// OUT as the page `number` of several, in a format whose files hold one: "-3" before its extension.
std::string page_path(const std::string& path, int number);

}  // namespace omniconv::cli
