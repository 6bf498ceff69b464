#include "rehearsal/evidence.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>

#include "onced/kill_point.hpp"
#include "rehearsal/deliveries.hpp"
#include "rehearsal/timeline.hpp"

namespace onced::rehearsal {
namespace {

constexpr std::size_t backlog_points_max = 200;

constexpr std::array<std::string_view, 17> columns{"scenario",
                                                   "operation_id",
                                                   "tag",
                                                   "sender",
                                                   "sequence",
                                                   "attempt",
                                                   "publish_at",
                                                   "consume_at",
                                                   "commit_at",
                                                   "commit_shown_by",
                                                   "acknowledgement_at",
                                                   "rows_before",
                                                   "rows_written",
                                                   "outcome",
                                                   "final_outcome",
                                                   "killed",
                                                   "log"};

Json time_or_null(Micros micros) {
  return micros == 0 ? Json() : Json(iso_time(time_of(micros)));
}

// What shows that a delivery has committed: the row or, of someone else's worker, the line that it printed.
Json commit_shown_by(const Traces &traces, const Delivery &delivery) {
  if (delivery.committed == 0) return nullptr;
  if (const auto row = traces.rows.find(delivery.operation_id); row != traces.rows.end()) return row->second;
  const auto mark = std::find_if(traces.marks.begin(), traces.marks.end(), [&](const Mark &one) {
    return one.operation_id == delivery.operation_id && micros_of(one.at) == delivery.committed;
  });
  if (mark == traces.marks.end()) return nullptr;
  return Json{{"line", mark->line}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json row_of(const std::string &scenario, const Traces &traces, const Delivery &delivery) {
  Json written;
  if (delivery.committed != 0 || delivery.outcome == "stored") {
    written = 1;
  } else if (!delivery.outcome.empty() || delivery.killed == name_of(KillPoint::worker_before_commit)) {
    written = 0;
  }
  return {{"scenario", scenario},
          {"operation_id", null_or(delivery.operation_id)},
          {"tag", null_or(delivery.tag)},
          {"sender", null_or(delivery.sender)},
          {"sequence", delivery.sequence},
          {"attempt", delivery.attempt},
          {"publish_at", time_or_null(delivery.published)},
          {"consume_at", time_or_null(delivery.consumed)},
          {"commit_at", time_or_null(delivery.committed)},
          {"commit_shown_by", commit_shown_by(traces, delivery)},
          {"acknowledgement_at", time_or_null(delivery.acknowledged)},
          {"rows_before", nullptr},
          {"rows_written", written},
          {"outcome", null_or(delivery.outcome)},
          {"final_outcome", null_or(delivery.final_outcome)},
          {"killed", null_or(delivery.killed)},
          {"log", null_or(delivery.log)}};
}

Json row_of(const Effect &effect) {
  return {{"at", iso_time(time_of(effect.at))},
          {"operation_id", null_or(effect.operation_id)},
          {"key", effect.key},
          {"token", null_or(effect.token)}};
}

// Of many points some, the last and those of the peaks among them.
std::vector<Json> thinned(const std::vector<BacklogPoint> &points) {
  const auto most_waiting = std::max_element(
      points.begin(), points.end(), [](const auto &one, const auto &other) { return one.waiting < other.waiting; });
  const auto most_in_hand = std::max_element(
      points.begin(), points.end(), [](const auto &one, const auto &other) { return one.in_hand < other.in_hand; });
  const std::size_t step = points.size() / (backlog_points_max - 3) + 1;
  std::vector<Json> kept;
  for (auto point = points.begin(); point != points.end(); ++point) {
    const auto at = static_cast<std::size_t>(point - points.begin());
    const bool is_peak = point == most_waiting || point == most_in_hand;
    if (at % step != 0 && at + 1 != points.size() && !is_peak) continue;
    kept.push_back({{"at_us", point->at}, {"waiting", point->waiting}, {"in_hand", point->in_hand}});
  }
  return kept;
}

std::string cell_of(const Json &value) {
  if (value.is_null()) return "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  // A spreadsheet would run it.
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos) text = "'" + text;
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text)
    quoted.append(character == '"' ? 2 : 1, character);
  return quoted + '"';
}

} // namespace

Result<Evidence> gather_evidence(Stage &stage, bool has_backlog) {
  const auto traces = read_traces(stage);
  if (!traces) return tl::unexpected(traces.error());
  const std::vector<Delivery> deliveries = join_deliveries(*traces);
  Evidence evidence;
  for (const Delivery &delivery : deliveries)
    evidence.rows.push_back(row_of(stage.scenario().name, *traces, delivery));
  const std::vector<Json> before = rows_before(evidence.rows);
  for (std::size_t at = 0; at < before.size(); ++at)
    evidence.rows[at]["rows_before"] = before[at];
  evidence.timeline = timeline_of(stage, *traces, deliveries);
  for (const Effect &effect : traces->effects)
    evidence.effects.push_back(row_of(effect));
  evidence.late = stage.late();
  if (!has_backlog) return evidence;
  const std::vector<BacklogPoint> backlog = backlog_of(*traces, deliveries);
  for (const BacklogPoint &point : backlog)
    evidence.in_hand_max = std::max(evidence.in_hand_max, point.in_hand);
  evidence.backlog = thinned(backlog);
  return evidence;
}

std::vector<Json> rows_before(const Json &rows) {
  std::map<std::string, std::vector<std::string>> commits; // times of one form compare as texts
  for (const Json &row : rows) {
    if (row.at("operation_id").is_null() || row.at("commit_at").is_null()) continue;
    commits[row.at("operation_id")].push_back(row.at("commit_at"));
  }
  for (auto &[id, times] : commits)
    std::sort(times.begin(), times.end());
  std::vector<Json> counts;
  for (const Json &row : rows) {
    const Json &taken = row.at("consume_at").is_null() ? row.at("publish_at") : row.at("consume_at");
    if (row.at("operation_id").is_null() || taken.is_null()) {
      counts.emplace_back(nullptr);
      continue;
    }
    const std::vector<std::string> &times = commits[row.at("operation_id")];
    const auto count = std::lower_bound(times.begin(), times.end(), taken.get<std::string>()) - times.begin();
    counts.emplace_back(static_cast<std::uint64_t>(count));
  }
  return counts;
}

std::string csv_of(const std::vector<Json> &rows) {
  std::string text;
  for (const std::string_view column : columns)
    text.append(text.empty() ? "" : ",").append(column);
  text += '\n';
  for (const Json &row : rows) {
    std::string line;
    for (const std::string_view column : columns)
      line.append(column == columns.front() ? "" : ",").append(cell_of(row.at(std::string(column))));
    text += line + '\n';
  }
  return text;
}

} // namespace onced::rehearsal
