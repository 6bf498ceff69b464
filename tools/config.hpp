#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "onced/error.hpp"
#include "onced/handler.hpp"
#include "onced/worker.hpp"

namespace onced::tools {

// What a setting holds in the file. Durations, paths and choices are text; the command line's own checks read them.
// A quantity, a size or a share, is a number or text.
enum class SettingKind : std::uint8_t { text, integer, quantity, flag };

// The settings that there are: by table ("serve", "dead-letters.list"), by name (the long option without its dashes).
using SettingNames = std::map<std::string, SettingKind, std::less<>>;
using ConfigSchema = std::map<std::string, SettingNames, std::less<>>;

struct Setting {
  std::string value; // as it would stand on the command line; a flag: "true" or "false"
  std::uint32_t line = 0;
};

struct Config {
  std::map<std::string, std::map<std::string, Setting, std::less<>>, std::less<>> tables;
  std::vector<QueuedType> handlers; // of [handlers.TYPE]
  std::vector<RelayTarget> relays;  // of [relays.NAME]
};

// Reads TOML. `file` names it in errors. Every table and setting in it must be in the schema, whichever of them the
// caller wants, so that a misspelt one cannot go unnoticed. Errors: `configuration`, naming file, line, key and what
// there is.
[[nodiscard]] Result<Config> parse_config(std::string_view toml, const std::string &file, const ConfigSchema &schema);

// The same from a file. Errors: also `not_found`.
[[nodiscard]] Result<Config> read_config(const std::string &file, const ConfigSchema &schema);

// The error for a setting of that file.
[[nodiscard]] Error config_error(const std::string &file, std::uint32_t line, const std::string &key, std::string cause,
                                 std::string remedy);

} // namespace onced::tools
