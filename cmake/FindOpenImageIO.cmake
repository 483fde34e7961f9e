# Finds OpenImageIO by its header and library: OpenImageIO_FOUND, OpenImageIO_VERSION, OpenImageIO::OpenImageIO.
#
# Debian's own OpenImageIOConfig.cmake stops with an error unless the tools are installed too, and these bring Qt; Imath's,
# whose headers OpenImageIO's include, wants its Python module.
find_path(OpenImageIO_INCLUDE_DIR OpenImageIO/imageio.h)
find_path(OpenImageIO_IMATH_INCLUDE_DIR Imath/ImathVec.h)
find_library(OpenImageIO_LIBRARY OpenImageIO)
find_library(OpenImageIO_UTIL_LIBRARY OpenImageIO_Util)
mark_as_advanced(OpenImageIO_INCLUDE_DIR OpenImageIO_IMATH_INCLUDE_DIR OpenImageIO_LIBRARY OpenImageIO_UTIL_LIBRARY)

if(OpenImageIO_INCLUDE_DIR)
  file(STRINGS ${OpenImageIO_INCLUDE_DIR}/OpenImageIO/oiioversion.h numbers
       REGEX "^#define OIIO_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM numbers REPLACE "^[^0-9]*([0-9]+).*" "\\1")
  list(JOIN numbers "." OpenImageIO_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenImageIO
  REQUIRED_VARS OpenImageIO_LIBRARY OpenImageIO_UTIL_LIBRARY OpenImageIO_INCLUDE_DIR OpenImageIO_IMATH_INCLUDE_DIR
  VERSION_VAR OpenImageIO_VERSION)

if(OpenImageIO_FOUND AND NOT TARGET OpenImageIO::OpenImageIO)
  add_library(OpenImageIO::OpenImageIO SHARED IMPORTED)
  set_target_properties(OpenImageIO::OpenImageIO PROPERTIES
    IMPORTED_LOCATION ${OpenImageIO_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${OpenImageIO_INCLUDE_DIR};${OpenImageIO_IMATH_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES ${OpenImageIO_UTIL_LIBRARY})
endif()
