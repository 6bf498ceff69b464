#include "quantity.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/numbers.hpp"

namespace onced::tools {
namespace {

struct Unit {
  std::string_view name; // in lower case
  std::uint64_t factor;
};

constexpr std::array<Unit, 4> units_of_time{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};

constexpr std::uint64_t kilo = 1000;
constexpr std::uint64_t kibi = 1024;
constexpr std::array<Unit, 10> units_of_size{{{"", 1},
                                              {"b", 1},
                                              {"kb", kilo},
                                              {"mb", kilo *kilo},
                                              {"gb", kilo *kilo *kilo},
                                              {"tb", kilo *kilo *kilo *kilo},
                                              {"kib", kibi},
                                              {"mib", kibi *kibi},
                                              {"gib", kibi *kibi *kibi},
                                              {"tib", kibi *kibi *kibi *kibi}}};

// The product of the number and its unit, where that is at most `most`.
template <std::size_t Count>
std::optional<std::uint64_t> product_of(std::string_view text, std::string_view unit, std::uint64_t most,
                                        const std::array<Unit, Count> &units) {
  const auto known = std::find_if(units.begin(), units.end(), [&](const Unit &one) { return one.name == unit; });
  if (known == units.end()) return std::nullopt;
  const auto number = parse_whole(text.substr(0, text.size() - unit.size()), 0, most / known->factor);
  if (!number) return std::nullopt;
  return *number * known->factor;
}

std::string_view unit_of(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of("0123456789"), text.size()));
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char &letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

} // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr auto most = static_cast<std::uint64_t>(std::chrono::milliseconds(duration_max).count());
  if (const auto length = product_of(text, unit_of(text), most, units_of_time)) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(*length));
  }
  return tl::unexpected(Error{ErrorCode::usage, "'" + std::string(text) + "'", "not a duration of up to a year",
                              "write a whole number and its unit: 500ms, 60s, 5m or 2h"});
}

Result<std::uint64_t> parse_size(std::string_view text) {
  if (const auto bytes = product_of(text, in_lower_case(unit_of(text)), size_max, units_of_size)) return *bytes;
  return tl::unexpected(Error{ErrorCode::usage, "'" + std::string(text) + "'", "not a size of up to 1024TiB",
                              "write a whole number and its unit: 512MiB, 4GiB or 1048576"});
}

} // namespace onced::tools
