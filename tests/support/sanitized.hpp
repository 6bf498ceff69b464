#pragma once

namespace onced::testing {

// Whether this file of tests was compiled as one that looks at memory, traces system calls or preloads a library, which
// a sanitizer does too (tests/CMakeLists.txt). Of each file its own, so not inline.
#ifdef ONCED_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

} // namespace onced::testing
