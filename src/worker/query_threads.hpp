#pragma once

#include <condition_variable>
#include <mutex>

#include "admin/map_writer.hpp"
#include "onced/handler.hpp"
#include "runner/schedule.hpp"
#include "store/store_keeper.hpp"
#include "worker/counters.hpp"
#include "worker/handover.hpp"
#include "worker/outgoing.hpp"
#include "worker/query_turns.hpp"

namespace onced::worker {

using store::StoreKeeper;

// Answers queries, and carries out changes, beside the gateway, a thread for each lane. What is not for the network is
// answered only on the control socket.
class QueryThreads {
public:
  QueryThreads(StoreKeeper &keeper, const Handlers &handlers, Counters &counters, const Handover &handover,
               Outgoing &outgoing, const runner::Schedule &schedule)
      : keeper_(keeper), handlers_(handlers), counters_(counters), handover_(handover), outgoing_(outgoing),
        schedule_(schedule) {}

  // Answers at once with an error when too many are waiting (QueryTurns). Any thread.
  void ask(PeerAddress peer, Bytes request);

  // What the thread of a lane does. Returns after `close`, when the query in hand is answered; those that wait are
  // forgotten.
  void run(QueryLane lane);
  void close();

private:
  [[nodiscard]] Bytes answer(const Query &asked);
  [[nodiscard]] Bytes change(BytesView request);
  [[nodiscard]] Bytes stats();
  void write_depths(admin::MapWriter &answer);
  void write_handlers(admin::MapWriter &answer);

  StoreKeeper &keeper_;
  const Handlers &handlers_;
  Counters &counters_;
  const Handover &handover_;
  Outgoing &outgoing_;
  const runner::Schedule &schedule_;
  std::mutex mutex_; // guards the rest
  std::condition_variable changed_;
  QueryTurns turns_;
  bool closed_ = false;
};

} // namespace onced::worker
