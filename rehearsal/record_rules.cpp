#include "rehearsal/record_rules.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "rehearsal/conclusions.hpp"
#include "rehearsal/effects.hpp"
#include "rehearsal/evidence.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/limits.hpp"
#include "rehearsal/page.hpp"
#include "rehearsal/plan.hpp"
#include "rehearsal/record_form.hpp"
#include "rehearsal/scenarios.hpp"
#include "rehearsal/time.hpp"

namespace onced::rehearsal {
namespace {

using Problems = std::vector<std::string>;

std::set<std::string> differences_between(const Json &expected, const Json &seen) {
  std::set<std::string> differences;
  for (const auto &[name, count] : seen.items()) {
    const Json &wanted = expected.at(name);
    if (wanted != count) differences.insert(name + ": expected " + wanted.dump() + ", seen " + count.dump());
  }
  return differences;
}

// A job is named by its id, and bytes that are no job by null.
std::string shown_id(const Json &id) {
  return id.is_null() ? "bytes that are no job" : id.get<std::string>();
}

bool is_shown_by_control(const Json &facts) {
  const Json &seen = facts.at("seen");
  return seen.at("effects") >= facts.at("expected").at("effects_min") && seen.at("double_effects") > 0;
}

// Whether a scenario that was played to its end came out as was written.
bool came_out(const Json &facts) {
  return facts.at("is_control") == true ? is_shown_by_control(facts) : facts.at("expected") == facts.at("seen");
}

// The time of a delivery that an entry of a timeline tells; empty: it tells of something else.
std::string time_of_delivery(const std::string &what) {
  if (what == "publish" || what == "redelivery") return "publish_at";
  if (what == "consume" || what == "commit" || what == "acknowledgement") return what + "_at";
  return "";
}

std::string time_of_process(const std::string &what) {
  if (what == "start" || what == "restart") return "started_at";
  return what == "kill" || what == "end" ? "ended_at" : "";
}

// What a delivery was answered with in the end.
Json told_by(const Json &row) {
  return row.at("final_outcome").is_null() ? row.at("outcome") : row.at("final_outcome");
}

std::uint64_t rows_written_in(const Json &rows) {
  const auto written =
      std::count_if(rows.begin(), rows.end(), [](const Json &row) { return row.at("rows_written") == 1; });
  return static_cast<std::uint64_t>(written);
}

// Looks at one record of the right form, and gathers what does not fit.
class Verifier {
public:
  Verifier(std::filesystem::path directory, const Json &record)
      : directory_(std::move(directory)), record_(record), facts_(record.at("facts")),
        scenarios_(facts_.at("scenarios")), observed_(record.at("observed").at("scenarios")) {}

  Problems verify() {
    expect(scenarios_.size() == observed_.size(), "facts and observed have different numbers of scenarios");
    verify_counts();
    verify_plan();
    verify_failing_insert();
    verify_measures();
    verify_reviews();
    for (std::size_t at = 0; at < std::min(scenarios_.size(), observed_.size()); ++at)
      verify_scenario(scenarios_[at], observed_[at]);
    expect_content("record.json", text_of(record_));
    expect_content("evidence.csv", csv_of(evidence_of(record_)));
    expect_content("record.html", render_html(record_));
    return std::move(problems_);
  }

private:
  void expect(bool holds, const std::string &problem) {
    if (!holds) problems_.push_back(problem);
  }
  void expect(bool holds, const std::string &place, const std::string &problem) {
    if (!holds) problems_.push_back(place + ": " + problem);
  }

  void verify_counts() {
    const Json counts = counts_of_scenarios(scenarios_);
    for (const auto &[name, count] : counts.items())
      expect(facts_.at("counts").at(name) == count, "counts: " + name + " does not follow from the scenarios");
    expect(facts_.at("verdict") == verdict_of(counts), "verdict: does not follow from the scenarios");
  }

  void verify_failing_insert() {
    expect(facts_.at("failing_insert") == failing_insert_of(scenarios_, observed_),
           "failing_insert: does not follow from the scenarios");
  }

  void verify_measures() {
    const Json &measures = record_.at("observed").at("measures");
    const Json follows = measures_of(scenarios_, observed_);
    expect(measures.size() == follows.size(), "measures: are not those that there are");
    for (std::size_t at = 0; at < std::min(measures.size(), follows.size()); ++at) {
      expect(measures[at] == follows[at],
             "measures: " + follows[at].at("name").get<std::string>() + " does not follow from the scenarios");
    }
  }

  // Each review seals the record as it stood before, with the reviews before it: so the evidence that was reviewed is
  // the one whose SHA-256 was kept.
  void verify_reviews() {
    Json before = record_;
    Json &left = before.at("reviews");
    for (std::size_t at = record_.at("reviews").size(); at > 0; --at) {
      const Json review = left.back();
      const std::string place = "reviews[" + std::to_string(at - 1) + "]";
      left.erase(left.size() - 1);
      expect(review.at("sha256") == hex_sha256(text_of(before)),
             place + ".sha256: is not that of the record before the review");
      expect(review.at("decision") == decision_accepted || review.at("decision") == decision_rejected,
             place + ".decision: is neither accepted nor rejected");
      const Json &earlier = left.empty() ? record_.at("observed").at("ended_at") : left.back().at("at");
      expect(review.at("at") >= earlier, place + ".at: is older than what was reviewed");
    }
  }

  // --- One scenario -----------------------------------------------------------------------------------------------

  void verify_scenario(const Json &facts, const Json &observed) {
    const std::string name = facts.at("name");
    const Json &rows = observed.at("evidence");
    expect(observed.at("name") == name, name + ": observed under another name");
    verify_worker(name, facts);
    verify_status(name, facts, observed);
    verify_differences(name, facts);
    for (std::size_t at = 0; at < rows.size(); ++at)
      verify_row(name + ": evidence[" + std::to_string(at) + "]", facts, rows[at]);
    verify_timeline(name, observed);
    verify_outside(name, facts, observed);
    verify_rows_before(name, rows);
    verify_queries(name, facts, observed.at("queries"));
    expect(observed.at("events_dropped") == 0 || facts.at("status") == "failed",
           name + ": status: events were dropped, and it did not fail");
    if (facts.at("seen").is_null()) return verify_unseen(name, facts, rows);
    if (facts.at("is_control") == true) {
      verify_control(name, facts);
    } else {
      verify_seen(name, facts);
    }
    if (!facts.at("why").is_null()) return; // its evidence could not be gathered
    verify_rows_written(name, facts, rows_written_in(rows));
    if (facts.at("is_control") == false) verify_told(name, facts, rows);
    verify_kills_told(name, observed);
  }

  void verify_worker(const std::string &name, const Json &facts) {
    const std::string worker = facts.at("worker");
    const bool follows =
        facts.at("is_control") == true ? worker.rfind("unguarded: ", 0) == 0 : worker == facts_.at("worker").at("kind");
    expect(follows, name + ": worker is not that of the record");
  }

  void verify_status(const std::string &name, const Json &facts, const Json &observed) {
    const bool ended = facts.at("why").is_null();
    const bool seen = !facts.at("seen").is_null();
    expect(!ended || seen, name + ": seen is null, and there is no why");
    std::string follows = ended && seen && came_out(facts) ? "passed" : "failed";
    if (observed.at("started_at").is_null()) follows = "skipped";
    expect(facts.at("status") == follows, name + ": status does not follow from expected and seen");
  }

  void verify_differences(const std::string &name, const Json &facts) {
    const std::set<std::string> differences(facts.at("differences").begin(), facts.at("differences").end());
    bool follows = differences.empty();
    if (facts.at("is_control") == true) {
      follows = follows == (facts.at("seen").is_null() || came_out(facts));
    } else if (!facts.at("seen").is_null()) {
      follows = differences == differences_between(facts.at("expected"), facts.at("seen"));
    }
    expect(follows, name + ": differences do not follow from expected and seen");
  }

  void verify_unseen(const std::string &name, const Json &facts, const Json &rows) {
    expect(facts.at("outcomes").empty() && rows.empty(), name + ": nothing was seen, and yet there is evidence");
    expect(facts.at("effects_before").is_null() && facts.at("effects_after").is_null(),
           name + ": nothing was seen, and yet effects were counted");
  }

  // How many effects there are beyond what was expected is chance, and not told.
  void verify_control(const std::string &name, const Json &facts) {
    const Json &seen = facts.at("seen");
    const auto effects = seen.at("effects").get<std::uint64_t>();
    const auto jobs = seen.at("jobs").get<std::uint64_t>();
    expect(seen.at("double_effects") == (effects > jobs ? effects - jobs : 0),
           name + ": seen.double_effects are not the effects beyond the jobs");
    expect(effects <= facts.at("expected").at("effects_min"), name + ": seen.effects are more than a control tells");
    expect(facts.at("outcomes").empty(), name + ": outcomes are told, and this is a control");
    expect(facts.at("effects_before").is_null() && facts.at("effects_after").is_null(),
           name + ": effects_before and effects_after are told, and this is a control");
  }

  void verify_seen(const std::string &name, const Json &facts) {
    std::map<std::string, std::uint64_t> tally;
    for (const Json &outcome : facts.at("outcomes"))
      tally[outcome.at("outcome")] += outcome.at("count").get<std::uint64_t>();
    const Json &seen = facts.at("seen");
    const std::string place = name + ": seen.";
    for (const std::string_view outcome : outcome_count_names) {
      const std::string key(outcome);
      expect(seen.at(key) == tally[key], place + key, "does not follow from the outcomes");
    }
    const Json &before = facts.at("effects_before");
    const bool counted = before.is_number() && facts.at("effects_after") == before.get<std::uint64_t>() +
                                                                                seen.at("effects").get<std::uint64_t>();
    expect(counted, name + ": seen.effects does not follow from effects_before and effects_after");
  }

  // Effects at a provider, and the settlements that came too late.
  void verify_outside(const std::string &name, const Json &facts, const Json &observed) {
    const Scenario *scenario = find_scenario(name);
    const bool has_provider = scenario != nullptr && scenario->has_provider;
    expect(facts.at("risk") == (scenario == nullptr ? Json() : null_or(scenario->risk)),
           name + ": risk is not that of the scenario");
    const Json &seen = facts.at("seen");
    if (facts.at("is_control") == true) return;
    expect(seen.is_null() || seen.at("late") == observed.at("late").size(),
           name + ": seen.late does not follow from the settlements that came too late");
    expect(observed.at("handled").is_null() || (scenario != nullptr && scenario->needs_handler),
           name + ": handled: it has no handler");
    if (!has_provider) return expect(observed.at("effects").empty(), name + ": effects: it has no provider");
    expect(seen.is_null() || seen.at("effects") == observed.at("effects").size(),
           name + ": seen.effects does not follow from the effects at the provider");
  }

  void verify_rows_before(const std::string &name, const Json &rows) {
    const std::vector<Json> before = rows_before(rows);
    for (std::size_t at = 0; at < before.size(); ++at) {
      expect(rows[at].at("rows_before") == before[at],
             name + ": evidence[" + std::to_string(at) + "].rows_before: does not follow from the commits");
    }
  }

  // One count decides, and the facts say what it has counted.
  void verify_queries(const std::string &name, const Json &facts, const Json &queries) {
    const Json &seen = facts.at("seen");
    if (queries.empty()) return expect(seen.is_null() || !facts.at("why").is_null(), name + ": queries: there is none");
    std::vector<Json> deciding;
    std::copy_if(queries.begin(), queries.end(), std::back_inserter(deciding),
                 [](const Json &query) { return query.at("decides") == true; });
    if (deciding.size() != 1) return expect(false, name + ": queries: not one of them decides");
    const Json &before = deciding.front().at("before");
    const Json &after = deciding.front().at("after");
    if (before.is_null() || after.is_null() || after < before)
      return expect(false, name + ": queries: the one that decides has counted nothing");
    if (seen.is_null()) return;
    if (facts.at("is_control") == true) {
      const auto made = after.get<std::uint64_t>() - before.get<std::uint64_t>();
      return expect(seen.at("effects") <= made, name + ": seen.effects are more than were counted");
    }
    expect(facts.at("effects_before") == before && facts.at("effects_after") == after,
           name + ": effects_before and effects_after are not those of the count that decides");
  }

  // What someone else's worker says of its effects holds only where it passed. Where the effects are at a provider, a
  // row was written for each job of which somebody was told success.
  void verify_rows_written(const std::string &name, const Json &facts, std::uint64_t written) {
    const Scenario *scenario = find_scenario(name);
    if (scenario != nullptr && scenario->has_provider) {
      std::set<std::string> done;
      for (const Json &outcome : facts.at("outcomes")) {
        if (outcome.at("outcome") == "settled") done.insert(shown_id(outcome.at("operation_id")));
      }
      return expect(done.size() == written, name + ": outcomes do not follow from the rows written in the evidence");
    }
    const Json &effects = facts.at("seen").at("effects");
    const bool is_said = facts.at("worker") == "command" && facts.at("status") == "failed";
    const bool follows = facts.at("is_control") == true ? effects <= written : effects == written;
    expect(follows || is_said, name + ": seen.effects does not follow from the rows written in the evidence");
  }

  // Whoever was told an outcome has a delivery with an acknowledgement, and the other way round.
  void verify_told(const std::string &name, const Json &facts, const Json &rows) {
    const Scenario *scenario = find_scenario(name);
    struct Counts {
      std::uint64_t told = 0;
      std::uint64_t acknowledged = 0;
    };
    std::map<std::pair<std::string, std::string>, Counts> tally;
    for (const Json &outcome : facts.at("outcomes"))
      tally[{shown_id(outcome.at("operation_id")), outcome.at("outcome")}].told +=
          outcome.at("count").get<std::uint64_t>();
    for (const Json &row : rows) {
      if (row.at("acknowledgement_at").is_null() || row.at("outcome").is_null()) continue;
      std::string outcome = told_by(row);
      if (scenario != nullptr) outcome = told_as(*scenario, outcome);
      ++tally[{shown_id(row.at("operation_id")), outcome}].acknowledged;
    }
    for (const auto &[key, counts] : tally) {
      expect(counts.told == counts.acknowledged && counts.told > 0,
             name + ": outcomes: " + key.first + " was told \"" + key.second + "\" " + std::to_string(counts.told) +
                 " times, by " + std::to_string(counts.acknowledged) + " acknowledged deliveries");
    }
  }

  // --- One delivery -----------------------------------------------------------------------------------------------

  void verify_row(const std::string &place, const Json &facts, const Json &row) {
    const Json &written = row.at("rows_written");
    const Json &outcome = row.at("outcome");
    const bool committed = !row.at("commit_at").is_null();
    expect(row.at("scenario") == facts.at("name"), place + ".scenario: is another one");
    expect(written.is_null() || written == 0 || written == 1, place + ".rows_written: is neither 0 nor 1");
    expect((written == 1) == (committed || outcome == "stored"),
           place + ".rows_written: does not follow from commit_at and outcome");
    expect(committed == !row.at("commit_shown_by").is_null(), place + ".commit_shown_by: does not go with commit_at");
    const bool accepted = outcome == "accepted";
    expect(!committed || outcome.is_null() || outcome == "stored" || accepted,
           place + ".outcome: is not that of a commit");
    expect(row.at("final_outcome").is_null() != (accepted && !row.at("acknowledgement_at").is_null()),
           place + ".final_outcome: does not go with the outcome and its acknowledgement");
    expect(row.at("acknowledgement_at").is_null() || !outcome.is_null(), place + ".outcome: null was acknowledged");
    if (facts.at("worker") == "onced") verify_row_of_onced(place, facts, row);
    verify_log(place, row);
  }

  // Whose commits are known by the rows themselves, and whose kills by their points.
  void verify_row_of_onced(const std::string &place, const Json &facts, const Json &row) {
    expect(row.at("outcome") != "stored" || !row.at("commit_at").is_null(), place + ".commit_at: null was stored");
    expect(row.at("killed").is_null() || row.at("killed") == facts.at("kill_point"),
           place + ".killed: is not the kill point");
  }

  // The line of the event stream speaks of this delivery.
  void verify_log(const std::string &place, const Json &row) {
    const Json &log = row.at("log");
    expect(!log.is_null() || row.at("outcome").is_null(), place + ".log: does not go with the outcome");
    if (log.is_null()) return;
    const Json line = parse_json(log.get<std::string>());
    if (!line.is_object()) return expect(false, place + ".log: is no event");
    // A worker that was killed has told no more than that it took the delivery.
    const bool is_cut_short = !row.at("killed").is_null() && text_in(line, "event") == "delivery.consumed";
    expect(!row.at("outcome").is_null() || is_cut_short, place + ".log: does not go with the outcome");
    const std::string part = place + ".";
    for (const std::string key : {"operation_id", "tag", "sender", "sequence", "attempt", "outcome"})
      expect(!line.contains(key) || line.at(key) == row.at(key), part + key, "is not that of its log");
  }

  // --- The timeline -----------------------------------------------------------------------------------------------

  void verify_timeline(const std::string &name, const Json &observed) {
    const Json &timeline = observed.at("timeline");
    for (std::size_t at = 0; at < timeline.size(); ++at) {
      const Json &entry = timeline[at];
      const std::string place = name + ": timeline[" + std::to_string(at) + "]";
      expect(entry.at("at") == iso_time(time_of(entry.at("at_us"))), place + ".at: is not at_us");
      expect(at == 0 || timeline[at - 1].at("at_us") <= entry.at("at_us"), place + ": is older than the one before");
      expect(is_known(entry, observed),
             place + ": " + entry.at("what").get<std::string>() + " is not a time of the evidence or of a process");
    }
  }

  static bool is_known(const Json &entry, const Json &observed) {
    const std::string of_delivery = time_of_delivery(entry.at("what"));
    const std::string of_process = time_of_process(entry.at("what"));
    const auto is_row = [&](const Json &row) {
      return row.at(of_delivery) == entry.at("at") && row.at("operation_id") == entry.at("operation_id") &&
             row.at("attempt") == entry.at("attempt");
    };
    const auto is_effect = [&](const Json &effect) {
      return effect.at("at") == entry.at("at") && effect.at("operation_id") == entry.at("operation_id");
    };
    const auto is_process = [&](const Json &process) { return process.at(of_process) == entry.at("at"); };
    const Json &rows = observed.at("evidence");
    const Json &processes = observed.at("processes");
    const Json &effects = observed.at("effects");
    if (entry.at("what") == "effect") return std::any_of(effects.begin(), effects.end(), is_effect);
    if (!of_delivery.empty()) return std::any_of(rows.begin(), rows.end(), is_row);
    return of_process.empty() || std::any_of(processes.begin(), processes.end(), is_process);
  }

  void verify_kills_told(const std::string &name, const Json &observed) {
    const auto killed = [](const Json &process) { return process.at("end") == "killed by signal 9"; };
    const auto told = [](const Json &entry) { return entry.at("what") == "kill"; };
    const Json &processes = observed.at("processes");
    const Json &timeline = observed.at("timeline");
    expect(std::count_if(processes.begin(), processes.end(), killed) ==
               std::count_if(timeline.begin(), timeline.end(), told),
           name + ": timeline: its kills are not the processes that were killed");
  }

  // --- Plan, seeds and the other files ----------------------------------------------------------------------------

  void verify_plan() {
    const auto text = held_text(facts_.at("plan"));
    const auto seeds = held_text(facts_.at("seeds"));
    if (!text || !seeds) return;
    auto plan = parse_plan(*text, facts_.at("plan").at("file"), scenario_names());
    if (!plan) return expect(false, describe(plan.error()));
    if (const auto parsed = parse_seeds(*seeds, plan->seeds); !parsed) return expect(false, describe(parsed.error()));
    verify_said_of_plan(*plan);
    verify_scenarios_of_plan(*plan);
    verify_ids(plan->seeds.operation_ids);
    verify_keys(plan->seeds);
  }

  // The content of a file that is copied into the record.
  std::optional<std::string> held_text(const Json &named) {
    const std::string name = named.at("file");
    const auto text = read_file(directory_ / std::filesystem::path(name).filename(), seeds_bytes_max);
    expect(text && hex_sha256(*text) == named.at("sha256"), name + ": its SHA-256 is not that of the record");
    return text ? std::optional(*text) : std::nullopt;
  }

  void verify_said_of_plan(const Plan &plan) {
    const Json said = facts_of_plan(plan, facts_.at("options").at("fast"));
    const std::string problem = "is not what " + plan.file + " says";
    for (const auto &[name, keys] : said.items()) {
      const std::string part = name + ".";
      for (const auto &[key, value] : keys.items()) {
        if (key != "sha256") expect(facts_.at(name).at(key) == value, part + key, problem); // it was held
      }
    }
  }

  void verify_scenarios_of_plan(const Plan &plan) {
    const Json &only = facts_.at("options").at("only");
    const std::vector<ScenarioPlan> planned = chosen(plan, only.is_null() ? "" : only.get<std::string>());
    const bool same =
        std::equal(planned.begin(), planned.end(), scenarios_.begin(), scenarios_.end(),
                   [](const ScenarioPlan &scenario, const Json &facts) { return facts.at("name") == scenario.name; });
    if (!same) return expect(false, "scenarios: are not those of " + plan.file + " in its order");
    for (std::size_t at = 0; at < planned.size(); ++at) {
      const Scenario &scenario = *find_scenario(planned[at].name);
      expect(scenarios_[at].at("jobs") == jobs_of(scenario, plan.seeds, planned[at].copies),
             planned[at].name + ": jobs are not those of the seeds");
      const ScenarioCounts expected = scenarios_[at].at("expected");
      expect(expected == planned[at].expected, planned[at].name + ": expected is not what " + plan.file + " says");
    }
  }

  // Every job that is spoken of is one of the seeds, or one of several made of it, as ID#1.
  void verify_ids(const std::vector<std::string> &operation_ids) {
    const std::set<std::string> seeds(operation_ids.begin(), operation_ids.end());
    for (const Json &row : evidence_of(record_)) {
      const std::string id = shown_id(row.at("operation_id"));
      const bool is_known =
          row.at("operation_id").is_null() || seeds.contains(id) || seeds.contains(id.substr(0, id.rfind('#')));
      expect(is_known, row.at("scenario").get<std::string>() + ": evidence: " + id + " is none of the seeds");
    }
    for (const Json &scenario : scenarios_) {
      const Json &seen = scenario.at("seen");
      expect(seen.is_null() || scenario.at("is_control") == false || seen.at("jobs") == seeds.size(),
             scenario.at("name").get<std::string>() + ": seen.jobs are not the seeds");
    }
  }

  // An effect is that of the job whose key it was called with, or of the message of its order.
  void verify_keys(const Seeds &seeds) {
    std::set<std::pair<std::string, std::string>> keys;
    for (const std::string &job : seeds.lines) {
      const std::string id = text_in(parse_json(job), "operation_id");
      keys.emplace(id, idempotency_key_of(job));
      keys.emplace(id, relayed_key_of(order_of(job), seeds.type));
    }
    for (const Json &scenario : observed_) {
      const Json &effects = scenario.at("effects");
      for (std::size_t at = 0; at < effects.size(); ++at) {
        const Json &id = effects[at].at("operation_id");
        expect(!id.is_null() && keys.contains({id, effects[at].at("key")}),
               scenario.at("name").get<std::string>() + ": effects[" + std::to_string(at) + "]",
               "is none of a job of the seeds");
      }
    }
  }

  void expect_content(const std::string &name, const std::string &content) {
    const auto held = read_file(directory_ / name, content.size());
    expect(held && *held == content, name + ": is not what record.json says");
  }

  std::filesystem::path directory_;
  const Json &record_;
  const Json &facts_;
  const Json &scenarios_; // of the facts
  const Json &observed_;  // scenarios
  Problems problems_;
};

} // namespace

std::vector<std::string> problems_of_rules(const std::filesystem::path &directory, const Json &record) {
  return Verifier(directory, record).verify();
}

} // namespace onced::rehearsal
