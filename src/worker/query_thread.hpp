#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "job/messagepack.hpp"
#include "onced/handler.hpp"
#include "queue/runner.hpp"
#include "store/store_keeper.hpp"
#include "worker/counters.hpp"
#include "worker/handover.hpp"
#include "worker/outgoing.hpp"

namespace onced::worker {

using store::StoreKeeper;

// Answers queries, and carries out changes, beside the gateway: counting scans everything, and nobody else should wait
// for it. What is not for the network is answered only on the control socket.
class QueryThread {
public:
  QueryThread(StoreKeeper &keeper, const Handlers &handlers, Counters &counters, const Handover &handover,
              Outgoing &outgoing, const queue::Runner *runner)
      : keeper_(keeper), handlers_(handlers), counters_(counters), handover_(handover), outgoing_(outgoing),
        runner_(runner) {}

  // Answers at once with an error when too many are waiting (limits.hpp). Any thread.
  void ask(PeerAddress peer, Bytes request);

  // Returns after `close`, when the query in hand is answered; those that wait are forgotten.
  void run();
  void close();

private:
  struct Query {
    PeerAddress peer;
    Bytes request;
  };

  [[nodiscard]] Bytes answer(const Query &query);
  [[nodiscard]] Bytes change(BytesView request);
  [[nodiscard]] Bytes stats();
  void write_depths(messagepack::Writer &writer);
  void write_handlers(messagepack::Writer &writer);

  StoreKeeper &keeper_;
  const Handlers &handlers_;
  Counters &counters_;
  const Handover &handover_;
  Outgoing &outgoing_;
  const queue::Runner *runner_; // null: no queued jobs are handed over
  std::mutex mutex_;            // guards the rest
  std::condition_variable changed_;
  std::deque<Query> waiting_;
  bool closed_ = false;
};

} // namespace onced::worker
