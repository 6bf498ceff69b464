#include "rehearsal/plan.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include <toml++/toml.h>

#include "base/numbers.hpp"
#include "onced/limits.hpp"
#include "onced/store.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/limits.hpp"
#include "rehearsal/toml_depth.hpp"

namespace onced::rehearsal {
namespace {

using std::chrono::milliseconds;

// Ends a reading at the first thing that is wrong; never leaves this file.
struct Refusal {
  Error error;
};

[[noreturn]] void refuse(const std::string &file, std::uint32_t line, const std::string &key, std::string cause,
                         std::string remedy) {
  throw Refusal{{ErrorCode::configuration, file + ":" + std::to_string(line) + (key.empty() ? "" : ": " + key),
                 std::move(cause), std::move(remedy)}};
}

// One table of the plan. Every key must be asked for; `end` refuses those that were not.
class Section {
public:
  Section(const std::string &file, std::string name, const toml::table &table)
      : file_(file), name_(std::move(name)), table_(table) {}

  std::string text(const std::string &key) { return value<std::string>(key, "a string in quotes"); }
  std::string text_or(const std::string &key, std::string fallback) {
    return has(key) ? text(key) : std::move(fallback);
  }
  unsigned number_or(const std::string &key, unsigned fallback, unsigned min, unsigned max) {
    if (!has(key)) return fallback;
    const auto number = value<std::int64_t>(key, "an integer");
    if (number < min || number > max) {
      fail(key, "out of range", "write " + std::to_string(min) + " to " + std::to_string(max));
    }
    return static_cast<unsigned>(number);
  }
  std::string date(const std::string &key) {
    std::ostringstream text;
    text << value<toml::date>(key, "a date without quotes, as 2027-01-31");
    return text.str();
  }
  milliseconds duration(const std::string &key) {
    const std::string written = text(key);
    const std::size_t digits = std::min(written.find_first_not_of("0123456789"), written.size());
    const std::string unit = written.substr(digits);
    constexpr std::uint64_t milliseconds_max = 10'000; // every wait of a rehearsal is given up after 30 s
    const auto number = parse_whole(written.substr(0, digits), 0, milliseconds_max);
    const std::uint64_t length = !number ? 0 : unit == "s" ? *number * 1000 : unit == "ms" ? *number : 0;
    if (length < 50 || length > milliseconds_max) {
      fail(key, "no duration, or out of range", "write \"50ms\" to \"10s\"");
    }
    return milliseconds(length);
  }
  std::vector<std::string> texts_or_none(const std::string &key) {
    if (!has(key)) return {};
    const toml::node &node = need(key);
    const toml::array *array = node.as_array();
    std::vector<std::string> texts;
    for (std::size_t at = 0; array != nullptr && at < array->size(); ++at) {
      const auto text = array->get(at)->value<std::string>();
      if (!text) fail(key, "wrong type", "write a list of strings");
      texts.push_back(*text);
    }
    if (array == nullptr) fail(key, "wrong type", "write a list of strings");
    return texts;
  }
  std::map<std::string, std::string> named_texts_or_none(const std::string &key) {
    std::map<std::string, std::string> texts;
    if (!has(key)) return texts;
    for (const auto &[name, node] : table(key)) {
      const auto text = node.value<std::string>();
      if (!text) fail(key, "wrong type", "write { NAME = \"text\" }");
      texts[std::string(name.str())] = *text;
    }
    return texts;
  }
  const toml::table &table(const std::string &key) {
    const toml::table *inner = need(key).as_table();
    if (inner == nullptr) fail(key, "this is a table", "write it as one");
    return *inner;
  }

  const toml::node *find(const std::string &key) { return has(key) ? table_.get(key) : nullptr; }

  // The names that are there.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto &[key, node] : table_)
      names.emplace_back(key.str());
    return names;
  }
  void end() const {
    for (const auto &[key, node] : table_) {
      const std::string name(key.str());
      if (!asked_.contains(name)) {
        refuse(file_, key.source().begin.line, path(name), "there is no such key", "keys: " + join(asked_));
      }
    }
  }

  [[noreturn]] void fail(const std::string &key, std::string cause, std::string remedy) const {
    const toml::node *node = table_.get(key);
    const std::uint32_t line = (node == nullptr ? table_.source() : node->source()).begin.line;
    refuse(file_, line, path(key), std::move(cause), std::move(remedy));
  }

private:
  [[nodiscard]] bool has(const std::string &key) {
    asked_.insert(key);
    return table_.contains(key);
  }
  const toml::node &need(const std::string &key) {
    if (!has(key)) fail(key, "it is missing", "write it down before the run");
    return *table_.get(key);
  }
  template <class Value> Value value(const std::string &key, const std::string &expected) {
    const toml::node &node = need(key);
    const auto *held = node.as<Value>();
    if (held == nullptr) fail(key, "wrong type", "write " + expected);
    return held->get();
  }
  [[nodiscard]] std::string path(const std::string &key) const { return name_.empty() ? key : name_ + "." + key; }
  static std::string join(const std::set<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      text.append(text.empty() ? "" : ", ").append(name);
    return text;
  }

  const std::string &file_;
  std::string name_;
  const toml::table &table_;
  std::set<std::string> asked_;
};

SideEffect read_side_effect(Section section) {
  SideEffect effect{.name = section.text("name"),
                    .recorded_in = section.text("recorded_in"),
                    .owner = section.text("owner"),
                    .duplicate_accepted_by = section.text("duplicate_accepted_by"),
                    .reconciliation_owner = section.text("reconciliation_owner")};
  section.end();
  return effect;
}

Seeds read_seeds(Section section) {
  Seeds seeds;
  seeds.file = section.text("file");
  if (std::filesystem::path(seeds.file).filename() != seeds.file || seeds.file.empty()) {
    section.fail("file", "no name of a file beside the plan", "write it without folders");
  }
  for (const std::string_view taken : {"record.json", "record.html", "evidence.csv", "scenarios"}) {
    if (seeds.file == taken) section.fail("file", "the record has a file of that name", "rename it");
  }
  seeds.type = section.text("type");
  seeds.schema = section.text("schema");
  seeds.conflicting = section.texts_or_none("conflicting");
  section.end();
  return seeds;
}

WorkerPlan read_worker(Section section) {
  WorkerPlan worker;
  worker.threads = section.number_or("threads", 2, 1, 64);
  worker.durability = section.text_or("durability", "fsync");
  worker.retry_policy = section.text("retry_policy");
  worker.visibility_timeout = section.duration("visibility_timeout");
  worker.command = section.texts_or_none("command");
  worker.count = section.texts_or_none("count");
  worker.kill_when = section.text_or("kill_when", "");
  section.end();
  if (!durability_of(worker.durability)) {
    section.fail("durability", "no durability mode", "write \"fsync\" or \"page-cache\"");
  }
  if (worker.command.empty() != worker.count.empty()) {
    section.fail("command", "command and count go together", "write both, or none for onced itself");
  }
  return worker;
}

HandlerPlan read_handler(const std::string &file, const toml::node *node) {
  if (node == nullptr) return {};
  if (!node->is_table()) refuse(file, node->source().begin.line, "handler", "this is a table", "write [handler]");
  Section section(file, "handler", *node->as_table());
  HandlerPlan handler{.command = section.texts_or_none("command"),
                      .reconcile = section.texts_or_none("reconcile"),
                      .environment = section.named_texts_or_none("environment"),
                      .provider = section.texts_or_none("provider")};
  section.end();
  for (const auto &[key, words] : {std::pair("command", handler.command), std::pair("reconcile", handler.reconcile),
                                   std::pair("provider", handler.provider)}) {
    if (words.empty()) section.fail(key, "it is missing", "write the program and its arguments");
  }
  return handler;
}

ScenarioCounts read_expected(Section section) {
  ScenarioCounts expected;
  const auto names = section.names();
  const auto count = [&](const std::string &name) {
    const auto number = section.number_or(name, 0, 0, 1'000'000'000);
    return static_cast<std::uint64_t>(number);
  };
  if (names == std::vector<std::string>{"effects_min"}) return {{"effects_min", count("effects_min")}};
  for (const std::string_view name : count_names)
    expected[std::string(name)] = count(std::string(name));
  section.end();
  if (std::find(names.begin(), names.end(), "effects") == names.end()) {
    section.fail("effects", "the expected count of effects is missing", "write it down before the run");
  }
  return expected;
}

ScenarioPlan read_scenario(const std::string &file, const toml::table &table, const std::vector<std::string> &known) {
  Section section(file, "scenario", table);
  ScenarioPlan scenario;
  scenario.name = section.text("name");
  scenario.copies = section.number_or("copies", 2, 1, 1000);
  if (std::find(known.begin(), known.end(), scenario.name) == known.end()) {
    section.fail("name", "there is no scenario \"" + scenario.name + "\"", "see onced rehearse --list");
  }
  scenario.expected = read_expected(Section(file, "scenario.expected", section.table("expected")));
  section.end();
  return scenario;
}

std::vector<ScenarioPlan> read_scenarios(const std::string &file, const toml::node *node,
                                         const std::vector<std::string> &known) {
  const toml::array *array = node == nullptr ? nullptr : node->as_array();
  if (array == nullptr || array->empty()) refuse(file, 1, "scenario", "there is none", "write a [[scenario]]");
  std::vector<ScenarioPlan> scenarios;
  std::set<std::string> names;
  for (const toml::node &item : *array) {
    const toml::table *table = item.as_table();
    if (table == nullptr) refuse(file, item.source().begin.line, "scenario", "this is a table", "write [[scenario]]");
    scenarios.push_back(read_scenario(file, *table, known));
    if (names.insert(scenarios.back().name).second) continue;
    refuse(file, table->source().begin.line, "scenario." + scenarios.back().name, "it is there twice", "keep one");
  }
  return scenarios;
}

Plan read(const toml::table &root, const std::string &file, const std::vector<std::string> &known) {
  Section section(file, "", root);
  Section head(file, "plan", section.table("plan"));
  Plan plan;
  plan.name = head.text("name");
  plan.review_by = head.date("review_by");
  head.end();
  plan.side_effect = read_side_effect({file, "side_effect", section.table("side_effect")});
  plan.seeds = read_seeds({file, "seeds", section.table("seeds")});
  plan.worker = read_worker({file, "worker", section.table("worker")});
  plan.handler = read_handler(file, section.find("handler"));
  plan.scenarios = read_scenarios(file, section.find("scenario"), known);
  section.end();
  return plan;
}

bool is_name(const Json &job, const char *key, std::size_t bytes_max) {
  if (!job.is_object()) return false;
  const std::string name = text_in(job, key);
  return !name.empty() && name.size() <= bytes_max;
}

Error seed_error(const Seeds &seeds, std::size_t line, std::string cause, std::string remedy) {
  return {ErrorCode::configuration, seeds.file + ":" + std::to_string(line), std::move(cause), std::move(remedy)};
}

} // namespace

std::vector<std::pair<std::string, std::vector<std::string>>> commands_of(const Plan &plan) {
  std::vector<std::pair<std::string, std::vector<std::string>>> commands;
  for (const auto &[role, words] :
       {std::pair("worker", plan.worker.command), std::pair("count", plan.worker.count),
        std::pair("handler", plan.handler.command), std::pair("reconcile", plan.handler.reconcile),
        std::pair("provider", plan.handler.provider)}) {
    if (!words.empty()) commands.emplace_back(role, words);
  }
  return commands;
}

std::vector<ScenarioPlan> chosen(const Plan &plan, const std::string &only) {
  std::vector<ScenarioPlan> scenarios;
  std::copy_if(plan.scenarios.begin(), plan.scenarios.end(), std::back_inserter(scenarios),
               [&](const ScenarioPlan &scenario) { return only.empty() || scenario.name == only; });
  return scenarios;
}

Result<Plan> parse_plan(std::string_view toml, const std::string &file, const std::vector<std::string> &known) {
  if (const auto line = line_too_deep(toml)) {
    return tl::unexpected(Error{ErrorCode::configuration, file + ":" + std::to_string(*line),
                                "it nests deeper than " + std::to_string(limits::nesting_max) + " tables or arrays",
                                "see docs/rehearsal-record.md for a plan"});
  }
  try {
    Plan plan = read(toml::parse(toml), file, known);
    plan.file = std::filesystem::path(file).filename().string();
    plan.text = toml;
    return plan;
  } catch (const Refusal &refusal) {
    return tl::unexpected(refusal.error);
  } catch (const toml::parse_error &error) {
    return tl::unexpected(Error{ErrorCode::configuration, file + ":" + std::to_string(error.source().begin.line),
                                "not TOML: " + std::string(error.description()), "see https://toml.io"});
  }
}

Result<void> parse_seeds(std::string_view text, Seeds &seeds) {
  seeds.text = text;
  std::map<std::string, Json> payloads;
  std::set<std::string> twice;
  std::istringstream stream(seeds.text);
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json job = parse_json(line);
    if (!is_name(job, "operation_id", limits::operation_id_bytes_max)) {
      return tl::unexpected(
          seed_error(seeds, number, "no job with an operation_id of 1 to 255 bytes", "write a job as JSON"));
    }
    if (job.contains("effect_key") && !is_name(job, "effect_key", limits::effect_key_bytes_max)) {
      return tl::unexpected(seed_error(seeds, number, "no effect_key of 1 to 255 bytes", "correct it"));
    }
    const std::string id = job["operation_id"];
    const auto [first, is_new] = payloads.try_emplace(id, job);
    if (!is_new) {
      const bool meant = std::find(seeds.conflicting.begin(), seeds.conflicting.end(), id) != seeds.conflicting.end();
      // Plain JSON objects compare by their members, whatever their order.
      if (nlohmann::json(first->second) != nlohmann::json(job) && !meant) {
        return tl::unexpected(seed_error(seeds, number,
                                         "the id " + Json(id).dump() + " is there twice, with different payloads",
                                         "give it another id, or name it in conflicting"));
      }
      twice.insert(id);
    }
    seeds.lines.push_back(std::move(line));
    seeds.operation_ids.push_back(id);
  }
  if (seeds.lines.empty()) return tl::unexpected(seed_error(seeds, 1, "there are no jobs", "write some"));
  for (const std::string &id : seeds.conflicting) {
    if (!twice.contains(id)) {
      return tl::unexpected(seed_error(seeds, 1, "conflicting names " + Json(id).dump() + ", which is not there twice",
                                       "correct the plan"));
    }
  }
  return {};
}

Result<Plan> read_plan(const std::filesystem::path &file, const std::vector<std::string> &known) {
  const auto text = read_file(file, plan_bytes_max);
  if (!text) return tl::unexpected(text.error());
  auto plan = parse_plan(*text, file.string(), known);
  if (!plan) return plan;
  if (plan->seeds.file == plan->file) {
    return tl::unexpected(
        Error{ErrorCode::configuration, file.string(), "its seeds are the plan itself", "name another"});
  }
  const auto seeds = read_file(file.parent_path() / plan->seeds.file, seeds_bytes_max);
  if (!seeds) return tl::unexpected(seeds.error());
  if (const auto parsed = parse_seeds(*seeds, plan->seeds); !parsed) return tl::unexpected(parsed.error());
  return plan;
}

} // namespace onced::rehearsal
