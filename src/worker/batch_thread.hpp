#pragma once

#include <functional>

#include "onced/handler.hpp"
#include "onced/kill_point.hpp"
#include "onced/store.hpp"
#include "worker/handover.hpp"
#include "worker/intake.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

// What a worker thread does: takes arrivals, has them committed, and hands over the replies, batch after batch.
class BatchThread {
public:
  // `on_failure` is called once if the store fails; the thread then ends without a reply for that batch.
  BatchThread(Handover &handover, Outgoing &outgoing, Store &store, const Handlers &handlers, KillSwitch &kill_switch,
              std::function<void(Error)> on_failure);

  // Returns when the hand-over is closed and empty, or the store has failed.
  void run();

private:
  [[nodiscard]] Result<void> process(std::span<const Arrival> arrivals);
  [[nodiscard]] Result<void> settle();
  [[nodiscard]] std::vector<OutgoingFrame> replies(std::span<const Settlement> settlements);

  Handover &handover_;
  Outgoing &outgoing_;
  Store &store_;
  const Handlers &handlers_;
  KillSwitch &kill_switch_;
  std::function<void(Error)> on_failure_;
  Intake intake_;
};

} // namespace onced::worker
