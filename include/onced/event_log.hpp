#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace onced {

enum class EventLevel : std::uint8_t { info, warning, error };

// One thing that happened, for an operator: a name and fields, no prose.
struct Event {
  using Value = std::variant<std::string, std::int64_t, std::uint64_t, bool>;
  EventLevel level = EventLevel::info;
  std::string_view name; // words joined by dots, lower case; a literal
  std::vector<std::pair<std::string_view, Value>> fields;
};

// Where events go. The command writes them to stderr, limited in rate per name.
class EventLog {
public:
  virtual ~EventLog() = default;
  // May be called from any thread; must not throw and must not block for long.
  virtual void write(const Event &event) noexcept = 0;
};

// Drops every event.
class SilentLog final : public EventLog {
public:
  void write(const Event &) noexcept override {}
};

} // namespace onced
