#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "onced/clock.hpp"
#include "onced/ids.hpp"

namespace onced::sender {

// How long a worker was lost to its sender: from the last word of one boot to the first job settled after the greeting
// of the next. The time is passed in. One thread at a time.
class Recovery {
public:
  // `has_jobs`: some wait to be settled; without any, nothing is there to recover.
  void greeted(const BootId &boot, bool has_jobs, MonotonicTime now);
  // Replies of a boot. Late ones of an earlier boot say nothing about the present one.
  void replied(const BootId &boot, MonotonicTime now);
  void settled(MonotonicTime now);

  [[nodiscard]] std::uint64_t new_boots() const { return new_boots_; }
  // The latest limits::recoveries_kept_max.
  [[nodiscard]] std::vector<std::chrono::milliseconds> times() const { return {times_.begin(), times_.end()}; }

private:
  std::optional<BootId> boot_;
  MonotonicTime last_word_;
  std::optional<MonotonicTime> lost_at_; // nothing has settled since the new boot
  std::uint64_t new_boots_ = 0;
  std::deque<std::chrono::milliseconds> times_;
};

} // namespace onced::sender
