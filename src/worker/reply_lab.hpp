#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "onced/clock.hpp"
#include "onced/random.hpp"
#include "onced/worker.hpp"
#include "worker/counters.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

// The worker's knobs of the lab at work on what goes out; answers to queries are held back too, but never dropped. One
// thread.
class ReplyLab {
public:
  // Null where every knob is unset.
  [[nodiscard]] static std::unique_ptr<ReplyLab> of(const WorkerLab &knobs, Clock &clock, Counters &counters);

  // Takes what is on its way out, drops its share, and returns what is to go now: held back long enough, or `all`.
  [[nodiscard]] std::vector<std::vector<OutgoingFrame>> disturb(std::vector<std::vector<OutgoingFrame>> batches,
                                                                bool all);

  // How long until something held back is to go; -1 ms: nothing is held back.
  [[nodiscard]] std::chrono::milliseconds wait() const;

private:
  ReplyLab(const WorkerLab &knobs, Clock &clock, Counters &counters)
      : knobs_(knobs), clock_(clock), counters_(counters), random_(knobs.seed) {}

  struct Held {
    MonotonicTime due;
    std::vector<OutgoingFrame> frames;
  };

  [[nodiscard]] bool is_dropped(const OutgoingFrame &frame);

  WorkerLab knobs_;
  Clock &clock_;
  Counters &counters_;
  SeededRandom random_;
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
};

} // namespace onced::worker
