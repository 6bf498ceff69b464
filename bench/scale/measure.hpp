#pragma once

#include <cstdint>
#include <functional>

#include "measurement.hpp"
#include "onced/outcome.hpp"
#include "subject.hpp"

namespace onced::bench::scale {

// What is delivered: batches of jobs, each delivery of the number that `next` says.
struct Traffic {
  std::uint64_t seed = 1;
  std::uint64_t deliveries = 0;
  std::size_t batch = 256;
  Outcome expected = Outcome::duplicate; // of every delivery
  std::function<std::uint64_t()> next;
};

// Commits the traffic from this thread and says in the row what it cost: only the commits, not the making of batches
// between them. Throws std::runtime_error where one outcome or result is another, or a signal waits.
void measure(Subject &subject, const Traffic &traffic, Row &row);

} // namespace onced::bench::scale
