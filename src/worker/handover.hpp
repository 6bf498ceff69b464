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
  MonotonicTime put_at{}; // set by the hand-over
};

// The bounded hand-over of arrivals from the gateway to the worker threads.
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

  // What has arrived, up to a batch's bytes; waits while there is nothing. Empty: closed, and all was taken. Worker
  // threads.
  [[nodiscard]] std::vector<Arrival> take();

  // How long ago the oldest message was put that waits, or is in the hands of a thread that has not come back. Any
  // thread.
  [[nodiscard]] std::chrono::milliseconds oldest_age() const;

  // No more will be put; what is there is still to be taken.
  void close();
  // No more will be put, and what is there is forgotten.
  void abandon();

private:
  Clock &clock_;
  std::function<void()> on_room_;
  mutable std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::deque<Arrival> arrivals_;
  std::map<std::thread::id, MonotonicTime> in_hand_; // when the oldest of what a thread has taken was put
  std::size_t bytes_ = 0;
  bool closed_ = false;
  bool was_full_ = false;
};

} // namespace onced::worker
