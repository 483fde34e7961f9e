// A compiler that knows one device and makes nothing of any text, so that the fake driver's devices are found and get
// programs.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_cuda.h"

namespace {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> architectures;
  int together = 1, inside = 0, most = 0;
  bool holds_optimised = false, fails_optimised = false;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

namespace fake_cuda {

std::vector<std::string> take_compilations() {
  const std::lock_guard lock(state().mutex);
  return std::move(state().architectures);
}
void compile_together(int count) {
  const std::lock_guard lock(state().mutex);
  state().together = count;
  state().most = 0;
}
void hold_optimised(bool hold) {
  const std::lock_guard lock(state().mutex);
  state().holds_optimised = hold;
  state().changed.notify_all();
}
void fail_optimised(bool fail) {
  const std::lock_guard lock(state().mutex);
  state().fails_optimised = fail;
}

}  // namespace fake_cuda

extern "C" {

const char* nvrtcGetErrorString(int) {
  return "the fake compiles nothing";
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
int nvrtcCreateProgram(void* program, const char*, const char*, int, const char* const*, const char* const*) {
  *static_cast<void**>(program) = nullptr;
  return 0;
}
int nvrtcDestroyProgram(void*) {
  return 0;
}
int nvrtcCompileProgram(void*, int count, const char* const* options) {
  std::unique_lock lock(state().mutex);
  const bool is_quick = std::find(options, options + count, std::string_view("--Ofast-compile=max")) != options + count;
  state().architectures.push_back(std::string(options[0]) + (is_quick ? " quickly" : ""));
  state().most = std::max(state().most, ++state().inside);
  state().changed.notify_all();
  const bool met =
      state().changed.wait_for(lock, std::chrono::seconds(20), [] { return state().most >= state().together; });
  if (!is_quick) state().changed.wait(lock, [] { return !state().holds_optimised; });
  --state().inside;
  return met && (is_quick || !state().fails_optimised) ? 0 : 6;
}
int nvrtcGetPTXSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetPTX(void*, char* text) {
  *text = '\0';
  return 0;
}
int nvrtcGetCUBINSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetCUBIN(void*, char* code) {
  *code = '\0';
  return 0;
}
int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(void*, char* text) {
  *text = '\0';
  return 0;
}

}  // extern "C"
