#include "image/formats/plain/jpeg_guard.h"

#include "core/quoted.h"

namespace omniconv::image::plain {

JpegGuard::JpegGuard() {
  jpeg_std_error(&handlers_.base);
  handlers_.base.error_exit = &give_up;
  handlers_.base.emit_message = &note;
  handlers_.base.output_message = [](j_common_ptr) {};
}

// Levels from 0 on are traces.
void JpegGuard::note(j_common_ptr codec, int level) {
  auto* const handlers = reinterpret_cast<Handlers*>(codec->err);
  if (level < 0 && handlers->complaint[0] == '\0') handlers->base.format_message(codec, handlers->complaint);
}

void JpegGuard::give_up(j_common_ptr codec) {
  note(codec, -1);
  std::longjmp(reinterpret_cast<Handlers*>(codec->err)->escape, 1);
}

std::string JpegGuard::complaint() const {
  return one_line(handlers_.complaint);
}

}  // namespace omniconv::image::plain
