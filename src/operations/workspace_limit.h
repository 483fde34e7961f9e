// How what a solver works on at a time becomes less under a workspace limit.
#pragma once

#include <cstdint>

namespace omniconv::operations {

// Sets the largest of `first`, half of it, a quarter, ... whose workspace keeps to the limit. Where none does, the one
// of the least workspace: less at a time may need more of it.
template <typename Set, typename WorkspaceBytes>
void keep_to_limit(std::int64_t limit, std::int64_t first, const Set& set, const WorkspaceBytes& workspace_bytes) {
  std::int64_t taken = first, least = workspace_bytes();
  for (std::int64_t some = first / 2; some > 0 && least > limit; some /= 2) {
    set(some);
    if (workspace_bytes() >= least) continue;
    taken = some, least = workspace_bytes();
  }
  set(taken);
}

}  // namespace omniconv::operations
