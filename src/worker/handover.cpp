#include "worker/handover.hpp"

#include <algorithm>

#include "onced/limits.hpp"

namespace onced::worker {

bool Handover::full() {
  const std::scoped_lock lock(mutex_);
  was_full_ = arrivals_.size() >= limits::handover_messages_max ||
              bytes_ + limits::message_bytes_max > limits::handover_bytes_max;
  return was_full_;
}

void Handover::put(Arrival arrival) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  bytes_ += arrival.frame.size();
  arrival.put_at = clock_.monotonic();
  arrivals_.push_back(std::move(arrival));
}

void Handover::announce() {
  changed_.notify_one();
}

std::vector<Arrival> Handover::take() {
  std::vector<Arrival> taken;
  bool room = false;
  bool more = false;
  {
    std::unique_lock lock(mutex_);
    in_hand_.erase(std::this_thread::get_id());
    changed_.wait(lock, [&] { return closed_ || !arrivals_.empty(); });
    std::size_t bytes = 0;
    while (!arrivals_.empty() && bytes < limits::batch_bytes_target) {
      bytes += arrivals_.front().frame.size();
      taken.push_back(std::move(arrivals_.front()));
      arrivals_.pop_front();
    }
    bytes_ -= bytes;
    if (!taken.empty()) in_hand_[std::this_thread::get_id()] = taken.front().put_at;
    room = was_full_ && !taken.empty();
    if (room) was_full_ = false;
    more = !arrivals_.empty();
  }
  if (more) announce();
  if (room) on_room_();
  return taken;
}

std::chrono::milliseconds Handover::oldest_age() const {
  const MonotonicTime now = clock_.monotonic();
  MonotonicTime oldest = now;
  const std::scoped_lock lock(mutex_);
  for (const auto &[thread, put_at] : in_hand_)
    oldest = std::min(oldest, put_at);
  if (!arrivals_.empty()) oldest = std::min(oldest, arrivals_.front().put_at);
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - oldest);
}

void Handover::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

void Handover::abandon() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    arrivals_.clear();
    bytes_ = 0;
  }
  changed_.notify_all();
}

} // namespace onced::worker
