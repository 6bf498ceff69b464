#pragma once

#include <cstdint>
#include <mutex>

namespace onced::store {

// Dead letters, and the bytes of jobs in them.
struct LetterAmount {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

// How much the dead letters take, those about to be committed included, held against the caps. Any thread.
class LetterRoom {
public:
  explicit LetterRoom(LetterAmount max) : max_(max) {}

  // Takes room for one dead letter of so many bytes. False: there is none, and nothing was taken.
  [[nodiscard]] bool reserve(std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (taken_.rows >= max_.rows || bytes > max_.bytes || taken_.bytes > max_.bytes - bytes) return false;
    ++taken_.rows;
    taken_.bytes += bytes;
    return true;
  }

  // What is there already, whatever the caps say.
  void add(LetterAmount amount) {
    const std::scoped_lock lock(mutex_);
    taken_.rows += amount.rows;
    taken_.bytes += amount.bytes;
  }

  // Never below nothing: where counters were lost with a log, more may be given back than was known of.
  void release(LetterAmount amount) {
    const std::scoped_lock lock(mutex_);
    taken_.rows -= amount.rows < taken_.rows ? amount.rows : taken_.rows;
    taken_.bytes -= amount.bytes < taken_.bytes ? amount.bytes : taken_.bytes;
  }

private:
  LetterAmount max_;
  std::mutex mutex_; // guards the next
  LetterAmount taken_;
};

} // namespace onced::store
