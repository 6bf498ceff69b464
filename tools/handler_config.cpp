#include "handler_config.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "config.hpp"
#include "quantity.hpp"
#include "wire/endpoint.hpp"

namespace onced::tools {
namespace {

// What stands for a key; what is wrong with it otherwise.
using Taken = tl::expected<void, std::string>;
using Refused = tl::unexpected<std::string>;

Taken take_text(const toml::node &node, std::string &text) {
  if (!node.is_string()) return Refused("write a string in quotes");
  text = node.as_string()->get();
  return {};
}

Taken take_flag(const toml::node &node, bool &flag) {
  if (!node.is_boolean()) return Refused("write true or false");
  flag = node.as_boolean()->get();
  return {};
}

template <class Number> Taken take_number(const toml::node &node, Number &number) {
  constexpr std::int64_t number_max = 1'000'000;
  const auto *integer = node.as_integer();
  if (integer == nullptr || integer->get() < 0 || integer->get() > number_max) {
    return Refused("write an integer from 0 to 1000000, without quotes");
  }
  number = static_cast<Number>(integer->get());
  return {};
}

Taken take_duration(const toml::node &node, std::chrono::milliseconds &duration) {
  if (!node.is_string()) return Refused("write a duration in quotes, such as \"30s\"");
  const auto parsed = parse_duration(node.as_string()->get());
  if (!parsed) return Refused(parsed.error().cause + "; " + parsed.error().remedy);
  duration = *parsed;
  return {};
}

Taken take_arguments(const toml::node &node, std::vector<std::string> &arguments) {
  constexpr const char *remedy = "write an array of strings, the program first";
  const toml::array *array = node.as_array();
  if (array == nullptr || array->empty()) return Refused(remedy);
  arguments.clear();
  for (const toml::node &argument : *array) {
    if (!argument.is_string()) return Refused(remedy);
    arguments.push_back(argument.as_string()->get());
  }
  return {};
}

Taken take_environment(const toml::node &node, std::map<std::string, std::string> &environment) {
  const toml::table *table = node.as_table();
  if (table == nullptr) return Refused("write { NAME = \"value\" }");
  for (const auto &[name, value] : *table) {
    if (!value.is_string()) return Refused("write each value as a string in quotes");
    environment[std::string(name.str())] = value.as_string()->get();
  }
  return {};
}

Taken take_policy(const toml::node &node, EffectPolicy &policy) {
  const std::string name = node.is_string() ? node.as_string()->get() : "";
  if (name != "hold" && name != "retry" && name != "query") return Refused("write \"hold\", \"retry\" or \"query\"");
  policy = name == "hold" ? EffectPolicy::hold : name == "retry" ? EffectPolicy::retry : EffectPolicy::query;
  return {};
}

// A type on its way from its table. Its environment is that of both commands.
struct Draft {
  QueuedType type;
  HandlerCommand command;
  std::optional<HandlerCommand> reconcile;
};

struct Key {
  std::string_view name;
  Taken (*take)(const toml::node &node, Draft &draft);
};

constexpr std::array<Key, 14> keys{{
    {"command", [](const toml::node &node, Draft &draft) { return take_arguments(node, draft.command.arguments); }},
    {"environment",
     [](const toml::node &node, Draft &draft) { return take_environment(node, draft.command.environment); }},
    {"concurrency", [](const toml::node &node, Draft &draft) { return take_number(node, draft.type.concurrency); }},
    {"deadline", [](const toml::node &node, Draft &draft) { return take_duration(node, draft.type.deadline); }},
    {"visibility-timeout",
     [](const toml::node &node, Draft &draft) { return take_duration(node, draft.type.visibility_timeout); }},
    {"grace", [](const toml::node &node, Draft &draft) { return take_duration(node, draft.type.grace); }},
    {"backoff", [](const toml::node &node, Draft &draft) { return take_duration(node, draft.type.backoff); }},
    {"backoff-max", [](const toml::node &node, Draft &draft) { return take_duration(node, draft.type.backoff_max); }},
    {"max-receive-count",
     [](const toml::node &node, Draft &draft) { return take_number(node, draft.type.max_receive_count); }},
    {"external", [](const toml::node &node, Draft &draft) { return take_flag(node, draft.type.external); }},
    {"policy", [](const toml::node &node, Draft &draft) { return take_policy(node, draft.type.policy); }},
    {"reconcile",
     [](const toml::node &node, Draft &draft) { return take_arguments(node, draft.reconcile.emplace().arguments); }},
    {"owner", [](const toml::node &node, Draft &draft) { return take_text(node, draft.type.owner); }},
    {"messages", [](const toml::node &node, Draft &draft) { return take_flag(node, draft.type.messages); }},
}};

std::string names_of_keys() {
  std::string names;
  for (const Key &key : keys)
    names.append(names.empty() ? "" : ", ").append(key.name);
  return names;
}

// What belongs together, and is no matter of one key.
Result<void> check(const Draft &draft, const std::string &file, std::uint32_t line, const std::string &path) {
  const QueuedType &type = draft.type;
  const auto wrong = [&](std::string cause, std::string remedy) -> Result<void> {
    return tl::unexpected(config_error(file, line, path, std::move(cause), std::move(remedy)));
  };
  if (draft.command.arguments.empty()) return wrong("it has no command", "write command = [\"./program\"]");
  const bool of_external = type.policy != EffectPolicy::hold || draft.reconcile || !type.owner.empty();
  const auto &environment = draft.command.environment;
  const auto own = environment.lower_bound("ONCED_");
  if (environment.find("TRACEPARENT") != environment.end() ||
      (own != environment.end() && own->first.rfind("ONCED_", 0) == 0)) {
    return wrong("its environment names ONCED_ variables or TRACEPARENT, which are the worker's", "leave them out");
  }
  if (draft.reconcile && type.policy != EffectPolicy::query) {
    return wrong("reconcile is asked only under policy = \"query\"", "write that policy, or leave reconcile out");
  }
  if (!type.external && of_external) {
    return wrong("policy, reconcile and owner are for effects outside", "write external = true");
  }
  // The rules of any type, told with this place in the file.
  if (auto added = built_in_handlers().add_queued(type); !added) {
    return wrong(added.error().cause, added.error().remedy);
  }
  return {};
}

Result<QueuedType> read_handler(const toml::table &table, std::string name, const std::string &file,
                                std::uint32_t line) {
  const std::string path = "handlers." + name;
  Draft draft;
  draft.type.type = std::move(name);
  for (const auto &[key, node] : table) {
    const auto at =
        std::find_if(keys.begin(), keys.end(), [&, text = key.str()](const Key &known) { return known.name == text; });
    const std::string full = path + "." + std::string(key.str());
    const std::uint32_t here = key.source().begin.line;
    if (at == keys.end()) {
      return tl::unexpected(
          config_error(file, here, full, "there is no such key in [" + path + "]", "keys: " + names_of_keys()));
    }
    if (auto taken = at->take(node, draft); !taken) {
      return tl::unexpected(config_error(file, here, full, "wrong value", taken.error()));
    }
  }
  draft.type.handler = draft.command;
  if (draft.reconcile) {
    draft.reconcile->environment = draft.command.environment;
    draft.type.reconcile = *draft.reconcile;
  }
  if (auto checked = check(draft, file, line, path); !checked) return tl::unexpected(checked.error());
  return std::move(draft.type);
}

Result<RelayTarget> read_relay(const toml::table &table, std::string name, const std::string &file,
                               std::uint32_t line) {
  const std::string path = "relays." + name;
  RelayTarget target{.name = std::move(name), .jobs_endpoint = {}, .replies_endpoint = {}};
  for (const auto &[key, node] : table) {
    const std::string full = path + "." + std::string(key.str());
    const std::uint32_t here = key.source().begin.line;
    std::string *endpoint = key == "jobs"      ? &target.jobs_endpoint
                            : key == "replies" ? &target.replies_endpoint
                                               : nullptr;
    if (endpoint == nullptr) {
      return tl::unexpected(
          config_error(file, here, full, "there is no such key in [" + path + "]", "keys: jobs, replies"));
    }
    if (auto taken = take_text(node, *endpoint); !taken) {
      return tl::unexpected(config_error(file, here, full, "wrong value", taken.error()));
    }
    if (const auto read = wire::read_endpoint(*endpoint, wire::EndpointUse::connect); !read) {
      return tl::unexpected(config_error(file, here, full, read.error().cause, read.error().remedy));
    }
  }
  if (target.jobs_endpoint.empty() || target.replies_endpoint.empty()) {
    return tl::unexpected(config_error(file, line, path, "an endpoint is missing", "give it jobs and replies"));
  }
  return target;
}

// A table of tables whose names are the user's, each read by `read_one`.
template <class One, class ReadOne>
Result<std::vector<One>> read_tables(const toml::node &node, const std::string &path, const std::string &file,
                                     ReadOne read_one) {
  const toml::table *tables = node.as_table();
  if (tables == nullptr) {
    return tl::unexpected(config_error(file, node.source().begin.line, path, "it is no table",
                                       "write a table such as [" + path + ".NAME]"));
  }
  std::vector<One> all;
  for (const auto &[name, inner] : *tables) {
    const std::uint32_t line = name.source().begin.line;
    const std::string full = path + "." + std::string(name.str());
    const toml::table *table = inner.as_table();
    if (table == nullptr) {
      return tl::unexpected(config_error(file, line, full, "it is no table", "write [" + full + "]"));
    }
    auto one = read_one(*table, std::string(name.str()), file, line);
    if (!one) return tl::unexpected(one.error());
    all.push_back(std::move(*one));
  }
  return all;
}

} // namespace

Result<std::vector<QueuedType>> read_handlers(const toml::node &handlers, const std::string &file) {
  return read_tables<QueuedType>(handlers, "handlers", file, read_handler);
}

Result<std::vector<RelayTarget>> read_relays(const toml::node &relays, const std::string &file) {
  return read_tables<RelayTarget>(relays, "relays", file, read_relay);
}

} // namespace onced::tools
