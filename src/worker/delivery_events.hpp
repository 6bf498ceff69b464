#pragma once

#include <span>
#include <string_view>

#include "onced/event_log.hpp"
#include "onced/store.hpp"
#include "worker/intake.hpp"

namespace onced::worker {

// How the stream says Branch::locked, which a rehearsal looks for.
inline constexpr std::string_view key_found_under_lock = "key found under its lock: nothing put";

// Tells a sink what becomes of each delivery that wants a reply, step by step. Without a sink it does nothing. Any
// thread.
class DeliveryEvents {
public:
  // Null: nobody is told. Must outlive this.
  explicit DeliveryEvents(EventLog *sink) : sink_(sink) {}

  // `delivery.consumed`, of each delivery of the batch, before anything is done with it.
  void consumed(const Intake &intake) const {
    if (sink_ != nullptr) write_consumed(intake);
  }
  // `delivery.settled`, with the outcome and the branch that led to it. What it says is on stable storage; no reply has
  // been sent.
  void settled(const Intake &intake, std::span<const Settlement> settlements) const {
    if (sink_ != nullptr) write_settled(intake, settlements);
  }

private:
  void write_consumed(const Intake &intake) const;
  void write_settled(const Intake &intake, std::span<const Settlement> settlements) const;

  EventLog *sink_;
};

} // namespace onced::worker
