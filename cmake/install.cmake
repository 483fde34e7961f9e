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
if(TARGET omniconv_plot)
  install(TARGETS omniconv_plot LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/omniconv)
endif()
install(EXPORT omniconv_targets NAMESPACE omniconv:: FILE omniconv-targets.cmake DESTINATION ${omniconv_config_dir})
install(DIRECTORY include/omniconv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/omniconv-config.cmake.in ${CMAKE_BINARY_DIR}/omniconv-config.cmake
                              INSTALL_DESTINATION ${omniconv_config_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/omniconv-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/omniconv-config.cmake ${CMAKE_BINARY_DIR}/omniconv-config-version.cmake
        DESTINATION ${omniconv_config_dir})

set(OMNICONV_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
set(OMNICONV_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(OMNICONV_PC_TO_PREFIX ${CMAKE_INSTALL_PREFIX})
cmake_path(RELATIVE_PATH OMNICONV_PC_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
cmake_path(RELATIVE_PATH OMNICONV_PC_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
cmake_path(RELATIVE_PATH OMNICONV_PC_TO_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
configure_file(cmake/omniconv.pc.in ${CMAKE_BINARY_DIR}/omniconv.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/omniconv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Where the library looks for them (src/CMakeLists.txt).
install(DIRECTORY data/fashion-mnist-sample DESTINATION ${CMAKE_INSTALL_DATADIR}/omniconv)

# Made from the options that the command has (cli/CMakeLists.txt).
set(pages ${PROJECT_BINARY_DIR}/cli/pages)
install(FILES ${pages}/omniconv.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/omniconv.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME omniconv)
install(FILES ${pages}/_omniconv DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# The documents, and what they link to, each in its place beside README.md.
install(FILES LICENSE NOTICE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB_RECURSE readmes CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} src/*/README.md data/*/README.md)
foreach(readme IN LISTS readmes)
  cmake_path(GET readme PARENT_PATH folder)
  install(FILES ${readme} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(FILES data/fashion-mnist-sample/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}/data/fashion-mnist-sample)
