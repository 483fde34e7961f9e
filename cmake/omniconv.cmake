# Flags for all our code. Contraction is off everywhere: a fused a*b+c that was not asked for changes promised bits.
add_library(omniconv_flags INTERFACE)
target_compile_options(omniconv_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
                                                -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 and 13 warn falsely inside inlined standard containers and vector intrinsics.
  target_compile_options(omniconv_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow
                                                  -Wno-stringop-overread -Wno-restrict -Wno-dangling-reference)
endif()
if(OMNICONV_SANITIZE)
  target_compile_options(omniconv_flags INTERFACE -fsanitize=${OMNICONV_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all -g1)
  target_link_options(omniconv_flags INTERFACE -fsanitize=${OMNICONV_SANITIZE})
endif()
# Vector code is built for AVX-512, AVX2, SSE4 and none (SSSE3 gains nothing over none that SSE4 does not). Under sanitizers,
# which take long over it, for the widest of this machine and none: between them only the width of vectors differs.
if(OMNICONV_SANITIZE)
  set(avx512 "")
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo avx512 LIMIT_COUNT 1 REGEX avx512f)
  endif()
  if(avx512)
    set(others HWY_AVX2)
  else()
    set(others "(HWY_AVX3|HWY_AVX3_DL)")
  endif()
  target_compile_definitions(omniconv_flags INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|${others})")
else()
  target_compile_definitions(omniconv_flags INTERFACE HWY_DISABLED_TARGETS=HWY_SSSE3)
endif()

# omniconv_precompile(TARGET FIRST header...): compiles the headers once, for FIRST, and lends them to every other TARGET,
# which must have its flags. Reading the standard library again and again takes a quarter of the time of a build.
function(omniconv_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# omniconv_plain_vectors(file...): does not optimise, under the undefined-behaviour sanitizer, the files that are compiled
# for several instruction sets: its checks make their optimisation take most of a build, and tests take no longer without.
function(omniconv_plain_vectors)
  if(NOT OMNICONV_SANITIZE MATCHES undefined)
    return()
  endif()
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file OUTPUT_VARIABLE path)
    file(STRINGS ${path} targets REGEX "hwy/foreach_target.h")
    if(targets)
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -O0 SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# omniconv_folder(NAME [SOURCES file...] [USES folder...] [LINKS target...])
#
# One folder of src/ as a target that exposes only its own headers: "NAME/x.h" is found through a link in the build
# tree, by those alone that name the folder in USES.
function(omniconv_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 folder "" "" "SOURCES;USES;LINKS")
  set(view ${CMAKE_BINARY_DIR}/folders/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${name} ${view}/${name} SYMBOLIC)
  add_library(omniconv_${name} OBJECT ${folder_SOURCES})
  omniconv_plain_vectors(${folder_SOURCES})
  set_property(TARGET omniconv_${name} PROPERTY LINKER_LANGUAGE CXX)
  target_include_directories(omniconv_${name} PUBLIC ${view} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  list(TRANSFORM folder_USES PREPEND omniconv_)
  target_link_libraries(omniconv_${name} PRIVATE ${folder_USES} omniconv_flags ${folder_LINKS})
  if(fmt::fmt IN_LIST folder_LINKS)
    omniconv_precompile(omniconv_${name} omniconv_core <algorithm> <cmath> <functional> <memory> <optional> <span> <string>
                        <vector> <fmt/format.h>)
  endif()
  set_property(GLOBAL APPEND PROPERTY OMNICONV_FOLDERS omniconv_${name})
endfunction()

# omniconv_embed(TARGET file...): each file becomes a std::string_view named after it (a-b.kernel: a_b_kernel), declared
# in NAMESPACE::, in a generated header "embedded/FILE.h".
function(omniconv_embed target namespace)
  foreach(file IN LISTS ARGN)
    cmake_path(GET file FILENAME filename)
    string(MAKE_C_IDENTIFIER ${filename} symbol)
    set(header ${CMAKE_CURRENT_BINARY_DIR}/generated/embedded/${filename}.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUTPUT=${header} -DSYMBOL=${symbol}
              -DNAMESPACE=${namespace} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
      COMMENT "Embedding ${file}")
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
endfunction()
