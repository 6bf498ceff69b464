#pragma once

#include "drive.hpp"
#include "workload.hpp"

namespace onced::bench::peers {

// One run on an empty peer: what must be committed before, unmeasured, and then what is measured. Throws
// std::runtime_error where the answers or the rows are not exactly those of the traffic, or a conflict changed a row.
[[nodiscard]] Measured run_trial(Peer &peer, const Traffic &traffic, const Settings &settings);

// How many deliveries are unanswered at most where that is not fixed: those in hand where the client feeds the peer;
// where there is a queue, some more, so that nobody waits for the producer.
[[nodiscard]] std::size_t free_in_flight(const Settings &settings, bool has_queue);

// The settings that answer the most deliveries a second of traffic like `plan`: all are tried on short runs, the best
// few again on longer ones. `in_flight` 0: whatever is best. `plan.deliveries` bounds the length of a run.
[[nodiscard]] Settings find_best_settings(Peer &peer, const TrafficPlan &plan, std::size_t in_flight, bool has_queue);

} // namespace onced::bench::peers
