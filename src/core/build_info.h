// What this build is, for reports.
#pragma once

#include <string_view>

namespace omniconv {

std::string_view build_version();
std::string_view build_commit();  // abbreviated, "unknown" outside a checkout

}  // namespace omniconv
