// A compiler of kernel text for the processor: words that CUDA alone has are replaced by those of this folder, file by
// file as the text's #line name them, and the C++ compiler makes a shared library of it.
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "image.h"

namespace {

using namespace omniconv::by_processor;
namespace fs = std::filesystem;

const fs::path folder = OMNICONV_BY_PROCESSOR_FOLDER;
const std::string compiler = OMNICONV_CXX_COMPILER;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text's files, the first being the prelude, with those that are here in their places.
std::string replaced(const std::string& source) {
  std::string all = contents(folder / "prelude.processor");
  const std::regex line("#line 1 \"([a-z0-9_]+)\\.kernel\"\n");
  const std::sregex_iterator first(source.begin(), source.end(), line), end;
  for (auto at = first; at != end; ++at) {
    const auto next = std::next(at);
    const auto begin = at->position(0) + at->length(0),
               until = next == end ? static_cast<std::ptrdiff_t>(source.size()) : next->position(0);
    const fs::path own = folder / (at->str(1) + ".processor");
    all += fs::exists(own)
               ? "#line 1 \"" + own.string() + "\"\n" + contents(own)
               : at->str(0) + source.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(until - begin));
  }
  // Text without files, such as the tests have.
  return first == end ? all + source.substr(source.find("\n#line 1\n") + 1) : all;
}

// The functions by which a driver calls the kernels of what the preprocessor made.
std::string calls_of(const std::string& preprocessed) {
  const std::regex kernel("KERNEL_OF_TEXT\\s+void\\s+([A-Za-z0-9_]+)\\(");
  std::string all;
  for (std::sregex_iterator at(preprocessed.begin(), preprocessed.end(), kernel), end; at != end; ++at) {
    const std::string name = at->str(1);
    all += "extern \"C\" __attribute__((visibility(\"default\"))) void " + std::string(call_prefix) + name +
           "(void** arguments) { call_kernel(" + name + ", arguments); }\n";
    all += "extern \"C\" __attribute__((visibility(\"default\"))) std::size_t " + std::string(parameter_prefix) + name +
           "(std::size_t number) { return parameter_bytes(" + name + ", number); }\n";
  }
  return all;
}

struct Program {
  std::string source, image, log;
};
Program& program_of(void* handle) {
  return *static_cast<Program*>(handle);
}

std::string quoted(const std::string& word) {
  return "'" + word + "'";
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int) {
  return "the C++ compiler refuses the text";
}
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* capabilities) {
  capabilities[0] = 90;
  return 0;
}
int nvrtcCreateProgram(void** program, const char* source, const char*, int, const char* const*, const char* const*) {
  *program = new Program{.source = source, .image = {}, .log = {}};
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  Program& program = program_of(handle);
  std::string work = (fs::temp_directory_path() / "omniconv-text-XXXXXX").string();
  if (mkdtemp(work.data()) == nullptr) return 1;
  const fs::path in(work);
  std::string words = " -std=c++20 -I " + quoted(folder.string());
  for (int i = 0; i < count; ++i)
    if (std::strncmp(options[i], "-D", 2) == 0) words += " " + quoted(options[i]);
  std::ofstream(in / "text.cpp") << replaced(program.source);
  const std::string log = " 2>" + quoted((in / "log").string());
  const auto compile = [&](const std::string& what) { return std::system((compiler + what + log).c_str()) == 0; };
  bool is_done =
      compile(words + " -E " + quoted((in / "text.cpp").string()) + " -o " + quoted((in / "text.ii").string()));
  if (is_done) {
    const std::string text = contents(in / "text.ii");
    std::ofstream(in / "text.ii") << std::regex_replace(text, std::regex("KERNEL_OF_TEXT"), "") << calls_of(text);
    // Numbers are read as other types, as devices do.
    is_done = compile(
        " -std=c++20 -fpreprocessed -x c++ -O1 -march=native -ffp-contract=off -fno-strict-aliasing -w "
        "-fvisibility=hidden -shared -fPIC " +
        quoted((in / "text.ii").string()) + " -o " + quoted((in / "text.so").string()));
  }
  program.log = contents(in / "log");
  if (is_done) program.image = image_of(contents(in / "text.so"));
  std::error_code ignored;
  fs::remove_all(in, ignored);
  return is_done ? 0 : 6;
}
int nvrtcGetPTXSize(void*, std::size_t*) {
  return 1;
}
int nvrtcGetPTX(void*, char*) {
  return 1;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  *size = program_of(program).image.size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  const std::string& image = program_of(program).image;
  std::copy(image.begin(), image.end(), code);
  return 0;
}
int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  *size = program_of(program).log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(void* program, char* text) {
  std::strcpy(text, program_of(program).log.c_str());
  return 0;
}

}  // extern "C"
