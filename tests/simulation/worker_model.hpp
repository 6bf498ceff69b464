#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "context.hpp"

namespace simulation {

// A worker as the protocol describes it, with its crashes: what is not in the ledger is forgotten by them.
class WorkerModel {
public:
  explicit WorkerModel(Context &context) : context_(context) {}

  void on_hello(const Event &event);
  void on_delivery(const Event &event);
  void on_commit(const Event &event);
  void on_execute(const Event &event);

  void on_crash();
  void on_start(const Event &event);  // of the process: it knows no sender
  void on_reopen(const Event &event); // of the store: it greets the senders that it knows
  void on_busy(const Event &event) { busy_until_ = context_.now + event.lasts; }

private:
  struct Verdict {
    onced::Outcome outcome = onced::Outcome::busy;
    std::uint64_t result = 0;
  };

  [[nodiscard]] std::optional<Verdict> look_up(const Job &job) const;
  Verdict transact(std::size_t job, bool found_absent);
  void open_store();
  void fail_write(const Event &commit);
  void greet(std::size_t sender);
  void reply(std::size_t job, Verdict verdict);
  void end_life() { ++life_; }

  Context &context_;
  bool ready_ = true;      // the process runs, and its store is open
  std::uint32_t life_ = 1; // of what is in memory
  std::uint32_t boot_ = 1;
  onced::MonotonicTime busy_until_;
  std::array<bool, 3> knows_{}; // the way back, by sender
};

} // namespace simulation
