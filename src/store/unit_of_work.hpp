#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "store/context.hpp"
#include "store/rows/records.hpp"

namespace onced::store {

// One change of a store: all of it or nothing. The only place that commits. It takes room and adds to sums with the
// rows, passes the kill points, tries again what lost a race, and closes the store to writers after a commit of which
// nobody knows whether it was written. One unit at a time, one thread at a time; its buffers serve unit after unit.
class UnitOfWork {
public:
  explicit UnitOfWork(StoreContext &context) : context_(context), session_(context.engine.session()) {}

  struct Kind {
    std::optional<KillPoint> before = {}; // the commit
    std::optional<KillPoint> after = {};
    engine::Sync sync = engine::Sync::stable;
  };
  enum class Ended : std::uint8_t {
    written,   // it is where `Kind::sync` says
    nothing,   // the step had nothing to write
    contended, // it lost every race, or others hold its rows for too long: nothing was written
  };
  // Locks and reads rows, decides, and puts rows, by the functions below. It may be called again, after a lost race. No
  // handler runs in it. False: there is nothing to write.
  using Step = std::function<bool()>;

  // Errors: `usage` (read-only); `store_unavailable`: whether the unit was written is unknown, and the store is closed
  // to writers.
  [[nodiscard]] Result<Ended> run(const Kind &kind, const Step &step);

  // --- In a step. After the first failure reads find damaged rows, and nothing is put: `run` sees to it. ---

  // The unit's time.
  [[nodiscard]] WallTime now() const { return now_; }
  // The value is valid until the next call.
  [[nodiscard]] engine::Found lock(engine::Family family, BytesView key);
  // As Session::claim.
  void claim(engine::Family family, std::span<const engine::Claim> claims, engine::Patience patience,
             std::vector<engine::Found> &found);
  // Puts a row whose key was found absent just now. Where another unit was faster, this one loses the race.
  void put_new(engine::Family family, BytesView key, BytesView value);
  void put(engine::Family family, BytesView key, BytesView value);
  void erase(engine::Family family, BytesView key);
  void add(engine::Counter counter, std::uint64_t amount) { add_signed(counter, static_cast<std::int64_t>(amount)); }
  void subtract(engine::Counter counter, std::uint64_t amount) {
    add_signed(counter, -static_cast<std::int64_t>(amount));
  }
  void add_signed(engine::Counter counter, std::int64_t amount) {
    if (!failure_) session_->add(counter, amount);
  }
  // Room for rows of this unit: given back unless it is written. False: there is none.
  [[nodiscard]] bool reserve(RowRoom &room, RowAmount amount);
  // Room of rows that this unit erases: given back once it is written.
  void release(RowRoom &room, RowAmount amount) {
    after_commit([&room, amount] { room.release(amount); });
  }
  // Called once the unit is written, before the kill point behind it.
  void after_commit(std::function<void()> call) { calls_.push_back(std::move(call)); }
  [[nodiscard]] bool has_failed() const { return failure_.has_value(); }

  // --- Outside of a step ---

  // Reads committed rows, by keys in ascending order. Errors: as Session::read and Session::confirm.
  [[nodiscard]] Result<void> read(engine::Family family, std::span<const BytesView> keys,
                                  std::vector<engine::Found> &found) {
    return session_->read(family, keys, found);
  }
  [[nodiscard]] Result<void> confirm() { return session_->confirm(); }

  // Tools whose memory is kept.
  JobParser parser;
  Digester digester;
  RecordDecoder decoder;
  Bytes record;

private:
  void begin(engine::Sync sync);
  void keep_written();
  void note(engine::Step step) {
    if (!step && !failure_) failure_ = std::move(step.error());
  }

  StoreContext &context_;
  std::unique_ptr<engine::Session> session_;

  // The unit in hand.
  WallTime now_;
  std::optional<engine::Failure> failure_;
  std::vector<Reservation> reservations_;
  std::vector<std::function<void()>> calls_;
  std::vector<engine::Found> found_;
};

} // namespace onced::store
