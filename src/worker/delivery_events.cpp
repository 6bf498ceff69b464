#include "worker/delivery_events.hpp"

#include <string>

#include "onced/digest.hpp"

namespace onced::worker {
namespace {

Event event_of(std::string_view name, const ReplyTo &to, Sequence sequence) {
  return {.level = EventLevel::info,
          .name = name,
          .fields = {{"sender", handle_of(to.sender)},
                     {"sequence", number_of(sequence)},
                     {"attempt", std::uint64_t{to.attempt}},
                     {"tag", to_hex(to.tag.view())}}};
}

Event event_of(std::string_view name, const ReplyTo &to, const Delivery &delivery) {
  Event event = event_of(name, to, delivery.sequence);
  if (delivery.job != nullptr) event.fields.emplace_back("operation_id", delivery.job->operation_id);
  return event;
}

std::string_view text_of(Branch branch, Outcome outcome) {
  switch (branch) {
  case Branch::no_job:
    return "no job: refused";
  case Branch::cached:
    return "key in the cache of committed rows";
  case Branch::looked_up:
    return "key found by the look-up";
  case Branch::locked:
    return key_found_under_lock;
  case Branch::in_batch:
    return "key claimed by a copy in the same batch";
  case Branch::absent:
    if (outcome == Outcome::accepted) return "key absent under its lock: row put, job queued";
    return outcome == Outcome::stored ? "key absent under its lock: row put" : "key absent: refused";
  case Branch::none:
    break;
  }
  return "nothing done";
}

} // namespace

void DeliveryEvents::write_consumed(const Intake &intake) const {
  constexpr std::string_view name = "delivery.consumed";
  const auto deliveries = intake.deliveries();
  for (std::size_t at = 0; at < deliveries.size(); ++at) {
    if (const auto &to = intake.reply_to()[at]) sink_->write(event_of(name, *to, deliveries[at]));
  }
  for (const Intake::Recalled &recalled : intake.recalled()) {
    if (recalled.reply_to) sink_->write(event_of(name, *recalled.reply_to, recalled.sequence));
  }
  for (const Intake::Mismatched &mismatched : intake.mismatched())
    sink_->write(event_of(name, mismatched.reply_to, mismatched.sequence));
}

void DeliveryEvents::write_settled(const Intake &intake, std::span<const Settlement> settlements) const {
  constexpr std::string_view name = "delivery.settled";
  const auto deliveries = intake.deliveries();
  for (std::size_t at = 0; at < deliveries.size(); ++at) {
    const auto &to = intake.reply_to()[at];
    if (!to) continue;
    const Settlement &settlement = settlements[at];
    Event event = event_of(name, *to, deliveries[at]);
    event.fields.emplace_back("outcome", std::string(traits_of(settlement.outcome).name));
    event.fields.emplace_back("branch", std::string(text_of(settlement.branch, settlement.outcome)));
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
  for (const Intake::Mismatched &mismatched : intake.mismatched()) {
    Event event = event_of(name, mismatched.reply_to, mismatched.sequence);
    event.fields.emplace_back("outcome", std::string(traits_of(Outcome::busy).name));
    event.fields.emplace_back("branch", std::string(text_of(Branch::none, Outcome::busy)));
    event.fields.emplace_back("detail", std::string(tag_mismatch));
    sink_->write(event);
  }
}

} // namespace onced::worker
