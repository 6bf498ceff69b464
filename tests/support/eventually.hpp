#pragma once

#include <chrono>
#include <thread>

namespace onced::testing {

// How long anything may take before a test gives it up: far more than a loaded machine with sanitizers needs.
inline constexpr std::chrono::seconds patience{30};

using Deadline = std::chrono::steady_clock::time_point;
[[nodiscard]] inline Deadline patience_from_now() {
  return std::chrono::steady_clock::now() + patience;
}

// Asks again and again until it is so; false once `patience` is over.
template <class Condition> [[nodiscard]] bool eventually(const Condition &is_so) {
  const Deadline deadline = patience_from_now();
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

} // namespace onced::testing
