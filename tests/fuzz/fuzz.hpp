#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/messagepack.hpp"
#include "onced/bytes.hpp"

// What the fuzz targets share: how they say that something is broken, and how they look at bytes.
namespace onced::fuzz {

// A property that holds whatever the input. A breach ends the process, which the fuzzer reports with the input.
inline void require(bool holds, std::string_view property) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken: %.*s\n", static_cast<int>(property.size()), property.data());
  std::abort();
}

inline BytesView view_of(const std::uint8_t *data, std::size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

[[nodiscard]] inline bool lies_inside(BytesView part, BytesView whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

[[nodiscard]] inline bool is_none(const messagepack::Token &token) {
  using messagepack::Kind;
  return token.kind == Kind::nil || ((token.kind == Kind::string || token.kind == Kind::binary) && token.bytes.empty());
}

[[nodiscard]] inline bool is_same(const messagepack::Token &left, const messagepack::Token &right) {
  if (is_none(left) || is_none(right)) return is_none(left) && is_none(right);
  return left.kind == right.kind && left.number == right.number && left.bytes == right.bytes &&
         std::bit_cast<std::uint64_t>(left.floating) == std::bit_cast<std::uint64_t>(right.floating);
}

// Whether both are one MessagePack value and the same but for the length of its heads: what decoding and encoding must
// give back. An empty text or binary is nil, as our formats write and read it.
[[nodiscard]] inline bool is_same_value(BytesView left, BytesView right) {
  std::vector<messagepack::Token> lefts;
  std::vector<messagepack::Token> rights;
  if (!messagepack::tokenize(left, lefts, left.size()) || !messagepack::tokenize(right, rights, right.size())) {
    return false;
  }
  bool same = lefts.size() == rights.size();
  for (std::size_t at = 0; same && at < lefts.size(); ++at)
    same = is_same(lefts[at], rights[at]);
  return same;
}

// Takes an input apart from its first byte on, for the targets that read it as a script. At its end there are zeros.
class Script {
public:
  explicit Script(BytesView bytes) : left_(bytes) {}

  [[nodiscard]] bool at_end() const { return left_.empty(); }
  std::uint8_t byte() {
    const BytesView one = bytes(1);
    return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
  }
  // As many as there are, at most.
  BytesView bytes(std::size_t size) {
    const BytesView taken = left_.substr(0, size);
    left_.remove_prefix(taken.size());
    return taken;
  }
  BytesView rest() { return bytes(left_.size()); }

private:
  BytesView left_;
};

} // namespace onced::fuzz
