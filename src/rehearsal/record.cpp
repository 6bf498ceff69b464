#include "rehearsal/record.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "onced/digest.hpp"
#include "rehearsal/evidence.hpp"
#include "rehearsal/page.hpp"

namespace onced::rehearsal {
namespace {

constexpr unsigned record_version = 1;

Result<std::string> content_of(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    return tl::unexpected(
        Error{ErrorCode::not_found, path.string(), "it cannot be read", "give the directory of a record"});
  }
  return text;
}

std::string sha256_of(const std::string &bytes) {
  return to_hex(Digester().plain(bytes).view());
}

std::vector<Json> evidence_of(const Json &record) {
  std::vector<Json> rows;
  for (const Json &scenario : record.at("observed").at("scenarios")) {
    for (const Json &row : scenario.at("evidence"))
      rows.push_back(row);
  }
  return rows;
}

// Looks at one record, and gathers what does not fit.
class Verifier {
public:
  Verifier(std::filesystem::path directory, const Json &record) : directory_(std::move(directory)), record_(record) {}

  std::vector<std::string> verify() {
    const Json &facts = record_.at("facts");
    const Json &scenarios = facts.at("scenarios");
    const Json &observed = record_.at("observed").at("scenarios");
    expect(scenarios.size() == observed.size(), "facts and observed have different numbers of scenarios");
    for (std::size_t at = 0; at < std::min(scenarios.size(), observed.size()); ++at)
      verify_scenario(scenarios[at], observed[at]);
    verify_counts(facts);
    verify_file(facts.at("plan").at("file"), facts.at("plan").at("sha256"));
    verify_file(facts.at("seeds").at("file"), facts.at("seeds").at("sha256"));
    expect_content("evidence.csv", csv_of(evidence_of(record_)));
    expect_content("record.html", render_html(record_));
    return std::move(problems_);
  }

private:
  void expect(bool holds, const std::string &problem) {
    if (!holds) problems_.push_back(problem);
  }

  void expect_content(const std::string &name, const std::string &content) {
    const auto held = content_of(directory_ / name);
    expect(held && *held == content, name + ": is not what record.json says");
  }

  void verify_file(const std::string &name, const std::string &sha256) {
    const auto held = content_of(directory_ / std::filesystem::path(name).filename());
    expect(held && sha256_of(*held) == sha256, name + ": its SHA-256 is not that of the record");
  }

  void verify_counts(const Json &facts) {
    std::map<std::string, std::size_t> tally;
    for (const Json &scenario : facts.at("scenarios"))
      ++tally[scenario.at("status").get<std::string>()];
    const Json &counts = facts.at("counts");
    for (const std::string status : {"passed", "failed", "skipped"})
      expect(counts.at(status) == tally[status], "counts: " + status + " does not follow from the scenarios");
    expect(counts.at("scenarios") == facts.at("scenarios").size(), "counts: scenarios does not follow from them");
    const bool passed = tally["failed"] == 0 && tally["passed"] > 0;
    expect(facts.at("verdict") == (passed ? "passed" : "failed"), "verdict: does not follow from the scenarios");
  }

  void verify_scenario(const Json &facts, const Json &observed) {
    const std::string name = facts.at("name");
    expect(observed.at("name") == name, name + ": observed under another name");
    if (facts.at("status") == "skipped") {
      return expect(observed.at("evidence").empty(), name + ": skipped, and yet there is evidence");
    }
    if (facts.at("seen").is_null()) return expect(facts.at("status") == "failed", name + ": nothing was seen");
    if (facts.at("is_control")) return verify_control(facts);
    verify_status(name, facts);
    verify_seen(name, facts);
    verify_evidence(name, facts, observed.at("evidence"));
  }

  void verify_control(const Json &facts) {
    const bool shown = facts.at("seen").at("effects") >= facts.at("expected").at("effects_min");
    expect((facts.at("status") == "passed") == shown, facts.at("name").get<std::string>() + ": status does not follow");
  }

  void verify_status(const std::string &name, const Json &facts) {
    const bool equal = facts.at("expected") == facts.at("seen");
    expect((facts.at("status") == "passed") == equal, name + ": status does not follow from expected and seen");
    expect(facts.at("differences").empty() == equal, name + ": differences do not follow from expected and seen");
  }

  void verify_seen(const std::string &name, const Json &facts) {
    std::map<std::string, std::uint64_t> tally;
    for (const Json &outcome : facts.at("outcomes"))
      tally[outcome.at("outcome").get<std::string>()] += outcome.at("count").get<std::uint64_t>();
    const Json &seen = facts.at("seen");
    for (const std::string outcome : {"stored", "duplicate", "settled", "conflict", "invalid", "failed"})
      expect(seen.at(outcome) == tally[outcome], name + ": seen." + outcome + " does not follow from the outcomes");
    const auto effects =
        facts.at("effects_after").get<std::uint64_t>() - facts.at("effects_before").get<std::uint64_t>();
    expect(seen.at("effects") == effects, name + ": seen.effects does not follow from the counts before and after");
  }

  void verify_evidence(const std::string &name, const Json &facts, const Json &rows) {
    std::map<std::pair<std::string, std::string>, std::uint64_t> acknowledged;
    std::uint64_t written = 0;
    const bool either = facts.at("seen").at("settled") > 0;
    for (const Json &row : rows) {
      const Json &id = row.at("operation_id");
      const bool told = !row.at("acknowledgement_at").is_null();
      std::string outcome = row.at("outcome").is_null() ? "" : row.at("outcome").get<std::string>();
      if (either && (outcome == "stored" || outcome == "duplicate")) outcome = "settled";
      if (told) ++acknowledged[{id.is_null() ? "" : id.get<std::string>(), outcome}];
      if (row.at("rows_written") == 1) ++written;
      expect(row.at("scenario") == name, name + ": a row of evidence is of another scenario");
    }
    for (const Json &outcome : facts.at("outcomes")) {
      const Json &id = outcome.at("operation_id");
      const std::string text = id.is_null() ? "" : id.get<std::string>();
      const auto count = acknowledged[{text, outcome.at("outcome").get<std::string>()}];
      expect(count == outcome.at("count"), name + ": " + (text.empty() ? "bytes that are no job" : text) +
                                               " was told \"" + outcome.at("outcome").get<std::string>() +
                                               "\" without as many acknowledged deliveries");
    }
    expect(facts.at("seen").at("effects") == written, name + ": rows written in the evidence are not the effects");
  }

  std::filesystem::path directory_;
  const Json &record_;
  std::vector<std::string> problems_;
};

std::string shown(const Json &value) {
  return value.is_structured() && value.size() > 3 ? "…" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The depth is that of a record, whatever is compared with it.
void compare(const Json &before, const Json &now, const std::string &path, // NOLINT(misc-no-recursion)
             std::vector<std::string> &differences) {
  if (before == now) return;
  if (before.is_object() && now.is_object()) {
    for (const auto &[name, value] : before.items()) {
      const std::string inner = path.empty() ? name : path + "." + name;
      compare(value, now.contains(name) ? now.at(name) : Json(), inner, differences);
    }
    return;
  }
  if (before.is_array() && now.is_array() && before.size() == now.size()) {
    for (std::size_t at = 0; at < before.size(); ++at)
      compare(before[at], now[at], path + "[" + std::to_string(at) + "]", differences);
    return;
  }
  differences.push_back(path + ": " + shown(before) + ", now " + shown(now));
}

} // namespace

Result<void> write_record(const std::filesystem::path &directory, const Json &record, const Plan &plan) {
  const std::map<std::string, std::string> files{
      {"record.json", record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"},
      {"record.html", render_html(record)},
      {"evidence.csv", csv_of(evidence_of(record))},
      {plan.file, plan.text},
      {std::filesystem::path(plan.seeds.file).filename().string(), plan.seeds.text}};
  for (const auto &[name, content] : files) {
    std::ofstream file(directory / name, std::ios::binary);
    file << content;
    file.close();
    if (!file) {
      return tl::unexpected(Error{ErrorCode::store_unavailable, (directory / name).string(), "it cannot be written",
                                  "look at the disk and its free space"});
    }
  }
  return {};
}

Result<Json> read_record(const std::filesystem::path &directory) {
  const std::filesystem::path path = directory / "record.json";
  const auto text = content_of(path);
  if (!text) return tl::unexpected(text.error());
  Json record = Json::parse(*text, nullptr, false);
  if (!record.is_object() || record.value("format", "") != "onced rehearsal") {
    return tl::unexpected(Error{ErrorCode::corrupt, path.string(), "it is no record", "rehearse again"});
  }
  if (record.value("version", 0U) != record_version) {
    return tl::unexpected(Error{ErrorCode::newer_format, path.string(), "it is of another version than 1",
                                "use the onced that wrote it"});
  }
  return record;
}

Result<std::vector<std::string>> verify_record(const std::filesystem::path &directory) {
  const auto record = read_record(directory);
  if (!record) return tl::unexpected(record.error());
  try {
    return Verifier(directory, *record).verify();
  } catch (const Json::exception &error) {
    return std::vector<std::string>{"record.json: not of its form: " + std::string(error.what())};
  }
}

Result<std::string> sha256_of_record(const std::filesystem::path &directory) {
  const auto text = content_of(directory / "record.json");
  if (!text) return tl::unexpected(text.error());
  return sha256_of(*text);
}

std::vector<std::string> compare_facts(const Json &before, const Json &now) {
  std::vector<std::string> differences;
  compare(before.at("facts"), now.at("facts"), "", differences);
  return differences;
}

} // namespace onced::rehearsal
