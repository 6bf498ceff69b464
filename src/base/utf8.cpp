#include "base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace onced::utf8 {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

bool within(char byte, unsigned low, unsigned high) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= low && value <= high;
}

// The length of the well-formed sequence of two or more bytes that `text` begins with, or 0. The ranges of the second
// byte are what excludes overlong forms, surrogates and code points past the last (Unicode, table 3-7).
std::size_t multibyte_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (length == 0 || text.size() < length || !within(text[1], low, high)) return 0;
  for (std::size_t at = 2; at < length; ++at) {
    if (!within(text[at], 0x80, 0xBF)) return 0;
  }
  return length;
}

bool is_ascii(char byte) {
  return static_cast<unsigned char>(byte) < 0x80;
}

} // namespace

bool valid(std::string_view text) {
  while (!text.empty()) {
    if (text.size() >= sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        text.remove_prefix(sizeof word);
        continue;
      }
    }
    const std::size_t length = is_ascii(text[0]) ? 1 : multibyte_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string repaired(std::string_view text, std::size_t bytes_max) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = is_ascii(text[0]) ? 1 : multibyte_length(text);
    const std::string_view next = length == 0 ? replacement : text.substr(0, length);
    if (result.size() + next.size() > bytes_max) break;
    result += next;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

} // namespace onced::utf8
