#include "config.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "handler_config.hpp"
#include "line_reader.hpp"
#include "onced/limits.hpp"
#include "rehearsal/toml_depth.hpp"

namespace onced::tools {
namespace {

// A configuration is a page of text; this bounds what a wrong file name can cost.
constexpr std::size_t config_bytes_max = 16 * 1024;

template <class Map> std::string names_of(const Map &map) {
  std::string names;
  for (const auto &[name, unused] : map) {
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

std::string join(std::string path, const std::string &name) {
  if (!path.empty()) path.append(".");
  return path.append(name);
}

template <class Value> Result<void> keep(Result<Value> read, Value &kept) {
  if (!read) return tl::unexpected(read.error());
  kept = std::move(*read);
  return {};
}

class Reader {
public:
  Reader(const std::string &file, const ConfigSchema &schema) : file_(file), schema_(schema) {}

  // Reads a table of settings or, like [dead-letters], of tables.
  Result<void> read(const toml::table &table, const std::string &path) { // NOLINT(misc-no-recursion)
    const auto names = schema_.find(path);
    for (const auto &[key, node] : table) {
      const std::string name(key.str());
      const std::string full = join(path, name);
      const std::uint32_t line = key.source().begin.line;
      Result<void> done;
      if (full == "handlers") {
        done = keep(read_handlers(node, file_), config_.handlers);
      } else if (full == "relays") {
        done = keep(read_relays(node, file_), config_.relays);
      } else if (names != schema_.end()) {
        done = read_setting(names->second, path, name, node, line);
      } else if (!is_table(full)) {
        done = tl::unexpected(config_error(file_, line, full, "there is no such table or key here",
                                           "tables: " + names_of(schema_) + ", handlers.TYPE, relays.NAME"));
      } else if (const toml::table *inner = node.as_table(); inner == nullptr) {
        done = tl::unexpected(config_error(file_, line, full, "this is a table", "write [" + full + "]"));
      } else {
        done = read(*inner, full);
      }
      if (!done) return done;
    }
    return {};
  }

  Config take() { return std::move(config_); }

private:
  // Whether settings, or tables with settings, may stand under this name.
  [[nodiscard]] bool is_table(const std::string &path) const {
    const auto at = schema_.lower_bound(path);
    if (at != schema_.end() && at->first == path) return true;
    const auto inside = schema_.lower_bound(path + ".");
    return inside != schema_.end() && inside->first.compare(0, path.size() + 1, path + ".") == 0;
  }

  Result<void> read_setting(const SettingNames &names, const std::string &path, const std::string &name,
                            const toml::node &node, std::uint32_t line) {
    const auto known = names.find(name);
    if (known == names.end()) {
      return tl::unexpected(config_error(file_, line, path + "." + name, "there is no such key in [" + path + "]",
                                         "keys: " + names_of(names)));
    }
    const auto value = text_of(node, known->second);
    if (!value) {
      return tl::unexpected(
          config_error(file_, line, path + "." + name, "wrong type", "write " + expected(known->second)));
    }
    config_.tables[path][name] = {*value, line};
    return {};
  }

  static std::optional<std::string> text_of(const toml::node &node, SettingKind kind) {
    const bool is_number = kind == SettingKind::integer || kind == SettingKind::quantity;
    if ((kind == SettingKind::text || kind == SettingKind::quantity) && node.is_string())
      return node.as_string()->get();
    if (is_number && node.is_integer()) return std::to_string(node.as_integer()->get());
    if (kind == SettingKind::quantity && node.is_floating_point())
      return fmt::format("{}", node.as_floating_point()->get());
    if (kind == SettingKind::flag && node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
    return std::nullopt;
  }

  static std::string expected(SettingKind kind) {
    switch (kind) {
    case SettingKind::text:
      return "a string in quotes";
    case SettingKind::integer:
      return "an integer without quotes";
    case SettingKind::quantity:
      return "a number, or a string in quotes";
    case SettingKind::flag:
      return "true or false";
    }
    return "";
  }

  const std::string &file_;
  const ConfigSchema &schema_;
  Config config_;
};

} // namespace

Error config_error(const std::string &file, std::uint32_t line, const std::string &key, std::string cause,
                   std::string remedy) {
  std::string concerns = file + ":" + std::to_string(line);
  if (!key.empty()) concerns += ": " + key;
  return {ErrorCode::configuration, std::move(concerns), std::move(cause), std::move(remedy)};
}

Result<Config> parse_config(std::string_view toml, const std::string &file, const ConfigSchema &schema) {
  if (const auto line = rehearsal::line_too_deep(toml)) {
    return tl::unexpected(config_error(
        file, *line, "", "it nests deeper than " + std::to_string(limits::nesting_max) + " tables or arrays",
        "name a configuration file"));
  }
  try {
    const toml::table table = toml::parse(toml);
    Reader reader(file, schema);
    if (auto done = reader.read(table, ""); !done) return tl::unexpected(done.error());
    return reader.take();
  } catch (const toml::parse_error &error) {
    return tl::unexpected(config_error(file, error.source().begin.line, "",
                                       "not TOML: " + std::string(error.description()), "see https://toml.io"));
  }
}

Result<Config> read_config(const std::string &file, const ConfigSchema &schema) {
  const auto input = InputFile::open(file);
  if (!input) return tl::unexpected(input.error());
  const StopEvent never;
  LineReader reader(*input, config_bytes_max, never, MonotonicTime::max());
  std::string text;
  if (const auto read = reader.rest(text); !read) return tl::unexpected(read.error());
  if (text.size() > config_bytes_max) {
    return tl::unexpected(Error{ErrorCode::configuration, file, "longer than 16 KiB", "name a configuration file"});
  }
  return parse_config(text, file, schema);
}

} // namespace onced::tools
