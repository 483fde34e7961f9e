// What goes wrong with one of several candidates.
#pragma once

#include <new>

#include "checking/verify.h"
#include "omniconv/error.h"

namespace omniconv::checking {

// What `make` gives. With others to follow, its error is `result`'s own, unless the whole run is interrupted.
template <typename Result, typename Make>
Result made_or_failed(Result result, bool others, const Make& make) {
  result.status = Status::failed;
  try {
    return make();
  } catch (const Error& error) {
    if (!others || error.kind() == ErrorKind::interrupted) throw;
    result.reason = error.what();
  } catch (const std::bad_alloc&) {
    if (!others) throw;
    result.reason = "the machine's memory does not hold its plan and arrays: use a smaller problem";
  }
  return result;
}

}  // namespace omniconv::checking
