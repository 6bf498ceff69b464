#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "store/rows/row_amount.hpp"

namespace onced::store {

// How much the rows of a family take, those about to be committed included, held against the caps. Any thread.
class RowRoom {
public:
  explicit RowRoom(RowAmount max) : max_(max) {}

  // False: there is no room for all of it, and nothing was taken.
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

// Room that is taken until it is given back. Dropped, it gives it back.
class Reservation {
public:
  Reservation() = default;
  // Nothing where there is no room.
  [[nodiscard]] static std::optional<Reservation> take(RowRoom &room, RowAmount amount) {
    if (!room.reserve(amount)) return std::nullopt;
    return Reservation(room, amount);
  }
  Reservation(Reservation &&other) noexcept : room_(std::exchange(other.room_, nullptr)), amount_(other.amount_) {}
  Reservation &operator=(Reservation &&other) noexcept {
    std::swap(room_, other.room_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Reservation() {
    if (room_ != nullptr) room_->release(amount_);
  }

  // The rows are there now: they keep the room.
  void keep() { room_ = nullptr; }

private:
  Reservation(RowRoom &room, RowAmount amount) : room_(&room), amount_(amount) {}

  RowRoom *room_ = nullptr;
  RowAmount amount_;
};

} // namespace onced::store
