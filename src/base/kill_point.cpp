#include "onced/kill_point.hpp"

#include <charconv>
#include <csignal>
#include <string>
#include <system_error>

#include <unistd.h>

namespace onced {
namespace {

Error bad_kill_point(std::string_view text, std::string cause) {
  std::string remedy = "write NAME:N, N from 1, with one of these names:";
  for (const std::string_view name : kill_point_names) {
    remedy += ' ';
    remedy += name;
  }
  return {ErrorCode::usage, "kill point \"" + std::string(text) + "\"", std::move(cause), std::move(remedy)};
}

std::optional<KillPoint> point_named(std::string_view name) {
  for (std::size_t index = 0; index < kill_point_names.size(); ++index) {
    if (kill_point_names[index] == name) return static_cast<KillPoint>(index);
  }
  return std::nullopt;
}

} // namespace

Result<KillSwitch> KillSwitch::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return tl::unexpected(bad_kill_point(text, "has no \":N\""));

  const std::optional<KillPoint> point = point_named(text.substr(0, colon));
  if (!point) return tl::unexpected(bad_kill_point(text, "there is no point of this name"));

  const std::string_view digits = text.substr(colon + 1);
  const char *const end = digits.data() + digits.size();
  std::uint64_t arrivals = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, arrivals);
  if (error != std::errc{} || stop != end || arrivals == 0) {
    return tl::unexpected(bad_kill_point(text, "N is no whole number from 1 within 64 bits"));
  }
  return KillSwitch(*point, arrivals);
}

void KillSwitch::count_down() {
  // Arrivals behind the last one wrap round, and so never meet 1 again.
  if (left_.fetch_sub(1) != 1) return;
  kill(getpid(), SIGKILL);
  // Not a step further while the signal is on its way.
  for (;;)
    pause();
}

} // namespace onced
