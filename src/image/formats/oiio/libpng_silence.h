// libpng's own complaints, kept off the standard error.
#pragma once

#include <OpenImageIO/imageio.h>

#include <string_view>

namespace omniconv::image::oiio {

// OpenImageIO leaves libpng its own handlers, which print every error and warning before OpenImageIO returns the same
// as text; and there is no way to give it others. So, while any such object lives, descriptor 2 leads to memory; the
// last to go puts it back and passes on whatever there is, from other threads too, that libpng did not say. A process
// that ends by force in the meantime loses it.
class LibpngSilence {
 public:
  // Does nothing for other plugins.
  explicit LibpngSilence(std::string_view plugin);
  ~LibpngSilence();
  LibpngSilence(const LibpngSilence&) = delete;
  LibpngSilence& operator=(const LibpngSilence&) = delete;

 private:
  bool active_;
};

// For readers and writers, which complain while they are torn down, too.
struct SilentDelete {
  template <typename InputOrOutput>
  void operator()(InputOrOutput* codec) const {
    const LibpngSilence silence(codec->format_name());
    delete codec;
  }
};

}  // namespace omniconv::image::oiio
