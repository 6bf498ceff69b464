#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "store/rows/records.hpp"

namespace onced::store {

struct CommitContext;

// The number of a lane, which names its row of counters, and what that row says.
struct LaneSeat {
  unsigned number = 0;
  LaneCounters counters;
};

// Gives each lane of a store a number of its own, of whatever kind it is. Any thread.
class LaneSeats {
public:
  // What the rows of counters say, by number. Before any `take`.
  void begin(std::vector<LaneCounters> counters) { counters_ = std::move(counters); }

  [[nodiscard]] LaneSeat take() {
    const std::scoped_lock lock(mutex_);
    const unsigned number = taken_++;
    return {.number = number, .counters = number < counters_.size() ? counters_[number] : LaneCounters{}};
  }

private:
  std::mutex mutex_; // guards the rest
  std::vector<LaneCounters> counters_;
  unsigned taken_ = 0;
};

// As many lanes of one kind as ever worked at the same time; each serves one thread at a time. Any thread.
template <class Lane> class LanePool {
public:
  explicit LanePool(LaneSeats &seats) : seats_(seats) {}

  [[nodiscard]] std::unique_ptr<Lane> take(const CommitContext &context) {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        auto lane = std::move(idle_.back());
        idle_.pop_back();
        return lane;
      }
    }
    const LaneSeat seat = seats_.take();
    return std::make_unique<Lane>(context, seat.number, seat.counters);
  }
  void give_back(std::unique_ptr<Lane> lane) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(lane));
  }

private:
  LaneSeats &seats_;
  std::mutex mutex_; // guards the next
  std::vector<std::unique_ptr<Lane>> idle_;
};

} // namespace onced::store
