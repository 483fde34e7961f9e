// ONNX files in a build without the library of their messages.
#include "omniconv/error.h"
#include "omniconv/onnx.h"

namespace omniconv {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  throw environment_error(path +
                          ": this omniconv was built without ONNX: install libonnx-dev and libprotobuf-dev, configure "
                          "anew, and build");
}

}  // namespace

void export_onnx(const Checkpoint& /*checkpoint*/, const std::string& path) {
  refuse(path);
}

Checkpoint import_onnx(const std::string& path) {
  refuse(path);
}

}  // namespace omniconv
