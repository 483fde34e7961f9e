// A compiler that knows one device and makes nothing of any text, so that the fake driver's devices are found and get
// programs.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
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
  std::string held;
  int parsing = 0, most_parsed = 0;
};

struct Program {
  std::string text;
  int (*parsed)(void*, void*) = nullptr;
  void* parsed_with = nullptr;
};

State& state() {
  static State instance;
  return instance;
}

// As NVRTC, of which parts that are made by the first compilation end when the process does.
struct Parts {
  ~Parts() {
    if (state().parsing + state().inside > 0) std::abort();
  }
};

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
void hold_texts(const std::string& word) {
  const std::lock_guard lock(state().mutex);
  state().held = word;
  state().changed.notify_all();
}
int compilations_under_way() {
  const std::lock_guard lock(state().mutex);
  return state().inside;
}
int most_parsed() {
  const std::lock_guard lock(state().mutex);
  return state().most_parsed;
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
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*, const char* const*) {
  *program = new Program{text};
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
int nvrtcSetFlowCallback(void* program, int (*callback)(void*, void*), void* with) {
  static_cast<Program*>(program)->parsed = callback, static_cast<Program*>(program)->parsed_with = with;
  return 0;
}
int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  static const Parts parts;
  const Program& program = *static_cast<Program*>(handle);
  std::unique_lock lock(state().mutex);
  state().most_parsed = std::max(state().most_parsed, ++state().parsing);
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lock.lock();
  --state().parsing;
  for (int i = 0; program.parsed && i < 2; ++i) program.parsed(program.parsed_with, nullptr);
  const bool is_quick = std::find(options, options + count, std::string_view("--Ofast-compile=mid")) != options + count;
  state().architectures.push_back(std::string(options[0]) + (is_quick ? " quickly" : ""));
  state().most = std::max(state().most, ++state().inside);
  state().changed.notify_all();
  const bool met =
      state().changed.wait_for(lock, std::chrono::seconds(20), [] { return state().most >= state().together; });
  state().changed.wait(lock,
                       [&] { return state().held.empty() || program.text.find(state().held) == std::string::npos; });
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
