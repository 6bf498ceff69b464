#pragma once

#include <cstdint>

#include "subject.hpp"

namespace onced::bench::scale {

// Commits the jobs from number `first` to before `end`, all of them new, on two threads, and says every few seconds on
// stderr how far it is. Throws std::runtime_error where one was not stored, or a signal waits.
void fill(Subject &subject, std::uint64_t seed, std::uint64_t first, std::uint64_t end);

} // namespace onced::bench::scale
