#include "worker/outgoing.hpp"

#include <utility>

#include "onced/limits.hpp"

namespace onced::worker {

bool Outgoing::put(std::vector<OutgoingFrame> frames) {
  std::size_t bytes = 0;
  for (const OutgoingFrame &frame : frames)
    bytes += frame.frame.size();
  {
    const std::scoped_lock lock(mutex_);
    if (bytes_ + bytes > limits::outgoing_bytes_max) return false;
    bytes_ += bytes;
    waiting_.push_back(std::move(frames));
  }
  on_put_();
  return true;
}

std::vector<std::vector<OutgoingFrame>> Outgoing::take() {
  const std::scoped_lock lock(mutex_);
  bytes_ = 0;
  return std::exchange(waiting_, {});
}

} // namespace onced::worker
