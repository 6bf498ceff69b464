#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/limits.hpp"

// Reading and writing MessagePack with msgpack-c, without its object trees: the envelope, the records on disk and the
// answers to queries are read as a flat list of tokens, in time and memory proportional to the bytes that are really
// there.
namespace onced::messagepack {

enum class Kind : std::uint8_t { nil, boolean, positive, negative, floating, string, binary, array, map, extension };

// One value, or the head of a container whose `number` elements (array) or pairs (map) are the tokens that follow.
struct Token {
  Kind kind = Kind::nil;
  std::uint64_t number =
      0;               // boolean: 0 or 1; positive: the value; negative: its two's complement; array, map: the size
  double floating = 0; // floating
  BytesView bytes;     // string, binary, extension: into the bytes that were read
};

// Reads one MessagePack value that fills `bytes` exactly. False where it does not, or where it has more than
// `tokens_max` tokens or nests deeper than `nesting_max`; `tokens` then holds those before the fault. It keeps
// its memory between calls.
[[nodiscard]] bool tokenize(BytesView bytes, std::vector<Token> &tokens, std::size_t tokens_max,
                            std::size_t nesting_max = limits::nesting_max);

// Takes tokens one after another, each of the kind that the grammar asks for. After the first mismatch every further
// call fails too, so a grammar may be read in one go and checked once with `ok`.
class TokenReader {
public:
  explicit TokenReader(const std::vector<Token> &tokens) : tokens_(&tokens) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return ok_ && next_ == tokens_->size(); }
  // The next token, not taken; nothing at the end.
  [[nodiscard]] const Token *peek() const { return ok_ && next_ < tokens_->size() ? &(*tokens_)[next_] : nullptr; }

  std::uint64_t array() { return take(Kind::array).number; }
  // An array of exactly `size` elements.
  bool array(std::uint64_t size) { return require(array() == size); }
  std::uint64_t map() { return take(Kind::map).number; }
  bool boolean() { return take(Kind::boolean).number != 0; }
  std::uint64_t positive() { return take(Kind::positive).number; }
  BytesView string() { return take(Kind::string).bytes; }
  BytesView binary() { return take(Kind::binary).bytes; }
  // A binary, or nil as "none".
  std::optional<BytesView> binary_or_nil();
  std::optional<BytesView> string_or_nil();

  // Fails the reader where a value is of the right kind but not allowed.
  bool require(bool condition) { return ok_ = ok_ && condition; }

  // Takes one value of any kind with everything inside it.
  void skip();

private:
  const Token &take(Kind kind);

  const std::vector<Token> *tokens_;
  std::size_t next_ = 0;
  bool ok_ = true;
};

// Appends MessagePack to bytes that it borrows, each value in its shortest form; a float always has 64 bits.
class Writer {
public:
  explicit Writer(Bytes &out) : out_(&out) {}

  Writer &array(std::size_t size);
  Writer &map(std::size_t pairs);
  Writer &positive(std::uint64_t value);
  Writer &integer(std::int64_t value);
  Writer &floating(double value);
  Writer &boolean(bool value);
  Writer &string(std::string_view value);
  Writer &binary(BytesView value);
  Writer &nil();
  // Bytes that are one MessagePack value already.
  Writer &raw(BytesView value);

private:
  Bytes *out_;
};

// One non-negative integer and nothing else. Nothing where the bytes are not that.
[[nodiscard]] std::optional<std::uint64_t> decode_number(BytesView bytes);
[[nodiscard]] Bytes encode_number(std::uint64_t number);

} // namespace onced::messagepack
