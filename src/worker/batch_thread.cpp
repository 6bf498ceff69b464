#include "worker/batch_thread.hpp"

#include <map>

#include "onced/limits.hpp"
#include "wire/messages.hpp"

namespace onced::worker {
namespace {

void raise_to(Counters::Counter &counter, std::uint64_t value) {
  std::uint64_t seen = counter;
  while (seen < value && !counter.compare_exchange_weak(seen, value)) {
  }
}

} // namespace

BatchThread::BatchThread(Handover &handover, Outgoing &outgoing, StoreKeeper &keeper, const Handlers &handlers,
                         Counters &counters, KillSwitch &kill_switch, DeliveryEvents events, LateReplies &late_replies)
    : handover_(handover), outgoing_(outgoing), keeper_(keeper), handlers_(handlers), counters_(counters),
      kill_switch_(kill_switch), events_(events), late_replies_(late_replies) {}

void BatchThread::run() {
  for (auto arrivals = handover_.take(); !arrivals.empty(); arrivals = handover_.take()) {
    auto store = keeper_.lease();
    if (!store) return; // nothing of this was looked at: it stays with its senders
    if (const auto processed = process(arrivals, *store); processed)
      continue;
    else
      keeper_.report(processed.error());
    // What became of the batch in hand is unknown, so nothing is said of it: its next delivery finds out.
    counters_.unknown += intake_.size();
    intake_.clear();
  }
}

Result<void> BatchThread::process(std::span<const Arrival> arrivals, Store &store) {
  for (const Arrival &arrival : arrivals) {
    intake_.add(arrival, &store);
    if (intake_.size() < limits::batch_deliveries_target) continue;
    if (auto settled = settle(store); !settled) return settled;
  }
  return settle(store);
}

Result<void> BatchThread::settle(Store &store) {
  events_.consumed(intake_);
  kill_switch_.arrive(KillPoint::worker_parsed);
  counters_.deliveries += intake_.size();
  counters_.resent += intake_.resent();
  raise_to(counters_.batch_deliveries_max, intake_.size());
  std::vector<OutgoingFrame> frames;
  if (intake_.size() > 0) {
    for_each_queued(
        [&](std::size_t, const Delivery &delivery, const ReplyTo &to) { late_replies_.expect(delivery, to); });
    // Where all were recalled too: a store that has failed must say so.
    const auto settlements = store.commit(intake_.deliveries(), handlers_);
    if (!settlements) return tl::unexpected(settlements.error());
    count(*settlements);
    for_each_queued([&](std::size_t at, const Delivery &delivery, const ReplyTo &to) {
      if ((*settlements)[at].outcome == Outcome::accepted) return;
      late_replies_.forget(delivery, to);
    });
    events_.settled(intake_, *settlements);
    frames = replies(*settlements, store);
  }
  for (const SenderId &sender : intake_.unsupported())
    frames.push_back({sender, wire::encode_unsupported()});
  counters_.unsupported_messages += intake_.unsupported().size();
  intake_.clear();
  if (!frames.empty()) counters_.reply_frames_dropped += outgoing_.put(std::move(frames));
  return {};
}

// Of the deliveries that want a reply, those whose type is queued.
template <class Visit> void BatchThread::for_each_queued(Visit visit) {
  if (handlers_.queued_types().empty()) return;
  const auto deliveries = intake_.deliveries();
  for (std::size_t at = 0; at < deliveries.size(); ++at) {
    const Delivery &delivery = deliveries[at];
    const auto &to = intake_.reply_to()[at];
    if (to && delivery.job != nullptr && handlers_.queued(delivery.job->type) != nullptr) visit(at, delivery, *to);
  }
}

// A sender asks again for what was busy; of a bare message there will be no more.
void BatchThread::count(std::span<const Settlement> settlements) {
  const auto reply_to = intake_.reply_to();
  for (std::size_t at = 0; at < settlements.size(); ++at) {
    const bool dropped = settlements[at].outcome == Outcome::busy && !reply_to[at];
    ++(dropped ? counters_.dropped : counters_.of(settlements[at].outcome));
  }
  counters_.of(Outcome::duplicate) += intake_.recalled().size();
  counters_.of(Outcome::busy) += intake_.mismatched().size();
  counters_.tag_mismatches += intake_.mismatched().size();
  counters_.cache_hits += intake_.recalled().size();
  ++counters_.batches;
}

std::vector<OutgoingFrame> BatchThread::replies(std::span<const Settlement> settlements, const Store &store) {
  std::map<SenderId, wire::RepliesEncoder> by_sender;
  const auto add = [&](const ReplyTo &to, const wire::Reply &reply) {
    by_sender.try_emplace(to.sender, store.boot(), store.durability()).first->second.add(reply);
  };
  for (const Intake::Recalled &recalled : intake_.recalled()) {
    if (!recalled.reply_to) continue;
    add(*recalled.reply_to, {.sequence = recalled.sequence,
                             .tag = recalled.reply_to->tag,
                             .outcome = Outcome::duplicate,
                             .result = recalled.result,
                             .detail = {}});
  }
  for (const Intake::Mismatched &mismatched : intake_.mismatched()) {
    add(mismatched.reply_to, {.sequence = mismatched.sequence,
                              .tag = mismatched.reply_to.tag,
                              .outcome = Outcome::busy,
                              .result = {},
                              .detail = tag_mismatch});
  }
  const auto deliveries = intake_.deliveries();
  const auto reply_to = intake_.reply_to();
  for (std::size_t at = 0; at < settlements.size(); ++at) {
    if (!reply_to[at]) continue;
    add(*reply_to[at], {.sequence = deliveries[at].sequence,
                        .tag = reply_to[at]->tag,
                        .outcome = settlements[at].outcome,
                        .result = settlements[at].result,
                        .detail = settlements[at].detail});
  }
  std::vector<OutgoingFrame> frames;
  for (auto &[sender, encoder] : by_sender) {
    for (Bytes &frame : encoder.take())
      frames.push_back({sender, std::move(frame)});
  }
  return frames;
}

} // namespace onced::worker
