#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include <zmq.hpp>

namespace onced::worker {

// A message as the gateway took it from the jobs socket.
struct Arrival {
  zmq::message_t frame; // the first part, where there were several
  bool multipart = false;
};

// The bounded hand-over of arrivals from the gateway to the worker threads.
class Handover {
public:
  // `on_room` is called, by a worker thread, when there is room again after `full` has said that there was none.
  explicit Handover(std::function<void()> on_room) : on_room_(std::move(on_room)) {}

  // True when nothing more may be put. Gateway thread.
  [[nodiscard]] bool full();
  void put(Arrival arrival);

  // What has arrived, up to a batch's bytes; waits while there is nothing. Empty: closed, and all was taken. Worker
  // threads.
  [[nodiscard]] std::vector<Arrival> take();

  // No more will be put; what is there is still to be taken.
  void close();
  // No more will be put, and what is there is forgotten.
  void abandon();

private:
  std::function<void()> on_room_;
  std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::deque<Arrival> arrivals_;
  std::size_t bytes_ = 0;
  bool closed_ = false;
  bool was_full_ = false;
};

} // namespace onced::worker
