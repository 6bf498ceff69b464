#include "rehearse.hpp"

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "base/scratch_directory.hpp"
#include "onced/clock.hpp"
#include "onced/limits.hpp"
#include "rehearsal/disk.hpp"
#include "rehearsal/machine.hpp"
#include "rehearsal/record.hpp"
#include "rehearsal/rehearsal.hpp"
#include "rehearsal/scenarios.hpp"
#include "signals.hpp"

namespace onced::tools {
namespace {

using rehearsal::RehearsalOptions;

// The binary that runs, by a path that stays true in a record.
std::string own_command() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "onced" : path.string();
}

ExitCode list(Output &output) {
  for (const rehearsal::Scenario &scenario : rehearsal::scenarios()) {
    Json line{{"scenario", scenario.name}, {"title", scenario.title}};
    line["kill_point"] = rehearsal::null_or(scenario.kill_point);
    output.line(line);
  }
  return finish(output, ExitCode::ok);
}

void announce(const std::string &scenario) {
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "         {} …\r", visible(scenario));
}

void tell(const Json &facts) {
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\x1b[K");
  fmt::print(stderr, "{:8} {}{}\n", facts["status"].get<std::string>(), visible(facts["name"].get<std::string>()),
             facts["why"].is_null() ? "" : ": " + visible(facts["why"].get<std::string>()));
  for (const Json &difference : facts["differences"])
    fmt::print(stderr, "         {}\n", visible(difference.get<std::string>()));
}

// The first of them, a line each.
void tell_texts(const std::vector<std::string> &texts, const char *name, Output &output) {
  for (std::size_t at = 0; at < std::min(texts.size(), limits::problems_told_max); ++at)
    output.line({{name, texts[at]}});
}

Json summary(const Json &record, const std::filesystem::path &directory) {
  const Json &facts = record["facts"];
  Json line{{"verdict", facts["verdict"]}};
  line.update(facts["counts"]);
  line["record"] = directory.string();
  if (const auto sha256 = rehearsal::sha256_of_record(directory)) line["sha256"] = *sha256;
  return line;
}

// Plays and writes the record. A signal ends it early.
Result<Json> play(const RehearsalOptions &options, const rehearsal::Plan &plan) {
  rehearsal::Surroundings surroundings;
  surroundings.ran_as = rehearsal::account_of_process();
  // Before there is another thread.
  if (rehearsal::needs_mounts(plan, options.only)) surroundings.mounts_obstacle = rehearsal::enter_own_mounts();
  StopEvent stop;
  const SignalWatch signals([&](int) { stop.request(); });
  surroundings.interrupted = [&] { return stop.requested(); };
  SystemClock clock;
  auto record = rehearsal::rehearse(options, surroundings, plan, clock, {.begins = announce, .ended = tell});
  if (!record) return record;
  if (const auto written = rehearsal::write_record(options.out, *record, plan); !written) {
    return tl::unexpected(written.error());
  }
  return record;
}

ExitCode run_plan(const RehearseOptions &options, Output &output) {
  RehearsalOptions run{.plan = options.plan,
                       .out = options.out,
                       .only = options.only,
                       .seed = options.seed,
                       .fast = options.fast,
                       .command = own_command()};
  if (run.out.empty())
    run.out = std::filesystem::weakly_canonical(options.plan).parent_path().filename().string() + ".record";
  const auto plan = rehearsal::read_plan(run.plan, rehearsal::scenario_names());
  if (!plan) return report(plan.error());
  const auto record = play(run, *plan);
  if (!record) return report(record.error());
  output.line(summary(*record, run.out));
  return finish(output, (*record)["facts"]["verdict"] == "passed" ? ExitCode::ok : ExitCode::no);
}

ExitCode verify(const std::filesystem::path &directory, Output &output) {
  const auto problems = rehearsal::verify_record(directory);
  if (!problems) return report(problems.error());
  tell_texts(*problems, "problem", output);
  const auto sha256 = rehearsal::sha256_of_record(directory);
  if (!sha256) return report(sha256.error());
  output.line({{"record", directory.string()}, {"sha256", *sha256}, {"problems", problems->size()}});
  return finish(output, problems->empty() ? ExitCode::ok : ExitCode::no);
}

Result<RehearsalOptions> options_of(const Json &record, const RehearseOptions &options, std::string out) {
  try {
    const Json &facts = record.at("facts");
    const Json &only = facts.at("options").at("only");
    return RehearsalOptions{.plan = facts.at("plan").at("file").get<std::string>(),
                            .out = std::move(out),
                            .only = only.is_null() ? "" : only.get<std::string>(),
                            .seed = facts.at("options").at("seed"),
                            .fast = facts.at("options").at("fast"),
                            .command = own_command()};
  } catch (const Json::exception &error) {
    return tl::unexpected(Error{ErrorCode::corrupt, options.rerun.string(), error.what(), "rehearse again"});
  }
}

// What a plan runs besides onced itself, a line each, as JSON in ASCII: nothing in it reaches a terminal raw.
std::vector<std::string> lines_of_commands(const rehearsal::Plan &plan) {
  std::vector<std::string> lines;
  for (const auto &[role, words] : rehearsal::commands_of(plan))
    lines.push_back(fmt::format("{:10} {}", role, Json(words).dump(-1, ' ', true)));
  if (!lines.empty() && !plan.handler.environment.empty())
    lines.push_back(fmt::format("{:10} {}", "with", Json(plan.handler.environment).dump(-1, ' ', true)));
  return lines;
}

// Whether the commands of somebody's record may be run: it has none, the option says so, or a person at a terminal.
Result<void> may_run(const RehearseOptions &options, const rehearsal::Plan &plan) {
  const std::vector<std::string> commands = lines_of_commands(plan);
  if (commands.empty()) return {};
  fmt::print(stderr, "The plan of this record runs these commands, as this user, in this directory:\n");
  for (const std::string &command : commands)
    fmt::print(stderr, "  {}\n", command);
  if (options.run_commands) return {};
  if (::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr, "Run them? Type yes: ");
    std::string answer;
    if (std::getline(std::cin, answer) && answer == "yes") return {};
  }
  return tl::unexpected(Error{ErrorCode::usage, options.rerun.string(), "it runs commands, and none was run",
                              "read them, and the programs that they name; then add --run-commands"});
}

// The plan of a record that fits together, of which everything may be run.
Result<rehearsal::Plan> plan_to_rerun(const RehearseOptions &options, const Json &record, Output &output) {
  const auto problems = rehearsal::verify_record(options.rerun);
  if (!problems) return tl::unexpected(problems.error());
  tell_texts(*problems, "problem", output);
  if (!problems->empty()) {
    return tl::unexpected(Error{ErrorCode::corrupt, options.rerun.string(),
                                "it does not fit together, and nothing of it was run",
                                "see onced rehearse --verify; rehearse again"});
  }
  auto plan = rehearsal::read_held_plan(options.rerun, record);
  if (!plan) return plan;
  if (const auto allowed = may_run(options, *plan); !allowed) return tl::unexpected(allowed.error());
  return plan;
}

ExitCode rerun(const RehearseOptions &options, Output &output) {
  const auto before = rehearsal::read_record(options.rerun);
  if (!before) return report(before.error());
  const auto plan = plan_to_rerun(options, *before, output);
  if (!plan) return finish(output, report(plan.error()));
  const auto directory = ScratchDirectory::make();
  if (!directory) return report(directory.error());
  const auto run = options_of(*before, options, directory->path());
  if (!run) return report(run.error());
  const auto now = play(*run, *plan);
  if (!now) return report(now.error());
  const auto differences = rehearsal::compare_facts(*before, *now);
  tell_texts(differences, "difference", output);
  output.line({{"record", options.rerun.string()},
               {"verdict", (*now)["facts"]["verdict"]},
               {"differences", differences.size()}});
  return finish(output, differences.empty() ? ExitCode::ok : ExitCode::no);
}

ExitCode review(const RehearseOptions &options, Output &output) {
  SystemClock clock;
  const auto added = rehearsal::add_review(
      options.review, {.by = options.by, .decision = options.decision, .note = options.note}, clock);
  if (!added) return report(added.error());
  const auto sha256 = rehearsal::sha256_of_record(options.review);
  if (!sha256) return report(sha256.error());
  output.line({{"record", options.review.string()}, {"review", *added}, {"sha256", *sha256}});
  return finish(output, ExitCode::ok);
}

} // namespace

ExitCode run_rehearse(const RehearseOptions &options, Output &output) {
  const int asked = (options.plan.empty() ? 0 : 1) + (options.list ? 1 : 0) + (options.verify.empty() ? 0 : 1) +
                    (options.rerun.empty() ? 0 : 1) + (options.review.empty() ? 0 : 1);
  if (asked != 1) {
    return report({ErrorCode::usage, "PLAN, --list, --verify, --rerun, --review",
                   std::to_string(asked) + " of them are given", "give one; see onced rehearse --help"});
  }
  if (options.run_commands && options.rerun.empty())
    return report({ErrorCode::usage, "--run-commands", "it is given without --rerun", "leave it out"});
  if (options.review.empty() && !(options.by + options.decision + options.note).empty()) {
    return report({ErrorCode::usage, "--by, --decision, --note", "they are given without --review",
                   "name the record with --review"});
  }
  if (options.list) return list(output);
  if (!options.verify.empty()) return verify(options.verify, output);
  if (!options.rerun.empty()) return rerun(options, output);
  if (!options.review.empty()) return review(options, output);
  return run_plan(options, output);
}

} // namespace onced::tools
