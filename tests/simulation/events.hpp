#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ledger.hpp"
#include "onced/clock.hpp"
#include "onced/fencing_token.hpp"
#include "onced/ids.hpp"
#include "onced/outcome.hpp"

namespace simulation {

enum class EventKind : std::uint8_t {
  submit,       // a producer offers a job to its sender
  hello,        // a sender's hello reaches the worker
  delivery,     // a job reaches the worker
  greeting,     // the worker's greeting reaches a sender
  reply,        // a reply reaches a sender
  connect,      // a sender finds that it is connected
  tell,         // a sender's caller comes back: what it was told leaves the outbox
  commit,       // the worker commits the deliveries in hand
  receive,      // the hand-over of a queued job is written
  give_back,    // that it was not handed over is written
  heartbeat,    // of a handler
  handler_end,  //
  settle,       // what became of a queued job is written
  worker_crash, //
  worker_start, //
  store_reopen, // after a failed write
  busy,         // the worker's dead letters are at their cap for a while
  outage,       // the network carries nothing for a while
  sender_crash, //
  sender_start, //
  forgery,      // a stranger, or a cloned outbox, has a reply sent
};

// What happens at a time. Which of the fields have a meaning depends on the kind.
struct Event {
  EventKind kind = EventKind::submit;
  std::uint8_t sender = 0;
  std::uint8_t job = 0; // in Context::jobs
  onced::Outcome outcome = onced::Outcome::busy;
  std::uint32_t boot = 0;
  std::uint32_t life = 0; // of the worker or the sender: what belongs to an earlier life does not happen
  onced::Sequence sequence{0};
  onced::Tag tag{};
  std::uint64_t result = 0; // 0: none
  onced::MonotonicTime::duration lasts{0};

  // Of a queued job.
  onced::FencingToken token{};
  Ending ending = Ending::done;
  bool job_is_obstacle = false; // give_back: not its type
  bool again = false;           // it may have been written before

  onced::MonotonicTime at{};
  std::uint64_t order = 0; // of scheduling, which decides between events of one time
};

class EventQueue {
public:
  void clear() {
    events_.clear();
    scheduled_ = 0;
  }
  void schedule(onced::MonotonicTime at, Event event) {
    event.at = at;
    event.order = ++scheduled_;
    events_.push_back(event);
    std::push_heap(events_.begin(), events_.end(), later);
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] onced::MonotonicTime next_at() const { return events_.front().at; }
  Event take() {
    std::pop_heap(events_.begin(), events_.end(), later);
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }

private:
  static bool later(const Event &left, const Event &right) {
    return left.at != right.at ? left.at > right.at : left.order > right.order;
  }
  std::vector<Event> events_; // a heap
  std::uint64_t scheduled_ = 0;
};

} // namespace simulation
