// Whether a test runs under a sanitizer, which looks at every access: tests that compute much do less there.
#pragma once

namespace omniconv {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool threads_watched = true;
#else
inline constexpr bool threads_watched = false;
#endif

}  // namespace omniconv
