#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "context.hpp"
#include "queue_model.hpp"
#include "store_node.hpp"

namespace simulation {

// A worker as the protocol describes it, around its store, with its crashes: what is not in the store is forgotten by
// them.
class WorkerModel {
public:
  explicit WorkerModel(Context &context) : context_(context), store_(context), queue_(context, store_) {}

  // Once the jobs are drawn.
  void begin();
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

  // At the end. Throws `Broken`.
  void check_sums() { store_.check_sums(); }

private:
  enum class Write : std::uint8_t {
    done,
    crashed, // before or after
    unknown, // whether it is written
  };

  template <class Operation> [[nodiscard]] Write write(const Operation &operate, bool may_fail);
  [[nodiscard]] bool arm_crash();
  void arm_failure();
  [[nodiscard]] bool open_store();
  void fail_write();
  void greet(std::size_t sender);
  void reply(std::size_t job, Verdict verdict);
  void end_life();

  Context &context_;
  StoreNode store_;
  QueueModel queue_;
  bool ready_ = false;     // the process runs, and its store is open
  std::uint32_t life_ = 1; // of what is in memory
  std::vector<std::uint8_t> batch_;
  onced::MonotonicTime busy_until_;
  std::array<bool, 3> knows_{}; // the way back, by sender
};

} // namespace simulation
