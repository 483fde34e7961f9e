#include "image/formats/oiio/libpng_silence.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>

namespace omniconv::image::oiio {
namespace {

// One for the process, as its descriptor 2 is one: overlapping silences must not take each other's memory for the real
// standard error.
struct Redirection {
  std::mutex mutex;
  int depth = 0;
  int real = -1, memory = -1;  // -1 where nothing is redirected
};
Redirection redirection;

void begin() {
  redirection.real = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (redirection.real < 0) return;
  std::fflush(stderr);
  redirection.memory = ::memfd_create("omniconv-stderr", MFD_CLOEXEC);
  if (redirection.memory >= 0 && ::dup2(redirection.memory, STDERR_FILENO) >= 0) return;
  if (redirection.memory >= 0) ::close(redirection.memory);
  ::close(redirection.real);
  redirection.real = redirection.memory = -1;
}

std::string content_of(int descriptor) {
  std::string content;
  char block[4096];
  while (true) {
    const ssize_t got = ::pread(descriptor, block, sizeof block, static_cast<off_t>(content.size()));
    if (got <= 0) return content;
    content.append(block, static_cast<std::size_t>(got));
  }
}

void pass_on(std::string text) {
  for (const std::string_view complaint : {"libpng error: ", "libpng warning: "})
    for (std::size_t at = 0; (at = text.find(complaint, at)) != std::string::npos;) {
      const std::size_t end = text.find('\n', at);
      text.erase(at, end == std::string::npos ? end : end + 1 - at);
    }
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t put = ::write(STDERR_FILENO, text.data() + at, text.size() - at);
    if (put <= 0) return;
    at += static_cast<std::size_t>(put);
  }
}

void end() {
  if (redirection.real < 0) return;
  std::fflush(stderr);
  ::dup2(redirection.real, STDERR_FILENO);
  try {
    pass_on(content_of(redirection.memory));
  } catch (const std::exception&) {  // out of memory, of which something else will tell
  }
  ::close(redirection.real);
  ::close(redirection.memory);
  redirection.real = redirection.memory = -1;
}

}  // namespace

LibpngSilence::LibpngSilence(std::string_view plugin) : active_(plugin == "png") {
  if (!active_) return;
  const std::lock_guard lock(redirection.mutex);
  if (redirection.depth++ == 0) begin();
}

LibpngSilence::~LibpngSilence() {
  if (!active_) return;
  const std::lock_guard lock(redirection.mutex);
  if (--redirection.depth == 0) end();
}

}  // namespace omniconv::image::oiio
