# Install rules, and what find_package(omniconv) reads.
include(CMakePackageConfigHelpers)

set(omniconv_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/omniconv)
install(TARGETS omniconv EXPORT omniconv_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS omniconv_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(OMNICONV_IMAGE_MODULE)
  # The library looks for them in the folder `omniconv` beside itself.
  install(TARGETS omniconv_image_oiio omniconv_image_plain LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/omniconv)
endif()
install(EXPORT omniconv_targets NAMESPACE omniconv:: FILE omniconv-targets.cmake DESTINATION ${omniconv_config_dir})
install(DIRECTORY include/omniconv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/omniconv-config.cmake.in ${CMAKE_BINARY_DIR}/omniconv-config.cmake
                              INSTALL_DESTINATION ${omniconv_config_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/omniconv-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/omniconv-config.cmake ${CMAKE_BINARY_DIR}/omniconv-config-version.cmake
        DESTINATION ${omniconv_config_dir})

install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
