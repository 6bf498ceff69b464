#include "console_log.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "job/json_value.hpp"

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
  Impl(LogFormat format, Clock &clock, spdlog::sink_ptr sink)
      : format_(format), clock_(clock), logger_("onced", std::move(sink)) {
    constexpr auto utc = spdlog::pattern_time_type::utc;
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        format == LogFormat::json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})"
                                  : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
        utc));
    logger_.flush_on(spdlog::level::info);
    // The default handler prints to stderr, which is what has just failed.
    logger_.set_error_handler([](const std::string &) {});
  }

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
    const std::uint64_t suppressed = std::exchange(window.suppressed, 0);
    const std::string line = format_ == LogFormat::json ? json_line(event, suppressed) : text_line(event, suppressed);
    logger_.log(clock_.wall(), spdlog::source_loc{}, level_of(event.level), line);
  }

  void tell_suppressed() {
    for (const auto &[name, window] : windows_) {
      if (window.suppressed == 0) continue;
      const Event event{EventLevel::info, "log.suppressed", {{"name", name}}};
      const std::string line =
          format_ == LogFormat::json ? json_line(event, window.suppressed) : text_line(event, window.suppressed);
      logger_.log(clock_.wall(), spdlog::source_loc{}, spdlog::level::info, line);
    }
  }

private:
  struct Window {
    MonotonicTime began;
    unsigned lines = 0;
    std::uint64_t suppressed = 0;
  };

  static std::string text_line(const Event &event, std::uint64_t suppressed) {
    std::string line(event.name);
    for (const auto &[key, value] : event.fields) {
      line.append(" ").append(key).append("=").append(text_of(value));
    }
    if (suppressed != 0) line += fmt::format(" suppressed={}", suppressed);
    return line;
  }

  static std::string json_line(const Event &event, std::uint64_t suppressed) {
    std::string line = "\"event\":" + quoted(std::string(event.name));
    for (const auto &[key, value] : event.fields) {
      line.append(",").append(quoted(std::string(key))).append(":").append(json_of(value));
    }
    if (suppressed != 0) line += fmt::format(",\"suppressed\":{}", suppressed);
    return line;
  }

  LogFormat format_;
  Clock &clock_;
  spdlog::logger logger_;
  std::mutex mutex_;
  std::map<std::string, Window, std::less<>> windows_; // names are literals, so there are few
};

std::optional<LogFormat> log_format_of(std::string_view name) {
  if (name == "text") return LogFormat::text;
  if (name == "json") return LogFormat::json;
  return std::nullopt;
}

ConsoleLog::ConsoleLog(LogFormat format, Clock &clock)
    : impl_(std::make_unique<Impl>(format, clock, std::make_shared<spdlog::sinks::stderr_sink_st>())) {}

ConsoleLog::ConsoleLog(LogFormat format, Clock &clock, std::ostream &out)
    : impl_(std::make_unique<Impl>(format, clock, std::make_shared<spdlog::sinks::ostream_sink_st>(out))) {}

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
