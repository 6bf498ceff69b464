#include "rehearsal/time.hpp"

#include <array>
#include <charconv>
#include <ctime>

namespace onced::rehearsal {

std::string iso_time(WallTime time) {
  const Micros micros = micros_of(time);
  const std::time_t seconds = micros / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &parts);
  const std::string fraction = std::to_string(1'000'000 + micros % 1'000'000);
  return text.data() + fraction.substr(1) + "Z";
}

Micros micros_in(const std::string &iso_time) {
  std::tm parts{};
  const char *rest = ::strptime(iso_time.c_str(), "%Y-%m-%dT%H:%M:%S.", &parts);
  Micros fraction = 0;
  if (rest != nullptr) std::from_chars(rest, iso_time.c_str() + iso_time.size(), fraction);
  return Micros{::timegm(&parts)} * 1'000'000 + fraction;
}

} // namespace onced::rehearsal
