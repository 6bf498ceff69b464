#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "onced/outcome.hpp"
#include "onced/store_counters.hpp"
#include "runner/queue_counters.hpp"
#include "runner/relay.hpp"

namespace onced::worker {

// What a worker has counted since it started. Each may be raised from any thread. The balance at every drain:
// deliveries + handled + refused = the sum of what came of all + unknown + dropped.
struct Counters : StoreCounters, runner::QueueCounters, runner::RelayCounters {
  using Counter = StoreCounters::Counter;

  Counter messages{0};                                  // taken from the jobs socket
  Counter deliveries{0};                                // jobs in them, and messages that were no jobs of ours
  std::array<Counter, outcome_table.size()> outcomes{}; // of deliveries, by code
  Counter unknown{0};                                   // deliveries of batches whose commit failed
  Counter dropped{0};                                   // bare messages that would be `busy`; nobody resends them
  Counter resent{0};                                    // deliveries that their sender had sent before
  Counter tag_mismatches{0};                            // deliveries whose tag was that of other bytes
  Counter batches{0};                                   // settled: each one look-up and at most one commit
  Counter batch_deliveries_max{0};                      // in the largest of them
  Counter unsupported_messages{0};                      // of another protocol version
  Counter reply_frames{0};                              // handed to the socket
  Counter reply_frames_dropped{0};                      // their sender was not known, gone, or did not read
  Counter late_replies{0};                              // final outcomes of queued jobs, told when they were there
  Counter greetings{0};                                 // of senders
  Counter queries{0};
  Counter malformed_peer_messages{0};
  Counter wrong_socket{0}; // messages that belong on the other socket

  [[nodiscard]] Counter &of(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }

  // The deliveries and the ends of queued jobs that have this outcome.
  [[nodiscard]] std::uint64_t came_of(Outcome outcome) const {
    const std::uint64_t of_deliveries = outcomes[static_cast<std::size_t>(outcome)];
    if (outcome == Outcome::stored) return of_deliveries + handled;
    return outcome == Outcome::failed ? of_deliveries + refused : of_deliveries;
  }
};

// The counters beside the outcomes, with their names and what they count: the one place that `stats` and docs follow.
struct CounterTraits {
  std::string_view name;
  std::string_view help;
  Counters::Counter Counters::*counter;
  bool is_maximum = false; // the greatest of what was seen, and no count
};

inline constexpr std::array<CounterTraits, 32> counter_table{{
    {"messages", "messages taken from the jobs socket", &Counters::messages},
    {"deliveries", "deliveries received", &Counters::deliveries},
    {"unknown", "deliveries whose commit failed, so that their outcome is unknown", &Counters::unknown},
    {"dropped", "deliveries that wanted no reply and found no room, such as garbage when the dead letters are full",
     &Counters::dropped},
    {"resent", "deliveries that their sender had sent before", &Counters::resent},
    {"tag_mismatches", "deliveries whose tag was not that of their bytes, so that nothing was done for them",
     &Counters::tag_mismatches},
    {"batches", "batches settled; deliveries by batches is the mean size", &Counters::batches},
    {"batch_deliveries_max", "deliveries in the largest batch", &Counters::batch_deliveries_max, true},
    {"commits", "transactions committed; a batch of duplicates needs none", &Counters::commits},
    {"commit_us", "microseconds in commits", &Counters::commit_us},
    {"log_syncs", "fdatasyncs of the log; commits at the same time share one", &Counters::log_syncs},
    {"log_sync_us", "microseconds in fdatasyncs of the log", &Counters::log_sync_us},
    {"cache_hits", "deliveries of jobs in the cache of those committed or asked for lately", &Counters::cache_hits},
    {"unsupported_messages", "messages of another protocol version", &Counters::unsupported_messages},
    {"reply_frames", "frames of replies handed to the socket", &Counters::reply_frames},
    {"reply_frames_dropped", "frames of replies dropped; the next delivery heals it", &Counters::reply_frames_dropped},
    {"late_replies", "final outcomes of queued jobs that were told to senders when they were there",
     &Counters::late_replies},
    {"queue_receives", "queued jobs handed to a handler that started", &Counters::receives},
    {"queue_handled", "queued jobs that ended with a result", &Counters::handled},
    {"queue_refused", "queued jobs that ended as dead letters", &Counters::refused},
    {"queue_tried_again", "queued jobs that went back to the queue", &Counters::tried_again},
    {"queue_held", "queued jobs of unknown effect that were left to their owner", &Counters::held},
    {"queue_not_started", "hand-overs taken back, as the handler could not be started; no receive is used up",
     &Counters::not_started},
    {"queue_expired", "leases that ended as nobody extended them", &Counters::expired},
    {"queue_late", "handlers that ended when their lease was lost; nothing of them was kept", &Counters::late},
    {"queue_reconciled", "effects that reconcile knew of, applied or absent", &Counters::reconciled},
    {"relay_sent", "messages of results that the worker they were sent on to has", &Counters::relayed},
    {"relay_refused", "messages of results that were refused for good; they are dead letters here",
     &Counters::relay_refused},
    {"greetings", "greetings of senders", &Counters::greetings},
    {"queries", "queries received", &Counters::queries},
    {"malformed_peer_messages", "messages on the replies socket that are no greeting and no query",
     &Counters::malformed_peer_messages},
    {"wrong_socket", "messages of jobs on the replies socket, and greetings or queries on the jobs socket",
     &Counters::wrong_socket},
}};

} // namespace onced::worker
