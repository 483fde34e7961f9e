// What the library finds in the module.
#include "image/formats/module.h"
#include "image/formats/oiio/oiio.h"

extern "C" const omniconv::image::Module* omniconv_image_module() {
  namespace oiio = omniconv::image::oiio;
  static const omniconv::image::Module module = [] {
    // Strips are read and written by one thread each, while others compute: more would only be in their way. (Readers
    // and writers are told so one by one; the attribute "threads" would start the pool that it is meant to avoid.)
    OIIO::attribute("exr_threads", -1);
    // The limit on extents is meant for those who read images whole.
    OIIO::attribute("limits:imagesize_MB", 0);
    return omniconv::image::Module{OMNICONV_VERSION, &oiio::open,     &oiio::create,
                                   &oiio::traits,    &oiio::describe, &oiio::count};
  }();
  return &module;
}
