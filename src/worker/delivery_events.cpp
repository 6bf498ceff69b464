#include "worker/delivery_events.hpp"

#include <string>

namespace onced::worker {
namespace {

Event event_of(std::string_view name, const ReplyTo &to, Sequence sequence) {
  return {.level = EventLevel::info,
          .name = name,
          .fields = {{"sender", to_hex(to.sender.view())},
                     {"sequence", number_of(sequence)},
                     {"attempt", std::uint64_t{to.attempt}},
                     {"tag", to_hex(to.tag.view())}}};
}

Event event_of(std::string_view name, const ReplyTo &to, const Delivery &delivery) {
  Event event = event_of(name, to, delivery.sequence);
  if (delivery.job != nullptr) event.fields.emplace_back("operation_id", delivery.job->operation_id);
  return event;
}

// Which way through the store a delivery took.
std::string_view branch_of(Outcome outcome) {
  switch (outcome) {
  case Outcome::stored:
    return "key absent: row put";
  case Outcome::duplicate:
    return "key present, digest equal";
  case Outcome::conflict:
    return "key present, digest differs";
  case Outcome::busy:
    return "nothing done";
  default:
    return "key absent: refused";
  }
}

} // namespace

void DeliveryEvents::tell_consumed(const Intake &intake) const {
  constexpr std::string_view name = "delivery.consumed";
  const auto deliveries = intake.deliveries();
  for (std::size_t at = 0; at < deliveries.size(); ++at) {
    if (const auto &to = intake.reply_to()[at]) sink_->write(event_of(name, *to, deliveries[at]));
  }
  for (const Intake::Recalled &recalled : intake.recalled()) {
    if (recalled.reply_to) sink_->write(event_of(name, *recalled.reply_to, recalled.sequence));
  }
}

void DeliveryEvents::tell_settled(const Intake &intake, std::span<const Settlement> settlements) const {
  constexpr std::string_view name = "delivery.settled";
  const auto deliveries = intake.deliveries();
  for (std::size_t at = 0; at < deliveries.size(); ++at) {
    const auto &to = intake.reply_to()[at];
    if (!to) continue;
    const Settlement &settlement = settlements[at];
    Event event = event_of(name, *to, deliveries[at]);
    event.fields.emplace_back("outcome", std::string(traits_of(settlement.outcome).name));
    event.fields.emplace_back("branch", std::string(branch_of(settlement.outcome)));
    if (!settlement.detail.empty()) event.fields.emplace_back("detail", settlement.detail);
    sink_->write(event);
  }
  for (const Intake::Recalled &recalled : intake.recalled()) {
    if (!recalled.reply_to) continue;
    Event event = event_of(name, *recalled.reply_to, recalled.sequence);
    event.fields.emplace_back("outcome", std::string(traits_of(Outcome::duplicate).name));
    event.fields.emplace_back("branch", std::string("the same bytes were committed lately"));
    sink_->write(event);
  }
}

} // namespace onced::worker
