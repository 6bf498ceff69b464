#pragma once

#include <cstdint>
#include <optional>

#include <msgpack.hpp>

#include "onced/bytes.hpp"

namespace onced::wire {

// Follows msgpack-c's parser through a message whose values come one after another as a grammar says, without a list of
// them in between: most of a worker's time with a duplicate goes into reading it. `Grammar` is told each value, of a
// container its head, and says whether it may stand there; false stops the parser. What no grammar here has is refused.
template <class Grammar> class SequenceVisitor final : public msgpack::null_visitor {
public:
  explicit SequenceVisitor(Grammar &grammar) : grammar_(grammar) {}

  bool visit_nil() { return grammar_.nil(); }
  bool visit_boolean(bool) { return false; }
  bool visit_positive_integer(std::uint64_t value) { return grammar_.positive(value); }
  // msgpack-c calls this for every signed form, and some producers write all integers in one.
  bool visit_negative_integer(std::int64_t value) {
    return value >= 0 && grammar_.positive(static_cast<std::uint64_t>(value));
  }
  bool visit_float32(float) { return false; }
  bool visit_float64(double) { return false; }
  bool visit_str(const char *data, std::uint32_t size) { return grammar_.string({data, size}); }
  bool visit_bin(const char *data, std::uint32_t size) { return grammar_.binary({data, size}); }
  bool visit_ext(const char *, std::uint32_t) { return false; }
  bool start_array(std::uint32_t size) { return grammar_.array(size); }
  bool start_map(std::uint32_t) { return false; }

private:
  Grammar &grammar_;
};

// Takes what is there. False: it is not, so the grammar is not followed.
template <class T> [[nodiscard]] bool take(const std::optional<T> &from, T &to) {
  if (from) to = *from;
  return from.has_value();
}

// Whether `bytes` are one value, all of whose parts the grammar has let pass.
template <class Grammar> [[nodiscard]] bool follow(BytesView bytes, Grammar &grammar) {
  SequenceVisitor<Grammar> visitor(grammar);
  std::size_t offset = 0;
  return msgpack::parse(bytes.data(), bytes.size(), offset, visitor) && offset == bytes.size();
}

} // namespace onced::wire
