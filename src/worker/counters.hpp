#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "onced/outcome.hpp"

namespace onced::worker {

// What a worker has counted since it started. Each may be raised from any thread. The balance at every drain:
// deliveries = the sum of all outcomes + unknown + dropped.
struct Counters {
  using Counter = std::atomic<std::uint64_t>;

  Counter messages{0};                                  // taken from the jobs socket
  Counter deliveries{0};                                // jobs in them, and messages that were no jobs of ours
  std::array<Counter, outcome_table.size()> outcomes{}; // of deliveries, by code
  Counter unknown{0};                                   // deliveries of batches whose commit failed
  Counter dropped{0};                                   // bare messages that would be `busy`; nobody resends them
  Counter batches{0};                                   // commits that succeeded
  Counter unsupported_messages{0};                      // of another protocol version
  Counter reply_frames{0};                              // handed to the socket
  Counter reply_frames_dropped{0};                      // their sender was not known, gone, or did not read
  Counter greetings{0};                                 // of senders
  Counter queries{0};
  Counter malformed_peer_messages{0};

  [[nodiscard]] Counter &of(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }
};

// The counters beside the outcomes, with their names and what they count: the one place that `stats` and docs follow.
struct CounterTraits {
  std::string_view name;
  std::string_view help;
  Counters::Counter Counters::*counter;
};

inline constexpr std::array<CounterTraits, 11> counter_table{{
    {"messages", "messages taken from the jobs socket", &Counters::messages},
    {"deliveries", "deliveries received", &Counters::deliveries},
    {"unknown", "deliveries whose commit failed, so that their outcome is unknown", &Counters::unknown},
    {"dropped", "deliveries that wanted no reply and found no room, such as garbage when the dead letters are full",
     &Counters::dropped},
    {"batches", "batches committed", &Counters::batches},
    {"unsupported_messages", "messages of another protocol version", &Counters::unsupported_messages},
    {"reply_frames", "frames of replies handed to the socket", &Counters::reply_frames},
    {"reply_frames_dropped", "frames of replies dropped; the next delivery heals it", &Counters::reply_frames_dropped},
    {"greetings", "greetings of senders", &Counters::greetings},
    {"queries", "queries received", &Counters::queries},
    {"malformed_peer_messages", "messages on the replies socket that are no greeting and no query",
     &Counters::malformed_peer_messages},
}};

} // namespace onced::worker
