#pragma once

#include <span>
#include <string>

#include "onced/event_log.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"
#include "onced/sender.hpp"
#include "wire/messages.hpp"

namespace onced::sender {

// Tells a sink what becomes of each delivery of one sender. Without a sink it does nothing. One thread.
class DeliveryEvents {
public:
  // Null: nobody is told. Must outlive this.
  DeliveryEvents(EventLog *sink, const SenderId &sender) : sink_(sink), sender_(sender) {}

  // `delivery.published`, as a message is about to be handed to the socket; again, where its pipe turns out to be full.
  void published(std::span<const wire::BatchEntry> entries) {
    if (sink_ != nullptr) tell_published(entries);
  }
  // `delivery.acknowledged`: a reply has settled a job. `attempt` is that of its last send.
  void acknowledged(const Settled &settled, const Tag &tag) {
    if (sink_ != nullptr) tell_acknowledged(settled, tag);
  }

private:
  void tell_published(std::span<const wire::BatchEntry> entries);
  void tell_acknowledged(const Settled &settled, const Tag &tag);
  Event event_of(std::string_view name, Sequence sequence, std::uint32_t attempt, const Tag &tag, BytesView job);

  EventLog *sink_;
  SenderId sender_;
  JobParser parser_;
  Job job_;
};

} // namespace onced::sender
