#include "engine/engine.hpp"

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

} // namespace onced::engine
