#include "disk/campaign.hpp"
#include "support/seeds.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>

#include <doctest/doctest.h>

namespace fs = std::filesystem;

namespace onced::testing {
namespace {

constexpr std::size_t trials_at_once = 2;

// A number from the environment; `otherwise` where it is not set.
std::uint64_t number_of_environment(const char *name, std::uint64_t otherwise) {
  const char *text = std::getenv(name); // NOLINT(concurrency-mt-unsafe): one thread
  if (text == nullptr) return otherwise;
  std::uint64_t number = 0;
  const auto read = std::from_chars(text, text + std::strlen(text), number);
  if (read.ec != std::errc() || *read.ptr != '\0' || number == 0) {
    throw std::runtime_error(std::string(name) + " is not a number from 1");
  }
  return number;
}

void check(const Trial &trial, const Notebook &notebook, const Part &part, Tally &tally) {
  CHECK_MESSAGE(notebook.complaint[0] == '\0', trial.describe());
  // RocksDB's background may take a step fewer in one run than in another: the last step may not come then.
  CHECK_MESSAGE((notebook.disk.struck || notebook.told_in_run == part.end), trial.describe());
  ++tally.trials;
  tally.struck += notebook.disk.struck ? 1U : 0U;
  tally.told += notebook.told_in_run - part.first;
  tally.lost += notebook.lost;
  tally.refused += notebook.refused ? 1U : 0U;
}

void campaign_of_part(const Workload &workload, const Part &part, const fs::path &before, const Choose &choose,
                      Durability durability, Tally &tally) {
  Trial plain(workload, part, before, {.durability = durability});
  const DiskDiary steps = plain.finish().disk;
  REQUIRE_MESSAGE(plain.finish().complaint[0] == '\0', plain.describe());
  REQUIRE(steps.steps < DiskDiary::steps_max);
  tally.steps += steps.steps;

  std::deque<std::unique_ptr<Trial>> running;
  const auto finish_first = [&] {
    const Notebook &notebook = running.front()->finish();
    check(*running.front(), notebook, part, tally);
    running.pop_front();
  };
  const std::vector<Seed> seeds = testing::seeds(number_of_environment("ONCED_DISK_SEEDS", 1));
  const std::uint64_t only = number_of_environment("ONCED_DISK_STEP", 0);
  const std::uint64_t stride = only != 0 ? 1 : number_of_environment("ONCED_DISK_STRIDE", 1);
  for (std::uint64_t step = 1; step <= steps.steps; step += stride) {
    for (const Seed seed : seeds) {
      if (only != 0 && step != only) continue;
      for (TrialOptions options : choose(step, seed.number, steps.kinds.at(step))) {
        options.plan.step = step;
        options.plan.seed = seed.number;
        if (running.size() == trials_at_once) finish_first();
        running.push_back(std::make_unique<Trial>(workload, part, before, options));
      }
    }
  }
  while (!running.empty())
    finish_first();
}

} // namespace

std::string Tally::describe() const {
  return std::to_string(steps) + " steps, " + std::to_string(struck) + " of " + std::to_string(trials) +
         " runs struck, " + std::to_string(told) + " actions acknowledged in them, " + std::to_string(lost) +
         " lost, " + std::to_string(refused) + " openings refused";
}

Tally campaign(const Workload &workload, const Choose &choose, Durability durability) {
  Tally tally;
  std::uint64_t done = 0;
  std::unique_ptr<Trial> before; // its directory is where a part begins
  for (const Part &part : workload.parts) {
    if (part.first > done) {
      before = std::make_unique<Trial>(workload, Part{.first = 0, .end = part.first}, fs::path(),
                                       TrialOptions{.checked = false});
      REQUIRE_MESSAGE(before->finish().complaint[0] == '\0', before->describe());
      done = part.first;
    }
    campaign_of_part(workload, part, before ? before->data() : fs::path(), choose, durability, tally);
  }
  // Of each part the last run may go by unstruck: see `check`.
  CHECK(tally.struck + workload.parts.size() >= tally.trials);
  return tally;
}

} // namespace onced::testing
