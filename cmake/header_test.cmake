# omniconv_header_tests(LABEL ROOT [INCLUDES folder...] [EXCEPT regex])
#
# One test for each header below ROOT: it compiles alone, and twice in a row, with ROOT and INCLUDES as its only include
# folders beside the system's. Nothing is compiled when the tests are built. Left out are headers that the file of the same
# name includes before any other of the project's, and so compiles alone but for what is precompiled: tests/headers/
# check_includes.py looks for that.
function(omniconv_header_tests label root)
  cmake_parse_arguments(PARSE_ARGV 2 headers "" "EXCEPT" "INCLUDES")
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.h)
  if(headers_EXCEPT)
    list(FILTER found EXCLUDE REGEX ${headers_EXCEPT})
  endif()
  if(NOT found)
    message(FATAL_ERROR "omniconv_header_tests: there is no header below ${root}")
  endif()
  list(TRANSFORM headers_INCLUDES PREPEND -I)
  foreach(header IN LISTS found)
    string(REGEX REPLACE "h$" "cpp" source ${header})
    if(EXISTS ${root}/${source})
      file(STRINGS ${root}/${source} first_include REGEX "^#include" LIMIT_COUNT 1)
      if(first_include STREQUAL "#include \"${header}\"")
        continue()
      endif()
    endif()
    add_test(NAME ${label}/${header}
             COMMAND ${CMAKE_CXX_COMPILER} -x c++ -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror
                     -I${root} ${headers_INCLUDES} -include ${header} -include ${header} /dev/null)
    set_tests_properties(${label}/${header} PROPERTIES LABELS headers)
  endforeach()
endfunction()
