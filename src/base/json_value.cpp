#include "base/json_value.hpp"

#include <cmath>
#include <unordered_set>
#include <utility>

#include "base/messagepack.hpp"

namespace onced {
namespace {

using messagepack::Kind;
using messagepack::Token;

// UTF-8 is checked by the JSON library, once for the whole value.
class Converter {
public:
  Converter(const std::vector<Token> &tokens, Binaries binaries) : tokens_(tokens), binaries_(binaries) {}

  // The next value. The tokeniser has bounded the depth.
  std::optional<Json> value() { // NOLINT(misc-no-recursion)
    const Token &token = tokens_[next_++];
    switch (token.kind) {
    case Kind::nil:
      return Json(nullptr);
    case Kind::boolean:
      return Json(token.number != 0);
    case Kind::positive:
      return Json(token.number);
    case Kind::negative:
      return Json(static_cast<std::int64_t>(token.number));
    case Kind::floating:
      return std::isfinite(token.floating) ? std::optional<Json>(token.floating) : std::nullopt;
    case Kind::string:
      return Json(std::string(token.bytes));
    case Kind::binary:
      return binary(token.bytes);
    case Kind::array:
      return array(token.number);
    case Kind::map:
      return map(token.number);
    case Kind::extension:
      return std::nullopt;
    }
    return std::nullopt;
  }

private:
  std::optional<Json> binary(BytesView bytes) const {
    if (binaries_ == Binaries::refused) return std::nullopt;
    return Json::binary(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  }

  std::optional<Json> array(std::uint64_t size) { // NOLINT(misc-no-recursion)
    Json::array_t elements;
    for (std::uint64_t at = 0; at < size; ++at) {
      auto element = value();
      if (!element) return std::nullopt;
      elements.push_back(std::move(*element));
    }
    return Json(std::move(elements));
  }

  // The ordered object looks for a name by walking all of them, so names are compared here and appended unseen.
  std::optional<Json> map(std::uint64_t pairs) { // NOLINT(misc-no-recursion)
    using Members = std::vector<Json::object_t::value_type>;
    Json::object_t members;
    std::unordered_set<std::string_view> names;
    for (std::uint64_t at = 0; at < pairs; ++at) {
      const Token &name = tokens_[next_++];
      if (name.kind != Kind::string || !names.insert(name.bytes).second) return std::nullopt;
      auto member = value();
      if (!member) return std::nullopt;
      static_cast<Members &>(members).emplace_back(std::string(name.bytes), std::move(*member));
    }
    return Json(std::move(members));
  }

  const std::vector<Token> &tokens_;
  Binaries binaries_;
  std::size_t next_ = 0;
};

bool is_text(const Json &value) {
  try {
    static_cast<void>(value.dump(-1, ' ', false, Json::error_handler_t::strict));
    return true;
  } catch (const Json::type_error &) {
    return false;
  }
}

} // namespace

std::optional<Json> json_of_messagepack(BytesView bytes, Binaries binaries) {
  std::vector<Token> tokens;
  constexpr std::size_t nesting_max = limits::nesting_max + 1; // a result, inside the map of an answer
  if (!messagepack::tokenize(bytes, tokens, bytes.size(), nesting_max)) return std::nullopt;
  auto value = Converter(tokens, binaries).value();
  if (value && !is_text(*value)) return std::nullopt;
  return value;
}

std::string dump(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace onced
