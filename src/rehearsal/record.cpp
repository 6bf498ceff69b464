#include "rehearsal/record.hpp"

#include <fstream>
#include <map>

#include "rehearsal/evidence.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/page.hpp"
#include "rehearsal/record_form.hpp"
#include "rehearsal/record_rules.hpp"

namespace onced::rehearsal {
namespace {

std::string shown(const Json &value) {
  return value.is_structured() && value.size() > 3 ? "…" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The depth is that of a record, whatever is compared with it.
void compare(const Json &before, const Json &now, const std::string &path, // NOLINT(misc-no-recursion)
             std::vector<std::string> &differences) {
  if (before == now) return;
  if (before.is_object() && now.is_object()) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto &[name, value] : before.items())
      compare(value, now.value(name, Json()), prefix + name, differences);
    for (const auto &[name, value] : now.items()) {
      if (!before.contains(name)) compare(Json(), value, prefix + name, differences);
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
  const std::string text = record.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const Json written = parse_json(text); // bytes that are no UTF-8 have been replaced
  const std::map<std::string, std::string> files{{"record.json", text},
                                                 {"record.html", render_html(written)},
                                                 {"evidence.csv", csv_of(evidence_of(written))},
                                                 {plan.file, plan.text},
                                                 {plan.seeds.file, plan.seeds.text}};
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
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  Json record = parse_json(*text);
  if (!record.is_object() || record.value("format", Json()) != "onced rehearsal") {
    return tl::unexpected(Error{ErrorCode::corrupt, path.string(), "it is no record", "rehearse again"});
  }
  if (record.value("version", Json()) != record_version) {
    return tl::unexpected(Error{ErrorCode::newer_format, path.string(),
                                "it is of another version than " + std::to_string(record_version),
                                "use the onced that wrote it"});
  }
  return record;
}

Result<void> hold_plan(const std::filesystem::path &directory, const Json &record) {
  try {
    for (const char *part : {"plan", "seeds"}) {
      const Json &named = record.at("facts").at(part);
      const std::filesystem::path path =
          directory / std::filesystem::path(named.at("file").get<std::string>()).filename();
      const auto text = read_file(path);
      if (!text) return tl::unexpected(text.error());
      if (hex_sha256(*text) == named.at("sha256")) continue;
      return tl::unexpected(Error{ErrorCode::corrupt, path.string(), "its SHA-256 is not that of the record",
                                  "see onced rehearse --verify"});
    }
    return {};
  } catch (const Json::exception &error) {
    return tl::unexpected(Error{ErrorCode::corrupt, directory.string(), error.what(), "see onced rehearse --verify"});
  }
}

std::vector<Json> evidence_of(const Json &record) {
  std::vector<Json> rows;
  for (const Json &scenario : record.at("observed").at("scenarios"))
    rows.insert(rows.end(), scenario.at("evidence").begin(), scenario.at("evidence").end());
  return rows;
}

Result<std::vector<std::string>> verify_record(const std::filesystem::path &directory) {
  const auto record = read_record(directory);
  if (!record) return tl::unexpected(record.error());
  auto problems = problems_of_form(*record);
  return problems.empty() ? problems_of_rules(directory, *record) : problems;
}

Result<std::string> sha256_of_record(const std::filesystem::path &directory) {
  const auto text = read_file(directory / "record.json");
  if (!text) return tl::unexpected(text.error());
  return hex_sha256(*text);
}

std::vector<std::string> compare_facts(const Json &before, const Json &now) {
  std::vector<std::string> differences;
  compare(before.at("facts"), now.at("facts"), "", differences);
  return differences;
}

} // namespace onced::rehearsal
