#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "onced/error.hpp"

namespace onced {

// The steps at which a process can be told to kill itself, in the order in which a job meets them.
enum class KillPoint : std::uint8_t {
  worker_received,       // a message was taken from the jobs socket
  worker_parsed,         // a batch was parsed and digested
  worker_looked_up,      // a batch was looked up; nothing written
  worker_before_commit,  // the transaction is complete; its commit has not begun
  worker_after_commit,   // the commit is on stable storage; no reply was sent
  worker_after_reply,    // the replies of a batch were handed to the socket
  queue_before_receive,  // the transaction that counts a receive is complete; its commit has not begun
  queue_after_receive,   // that commit is on stable storage; the job was not handed over
  queue_before_settle,   // the transaction that ends a lease is complete; its commit has not begun
  queue_after_settle,    // that commit is on stable storage; nobody was told
  relay_before_removal,  // the transaction that takes messages out of the relay is complete; its commit has not begun
  relay_after_removal,   // that commit is on stable storage
  worker_before_change,  // the transaction of a redrive, purge or resolution is complete; its commit has not begun
  worker_after_change,   // that commit is on stable storage; nobody was told
  worker_before_reopen,  // a store that failed is closed, and is about to be opened again
  worker_after_reopen,   // it is open, as a new boot; no sender was told
  sender_before_outbox,  // a job is about to be written to the outbox
  sender_after_outbox,   // a job is on stable storage in the outbox
  sender_after_send,     // a message of jobs was handed to the socket
  sender_after_reply,    // a message of replies was applied
  sender_before_removal, // a job whose outcome was handed out is about to leave the outbox
  sender_after_removal,  // it has left; on stable storage only with the next sync
};

inline constexpr std::array<std::string_view, 22> kill_point_names{
    "worker.received",       "worker.parsed",        "worker.looked-up",     "worker.before-commit",
    "worker.after-commit",   "worker.after-reply",   "queue.before-receive", "queue.after-receive",
    "queue.before-settle",   "queue.after-settle",   "relay.before-removal", "relay.after-removal",
    "worker.before-change",  "worker.after-change",  "worker.before-reopen", "worker.after-reopen",
    "sender.before-outbox",  "sender.after-outbox",  "sender.after-send",    "sender.after-reply",
    "sender.before-removal", "sender.after-removal",
};

[[nodiscard]] constexpr std::string_view name_of(KillPoint point) {
  return kill_point_names[static_cast<std::size_t>(point)];
}

// Kills the process with SIGKILL at the Nth arrival at one point. Unset, an arrival costs one comparison.
// Arrivals may come from any thread; arm it before any.
class KillSwitch {
public:
  KillSwitch() = default;

  // "NAME:N", N from 1. Errors: `usage`, naming the points there are.
  [[nodiscard]] static Result<KillSwitch> parse(std::string_view text);

  KillSwitch(KillPoint point, std::uint64_t arrivals) : point_(point), left_(arrivals) {}
  KillSwitch(const KillSwitch &other) : point_(other.point_), left_(other.left_.load()) {}
  KillSwitch &operator=(const KillSwitch &other) {
    point_ = other.point_;
    left_ = other.left_.load();
    return *this;
  }

  void arrive(KillPoint point) {
    if (point_ == point) count_down();
  }

private:
  void count_down(); // does not return at the last arrival

  std::optional<KillPoint> point_;
  std::atomic<std::uint64_t> left_{0};
};

} // namespace onced
