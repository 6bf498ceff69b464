#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "onced/clock.hpp"

namespace onced::rehearsal {

using Micros = std::int64_t; // since 1970; 0: not

[[nodiscard]] inline Micros micros_of(WallTime time) {
  return time.time_since_epoch().count();
}
[[nodiscard]] inline WallTime time_of(Micros micros) {
  return WallTime(std::chrono::microseconds(micros));
}

// "2026-01-31T12:00:00.000000Z".
[[nodiscard]] std::string iso_time(WallTime time);
// Of such a text.
[[nodiscard]] Micros micros_in(const std::string &iso_time);

} // namespace onced::rehearsal
