# Writes the text of INPUT as a C++ raw string named SYMBOL into OUTPUT.
file(READ ${INPUT} text)
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
