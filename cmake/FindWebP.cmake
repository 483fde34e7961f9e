# Finds libwebp by its headers and libraries, with those of the container: WebP_FOUND, WebP::webp.
find_path(WebP_INCLUDE_DIR webp/mux.h)
find_library(WebP_LIBRARY webp)
find_library(WebP_MUX_LIBRARY webpmux)
find_library(WebP_DEMUX_LIBRARY webpdemux)
mark_as_advanced(WebP_INCLUDE_DIR WebP_LIBRARY WebP_MUX_LIBRARY WebP_DEMUX_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(WebP REQUIRED_VARS WebP_LIBRARY WebP_MUX_LIBRARY WebP_DEMUX_LIBRARY WebP_INCLUDE_DIR)

if(WebP_FOUND AND NOT TARGET WebP::webp)
  add_library(WebP::webp SHARED IMPORTED)
  set_target_properties(WebP::webp PROPERTIES
    IMPORTED_LOCATION ${WebP_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${WebP_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES "${WebP_MUX_LIBRARY};${WebP_DEMUX_LIBRARY}")
endif()
