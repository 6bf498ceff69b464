// Verifies the sender's redelivery state machine, the worker's leases of queued jobs and the logic of its store, with
// the protocol and the promises around them, in worlds of up to three senders and twenty jobs: a network that loses,
// repeats, delays and reorders both ways; a worker that crashes, is busy and answers `accepted` first; an engine in
// memory whose calls fail, lose races and end unknown, written or not, visible or stable; another worker over the same
// rows; handlers that fail, hang, end late, cannot be started or outlive their worker; senders that crash and restore
// from their outbox; strangers' replies; wall time that jumps. Time is virtual, and all chance is drawn from a seed.
// What is allowed is known by models outside of what is verified. Mutations planted around it show that a broken rule
// is seen. Not verified: the real engines, gateway, executors, sockets, outbox, processes and threads, which are models
// here; effects outside the store, redrives, draining and relayed messages; costs; batches of the wire.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "mutation.hpp"
#include "world.hpp"

namespace {

using simulation::Mutation;
using simulation::MutationTraits;
using simulation::RunOptions;
using simulation::Tally;
using simulation::World;

constexpr int exit_good = 0;
constexpr int exit_broken = 1;
constexpr int exit_usage = 64;

constexpr std::string_view usage = R"(Usage: onced_simulation [OPTION]...

Runs simulated worlds of senders, a bad network, a crashing worker and its handlers around the redelivery state
machine, the leases of queued jobs and the logic of the store.

  --seeds N        worlds to run (20000)
  --first S        the first seed (1)
  --jobs N         threads (1)
  --seed S         one world only
  --trace          with --seed: every event, a line each
  --mutation NAME  plant a fault, which must be found
  --mutations      plant each fault in turn, and find each within --seeds worlds (1000)
  --help           this text

Exit code: 0 every rule held (--mutations: every fault was found), 1 a rule was broken, 64 usage.

Examples:
  onced_simulation --seeds 1000000 --jobs 2
  onced_simulation --seed 4711 --trace
  onced_simulation --mutation dropped-boot --seeds 1000

Mutations:
)";

struct Options {
  std::optional<std::uint64_t> seeds;
  std::uint64_t first = 1;
  std::uint64_t threads = 1;
  std::optional<std::uint64_t> seed;
  bool trace = false;
  bool all_mutations = false;
  bool help = false;
  Mutation mutation = Mutation::none;
};

struct Failure {
  std::uint64_t seed = 0;
  std::string rule;
};

struct Outcome {
  Tally tally;
  std::uint64_t seeds = 0;
  std::optional<Failure> failure; // of the lowest seed
};

// --- Options
// ----------------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

const MutationTraits *mutation_named(std::string_view name) {
  const auto *const found = std::find_if(simulation::mutation_table.begin(), simulation::mutation_table.end(),
                                         [&](const MutationTraits &traits) { return traits.name == name; });
  return found == simulation::mutation_table.end() ? nullptr : found;
}

// False: there is no such option, or its value is none of its kind.
bool take_valued(Options &options, std::string_view name, std::string_view value) {
  if (name == "--mutation") {
    const MutationTraits *const traits = mutation_named(value);
    if (traits != nullptr) options.mutation = traits->mutation;
    return traits != nullptr;
  }
  const auto number = number_in(value);
  if (!number) return false;
  if (name == "--seeds" && *number > 0) {
    options.seeds = number;
  } else if (name == "--first") {
    options.first = *number;
  } else if (name == "--jobs" && *number > 0 && *number <= 256) {
    options.threads = *number;
  } else if (name == "--seed") {
    options.seed = number;
  } else {
    return false;
  }
  return true;
}

std::optional<Options> parsed(std::span<char *const> arguments) {
  Options options;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string_view name = arguments[at];
    if (name == "--help") {
      options.help = true;
    } else if (name == "--trace") {
      options.trace = true;
    } else if (name == "--mutations") {
      options.all_mutations = true;
    } else if (at + 1 == arguments.size() || !take_valued(options, name, arguments[++at])) {
      fmt::print(stderr, "onced_simulation: {} is no option, or has no such value; see --help\n", name);
      return std::nullopt;
    }
  }
  if (options.trace && !options.seed) {
    fmt::print(stderr, "onced_simulation: --trace goes with --seed\n");
    return std::nullopt;
  }
  return options;
}

void print_help() {
  fmt::print("{}", usage);
  for (const MutationTraits &traits : simulation::mutation_table)
    fmt::print("  {:<22} {}\n", traits.name, traits.what);
}

// --- Runs
// -------------------------------------------------------------------------------------------------------------

// Some seeds are run again without jumps of the wall time, which must go the same way.
constexpr std::uint64_t wall_time_share = 16;

void run_world(std::uint64_t seed, const RunOptions &options, Tally &tally) {
  World world(seed, options);
  world.run();
  tally.add(world.tally());
  if (seed % wall_time_share != 0 || options.trace) return;
  RunOptions steady = options;
  steady.wall_jumps = false;
  World again(seed, steady);
  again.run();
  simulation::must(again.fingerprint() == world.fingerprint(), simulation::rules::wall_time);
}

// Hands out seeds to the threads and collects what became of them.
class Campaign {
public:
  Campaign(std::uint64_t first, std::uint64_t seeds, const RunOptions &options)
      : options_(options), first_(first), next_(first), end_(first + seeds) {}

  Outcome run(std::uint64_t threads) {
    std::vector<std::thread> others;
    others.reserve(threads);
    for (std::uint64_t thread = 1; thread < threads; ++thread)
      others.emplace_back([this] { run_share(); });
    run_share();
    for (std::thread &thread : others)
      thread.join();
    return std::move(outcome_);
  }

private:
  // Up to the lowest seed that failed, so that it does not depend on the threads.
  void run_share() {
    Tally tally;
    std::uint64_t seeds = 0;
    for (std::uint64_t seed = next_++; seed < end_; seed = next_++) {
      try {
        run_world(seed, options_, tally);
      } catch (const std::exception &broken) {
        fail(seed, broken.what());
      }
      ++seeds;
      if ((seed - first_ + 1) % 100'000 == 0) fmt::print(stderr, "{} seeds\n", seed - first_ + 1);
    }
    const std::scoped_lock lock(mutex_);
    outcome_.tally.add(tally);
    outcome_.seeds += seeds;
  }

  void fail(std::uint64_t seed, std::string rule) {
    const std::scoped_lock lock(mutex_);
    end_ = std::min(end_.load(), seed);
    if (!outcome_.failure || seed < outcome_.failure->seed) outcome_.failure = Failure{seed, std::move(rule)};
  }

  RunOptions options_;
  std::uint64_t first_;
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> end_;
  std::mutex mutex_;
  Outcome outcome_;
};

// Many worlds that never saw one of the faults would prove nothing.
bool saw_everything(const Tally &tally) {
  const auto seen = {tally.deliveries,      tally.worker_crashes, tally.sender_crashes, tally.write_failures,
                     tally.resends,         tally.told_again,     tally.conflicts,      tally.waits,
                     tally.ignored_replies, tally.new_boots,      tally.full_pipes,     tally.hand_overs,
                     tally.given_back,      tally.expired,        tally.late,           tally.exhausted,
                     tally.orphans,         tally.races,          tally.late_commits,   tally.committed_elsewhere};
  return std::all_of(seen.begin(), seen.end(), [](std::uint64_t count) { return count > 0; });
}

void print_summary(const Outcome &outcome, std::uint64_t first, std::uint64_t seeds,
                   std::chrono::duration<double> took) {
  const Tally &tally = outcome.tally;
  fmt::print("simulation: {} of {} seeds kept every rule; steps {}, deliveries {}, settled {}, resends {}, "
             "crashes of workers {} and senders {}, failed writes {}, new boots heard {}, accepted or busy {}, "
             "conflicts {}, told again {}, ignored replies {}, full pipes {}, hand-overs {}, leases given back {}, "
             "expired {}, late ends {}, receives used up {}, orphans {}, lost races {}, late commits {}, other "
             "workers' commits {}; {:.0f} "
             "runs/s, {:.1f} s\n",
             outcome.failure ? outcome.failure->seed - first : outcome.seeds, seeds, tally.steps, tally.deliveries,
             tally.settled, tally.resends, tally.worker_crashes, tally.sender_crashes, tally.write_failures,
             tally.new_boots, tally.waits, tally.conflicts, tally.told_again, tally.ignored_replies, tally.full_pipes,
             tally.hand_overs, tally.given_back, tally.expired, tally.late, tally.exhausted, tally.orphans, tally.races,
             tally.late_commits, tally.committed_elsewhere, static_cast<double>(outcome.seeds) / took.count(),
             took.count());
}

std::string mutation_option(Mutation mutation) {
  for (const MutationTraits &traits : simulation::mutation_table)
    if (traits.mutation == mutation) return " --mutation " + std::string(traits.name);
  return {};
}

int run_many(const Options &options) {
  const std::uint64_t first = options.seed.value_or(options.first);
  const std::uint64_t seeds = options.seed ? 1 : options.seeds.value_or(20'000);
  const RunOptions run{.mutation = options.mutation, .trace = options.trace};
  const auto started = std::chrono::steady_clock::now();
  const Outcome outcome = Campaign(first, seeds, run).run(options.threads);
  if (outcome.failure) {
    fmt::print("broken by seed {}: {}\nreplay: onced_simulation --seed {} --trace{}\n", outcome.failure->seed,
               outcome.failure->rule, outcome.failure->seed, mutation_option(options.mutation));
  }
  print_summary(outcome, first, seeds, std::chrono::steady_clock::now() - started);
  if (outcome.failure) return exit_broken;
  if (seeds >= 1000 && !saw_everything(outcome.tally)) {
    fmt::print("simulation: one of these counts is 0, so these worlds prove too little\n");
    return exit_broken;
  }
  return exit_good;
}

// Each must be found by the rule that it breaks.
int find_mutations(const Options &options) {
  const std::uint64_t seeds = options.seeds.value_or(1000);
  std::size_t found = 0;
  for (const MutationTraits &traits : simulation::mutation_table) {
    const RunOptions run{.mutation = traits.mutation};
    const Outcome outcome = Campaign(options.first, seeds, run).run(options.threads);
    const bool is_found = outcome.failure && outcome.failure->rule == traits.rule;
    found += is_found ? 1U : 0U;
    const std::string what = !outcome.failure ? "NOT FOUND"
                                              : fmt::format("{} by seed {}: {}", is_found ? "found" : "WRONGLY FOUND",
                                                            outcome.failure->seed, outcome.failure->rule);
    fmt::print("{:<22} {}\n", traits.name, what);
  }
  fmt::print("simulation: {} of {} mutations found, each within {} seeds\n", found, simulation::mutation_table.size(),
             seeds);
  return found == simulation::mutation_table.size() ? exit_good : exit_broken;
}

} // namespace

int main(int argc, char **argv) {
  try {
    const auto options = parsed(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
    if (!options) return exit_usage;
    if (options->help) {
      print_help();
      return exit_good;
    }
    return options->all_mutations ? find_mutations(*options) : run_many(*options);
  } catch (const std::exception &error) {
    std::fputs(error.what(), stderr);
    return exit_broken;
  }
}
