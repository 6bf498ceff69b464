#pragma once

#include "onced/handler.hpp"
#include "onced/kill_point.hpp"
#include "onced/store.hpp"
#include "store/store_keeper.hpp"
#include "worker/counters.hpp"
#include "worker/delivery_events.hpp"
#include "worker/handover.hpp"
#include "worker/intake.hpp"
#include "worker/late_replies.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

using store::StoreKeeper;

// What a worker thread does: takes arrivals, has them committed, and hands over the replies, batch after batch.
class BatchThread {
public:
  BatchThread(Handover &handover, Outgoing &outgoing, StoreKeeper &keeper, const Handlers &handlers, Counters &counters,
              KillSwitch &kill_switch, DeliveryEvents events, LateReplies &late_replies);

  // Returns when the hand-over is closed and empty, or the store is not available and the keeper has stopped.
  void run();

private:
  [[nodiscard]] Result<void> process(std::span<const Arrival> arrivals, Store &store);
  [[nodiscard]] Result<void> settle(Store &store);
  template <class Visit> void for_each_queued(Visit visit);
  void count(std::span<const Settlement> settlements);
  [[nodiscard]] std::vector<OutgoingFrame> replies(std::span<const Settlement> settlements, const Store &store);

  Handover &handover_;
  Outgoing &outgoing_;
  StoreKeeper &keeper_;
  const Handlers &handlers_;
  Counters &counters_;
  KillSwitch &kill_switch_;
  DeliveryEvents events_;
  LateReplies &late_replies_;
  Intake intake_;
};

} // namespace onced::worker
