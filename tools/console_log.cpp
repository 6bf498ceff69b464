#include "console_log.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include "base/json_value.hpp"
#include "line_queue.hpp"

namespace onced::tools {
namespace {

constexpr std::chrono::seconds window_length{1};

// In quotes, everything escaped but printable ASCII: JSON's escapes are known to every reader of logs.
std::string quoted(const std::string &value) {
  return Json(value).dump(-1, ' ', true, Json::error_handler_t::replace);
}

bool is_plain(const std::string &value) {
  if (value.empty()) return false;
  for (const char character : value) {
    if (character <= ' ' || character > '~' || character == '"' || character == '=' || character == '\\') return false;
  }
  return true;
}

std::string text_of(const Event::Value &value) {
  if (const auto *text = std::get_if<std::string>(&value)) return is_plain(*text) ? *text : quoted(*text);
  if (const auto *number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto *number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  return std::get<bool>(value) ? "true" : "false";
}

std::string json_of(const Event::Value &value) {
  if (const auto *text = std::get_if<std::string>(&value)) return quoted(*text);
  return text_of(value);
}

spdlog::level::level_enum level_of(EventLevel level) {
  switch (level) {
  case EventLevel::info:
    return spdlog::level::info;
  case EventLevel::warning:
    return spdlog::level::warn;
  case EventLevel::error:
    return spdlog::level::err;
  }
  return spdlog::level::err;
}

} // namespace

class ConsoleLog::Impl {
public:
  // `put` says whether it took the line.
  Impl(LogFormat format, Clock &clock, std::function<bool(std::string_view)> put)
      : format_(format), clock_(clock), put_(std::move(put)),
        formatter_(format == LogFormat::json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})"
                                             : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
                   spdlog::pattern_time_type::utc) {}

  void write(const Event &event) {
    const std::scoped_lock lock(mutex_);
    const MonotonicTime now = clock_.monotonic();
    Window &window = windows_.try_emplace(std::string(event.name), Window{now, 0, 0}).first->second;
    if (now - window.began >= window_length) window = {now, 0, window.suppressed};
    if (window.lines == log_lines_per_second_max) {
      ++window.suppressed;
      return;
    }
    ++window.lines;
    if (put(event, window.suppressed)) window.suppressed = 0;
  }

  void tell_suppressed() {
    const std::scoped_lock lock(mutex_);
    for (const auto &[name, window] : windows_) {
      if (window.suppressed == 0) continue;
      static_cast<void>(put({EventLevel::info, "log.suppressed", {{"name", name}}}, window.suppressed));
    }
    if (dropped_ != 0) static_cast<void>(put({EventLevel::warning, "log.dropped", {}}, 0));
  }

private:
  struct Window {
    MonotonicTime began;
    unsigned lines = 0;
    std::uint64_t suppressed = 0;
  };

  // False: nobody takes it. The next line that is taken tells how many were not.
  bool put(const Event &event, std::uint64_t suppressed) {
    const std::string text = format_ == LogFormat::json ? json_line(event, suppressed) : text_line(event, suppressed);
    spdlog::memory_buf_t line;
    formatter_.format({clock_.wall(), spdlog::source_loc{}, "onced", level_of(event.level), text}, line);
    const bool taken = put_({line.data(), line.size()});
    dropped_ = taken ? 0 : dropped_ + 1;
    return taken;
  }

  [[nodiscard]] std::string text_line(const Event &event, std::uint64_t suppressed) const {
    std::string line(event.name);
    for (const auto &[key, value] : event.fields) {
      line.append(" ").append(key).append("=").append(text_of(value));
    }
    if (suppressed != 0) line += fmt::format(" suppressed={}", suppressed);
    if (dropped_ != 0) line += fmt::format(" dropped={}", dropped_);
    return line;
  }

  [[nodiscard]] std::string json_line(const Event &event, std::uint64_t suppressed) const {
    std::string line = "\"event\":" + quoted(std::string(event.name));
    for (const auto &[key, value] : event.fields) {
      line.append(",").append(quoted(std::string(key))).append(":").append(json_of(value));
    }
    if (suppressed != 0) line += fmt::format(",\"suppressed\":{}", suppressed);
    if (dropped_ != 0) line += fmt::format(",\"dropped\":{}", dropped_);
    return line;
  }

  LogFormat format_;
  Clock &clock_;
  std::function<bool(std::string_view)> put_;
  spdlog::pattern_formatter formatter_;
  std::mutex mutex_; // guards the formatter and the rest
  std::uint64_t dropped_ = 0;
  std::map<std::string, Window, std::less<>> windows_; // names are literals, so there are few
};

std::optional<LogFormat> log_format_of(std::string_view name) {
  if (name == "text") return LogFormat::text;
  if (name == "json") return LogFormat::json;
  return std::nullopt;
}

ConsoleLog::ConsoleLog(LogFormat format, Clock &clock)
    : lines_(std::make_unique<LineQueue>(STDERR_FILENO)),
      impl_(std::make_unique<Impl>(format, clock, [this](std::string_view line) { return lines_->put(line); })) {}

ConsoleLog::ConsoleLog(LogFormat format, Clock &clock, std::ostream &out)
    : impl_(std::make_unique<Impl>(format, clock, [&out](std::string_view line) {
        out << line;
        return out.good();
      })) {}

ConsoleLog::~ConsoleLog() {
  try {
    impl_->tell_suppressed();
  } catch (...) { // a log that cannot be written has nobody to tell
  }
}

void ConsoleLog::write(const Event &event) noexcept {
  try {
    impl_->write(event);
  } catch (...) { // as above
  }
}

} // namespace onced::tools
