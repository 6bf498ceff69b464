#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "context.hpp"
#include "queue_model.hpp"

namespace simulation {

// A worker as the protocol describes it, with its crashes: what is not in the ledger is forgotten by them.
class WorkerModel {
public:
  explicit WorkerModel(Context &context) : context_(context), queue_(context) { queue_.begin_life(boot_); }

  void on_hello(const Event &event);
  void on_delivery(const Event &event);
  void on_commit(const Event &event);
  void on_queue_write(const Event &event);
  void on_wake() { queue_.on_wake(); }
  [[nodiscard]] std::optional<onced::MonotonicTime> wake_at() const { return queue_.wake_at(); }
  [[nodiscard]] QueueModel &queue() { return queue_; }

  void on_crash();
  void on_start(const Event &event);  // of the process: it knows no sender
  void on_reopen(const Event &event); // of the store: it greets the senders that it knows
  void on_busy(const Event &event) { busy_until_ = context_.now + event.lasts; }

private:
  enum class Write : std::uint8_t {
    done,
    crashed, // before or after
    unknown, // whether it is written
  };

  [[nodiscard]] std::optional<Verdict> look_up(const Job &job) const;
  Verdict transact(std::size_t job, bool found_absent);
  template <class Transaction> [[nodiscard]] Write write(const Transaction &transact);
  void fail_write();
  void greet(std::size_t sender);
  void reply(std::size_t job, Verdict verdict);
  void end_life() { ++life_; }

  Context &context_;
  QueueModel queue_;
  bool ready_ = true;      // the process runs, and its store is open
  std::uint32_t life_ = 1; // of what is in memory
  std::uint32_t boot_ = 1;
  onced::MonotonicTime busy_until_;
  std::array<bool, 3> knows_{}; // the way back, by sender
};

} // namespace simulation
