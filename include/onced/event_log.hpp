#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace onced {

// How much an event matters to an operator. `info`: nothing to do. `warning`: look at it. `error`: act on it.
enum class EventLevel : std::uint8_t { info, warning, error };

// One thing that happened, for an operator: a name and fields, no prose. docs/operations.md, "Logs", lists the events
// of the command, with what to do about each.
struct Event {
  using Value = std::variant<std::string, std::int64_t, std::uint64_t, bool>;
  EventLevel level = EventLevel::info;
  // Lower-case words joined by dots, such as "store.unavailable". The event does not own it: it must be a literal.
  std::string_view name;
  // Names (literals, too) with values, in the order in which they are shown. A value owns its text. The text may hold
  // any bytes that a producer sent: a log must escape them.
  std::vector<std::pair<std::string_view, Value>> fields;
};

// Where events go. The command writes them to stderr, a limited number a second for each name. The caller owns the log,
// which must outlive every object that it was passed to.
class EventLog {
public:
  virtual ~EventLog() = default;
  // Takes one event, which is valid only during the call. Several threads may call it at the same time, threads that
  // serve producers among them. So it must not block for long, and it must not throw.
  virtual void write(const Event &event) noexcept = 0;
};

// Drops every event. It has no state.
class SilentLog final : public EventLog {
public:
  void write(const Event &) noexcept override {}
};

} // namespace onced
