#pragma once

#include <vector>

#include "rehearsal/deliveries.hpp"
#include "rehearsal/stage.hpp"

namespace onced::rehearsal {

// The timeline of a scenario in which something befell a process (docs/rehearsal-record.md), of the first job that was
// in hand as something was killed or else of the first; of any other scenario it is empty.
[[nodiscard]] std::vector<Json> timeline_of(const Stage &stage, const Traces &traces,
                                            const std::vector<Delivery> &deliveries);

// A point of the backlog: jobs that senders have kept and that are not acknowledged, and those that the worker has in
// hand.
struct BacklogPoint {
  Micros at = 0;
  std::size_t waiting = 0;
  std::size_t in_hand = 0;
};

// How it rises and drains, oldest first.
[[nodiscard]] std::vector<BacklogPoint> backlog_of(const Traces &traces, const std::vector<Delivery> &deliveries);

} // namespace onced::rehearsal
