#pragma once

#include <span>
#include <string>

#include "onced/digest.hpp"
#include "onced/event_log.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"
#include "onced/sender.hpp"
#include "wire/messages.hpp"

namespace onced::sender {

// Tells a sink what becomes of each job and delivery of one sender. Without a sink it does nothing. One thread
// at a time; `kept` any.
class DeliveryEvents {
public:
  // Null: nobody is told. Must outlive this.
  DeliveryEvents(EventLog *sink, const SenderId &sender) : sink_(sink), sender_(handle_of(sender)) {}

  // `job.kept`: it was taken from the caller; with an outbox it is on disk.
  void kept(Sequence sequence, const Tag &tag) const {
    if (sink_ != nullptr) sink_->write(event_of("job.kept", sequence, tag));
  }
  // `delivery.published`, as a message is about to be handed to the socket; again, where its pipe turns out to be full.
  void published(std::span<const wire::BatchEntry> entries) {
    if (sink_ != nullptr) tell_published(entries);
  }
  // `reply.lost`: SenderLab threw it away.
  void lost(const wire::Reply &reply) {
    if (sink_ != nullptr) tell_lost(reply);
  }
  // `delivery.acknowledged`: a reply has settled a job. `attempt` is that of its last send.
  void acknowledged(const Settled &settled, const Tag &tag) {
    if (sink_ != nullptr) tell_acknowledged(settled, tag);
  }

private:
  void tell_published(std::span<const wire::BatchEntry> entries);
  void tell_lost(const wire::Reply &reply);
  void tell_acknowledged(const Settled &settled, const Tag &tag);
  [[nodiscard]] Event event_of(std::string_view name, Sequence sequence, const Tag &tag) const;
  Event event_of(std::string_view name, Sequence sequence, const Tag &tag, BytesView job);

  EventLog *sink_;
  std::string sender_; // its handle
  JobParser parser_;
  Job job_;
};

} // namespace onced::sender
