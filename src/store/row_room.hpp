#pragma once

#include <cstdint>
#include <mutex>

namespace onced::store {

// Dead letters, queued jobs or messages to be sent on, and the bytes of the jobs in them.
struct RowAmount {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

// How much the rows of a family take, those about to be committed included, held against the caps. Any thread.
class RowRoom {
public:
  explicit RowRoom(RowAmount max) : max_(max) {}

  // Takes room for one row of so many bytes. False: there is none, and nothing was taken.
  [[nodiscard]] bool reserve(std::uint64_t bytes) { return reserve(RowAmount{.rows = 1, .bytes = bytes}); }
  // Likewise for all of these.
  [[nodiscard]] bool reserve(RowAmount amount) {
    const std::scoped_lock lock(mutex_);
    if (!fits(amount.rows, taken_.rows, max_.rows) || !fits(amount.bytes, taken_.bytes, max_.bytes)) return false;
    taken_.rows += amount.rows;
    taken_.bytes += amount.bytes;
    return true;
  }

  // What is there already, whatever the caps say.
  void add(RowAmount amount) {
    const std::scoped_lock lock(mutex_);
    taken_.rows += amount.rows;
    taken_.bytes += amount.bytes;
  }

  // Never below nothing: where counters were lost with a log, more may be given back than was known of.
  void release(RowAmount amount) {
    const std::scoped_lock lock(mutex_);
    taken_.rows -= amount.rows < taken_.rows ? amount.rows : taken_.rows;
    taken_.bytes -= amount.bytes < taken_.bytes ? amount.bytes : taken_.bytes;
  }

  [[nodiscard]] RowAmount taken() const {
    const std::scoped_lock lock(mutex_);
    return taken_;
  }

private:
  static bool fits(std::uint64_t wanted, std::uint64_t taken, std::uint64_t max) {
    return wanted <= max && taken <= max - wanted;
  }

  RowAmount max_;
  mutable std::mutex mutex_; // guards the next
  RowAmount taken_;
};

} // namespace onced::store
