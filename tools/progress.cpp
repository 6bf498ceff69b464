#include "progress.hpp"

#include <chrono>
#include <string_view>

#include <fmt/core.h>
#include <unistd.h>

#include "line_queue.hpp"

namespace onced::tools {
namespace {

constexpr std::chrono::milliseconds interval{200};

// Where the terminal takes nothing at the moment, it is not shown.
void show_text(std::string_view text) {
  write_within(STDERR_FILENO, text, std::chrono::milliseconds(0));
}

} // namespace

Progress::Progress(Clock &clock)
    : clock_(clock), terminal_(::isatty(STDERR_FILENO) == 1), started_(clock.monotonic()), next_(started_ + interval) {}

Progress::~Progress() {
  if (shown_) show_text("\r\033[K");
}

// The seconds since the start, when a line is due; it counts as shown then.
std::optional<double> Progress::seconds_if_due() {
  if (!terminal_) return std::nullopt;
  const MonotonicTime now = clock_.monotonic();
  if (now < next_) return std::nullopt;
  next_ = now + interval;
  shown_ = true;
  return std::chrono::duration<double>(now - started_).count();
}

void Progress::show(std::uint64_t settled, std::uint64_t submitted) {
  const auto seconds = seconds_if_due();
  if (!seconds) return;
  const double rate = static_cast<double>(settled) / *seconds;
  show_text(
      fmt::format("\r\033[K{} of {} settled, {:.0f}/s, {} unsettled", settled, submitted, rate, submitted - settled));
}

void Progress::show_count(std::uint64_t count, std::string_view what) {
  const auto seconds = seconds_if_due();
  if (!seconds) return;
  show_text(fmt::format("\r\033[K{} {}, {:.0f}/s", count, what, static_cast<double>(count) / *seconds));
}

} // namespace onced::tools
