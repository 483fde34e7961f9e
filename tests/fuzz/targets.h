// The fuzz targets. Each takes any bytes as one input, and throws Broken where a promise is not kept; whatever else it
// throws, or does not survive, is a fault too. fuzzer.cpp hands them to libFuzzer, corpus_test.cpp runs the corpus.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "omniconv/error.h"

namespace omniconv::fuzz {

// One problem, or a list of them: what is read and printed reads as the same problem.
void problem_text(std::string_view content);
// A kernel file, and the text of --kernel: what is read has sane weights, and reads the same from every form it can be
// written in.
void kernel_file(std::string_view content);
// PNM, PAM, PFM and .npy: a row has the same bytes however it is asked for, or is refused; memory is bounded by the
// file; what is read can be written, and reads the same.
void image_file(std::string_view content);
// The arrays of convolutions in .npy files and pipes: what is wanted is read as it stands, everything else refused.
void npy_array(std::string_view content);

class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require(bool kept, const std::string& promise) {
  if (!kept) throw Broken("not kept: " + promise);
}

// Runs `action` and says whether it was refused: by an Error, in one short line of printable text.
template <typename Action>
bool refused(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() <= 1000, "an error has 1 to 1000 bytes: " + std::string(message));
    for (const char c : message) require(c >= ' ' && c <= '~', "an error is printable: " + std::string(message));
    return true;
  }
  return false;
}

}  // namespace omniconv::fuzz
