#include "devices/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "devices/definitions.h"
#include "embedded/prelude.cuda.h"
#include "omniconv/error.h"

namespace omniconv::devices::cuda {
namespace {

using nvrtcProgram = struct _nvrtcProgram*;
using nvrtcResult = int;
constexpr nvrtcResult NVRTC_SUCCESS = 0;

}  // namespace

// Named without their prefix "nvrtc".
struct Nvrtc::Functions {
  const char* (*GetErrorString)(nvrtcResult);
  nvrtcResult (*Version)(int*, int*);
  nvrtcResult (*GetNumSupportedArchs)(int*);
  nvrtcResult (*GetSupportedArchs)(int*);
  nvrtcResult (*CreateProgram)(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
  nvrtcResult (*DestroyProgram)(nvrtcProgram*);
  nvrtcResult (*CompileProgram)(nvrtcProgram, int, const char* const*);
  nvrtcResult (*GetPTXSize)(nvrtcProgram, std::size_t*);
  nvrtcResult (*GetPTX)(nvrtcProgram, char*);
  nvrtcResult (*GetCUBINSize)(nvrtcProgram, std::size_t*);
  nvrtcResult (*GetCUBIN)(nvrtcProgram, char*);
  nvrtcResult (*GetProgramLogSize)(nvrtcProgram, std::size_t*);
  nvrtcResult (*GetProgramLog)(nvrtcProgram, char*);
  nvrtcResult (*SetFlowCallback)(nvrtcProgram, int (*)(void*, void*), void*);  // null before 12.8

  void check(const char* call, nvrtcResult code) const {
    if (code != NVRTC_SUCCESS)
      throw environment_error(fmt::format("{} failed: {} ({})", call, GetErrorString(code), code));
  }
};

namespace {

// NVRTC parses one text after the other, and calls back for the first time when that is done.
class Turn {
 public:
  Turn(ParseTurns& turns, const ExpectedWork& work) : turns_(turns) { turns_.enter(work); }
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  static int end_of(void* turn, void*) {
    static_cast<Turn*>(turn)->end();
    return 0;  // go on
  }

 private:
  void end() {
    if (!is_over_) turns_.leave();
    is_over_ = true;
  }
  ParseTurns& turns_;
  bool is_over_ = false;
};

// Libraries of one major version hold the same functions: 11.2 stands for all of 11 from there on.
constexpr const char* library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                                         "/usr/local/cuda/lib64/libnvrtc.so"};

}  // namespace

// The library stays open for good, as the driver does.
const Nvrtc* Nvrtc::open(const char* name, std::string* why_not) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const reason = dlerror();
    *why_not = reason ? reason : "no reason given";
    return nullptr;
  }
  Functions functions{};
  std::string missing;
  const auto bind = [&](const char* function_name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, function_name));
    if (!function && missing.empty()) missing = function_name;
  };
  bind("nvrtcGetErrorString", functions.GetErrorString);
  bind("nvrtcVersion", functions.Version);
  bind("nvrtcGetNumSupportedArchs", functions.GetNumSupportedArchs);
  bind("nvrtcGetSupportedArchs", functions.GetSupportedArchs);
  bind("nvrtcCreateProgram", functions.CreateProgram);
  bind("nvrtcDestroyProgram", functions.DestroyProgram);
  bind("nvrtcCompileProgram", functions.CompileProgram);
  bind("nvrtcGetPTXSize", functions.GetPTXSize);
  bind("nvrtcGetPTX", functions.GetPTX);
  bind("nvrtcGetCUBINSize", functions.GetCUBINSize);
  bind("nvrtcGetCUBIN", functions.GetCUBIN);
  bind("nvrtcGetProgramLogSize", functions.GetProgramLogSize);
  bind("nvrtcGetProgramLog", functions.GetProgramLog);
  functions.SetFlowCallback =
      reinterpret_cast<decltype(functions.SetFlowCallback)>(dlsym(library, "nvrtcSetFlowCallback"));
  if (!missing.empty()) {
    *why_not = fmt::format("{} has no {}: NVRTC 11.2 or newer is needed", name, missing);
    return nullptr;
  }
  try {
    std::unique_ptr<Nvrtc> nvrtc(new Nvrtc());
    functions.check("nvrtcVersion", functions.Version(&nvrtc->major_, &nvrtc->minor_));
    int count = 0;
    functions.check("nvrtcGetNumSupportedArchs", functions.GetNumSupportedArchs(&count));
    nvrtc->capabilities_.resize(static_cast<std::size_t>(count));
    functions.check("nvrtcGetSupportedArchs", functions.GetSupportedArchs(nvrtc->capabilities_.data()));
    std::sort(nvrtc->capabilities_.begin(), nvrtc->capabilities_.end());
    nvrtc->functions_ = new Functions(functions);
    return nvrtc.release();
  } catch (const Error& error) {
    *why_not = error.what();
    return nullptr;
  }
}

const Nvrtc* Nvrtc::find(int driver_major, std::string* why_not) {
  static const struct Found {
    std::vector<const Nvrtc*> all;  // newest first
    std::string reasons;
  } found = [] {
    Found opened;
    for (const char* const name : library_names) {
      std::string reason;
      if (const Nvrtc* const nvrtc = open(name, &reason))
        opened.all.push_back(nvrtc);
      else if (opened.reasons.empty())
        opened.reasons = reason;
    }
    return opened;
  }();
  if (found.all.empty()) {
    *why_not = fmt::format(
        "no NVRTC, the compiler of kernels ({}); it comes with the CUDA toolkit, or with the Python "
        "package nvidia-cuda-nvrtc, whose folder then goes into LD_LIBRARY_PATH",
        found.reasons);
    return nullptr;
  }
  for (const Nvrtc* const nvrtc : found.all)
    if (nvrtc->major_ <= driver_major) return nvrtc;
  return found.all.back();
}

std::string Nvrtc::version() const {
  return fmt::format("{}.{}", major_, minor_);
}

// 12.6 is the oldest in which --Ofast-compile was tried.
bool Nvrtc::has_quick_code() const {
  return major_ > 12 || (major_ == 12 && minor_ >= 6);
}

std::string Nvrtc::refusal(Capability device) const {
  if (!capabilities_.empty() && capabilities_.front() <= device) return {};
  return fmt::format("NVRTC {} compiles for compute capability {}.{} and newer, and the device has {}.{}", version(),
                     capabilities_.empty() ? 0 : capabilities_.front() / 10,
                     capabilities_.empty() ? 0 : capabilities_.front() % 10, device / 10, device % 10);
}

std::string Nvrtc::target_refusal(std::string_view target, Capability device) const {
  if (target.empty()) return {};
  const std::string of_device = fmt::format("sm_{}", device);
  if (target.substr(0, of_device.size()) != of_device || target.size() > of_device.size() + 1 ||
      (target.size() > of_device.size() && target.back() != 'a' && target.back() != 'f'))
    return fmt::format("a program for the target {}: the device runs {}, and {}a where it has instructions of its own",
                       target, of_device, of_device);
  if (!std::binary_search(capabilities_.begin(), capabilities_.end(), device))
    return fmt::format("a program for the target {}: NVRTC {} does not know it; take a newer one", target, version());
  return {};
}

std::vector<std::string> Nvrtc::options(std::span<const Definition> definitions, Capability device,
                                        const std::string& target) const {
  const bool known = std::binary_search(capabilities_.begin(), capabilities_.end(), device);
  // A device newer than the compiler gets PTX of the newest that it knows, and the driver compiles that.
  const Capability newest = *std::prev(std::upper_bound(capabilities_.begin(), capabilities_.end(), device));
  const std::string architecture = target.empty() ? fmt::format("{}_{}", known ? "sm" : "compute", newest) : target;
  std::vector<std::string> options = {"--gpu-architecture=" + architecture,
                                      "--std=c++17",
                                      "--fmad=false",
                                      "--ftz=false",
                                      "--prec-div=true",
                                      "--prec-sqrt=true"};
  for (std::string& option : definition_options(definitions)) options.push_back(std::move(option));
  return options;
}

Nvrtc::Code Nvrtc::compile(std::string_view text, std::span<const Definition> definitions, Capability device,
                           const std::string& target, Effort effort, double expected_seconds) const {
  std::vector<std::string> words = options(definitions, device, target);
  if (effort == Effort::quick) words.push_back("--Ofast-compile=mid");
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  // Lines in the log count from the start of the text itself.
  const std::string source = fmt::format("{}\n#line 1\n{}", prelude(), text);
  nvrtcProgram raw = nullptr;
  functions_->check("nvrtcCreateProgram",
                    functions_->CreateProgram(&raw, source.c_str(), "kernel", 0, nullptr, nullptr));
  const auto destroy = [this](nvrtcProgram program) { functions_->DestroyProgram(&program); };
  const std::unique_ptr<_nvrtcProgram, decltype(destroy)> program(raw, destroy);
  std::optional<Turn> turn;
  if (functions_->SetFlowCallback) {
    turn.emplace(turns_, ExpectedWork{expected_seconds, source.size()});
    functions_->check("nvrtcSetFlowCallback", functions_->SetFlowCallback(raw, Turn::end_of, &*turn));
  }
  const nvrtcResult compiled = functions_->CompileProgram(raw, static_cast<int>(pointers.size()), pointers.data());
  turn.reset();
  Code code;
  if (std::size_t bytes = 0; functions_->GetProgramLogSize(raw, &bytes) == NVRTC_SUCCESS) {
    code.log.resize(bytes);
    functions_->GetProgramLog(raw, code.log.data());
  }
  if (compiled != NVRTC_SUCCESS)
    throw environment_error(fmt::format("nvrtcCompileProgram failed: {} ({}): {}", functions_->GetErrorString(compiled),
                                        compiled, first_lines(code.log)));
  code.is_ptx = words.front().find("compute_") != std::string::npos;
  std::size_t size = 0;
  functions_->check("nvrtcGet...Size",
                    code.is_ptx ? functions_->GetPTXSize(raw, &size) : functions_->GetCUBINSize(raw, &size));
  code.image.resize(size);
  functions_->check("nvrtcGet...", code.is_ptx ? functions_->GetPTX(raw, code.image.data())
                                               : functions_->GetCUBIN(raw, code.image.data()));
  return code;
}

std::string_view prelude() {
  return prelude_cuda;
}

}  // namespace omniconv::devices::cuda
