#include "base/messagepack.hpp"

#include <bit>

#include <msgpack.hpp>

namespace onced::messagepack {
namespace {

class Tokenizer final : public msgpack::null_visitor {
public:
  Tokenizer(std::vector<Token> &tokens, std::size_t tokens_max, std::size_t nesting_max)
      : tokens_(tokens), tokens_max_(tokens_max), nesting_max_(nesting_max) {}

  bool visit_nil() { return add({}); }
  bool visit_boolean(bool value) { return add({.kind = Kind::boolean, .number = value ? 1U : 0U, .bytes = {}}); }
  bool visit_positive_integer(std::uint64_t value) {
    return add({.kind = Kind::positive, .number = value, .bytes = {}});
  }
  // msgpack-c calls this for every signed form, and some producers write all integers in one.
  bool visit_negative_integer(std::int64_t value) {
    if (value >= 0) return visit_positive_integer(static_cast<std::uint64_t>(value));
    return add({.kind = Kind::negative, .number = static_cast<std::uint64_t>(value), .bytes = {}});
  }
  bool visit_float32(float value) { return visit_float64(static_cast<double>(value)); }
  bool visit_float64(double value) { return add({.kind = Kind::floating, .floating = value, .bytes = {}}); }
  bool visit_str(const char *data, std::uint32_t size) { return add({.kind = Kind::string, .bytes = {data, size}}); }
  bool visit_bin(const char *data, std::uint32_t size) { return add({.kind = Kind::binary, .bytes = {data, size}}); }
  bool visit_ext(const char *data, std::uint32_t size) { return add({.kind = Kind::extension, .bytes = {data, size}}); }
  bool start_array(std::uint32_t size) {
    return ++depth_ <= nesting_max_ && add({.kind = Kind::array, .number = size, .bytes = {}});
  }
  bool start_map(std::uint32_t pairs) {
    return ++depth_ <= nesting_max_ && add({.kind = Kind::map, .number = pairs, .bytes = {}});
  }
  bool end_array() { return close(); }
  bool end_map() { return close(); }

private:
  bool add(const Token &token) {
    if (tokens_.size() == tokens_max_) return false;
    tokens_.push_back(token);
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::vector<Token> &tokens_;
  std::size_t tokens_max_;
  std::size_t nesting_max_;
  std::size_t depth_ = 0;
};

// What msgpack's packer writes to.
struct Appender {
  Bytes *out;
  void write(const char *data, std::size_t size) { out->append(data, size); }
};

template <class Pack> void pack(Bytes &out, Pack &&write) {
  Appender appender{&out};
  msgpack::packer<Appender> packer(appender);
  write(packer);
}

} // namespace

bool tokenize(BytesView bytes, std::vector<Token> &tokens, std::size_t tokens_max, std::size_t nesting_max) {
  tokens.clear();
  Tokenizer tokenizer(tokens, tokens_max, nesting_max);
  std::size_t offset = 0;
  return msgpack::parse(bytes.data(), bytes.size(), offset, tokenizer) && offset == bytes.size();
}

const Token &TokenReader::take(Kind kind) {
  static constexpr Token nothing{};
  if (!ok_ || next_ >= tokens_->size() || (*tokens_)[next_].kind != kind) {
    ok_ = false;
    return nothing;
  }
  return (*tokens_)[next_++];
}

std::optional<BytesView> TokenReader::binary_or_nil() {
  if (const Token *token = peek(); token != nullptr && token->kind == Kind::nil) {
    ++next_;
    return std::nullopt;
  }
  return binary();
}

std::optional<BytesView> TokenReader::string_or_nil() {
  if (const Token *token = peek(); token != nullptr && token->kind == Kind::nil) {
    ++next_;
    return std::nullopt;
  }
  return string();
}

void TokenReader::skip() {
  // A tokenized value is whole, so counting the elements still owed ends inside the list.
  for (std::uint64_t owed = 1; owed > 0 && require(next_ < tokens_->size()); --owed) {
    const Token &token = (*tokens_)[next_++];
    if (token.kind == Kind::array) owed += token.number;
    if (token.kind == Kind::map) owed += 2 * token.number;
  }
}

Writer &Writer::array(std::size_t size) {
  pack(*out_, [&](auto &packer) { packer.pack_array(static_cast<std::uint32_t>(size)); });
  return *this;
}

Writer &Writer::map(std::size_t pairs) {
  pack(*out_, [&](auto &packer) { packer.pack_map(static_cast<std::uint32_t>(pairs)); });
  return *this;
}

Writer &Writer::positive(std::uint64_t value) {
  pack(*out_, [&](auto &packer) { packer.pack_uint64(value); });
  return *this;
}

Writer &Writer::integer(std::int64_t value) {
  pack(*out_, [&](auto &packer) { packer.pack_int64(value); });
  return *this;
}

Writer &Writer::floating(double value) {
  // Not by pack_double, which turns integral values into integers: that is the canonical form's decision, not this
  // one's.
  const auto bits = std::bit_cast<std::uint64_t>(value);
  *out_ += static_cast<char>(0xCB);
  for (unsigned shift = 64; shift > 0; shift -= 8) {
    *out_ += static_cast<char>(bits >> (shift - 8) & 0xFFU);
  }
  return *this;
}

Writer &Writer::boolean(bool value) {
  pack(*out_, [&](auto &packer) { value ? packer.pack_true() : packer.pack_false(); });
  return *this;
}

Writer &Writer::string(std::string_view value) {
  pack(*out_, [&](auto &packer) {
    packer.pack_str(static_cast<std::uint32_t>(value.size()));
    packer.pack_str_body(value.data(), static_cast<std::uint32_t>(value.size()));
  });
  return *this;
}

Writer &Writer::binary(BytesView value) {
  pack(*out_, [&](auto &packer) {
    packer.pack_bin(static_cast<std::uint32_t>(value.size()));
    packer.pack_bin_body(value.data(), static_cast<std::uint32_t>(value.size()));
  });
  return *this;
}

Writer &Writer::nil() {
  pack(*out_, [](auto &packer) { packer.pack_nil(); });
  return *this;
}

Writer &Writer::raw(BytesView value) {
  out_->append(value);
  return *this;
}

std::optional<std::uint64_t> decode_number(BytesView bytes) {
  std::vector<Token> tokens;
  if (!tokenize(bytes, tokens, 1)) return std::nullopt;
  TokenReader reader(tokens);
  const std::uint64_t number = reader.positive();
  if (!reader.at_end()) return std::nullopt;
  return number;
}

Bytes encode_number(std::uint64_t number) {
  Bytes bytes;
  Writer(bytes).positive(number);
  return bytes;
}

} // namespace onced::messagepack
