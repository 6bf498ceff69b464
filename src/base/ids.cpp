#include "onced/ids.hpp"
#include "onced/fencing_token.hpp"

namespace onced {
namespace {

std::optional<unsigned> value_of(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a' + 10);
  if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A' + 10);
  return std::nullopt;
}

} // namespace

std::string to_hex(BytesView bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += digits[value >> 4U];
    hex += digits[value & 15U];
  }
  return hex;
}

std::optional<Bytes> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t at = 0; at < hex.size(); at += 2) {
    const auto high = value_of(hex[at]);
    const auto low = value_of(hex[at + 1]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high << 4U | *low);
  }
  return bytes;
}

std::string text_of(const FencingToken &token) {
  Bytes bytes;
  for (const std::uint64_t number : {token.boot, token.count}) {
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(number >> static_cast<unsigned>(shift)));
  }
  return to_hex(bytes);
}

} // namespace onced
