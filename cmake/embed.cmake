# Writes the text of INPUT as a C++ raw string named SYMBOL into OUTPUT.
file(READ ${INPUT} text)
# What a compiler says of a line of a kernel names its file.
get_filename_component(name ${INPUT} NAME)
if(name MATCHES "[.]kernel$")
  set(text "#line 1 \"${name}\"\n${text}")
endif()
string(LENGTH "${text}" length)
if(length GREATER 60000)
  message(FATAL_ERROR "${INPUT} has ${length} bytes; a raw string may hold 65535")
endif()
file(WRITE ${OUTPUT} "// Made from ${INPUT}.
#pragma once
#include <string_view>
namespace ${NAMESPACE} {
inline constexpr std::string_view ${SYMBOL} = R\"omniconv(${text})omniconv\";
}
")
