#include "sender/delivery_events.hpp"

namespace onced::sender {

Event DeliveryEvents::event_of(std::string_view name, Sequence sequence, const Tag &tag) const {
  return {.level = EventLevel::info,
          .name = name,
          .fields = {{"sender", sender_}, {"sequence", number_of(sequence)}, {"tag", to_hex(tag.view())}}};
}

Event DeliveryEvents::event_of(std::string_view name, Sequence sequence, const Tag &tag, BytesView job) {
  Event event = event_of(name, sequence, tag);
  if (parser_.parse(job, job_)) event.fields.emplace_back("operation_id", job_.operation_id);
  return event;
}

void DeliveryEvents::tell_published(std::span<const wire::BatchEntry> entries) {
  for (const wire::BatchEntry &entry : entries) {
    Event event = event_of("delivery.published", entry.sequence, entry.tag, entry.job);
    event.fields.emplace_back("attempt", std::uint64_t{entry.attempt});
    sink_->write(event);
  }
}

void DeliveryEvents::tell_lost(const wire::Reply &reply) {
  Event event = event_of("reply.lost", reply.sequence, reply.tag);
  event.fields.emplace_back("outcome", std::string(traits_of(reply.outcome).name));
  sink_->write(event);
}

void DeliveryEvents::tell_acknowledged(const Settled &settled, const Tag &tag) {
  Event event = event_of("delivery.acknowledged", settled.sequence, tag, settled.job);
  event.fields.emplace_back("attempt", std::uint64_t{settled.attempts});
  event.fields.emplace_back("outcome", std::string(traits_of(settled.outcome).name));
  if (!settled.detail.empty()) event.fields.emplace_back("detail", settled.detail);
  sink_->write(event);
}

} // namespace onced::sender
