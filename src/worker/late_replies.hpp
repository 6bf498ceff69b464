#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "onced/digest.hpp"
#include "runner/runner_context.hpp"
#include "worker/intake.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

// Remembers who waits for the final outcome of a queued job, and tells them when it is there, so that they need not
// wait until they ask again. Best effort, and bounded: who is forgotten, or does not hear it, asks again. Any thread.
class LateReplies {
public:
  // Before the delivery of a queued job is committed, as its job may have ended right after.
  void expect(const Delivery &delivery, const ReplyTo &to);
  // It was not accepted.
  void forget(const Delivery &delivery, const ReplyTo &to);

  // The frames for all who wait for this job, in this intent: `stored` for the first, whose delivery it was, and
  // `duplicate` for the others, or `failed`. That it is held they are told too, and go on waiting.
  [[nodiscard]] std::vector<OutgoingFrame> answer(const runner::JobEnd &end, const BootId &boot, Durability durability);

private:
  struct Waiter {
    Sequence sequence{0};
    ReplyTo to;
    Digest digest; // of its intent: that of another is a conflict

    [[nodiscard]] bool is(const Delivery &delivery, const ReplyTo &other) const {
      return sequence == delivery.sequence && to.sender == other.sender && to.tag == other.tag &&
             digest == delivery.digest;
    }
  };
  struct Job {
    std::uint64_t number = 0; // in the order in which they came
    std::vector<Waiter> waiters;
  };
  using Jobs = std::map<Bytes, Job, std::less<>>;

  void forget_oldest();

  std::mutex mutex_; // guards the rest
  Jobs jobs_;
  std::map<std::uint64_t, Jobs::iterator> by_number_;
  std::uint64_t last_number_ = 0;
};

} // namespace onced::worker
