#pragma once

namespace onced::testing {

// Whether a sanitizer is in these tests (tests/CMakeLists.txt): it looks at memory, traces system calls or is
// preloaded, as some of them do themselves.
#ifdef ONCED_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace onced::testing
