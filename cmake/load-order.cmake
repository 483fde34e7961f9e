# Writes OUTPUT, a header with the names of the shared libraries that LIBRARY needs, each behind those that it needs itself.
# Without ldd or readelf (or with a library that they do not understand) the list is empty, and loading is slower.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ldd ${LIBRARY} OUTPUT_VARIABLE resolved ERROR_QUIET)
string(REGEX MATCHALL "[^ \t\n]+ => /[^ \n]+" lines "${resolved}")
set(known "")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([^ ]+) => (.+)$" unused "${line}")
  list(APPEND known ${CMAKE_MATCH_1})
  set(path_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

set(order "")
# The libraries that one needs go before it.
function(place name)
  if(name IN_LIST placed OR NOT name IN_LIST known)
    return()
  endif()
  list(APPEND placed ${name})
  set(placed ${placed} PARENT_SCOPE)
  execute_process(COMMAND readelf -d ${path_${name}} OUTPUT_VARIABLE dynamic ERROR_QUIET)
  # An open bracket would keep CMake from seeing the end of a list's element.
  string(REGEX REPLACE "[][]" " " dynamic "${dynamic}")
  string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*: +[^ \n]+" entries "${dynamic}")
  foreach(entry IN LISTS entries)
    string(REGEX REPLACE "^.*: +" "" needed "${entry}")
    place(${needed})
  endforeach()
  list(APPEND order ${name})
  set(placed ${placed} PARENT_SCOPE)
  set(order ${order} PARENT_SCOPE)
endfunction()
foreach(name IN LISTS known)
  place(${name})
endforeach()

list(LENGTH order count)
list(TRANSFORM order REPLACE "(.+)" "    \"\\1\",\n")
list(JOIN order "" names)
file(WRITE ${OUTPUT} "// Made by cmake/load-order.cmake from ${LIBRARY}.
#pragma once
#include <array>
namespace omniconv::image {
inline constexpr std::array<const char*, ${count}> libraries_in_order = {
${names}};
}  // namespace omniconv::image
")
