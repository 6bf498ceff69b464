#include "sender/recovery.hpp"

#include "onced/limits.hpp"

namespace onced::sender {

void Recovery::greeted(const BootId &boot, bool has_jobs, MonotonicTime now) {
  if (boot_ && boot_ != boot) {
    ++new_boots_;
    // A boot that came and went without settling anything belongs to the same loss.
    if (!lost_at_ && has_jobs) lost_at_ = last_word_;
  }
  boot_ = boot;
  last_word_ = now;
}

void Recovery::replied(const BootId &boot, MonotonicTime now) {
  if (boot_ == boot) last_word_ = now;
}

void Recovery::settled(MonotonicTime now) {
  if (!lost_at_) return;
  times_.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - *lost_at_));
  lost_at_.reset();
  if (times_.size() > limits::recoveries_kept_max) times_.pop_front();
}

} // namespace onced::sender
