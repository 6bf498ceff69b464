#include "worker/batch_thread.hpp"

#include <map>

#include "onced/limits.hpp"
#include "wire/messages.hpp"

namespace onced::worker {

BatchThread::BatchThread(Handover &handover, Outgoing &outgoing, Store &store, const Handlers &handlers,
                         KillSwitch &kill_switch, std::function<void(Error)> on_failure)
    : handover_(handover), outgoing_(outgoing), store_(store), handlers_(handlers), kill_switch_(kill_switch),
      on_failure_(std::move(on_failure)) {}

void BatchThread::run() {
  for (auto arrivals = handover_.take(); !arrivals.empty(); arrivals = handover_.take()) {
    if (auto processed = process(arrivals); !processed) return on_failure_(std::move(processed.error()));
  }
}

Result<void> BatchThread::process(std::span<const Arrival> arrivals) {
  for (const Arrival &arrival : arrivals) {
    intake_.add(arrival);
    if (intake_.deliveries().size() < limits::batch_deliveries_target) continue;
    if (auto settled = settle(); !settled) return settled;
  }
  return settle();
}

Result<void> BatchThread::settle() {
  kill_switch_.arrive(KillPoint::worker_parsed);
  std::vector<OutgoingFrame> frames;
  if (!intake_.deliveries().empty()) {
    const auto settlements = store_.commit(intake_.deliveries(), handlers_);
    if (!settlements) return tl::unexpected(settlements.error());
    frames = replies(*settlements);
  }
  for (const SenderId &sender : intake_.unsupported())
    frames.push_back({sender, wire::encode_unsupported()});
  intake_.clear();
  if (!frames.empty()) outgoing_.put(std::move(frames));
  return {};
}

std::vector<OutgoingFrame> BatchThread::replies(std::span<const Settlement> settlements) {
  std::map<SenderId, wire::RepliesEncoder> by_sender;
  const auto deliveries = intake_.deliveries();
  const auto reply_to = intake_.reply_to();
  for (std::size_t at = 0; at < settlements.size(); ++at) {
    if (!reply_to[at]) continue;
    const SenderId &sender = reply_to[at]->sender;
    const auto encoder = by_sender.try_emplace(sender, store_.boot(), store_.durability()).first;
    encoder->second.add({.sequence = deliveries[at].sequence,
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
