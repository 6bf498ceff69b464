#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "rules.hpp"

namespace simulation {

// A fault planted in the world around the state machines, or between the store and its engine, which the simulation
// must find.
enum class Mutation : std::uint8_t {
  none,
  early_acknowledgement,
  no_guard,
  forgotten_attempts,
  dropped_boot,
  any_tag,
  no_window,
  waits_inside,
  impatient,
  wall_clock,
  forgetful_outbox,
  ignored_token,
  blind_retry,
  late_receive,
  ignored_lock,
  same_boot,
  counted_give_back,
  rare_heartbeats,
  forgotten_custody,
  lying_disk,
  lost_sums,
  no_confirm,
};

struct MutationTraits {
  Mutation mutation;
  std::string_view name;
  std::string_view rule; // by which it must be found
  std::string_view what;
};

inline constexpr std::array<MutationTraits, 21> mutation_table{{
    {Mutation::early_acknowledgement, "early-acknowledgement", rules::committed,
     "the worker replies when it takes a job and commits it afterwards"},
    {Mutation::no_guard, "no-guard", rules::one_effect, "the engine lets a unit claim a key that has a row"},
    {Mutation::forgotten_attempts, "forgotten-attempts", rules::attempts, "every send says that it is the first"},
    {Mutation::dropped_boot, "dropped-boot", rules::new_boot, "the sender never hears of a second boot id"},
    {Mutation::any_tag, "any-tag", rules::tag_fits, "a reply's tag is replaced by the one that the sender has"},
    {Mutation::no_window, "no-window", rules::window, "the sender's window is boundless"},
    {Mutation::waits_inside, "waits-inside", rules::waits_outside, "the sender never hears of accepted and busy"},
    {Mutation::impatient, "impatient", rules::not_early, "the sender's timeout is a quarter of what it is said to be"},
    {Mutation::wall_clock, "wall-clock", rules::wall_time, "the sender's hellos are late while wall time is ahead"},
    {Mutation::forgetful_outbox, "forgetful-outbox", rules::nothing_vanishes,
     "a job leaves the outbox when it is sent"},
    {Mutation::ignored_token, "ignored-token", rules::old_token,
     "a handler's end is written under the lease that its job has now"},
    {Mutation::blind_retry, "blind-retry", rules::ends_once,
     "an end that may have been written is written again over what its row said before"},
    {Mutation::late_receive, "late-receive", rules::receives, "the receive is counted after the hand-over"},
    {Mutation::ignored_lock, "ignored-lock", rules::alone, "a job is handed over while its former command runs"},
    {Mutation::same_boot, "same-boot", rules::tokens, "the boot count of the leases does not rise"},
    {Mutation::counted_give_back, "counted-give-back", rules::given_up,
     "a job that no handler saw has used up a receive"},
    {Mutation::rare_heartbeats, "rare-heartbeats", rules::lease_kept, "a heart beats once in two visibility timeouts"},
    {Mutation::forgotten_custody, "forgotten-custody", rules::not_forgotten,
     "a new process does not look for the jobs that its store holds"},
    {Mutation::lying_disk, "lying-disk", rules::committed, "the engine says that a commit is stable before it is"},
    {Mutation::no_confirm, "no-confirm", rules::committed, "the engine says that what was read is stable before it is"},
    {Mutation::lost_sums, "lost-sums", rules::sums, "the engine adds to its sums, and never subtracts"},
}};

} // namespace simulation
