#include "worker/reply_lab.hpp"

#include <algorithm>

#include "onced/limits.hpp"

namespace onced::worker {
namespace {

std::size_t bytes_of(const std::vector<OutgoingFrame> &frames) {
  std::size_t bytes = 0;
  for (const OutgoingFrame &frame : frames)
    bytes += frame.frame.size();
  return bytes;
}

} // namespace

std::unique_ptr<ReplyLab> ReplyLab::of(const WorkerLab &knobs, Clock &clock, Counters &counters) {
  if (knobs.drop_share <= 0 && knobs.delay.count() <= 0) return nullptr;
  return std::unique_ptr<ReplyLab>(new ReplyLab(knobs, clock, counters));
}

bool ReplyLab::is_dropped(const OutgoingFrame &frame) {
  if (!std::holds_alternative<SenderId>(frame.to)) return false;
  // 53 bits of a draw are a double from 0 to below 1.
  const bool unlucky = static_cast<double>(random_.next() >> 11U) * 0x1p-53 < knobs_.drop_share;
  const bool no_room = held_bytes_ + frame.frame.size() > limits::outgoing_bytes_max;
  if (unlucky || no_room) ++counters_.reply_frames_dropped;
  return unlucky || no_room;
}

std::vector<std::vector<OutgoingFrame>> ReplyLab::disturb(std::vector<std::vector<OutgoingFrame>> batches, bool all) {
  const MonotonicTime now = clock_.monotonic();
  for (auto &frames : batches) {
    std::erase_if(frames, [&](const OutgoingFrame &frame) { return is_dropped(frame); });
    held_bytes_ += bytes_of(frames);
    held_.push_back({.due = now + knobs_.delay, .frames = std::move(frames)});
  }
  std::vector<std::vector<OutgoingFrame>> due;
  while (!held_.empty() && (all || held_.front().due <= now)) {
    held_bytes_ -= bytes_of(held_.front().frames);
    due.push_back(std::move(held_.front().frames));
    held_.pop_front();
  }
  return due;
}

std::chrono::milliseconds ReplyLab::wait() const {
  if (held_.empty()) return std::chrono::milliseconds{-1};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(held_.front().due - clock_.monotonic());
  return std::max(left, std::chrono::milliseconds{0});
}

} // namespace onced::worker
