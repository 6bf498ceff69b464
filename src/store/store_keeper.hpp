#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "base/backoff.hpp"
#include "base/inode.hpp"
#include "onced/event_log.hpp"
#include "onced/store.hpp"

namespace onced::store {

// Keeps a store open for the worker's threads. When it fails, nobody gets it any more; once all who had it have given
// it back it is closed, and opened again, with backoff, until that succeeds. Every opening is a new boot.
class StoreKeeper {
public:
  // The store, as long as this object lives. Empty: there is none to be had.
  class Lease {
  public:
    Lease() = default;
    Lease(Lease &&other) noexcept : keeper_(std::exchange(other.keeper_, nullptr)) {}
    Lease &operator=(Lease &&other) noexcept {
      std::swap(keeper_, other.keeper_);
      return *this;
    }
    ~Lease() {
      if (keeper_ != nullptr) keeper_->give_back();
    }

    explicit operator bool() const { return keeper_ != nullptr; }
    Store *operator->() const { return keeper_->store_.get(); }
    Store &operator*() const { return *keeper_->store_; }

  private:
    friend class StoreKeeper;
    explicit Lease(StoreKeeper *keeper) : keeper_(keeper) {}
    StoreKeeper *keeper_ = nullptr;
  };

  // What a query may know.
  struct State {
    bool available = false;
    BootId boot;                // of the last opening
    std::uint64_t openings = 0; // by this process
    bool opening = false;       // it is being opened again, for the first time since it failed
    bool full = false;          // it is not available for want of room on the disk
    std::optional<Error> cause; // why it is not available
    WallTime since;             // when that was noticed
  };

  // `on_change` is called, from any thread, when `state` has changed. `on_give_up` is called
  // once if it cannot be opened again for a reason that waiting does not mend.
  StoreKeeper(const StoreOptions &options, Clock &clock, Random &random, EventLog &log, std::function<void()> on_change,
              std::function<void(Error)> on_give_up);

  // The first opening. Errors: those of Store::open. A later one makes no database, and takes no other than the first.
  [[nodiscard]] Result<void> open();

  // Waits until the store is available. Empty: `stop` was called. Any thread.
  [[nodiscard]] Lease lease();
  // Empty while the store is not available. Any thread.
  [[nodiscard]] Lease try_lease();
  // Calls `use` with a store to read from: the one that is kept or, while there is none, one that is opened for this
  // call, which only reads, and of which nobody knows whether it is on stable storage. Waits a second for the files to
  // be free. Error `store_unavailable`: there is none, and why; and those of Store::open. Any thread.
  [[nodiscard]] Result<void> read(const std::function<void(const Store &)> &use);
  // A leased store has failed; the caller still has to give it back. Any thread.
  void report(const Error &error);

  [[nodiscard]] State state() const;
  // Of a store that is not available. Any thread.
  [[nodiscard]] Error why_unavailable() const;

  // The keeper's thread: closes and opens again what was reported, until `stop`.
  void run();
  void stop();
  // Closes the store. All leases have been given back and `run` has returned.
  void close();

private:
  void give_back();
  void tell_upgrade();
  void tell_crashes();
  [[nodiscard]] bool reopen();
  void tell_opening(bool opening);
  [[nodiscard]] Result<void> open_again();
  [[nodiscard]] bool wait_before(unsigned attempt);
  void arrive(KillPoint point);

  StoreOptions options_;
  Clock &clock_;
  Random &random_;
  EventLog &log_;
  std::function<void()> on_change_;
  std::function<void(Error)> on_give_up_;
  Backoff backoff_;
  std::optional<Inode> folder_; // of the database that was opened: every later opening is of the same

  mutable std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  std::unique_ptr<Store> store_; // never changes while there is a lease
  std::size_t leases_ = 0;
  bool changes_files_ = false; // the keeper is closing or opening
  std::size_t readers_ = 0;    // of the files, without the store
  State state_;
  bool stopping_ = false;
};

} // namespace onced::store
