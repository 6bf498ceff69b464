#include "sender/delivery_events.hpp"

namespace onced::sender {

Event DeliveryEvents::event_of(std::string_view name, Sequence sequence, std::uint32_t attempt, const Tag &tag,
                               BytesView job) {
  Event event{.level = EventLevel::info,
              .name = name,
              .fields = {{"sender", to_hex(sender_.view())},
                         {"sequence", number_of(sequence)},
                         {"attempt", std::uint64_t{attempt}},
                         {"tag", to_hex(tag.view())}}};
  if (parser_.parse(job, job_)) event.fields.emplace_back("operation_id", job_.operation_id);
  return event;
}

void DeliveryEvents::tell_published(std::span<const wire::BatchEntry> entries) {
  for (const wire::BatchEntry &entry : entries)
    sink_->write(event_of("delivery.published", entry.sequence, entry.attempt, entry.tag, entry.job));
}

void DeliveryEvents::tell_acknowledged(const Settled &settled, const Tag &tag) {
  Event event = event_of("delivery.acknowledged", settled.sequence, settled.attempts, tag, settled.job);
  event.fields.emplace_back("outcome", std::string(traits_of(settled.outcome).name));
  if (!settled.detail.empty()) event.fields.emplace_back("detail", settled.detail);
  sink_->write(event);
}

} // namespace onced::sender
