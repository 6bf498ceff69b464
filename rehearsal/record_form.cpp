#include "rehearsal/record_form.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "rehearsal/limits.hpp"
#include "rehearsal/plan.hpp"

namespace onced::rehearsal {
namespace {

using Problems = std::vector<std::string>;

// docs/rehearsal-record.md in short: a text names a type, [X] is a list of X, [X, null] is X or null.
constexpr std::string_view record_form = R"({
  "format": "text", "version": "count",
  "facts": {
    "verdict": "text",
    "counts": {"scenarios": "count", "passed": "count", "failed": "count", "skipped": "count"},
    "plan": {"name": "text", "file": "text", "sha256": "text", "review_by": "text"},
    "seeds": {"file": "text", "sha256": "text", "jobs": "count", "type": "text", "schema": "text",
              "conflicting": ["text"]},
    "side_effect": {"name": "text", "recorded_in": "text", "owner": "text", "duplicate_accepted_by": "text",
                    "reconciliation_owner": "text"},
    "options": {"seed": "count", "fast": "flag", "only": ["text", null]},
    "worker": {"kind": "text", "command": ["text", null], "count": ["text", null], "kill_when": ["text", null],
               "handler": ["text", null], "reconcile": ["text", null], "provider": ["text", null],
               "threads": "count", "durability": "text", "retry_policy": "text", "visibility_timeout_ms": "count"},
    "constraint": [{"key": "text", "digest": "text", "transaction": "text"}, null],
    "failing_insert": [{"scenario": "text", "operation_id": ["text", null], "outcome": "text", "branch": ["text", null]}, null],
    "scenarios": [{
      "name": "text", "title": "text", "worker": "text", "is_control": "flag", "risk": ["text", null], "status": "text",
      "why": ["text", null], "kill_point": ["text", null], "jobs": "count", "expected": "any", "seen": "any", "differences": ["text"],
      "effects_before": ["count", null], "effects_after": ["count", null],
      "outcomes": [{"operation_id": ["text", null], "outcome": "text", "count": "count"}]}],
    "commands": {"verify": "text", "rerun": "text", "review": "text"},
    "cannot_reproduce": ["text"],
    "unproven": ["text"]
  },
  "observed": {
    "started_at": "time", "ended_at": "time", "directory": "text",
    "ran_as": {"user": "text", "uid": "count", "rights": "text"},
    "build": "object",
    "setting": {"host": "text", "kernel": "text", "cores": "count", "file_system": "text", "durability": "text"},
    "measures": [{"name": "text", "value": ["number", null], "unit": "text", "numerator": ["number", null],
                  "denominator": ["number", null], "window": "text"}],
    "scenarios": [{
      "name": "text", "started_at": ["time", null], "ended_at": ["time", null], "directory": ["text", null],
      "endpoints": [{"jobs": "text", "replies": "text"}, null],
      "processes": [{"role": "text", "command": "text", "pid": "count", "started_at": "time", "ended_at": "time",
                     "end": "text"}],
      "queries": [{"command": "text", "before": ["count", null], "after": ["count", null], "decides": "flag"}],
      "timeline": [{"at": "time", "at_us": "count", "what": "text", "operation_id": ["text", null],
                    "attempt": ["count", null], "detail": ["text", null]}],
      "backlog": [{"at_us": "count", "waiting": "count", "in_hand": "count"}],
      "effects": [{"at": "time", "operation_id": ["text", null], "key": "text", "token": ["text", null]}],
      "late": [{"at": "time", "operation_id": "text", "receive": "count", "token": "text"}],
      "handled": [{"receives": "count", "handled": "count", "tried_again": "count", "held": "count", "late": "count",
                   "reconciled": "count", "resolved": "count"}, null],
      "events_dropped": "count",
      "evidence": [{
        "scenario": "text", "operation_id": ["text", null], "tag": ["text", null], "sender": ["text", null],
        "sequence": "count", "attempt": "count", "publish_at": ["time", null], "consume_at": ["time", null],
        "commit_at": ["time", null], "commit_shown_by": ["text", null], "acknowledgement_at": ["time", null],
        "rows_before": ["count", null], "rows_written": ["count", null],
        "outcome": ["text", null], "final_outcome": ["text", null], "killed": ["text", null], "log": ["text", null]}]}]
  },
  "reviews": [{"by": "text", "at": "time", "decision": "text", "note": "text", "sha256": "text"}]
})";

Json form_of_expected(bool is_control) {
  if (is_control) return {{"effects_min", "count"}};
  Json form = Json::object();
  for (const std::string_view name : count_names)
    form[std::string(name)] = "count";
  return form;
}

Json form_of_seen(bool is_control) {
  const Json form =
      is_control ? Json{{"effects", "count"}, {"jobs", "count"}, {"double_effects", "count"}} : form_of_expected(false);
  return Json::array({form, nullptr});
}

// As "2026-01-31T12:00:00.000000Z".
bool is_time(const std::string &text) {
  constexpr std::string_view form = "0000-00-00T00:00:00.000000Z";
  return std::equal(text.begin(), text.end(), form.begin(), form.end(), [](unsigned char character, char formed) {
    return formed == '0' ? std::isdigit(character) != 0 : character == static_cast<unsigned char>(formed);
  });
}

bool is_of_type(const std::string &type, const Json &value) {
  if (type == "text") return value.is_string();
  if (type == "time") return value.is_string() && is_time(value);
  if (type == "flag") return value.is_boolean();
  if (type == "count") return value.is_number_unsigned();
  if (type == "number") return value.is_number();
  if (type == "object") return value.is_object();
  return type == "any";
}

void hold_to_form(const Json &form, const Json &value, const std::string &path, Problems &problems);

void hold_object_to_form(const Json &form, const Json &value, const std::string &path, // NOLINT(misc-no-recursion)
                         Problems &problems) {
  if (!value.is_object()) return problems.push_back(path + ": is no object");
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const auto &[name, inner] : form.items()) {
    if (value.contains(name)) {
      hold_to_form(inner, value.at(name), prefix + name, problems);
    } else {
      problems.push_back(prefix + name + ": is missing");
    }
  }
  for (const auto &[name, inner] : value.items()) {
    if (!form.contains(name)) problems.push_back(prefix + name + ": there is no such key");
  }
}

// The depth is that of the form.
void hold_to_form(const Json &form, const Json &value, const std::string &path, // NOLINT(misc-no-recursion)
                  Problems &problems) {
  if (form.is_object()) return hold_object_to_form(form, value, path, problems);
  if (form.is_string()) {
    if (!is_of_type(form, value)) problems.push_back(path + ": is no " + form.get<std::string>());
    return;
  }
  if (form.size() == 2) {
    if (!value.is_null()) hold_to_form(form[0], value, path, problems);
    return;
  }
  if (!value.is_array()) return problems.push_back(path + ": is no list");
  for (std::size_t at = 0; at < value.size(); ++at)
    hold_to_form(form[0], value[at], path + "[" + std::to_string(at) + "]", problems);
}

} // namespace

std::string text_of(const Json &record) {
  return record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<Json> evidence_of(const Json &record) {
  std::vector<Json> rows;
  for (const Json &scenario : record.at("observed").at("scenarios"))
    rows.insert(rows.end(), scenario.at("evidence").begin(), scenario.at("evidence").end());
  return rows;
}

std::vector<std::string> problems_of_form(const Json &record) {
  Problems problems;
  hold_to_form(Json::parse(record_form), record, "", problems);
  if (!problems.empty()) return problems;
  if (record.at("reviews").size() > reviews_max)
    problems.push_back("reviews: has more than " + std::to_string(reviews_max) + " entries");
  const Json &observed = record.at("observed").at("scenarios");
  for (std::size_t at = 0; at < observed.size(); ++at) {
    for (const std::string list : {"timeline", "processes", "queries"}) {
      if (observed[at].at(list).size() <= timeline_entries_max) continue;
      problems.push_back("observed.scenarios[" + std::to_string(at) + "]." + list + ": has more than " +
                         std::to_string(timeline_entries_max) + " entries");
    }
  }
  if (!problems.empty()) return problems;
  const Json &scenarios = record.at("facts").at("scenarios");
  for (std::size_t at = 0; at < scenarios.size(); ++at) {
    const std::string path = "facts.scenarios[" + std::to_string(at) + "].";
    const bool is_control = scenarios[at].at("is_control");
    hold_to_form(form_of_expected(is_control), scenarios[at].at("expected"), path + "expected", problems);
    hold_to_form(form_of_seen(is_control), scenarios[at].at("seen"), path + "seen", problems);
  }
  return problems;
}

} // namespace onced::rehearsal
