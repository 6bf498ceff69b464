#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

// What must hold in every world.
namespace simulation::rules {

// Safety, of the worker and the sender together.
inline constexpr std::string_view one_effect = "a key has one effect";
inline constexpr std::string_view first_intent = "the first intent wins";
inline constexpr std::string_view committed = "nothing is settled by what is not committed";
inline constexpr std::string_view true_outcome = "an outcome is told only where it is true";
inline constexpr std::string_view true_result = "the result told is the committed one";
inline constexpr std::string_view custody = "every row can be read and those of one job agree";
inline constexpr std::string_view sums = "the sums are those of the rows";
inline constexpr std::string_view nothing_vanishes = "a job is with its sender or settled";

// Safety, of the sender.
inline constexpr std::string_view tag_fits = "an outcome with a tag that does not fit settles nothing";
inline constexpr std::string_view only_sent = "a reply has an effect on a sent and unsettled job and on no other";
inline constexpr std::string_view greeted_first = "nothing is sent before a greeting";
inline constexpr std::string_view never_changes = "tag and bytes and time of issue of a job never change";
inline constexpr std::string_view attempts = "attempts rise by one with each send of a job";
inline constexpr std::string_view new_boot = "a greeting with a new boot id begins the resending in the same step";
inline constexpr std::string_view window = "the window is never exceeded";
inline constexpr std::string_view waits_outside = "accepted and busy jobs wait outside the window";
inline constexpr std::string_view not_early = "no job is sent again before its time unless there is a new boot";
inline constexpr std::string_view oldest_first = "due jobs come oldest first and none is passed by";
inline constexpr std::string_view asked_for = "no more is given than was asked for";
inline constexpr std::string_view not_late = "no due job is held back without a reason";
inline constexpr std::string_view wakes = "the sender names a time to wake that is neither past nor too late";
inline constexpr std::string_view no_storm =
    "the sends within half a timeout are bounded by window and replies and boots";
inline constexpr std::string_view counted = "jobs and bytes and resends and ignored replies are counted";
inline constexpr std::string_view room = "room is what the limits leave";
inline constexpr std::string_view wall_time = "wall time and its jumps change nothing";

// Safety, of queued jobs.
inline constexpr std::string_view alone =
    "a job never runs beside itself unless it is a function whose lease has passed";
inline constexpr std::string_view tokens = "a token is never used twice and grows";
inline constexpr std::string_view receives = "no job runs more often than its receives allow";
inline constexpr std::string_view given_up = "no job is given up before its receives are used up";
inline constexpr std::string_view old_token = "a settlement with an old token changes nothing";
inline constexpr std::string_view ends_once = "a queued job ends once";
inline constexpr std::string_view lease_kept = "a lease ends when its visibility timeout has passed and not before";
inline constexpr std::string_view concurrency = "no more handlers of a type hold a lease than it has";
inline constexpr std::string_view lease_wakes = "the leases name a time to wake that is not past";

// Liveness.
inline constexpr std::string_view not_forgotten = "once the faults stop every accepted job ends within bounded time";
inline constexpr std::string_view settles = "once the faults stop every job settles within bounded time and steps";

} // namespace simulation::rules

namespace simulation {

struct Broken : std::runtime_error {
  explicit Broken(std::string_view broken) : std::runtime_error(std::string(broken)), rule(broken) {}
  std::string_view rule; // one of the above
};

inline void must(bool holds, std::string_view rule) {
  if (!holds) throw Broken(rule);
}

} // namespace simulation
