#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string_view>

#include "onced/clock.hpp"
#include "onced/event_log.hpp"

namespace onced::tools {

class LineQueue;

enum class LogFormat { text, json };

// "text" or "json".
[[nodiscard]] std::optional<LogFormat> log_format_of(std::string_view name);

// Lines of one event name within one second; the rest are counted, and the next line that is written says how many.
inline constexpr unsigned log_lines_per_second_max = 10;

// Writes events to stderr, one line each: time, level, name, key=value; or a JSON object. No value can end a line or
// reach the terminal as a control character. Nobody who writes one waits for who reads stderr: lines that find no room
// are counted, and the next line says how many. `clock` must outlive it.
class ConsoleLog final : public EventLog {
public:
  ConsoleLog(LogFormat format, Clock &clock);
  // The same, to a stream that outlives it.
  ConsoleLog(LogFormat format, Clock &clock, std::ostream &out);
  // Says what was suppressed and not yet told. Waits at most last_words_patience for who reads stderr.
  ~ConsoleLog() override;
  ConsoleLog(const ConsoleLog &) = delete;
  ConsoleLog &operator=(const ConsoleLog &) = delete;

  void write(const Event &event) noexcept override;

private:
  class Impl;
  std::unique_ptr<LineQueue> lines_; // null where there is a stream
  std::unique_ptr<Impl> impl_;
};

} // namespace onced::tools
