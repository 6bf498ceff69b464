// Power cuts on a real file system. An ext4 image is shut down without a flush of its journal while the real worker and
// real senders are under load, mounted again, and every promise that was read before is held against what is there.
// With
// --durability page-cache it is its own control: then acknowledged jobs must be lost, or the cuts cut nothing.
// What it does not show: a disk that loses or reorders what it was given (what the kernel has written to the device
// stays there), a device that lies about its flushes, and file systems other than ext4.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "base/child_process.hpp"
#include "base/scratch_directory.hpp"
#include "power/cuts.hpp"
#include "power/submitter.hpp"

using namespace onced::testing;
using onced::ScratchDirectory;

namespace {

constexpr int exit_good = 0;
constexpr int exit_broken = 1;
constexpr int exit_usage = 64;
constexpr int exit_skipped = 77;

constexpr std::string_view usage =
    R"(Cut the power under a worker, and under the outbox of a sender, and count what was promised and lost.
Usage: onced_power [--cuts N] [--seed S] [--durability fsync|page-cache]

  --cuts N            So many cuts (default 20)
  --seed S            Of the first cut; each next one has the next number (default 1)
  --durability MODE   Of the worker (default fsync); page-cache: the control, in which acknowledged jobs must be lost

Exit codes: 0 good, 1 a promise was broken (page-cache: nothing was lost), 64 usage, 77 there can be no such disk here.

Examples:
  onced_power
  onced_power --cuts 200 --seed 1000
  onced_power --cuts 5 --durability page-cache
)";

struct Options {
  std::uint64_t cuts = 20;
  std::uint64_t seed = 1;
  std::string durability = "fsync";

  [[nodiscard]] bool is_control() const { return durability != "fsync"; }
};

std::optional<std::uint64_t> number_in(const std::string &text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(text);
}

// Nothing where an argument is wrong.
std::optional<Options> options_in(const std::vector<std::string> &arguments) {
  Options options;
  for (std::size_t at = 0; at < arguments.size(); at += 2) {
    if (at + 1 == arguments.size()) return std::nullopt;
    const std::string &value = arguments[at + 1];
    const auto number = number_in(value);
    if (arguments[at] == "--cuts" && number && *number > 0) {
      options.cuts = *number;
    } else if (arguments[at] == "--seed" && number) {
      options.seed = *number;
    } else if (arguments[at] == "--durability" && (value == "fsync" || value == "page-cache")) {
      options.durability = value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

// The kinds of cuts go round, so that any four in a row have each.
enum class Kind : std::uint8_t { worker, worker_again, outbox };

Kind kind_of(const Options &options, std::uint64_t seed) {
  if (options.is_control()) return Kind::worker;
  return seed % 4 == 0 ? Kind::outbox : seed % 4 == 2 ? Kind::worker_again : Kind::worker;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
  case Kind::worker:
    return "worker";
  case Kind::worker_again:
    return "worker, and again as it opened";
  case Kind::outbox:
    break;
  }
  return "outbox";
}

using onced::rehearsal::StageUnavailable;

CutReport cut_once(CuttableDisk &disk, const Options &options, std::uint64_t seed,
                   const std::filesystem::path &elsewhere) {
  const CutOptions cut{.seed = seed, .durability = options.durability, .expects_loss = options.is_control()};
  const Kind kind = kind_of(options, seed);
  const CutReport report =
      kind == Kind::outbox ? cut_outbox(disk, cut, elsewhere) : cut_worker(disk, cut, kind == Kind::worker_again);
  std::cout << "seed " << seed << ", " << name_of(kind) << ": ";
  if (kind == Kind::outbox) {
    std::cout << report.accepted << " jobs accepted, 0 lost";
  } else {
    std::cout << report.acknowledged << " jobs acknowledged (" << report.acknowledged_bad << " dead letters), "
              << report.lost << " lost, " << report.untold << " more there";
  }
  std::cout << "; opened again" << std::endl;
  if (!report.crash.empty()) std::cout << "  a process crashed when its disk failed: " << report.crash << std::endl;
  return report;
}

struct Sums {
  CutReport reports; // added up
  std::size_t crashes = 0;

  void add(const CutReport &report) {
    reports.acknowledged += report.acknowledged;
    reports.acknowledged_bad += report.acknowledged_bad;
    reports.lost += report.lost;
    reports.untold += report.untold;
    reports.accepted += report.accepted;
    reports.openings += report.openings;
    if (!report.crash.empty()) ++crashes;
  }
};

// The last lines. The exit code.
int conclude(const Options &options, const Sums &sums) {
  const CutReport &all = sums.reports;
  std::cout << options.cuts << " cuts (" << options.durability << "), from seed " << options.seed << ": "
            << all.acknowledged << " acknowledged jobs (" << all.acknowledged_bad << " with a dead letter), "
            << all.lost << " lost; " << all.accepted << " jobs accepted by an outbox, 0 lost; " << all.untold
            << " rows that nobody had been told of; " << all.openings << " of " << all.openings
            << " openings accepted; " << sums.crashes << " crashes\n";
  if (sums.crashes > 0) std::cout << "FAILED: a process whose disk fails must not crash\n";
  if (options.is_control() && all.lost == 0) std::cout << "FAILED: nothing was lost, so these cuts prove nothing\n";
  return sums.crashes > 0 || (options.is_control() && all.lost == 0) ? exit_broken : exit_good;
}

// Makes all cuts on one disk, whose mounts end with this process. The exit code.
int campaign(const Options &options, const std::filesystem::path &directory) {
  std::uint64_t seed = options.seed;
  try {
    if (const auto obstacle = onced::rehearsal::enter_own_mounts(); !obstacle.empty()) throw StageUnavailable(obstacle);
    CuttableDisk disk(directory);
    Sums sums;
    for (; seed < options.seed + options.cuts; ++seed)
      sums.add(cut_once(disk, options, seed, directory));
    return conclude(options, sums);
  } catch (const StageUnavailable &reason) {
    std::cout << "skipped: " << reason.what() << '\n';
    return exit_skipped;
  } catch (const std::exception &error) {
    std::cout << "FAILED at seed " << seed << ": " << error.what() << "\nTo replay: onced_power --cuts 1 --seed "
              << seed << " --durability " << options.durability << '\n';
    return exit_broken;
  }
}

// Runs the campaign in a child, so that its directory goes away however it ends; the mounts go with the child.
int supervise(const Options &options) {
  const ScratchDirectory directory;
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
    sigaddset(&awaited, signal);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &awaited, &before);
  auto copy = onced::ChildProcess::start_copy([&] {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    const int code = campaign(options, directory.path());
    std::cout.flush();
    return code;
  });
  onced::ChildProcess &child = copy.value();
  while (!child.has_ended()) {
    if (::sigwaitinfo(&awaited, nullptr) != SIGCHLD) child.kill();
  }
  const onced::ProcessEnd end = child.wait();
  return end.exit_code().value_or(128 + end.signal().value_or(0));
}

int cut_power(const std::vector<std::string> &arguments) {
  if (!arguments.empty() && arguments[0] == submitter_argument) return run_submitter(arguments);
  if (arguments == std::vector<std::string>{"--help"}) {
    std::cout << usage;
    return exit_good;
  }
  const auto options = options_in(arguments);
  if (!options) {
    std::cerr << usage;
    return exit_usage;
  }
  if (::geteuid() != 0) {
    std::cout << "skipped: it takes root to mount a file system and to shut it down\n";
    return exit_skipped;
  }
  return supervise(*options);
}

} // namespace

int main(int count, char **words) {
  try {
    return cut_power({words + 1, words + count});
  } catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return exit_broken;
  }
}
