#include "progress.hpp"

#include <chrono>

#include <fmt/core.h>
#include <unistd.h>

namespace onced::tools {
namespace {

constexpr std::chrono::milliseconds interval{200};

} // namespace

Progress::Progress(Clock &clock)
    : clock_(clock), terminal_(::isatty(STDERR_FILENO) == 1), started_(clock.monotonic()), next_(started_ + interval) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(std::uint64_t settled, std::uint64_t submitted) {
  if (!terminal_) return;
  const MonotonicTime now = clock_.monotonic();
  if (now < next_) return;
  next_ = now + interval;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const double rate = static_cast<double>(settled) / seconds;
  fmt::print(stderr, "\r\033[K{} of {} settled, {:.0f}/s, {} unsettled", settled, submitted, rate, submitted - settled);
  std::fflush(stderr);
}

void Progress::show_count(std::uint64_t count, std::string_view what) {
  if (!terminal_) return;
  const MonotonicTime now = clock_.monotonic();
  if (now < next_) return;
  next_ = now + interval;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  fmt::print(stderr, "\r\033[K{} {}, {:.0f}/s", count, what, static_cast<double>(count) / seconds);
  std::fflush(stderr);
}

} // namespace onced::tools
