#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <zmq.hpp>

#include "onced/clock.hpp"

namespace onced::worker {

// A message as the gateway took it from the jobs socket.
struct Arrival {
  zmq::message_t frame; // the first part, where there were several
  bool multipart = false;
  int connection = -1;    // its descriptor: whose turn it is
  MonotonicTime put_at{}; // set by the hand-over
};

// How much of a turn a message takes: its bytes, and something for each delivery that it announces, of which it may
// have thousands in few bytes.
[[nodiscard]] std::size_t cost_of(const Arrival &arrival);

// The bounded hand-over of arrivals from the gateway to the worker threads. Connections take turns: in each turn a
// connection may have limits::turn_bytes taken, and what it does not use it keeps while it has messages (deficit round
// robin). One that had none waiting is before the others. So a small message is taken in the next batch or the one
// after, whatever others have put before it. A large message is a batch by itself: no small one waits for its commit.
class Handover {
public:
  // `on_room` is called, by a worker thread, when there is room again after `full` has said that there was none.
  // `clock` must outlive it.
  Handover(Clock &clock, std::function<void()> on_room) : clock_(clock), on_room_(std::move(on_room)) {}

  // True when nothing more may be put. Gateway thread.
  [[nodiscard]] bool full();
  // A thread that waits is not woken before `announce`: one that is woken takes all that has arrived by then.
  void put(Arrival arrival);
  void announce();

  // What has arrived, in turns, up to a batch's bytes; waits while there is nothing. Empty: closed, and all was taken.
  // Worker threads.
  [[nodiscard]] std::vector<Arrival> take();

  // How long ago the oldest message was put that waits, or is in the hands of a thread that has not come back. Any
  // thread.
  [[nodiscard]] std::chrono::milliseconds oldest_age() const;

  // No more will be put; what is there is still to be taken.
  void close();
  // No more will be put, and what is there is forgotten.
  void abandon();

private:
  // What has arrived over one connection and was not taken.
  struct Share {
    std::deque<Arrival> arrivals; // never empty
    std::size_t credit = 0;       // what is left of its turns
    bool in_its_turn = false;     // which a batch that was complete has cut short
  };

  [[nodiscard]] std::vector<Arrival> take_in_turns();
  bool take_turn(Share &share, std::vector<Arrival> &taken, std::size_t &cost);

  Clock &clock_;
  std::function<void()> on_room_;
  mutable std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::map<int, Share> shares_; // by connection
  std::deque<int> newcomers_;   // connections that had nothing waiting before
  std::deque<int> turns_;       // the others; whose turn is next is first
  bool newcomers_first_ = false;
  std::size_t messages_ = 0;
  std::map<std::thread::id, MonotonicTime> in_hand_; // when the oldest of what a thread has taken was put
  std::size_t bytes_ = 0;
  bool closed_ = false;
  bool was_full_ = false;
};

} // namespace onced::worker
