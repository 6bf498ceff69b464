#pragma once

// ONCED_CHECK(condition): an invariant whose breach could break a promise. Checked in every build type: it says where,
// and aborts, which is as safe as a crash. Library asserts are a build type's business; these are not.
namespace onced {
[[noreturn]] void check_failed(const char *condition, const char *file, int line) noexcept;
}

#define ONCED_CHECK(condition)                                                                                         \
  ((condition) ? static_cast<void>(0) : ::onced::check_failed(#condition, __FILE__, __LINE__))
