#include "worker/outgoing.hpp"

#include <utility>

#include "onced/limits.hpp"

namespace onced::worker {

std::size_t Outgoing::put(std::vector<OutgoingFrame> frames) {
  std::size_t dropped = 0;
  {
    const std::scoped_lock lock(mutex_);
    // Those that fit go, so that a batch whose replies are too many for one time makes headway at each.
    dropped = std::erase_if(frames, [&](const OutgoingFrame &frame) {
      if (bytes_ + frame.frame.size() > limits::outgoing_bytes_max) return true;
      bytes_ += frame.frame.size();
      return false;
    });
    if (frames.empty()) return dropped;
    waiting_.push_back(std::move(frames));
  }
  on_put_();
  return dropped;
}

std::vector<std::vector<OutgoingFrame>> Outgoing::take() {
  const std::scoped_lock lock(mutex_);
  bytes_ = 0;
  return std::exchange(waiting_, {});
}

} // namespace onced::worker
