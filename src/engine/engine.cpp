#include "engine/engine.hpp"

#include "onced/ids.hpp"

namespace onced::engine {

std::string_view name_of(Family family) {
  switch (family) {
  case Family::operations:
    return "operations";
  case Family::dead_letters:
    return "dead_letters";
  case Family::meta:
    return "meta";
  case Family::queue:
    return "queue";
  case Family::relay:
    return "relay";
  }
  return {};
}

Counters &Counters::operator+=(const Counters &other) {
  for (std::size_t at = 0; at < counter_count; ++at)
    sums_[at] += other.sums_[at];
  return *this;
}

Counters &Counters::operator-=(const Counters &other) {
  for (std::size_t at = 0; at < counter_count; ++at)
    sums_[at] -= other.sums_[at];
  return *this;
}

Error damaged_row(const std::string &place, Family family, BytesView key) {
  return {.code = ErrorCode::corrupt,
          .concerns = place,
          .cause = "a row of " + std::string(name_of(family)) + " is damaged, key " + to_hex(key),
          .remedy = "restore the data directory from a copy"};
}

} // namespace onced::engine
