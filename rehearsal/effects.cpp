#include "rehearsal/effects.hpp"

#include <fstream>
#include <map>

#include "job/relayed_job.hpp"
#include "onced/job.hpp"
#include "rehearsal/json.hpp"

namespace onced::rehearsal {

std::optional<Key> key_of(const std::string &job) {
  const Json value = parse_json(job);
  if (!value.is_object()) return std::nullopt;
  std::string bytes;
  Json::to_msgpack(value, bytes);
  JobParser parser;
  Job parsed;
  if (!parser.parse(bytes, parsed)) return std::nullopt;
  Key key;
  assign_key(parsed, key);
  return key;
}

std::string idempotency_key_of(const std::string &job) {
  const auto key = key_of(job);
  return key ? onced::idempotency_key_of(key->bytes) : "";
}

std::string order_of(const std::string &seed) {
  Json job = Json::parse(seed);
  job["type"] = order_type;
  return job.dump();
}

std::string relayed_key_of(const std::string &order, const std::string &type) {
  const auto key = key_of(order);
  if (!key) return "";
  Digester digester;
  return onced::idempotency_key_of(key_of_operation(type, relayed_operation_id(key->bytes, 0, digester)).bytes);
}

std::vector<Effect> effects_in(const std::filesystem::path &file, const std::vector<std::string> &jobs,
                               const std::string &type) {
  std::vector<Effect> effects;
  std::ifstream lines(file);
  if (!lines) return effects;
  std::map<std::string, std::string> operation_ids; // by key
  for (const std::string &job : jobs) {
    const std::string id = text_in(parse_json(job), "operation_id");
    operation_ids[idempotency_key_of(job)] = id;
    operation_ids[relayed_key_of(job, type)] = id;
  }
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
