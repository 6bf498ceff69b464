#include "rehearsal/effects.hpp"

#include <fstream>
#include <map>

#include "onced/digest.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"
#include "rehearsal/json.hpp"

namespace onced::rehearsal {

std::string idempotency_key_of(const std::string &job) {
  const Json value = parse_json(job);
  if (!value.is_object()) return "";
  std::string bytes;
  Json::to_msgpack(value, bytes);
  JobParser parser;
  Job parsed;
  if (!parser.parse(bytes, parsed)) return "";
  Key key;
  assign_key(parsed, key);
  Digester digester;
  return to_hex(digester.plain(key.bytes).view());
}

std::vector<Effect> effects_in(const std::filesystem::path &file, const std::vector<std::string> &jobs) {
  std::vector<Effect> effects;
  std::ifstream lines(file);
  if (!lines) return effects;
  std::map<std::string, std::string> operation_ids; // by key
  for (const std::string &job : jobs)
    operation_ids[idempotency_key_of(job)] = text_in(parse_json(job), "operation_id");
  for (std::string line; std::getline(lines, line);) {
    const Json effect = parse_json(line);
    if (!effect.is_object() || text_in(effect, "key").empty()) continue;
    const std::string key = text_in(effect, "key");
    const auto job = operation_ids.find(key);
    effects.push_back({.at = micros_in(text_in(effect, "at")),
                       .key = key,
                       .token = text_in(effect, "token"),
                       .operation_id = job == operation_ids.end() ? "" : job->second});
  }
  return effects;
}

} // namespace onced::rehearsal
