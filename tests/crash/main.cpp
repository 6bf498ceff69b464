// The crash campaign, and with --minutes the soak: a worker and senders with outboxes are killed again and again, at
// every point that they declare and by kill -9 at random, with duplicates, conflicts, bad jobs and changes of dead
// letters under way. What they were given and have said is kept here, outside of them, and is held against an
// independent scan of the database. No code of the product is linked: keys, digests and rows are read by the documents.
//
// What it does not show: a missing fdatasync, since the page cache outlives a process; damage by a disk; other modes
// than fsync.
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string_view>

#include "crash/round.hpp"

namespace onced::crash {
namespace {

constexpr int exit_usage = 64;
// So that scans stay quick.
constexpr std::uint64_t rounds_a_directory = 50;
constexpr std::size_t findings_shown_max = 20;
// So that two seeds have no rounds in common.
constexpr std::uint64_t rounds_a_seed_max = 1'000'003;
// From so many rounds on, every kind of kill must have come about.
constexpr std::uint64_t rounds_for_all_kills = 60;

constexpr std::string_view help =
    R"(Kill workers and senders again and again and hold what is on disk against what was said.
Usage: onced_crash [OPTIONS]

  --rounds N      So many rounds (default 60)
  --minutes N     Rounds until so much time is over
  --seed S        Repeat the choices of a campaign (default random); when processes run and die within them varies
  --command PATH  The command onced (default: the one it was built with)
  --keep          Keep the directories

Prints a line a round and figures at the end. Ctrl-C ends after the round. Exit 0: all promises were kept; 1: one was broken,
and its directory is kept; 64: usage.

Examples:
  onced_crash
  onced_crash --seed 7 --rounds 12
  onced_crash --minutes 480
)";

struct Options {
  std::uint64_t rounds = 60;
  std::optional<std::chrono::minutes> time;
  std::uint64_t seed = 0;
  std::string command;
  bool keep = false;
  bool help = false;
};

std::uint64_t number_in(std::string_view name, std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument(std::string(name) + " wants a number, not \"" + std::string(text) + "\"");
  }
  return number;
}

Options options_in(const std::vector<std::string_view> &words) {
  Options options;
  options.seed = std::random_device{}();
  for (auto word = words.begin(); word != words.end(); ++word) {
    const auto value = [&, name = *word] {
      if (++word == words.end()) throw std::invalid_argument(std::string(name) + " wants a value");
      return *word;
    };
    if (*word == "--rounds") {
      options.rounds = number_in("--rounds", value());
    } else if (*word == "--minutes") {
      options.time = std::chrono::minutes(number_in("--minutes", value()));
    } else if (*word == "--seed") {
      options.seed = number_in("--seed", value());
    } else if (*word == "--command") {
      options.command = value();
    } else if (*word == "--keep") {
      options.keep = true;
    } else if (*word == "--help" || *word == "-h") {
      options.help = true;
    } else {
      throw std::invalid_argument("no such option: " + std::string(*word));
    }
  }
  return options;
}

// Another command than the built one.
std::vector<std::string> wrapper_of(const std::string &command) {
  if (command.empty()) return {};
  return {"/bin/sh", "-c", R"(command=$0; shift; exec "$command" "$@")", std::filesystem::absolute(command).string()};
}

std::vector<std::string> kills_of(const std::vector<std::string> &wrapper) {
  std::vector<std::string> kills{std::string(worker_kill), std::string(sender_kill)};
  for (const char *side : {"serve", "send"}) {
    const auto help_of_side = testing::run_command(Process::Options{.arguments = {side, "--help"}, .wrapper = wrapper});
    for (std::string &point : points_in(help_of_side.output))
      kills.push_back(std::move(point));
  }
  return kills;
}

volatile std::sig_atomic_t interrupted = 0; // a signal handler can reach nothing else

class Campaign {
public:
  explicit Campaign(const Options &options)
      : options_(options), wrapper_(wrapper_of(options.command)), deck_(kills_of(wrapper_), options.seed) {}

  int run() {
    const auto started = std::chrono::steady_clock::now();
    const auto is_over = [&] {
      if (interrupted != 0 || tally_.found() > 0) return true;
      if (options_.time) return std::chrono::steady_clock::now() - started >= *options_.time;
      return tally_.rounds >= options_.rounds;
    };
    while (!is_over())
      run_round();
    close_directory();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    std::cout << "rounds: " << tally_.rounds << ", seed " << options_.seed << ", " << static_cast<int>(seconds.count())
              << " s\n"
              << tally_;
    const bool complete = tally_.rounds < rounds_for_all_kills || all_kills_met();
    std::cout << (tally_.found() == 0 && complete ? "ok" : "FAILED") << std::endl;
    return tally_.found() == 0 && complete ? 0 : 1;
  }

private:
  void run_round() {
    if (lab_ == nullptr || tally_.rounds % rounds_a_directory == 0) open_directory();
    const std::uint64_t seed = std::mt19937_64(options_.seed * rounds_a_seed_max + tally_.rounds)();
    const auto jobs_before = tally_.jobs;
    const auto started = std::chrono::steady_clock::now();
    std::string killed;
    std::string stuck;
    try {
      killed = crash::run_round(*lab_, deck_, seed, "round-" + std::to_string(tally_.rounds + 1));
    } catch (const std::exception &error) {
      stuck = error.what();
    }
    ++tally_.rounds;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - started;
    std::cout << "round " << tally_.rounds << " seed " << seed << " killed " << (killed.empty() ? "nobody" : killed)
              << " jobs " << tally_.jobs - jobs_before << " keys " << lab_->model().keys() << " acknowledged "
              << lab_->model().acknowledged_keys() << " rows " << lab_->model().rows_seen() << " dead-letters "
              << lab_->model().letters_seen() << " ms " << static_cast<int>(took.count()) << report(stuck) << std::endl;
  }

  // What was found; " ok" if nothing.
  std::string report(const std::string &stuck) {
    auto findings = lab_->model().take_findings();
    if (!stuck.empty()) findings.push_back({Harm::loss, "the round has not come to its end: " + stuck});
    if (findings.empty()) return " ok";
    std::string text = " FAILED";
    std::size_t shown = 0;
    for (const Finding &finding : findings) {
      ++tally_.findings[finding.harm];
      if (++shown <= findings_shown_max)
        text.append("\n  ").append(name_of(finding.harm)).append(": ").append(finding.text);
    }
    if (shown > findings_shown_max) text.append("\n  and " + std::to_string(shown - findings_shown_max) + " more");
    text.append("\n  kept: ").append(directory_.string()).append("\n  again: onced_crash --seed ");
    return text.append(std::to_string(options_.seed)).append(" --rounds ").append(std::to_string(tally_.rounds));
  }

  void open_directory() {
    close_directory();
    ScratchDirectory directory;
    directory.keep(); // it is looked at where anything is found
    directory_ = directory.path();
    lab_ = std::make_unique<Lab>(directory_, wrapper_, tally_);
  }

  void close_directory() {
    if (lab_ == nullptr) return;
    tally_.add(lab_->model());
    lab_.reset();
    if (!options_.keep && tally_.found() == 0) std::filesystem::remove_all(directory_);
    if (options_.keep) std::cout << "kept: " << directory_.string() << std::endl;
  }

  [[nodiscard]] bool all_kills_met() const {
    bool all = true;
    for (const std::string &kill : deck_.all()) {
      if (tally_.kills.contains(kill)) continue;
      std::cout << "never came about: " << kill << "\n";
      all = false;
    }
    return all;
  }

  Options options_;
  std::vector<std::string> wrapper_;
  Deck deck_;
  Tally tally_;
  std::filesystem::path directory_;
  std::unique_ptr<Lab> lab_;
};

int run(const std::vector<std::string_view> &words) {
  Options options;
  try {
    options = options_in(words);
  } catch (const std::invalid_argument &error) {
    std::cerr << "onced_crash: " << error.what() << "\n";
    return exit_usage;
  }
  if (options.help) {
    std::cout << help;
    return 0;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  return Campaign(options).run();
}

} // namespace
} // namespace onced::crash

int main(int count, char **words) {
  try {
    return onced::crash::run({words + 1, words + count});
  } catch (const std::exception &error) {
    std::cerr << "onced_crash: " << error.what() << "\n";
    return 1;
  }
}
