// The errors of calls: what every test of a refusal begins with.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "omniconv/error.h"

namespace omniconv {

// The message of the Error that the call throws, of that kind and one line long; else "nothing was thrown".
template <typename Call>
std::string outcome_of(const Call& call, ErrorKind kind = ErrorKind::bad_input) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

// Of a call that must throw one.
template <typename Call>
std::string error_of(const Call& call, ErrorKind kind = ErrorKind::bad_input) {
  const std::string message = outcome_of(call, kind);
  EXPECT_NE(message, "nothing was thrown");
  return message;
}

}  // namespace omniconv
