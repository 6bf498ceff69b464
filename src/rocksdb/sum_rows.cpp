#include "rocksdb/sum_rows.hpp"

#include <charconv>
#include <limits>
#include <vector>

#include "base/messagepack.hpp"

namespace onced::rocks {
namespace {

constexpr std::uint64_t sums_form = 1;

std::int64_t read_integer(messagepack::TokenReader &reader) {
  const messagepack::Token *token = reader.peek();
  if (token == nullptr || token->kind != messagepack::Kind::negative) {
    const std::uint64_t number = reader.positive();
    reader.require(number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    return static_cast<std::int64_t>(number);
  }
  const auto number = static_cast<std::int64_t>(token->number);
  reader.skip();
  return number;
}

} // namespace

Bytes sums_name(unsigned session) {
  return Bytes(sums_prefix) + std::to_string(session);
}

std::optional<unsigned> sums_number(BytesView name) {
  constexpr std::size_t digits_max = 6;
  if (!name.starts_with(sums_prefix)) return std::nullopt;
  name.remove_prefix(sums_prefix.size());
  unsigned number = 0;
  const char *end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || stop != end || name.size() > digits_max) return std::nullopt;
  return number;
}

void encode_sums(const engine::Counters &sums, Bytes &out) {
  out.clear();
  messagepack::Writer writer(out);
  writer.array(1 + engine::counter_count).positive(sums_form);
  for (const std::int64_t sum : sums.all())
    writer.integer(sum);
}

std::optional<engine::Counters> decode_sums(BytesView value) {
  std::vector<messagepack::Token> tokens;
  if (!messagepack::tokenize(value, tokens, 2 + engine::counter_count)) return std::nullopt;
  messagepack::TokenReader reader(tokens);
  reader.array(1 + engine::counter_count);
  reader.require(reader.positive() == sums_form);
  engine::Counters sums;
  for (std::int64_t &sum : sums.all())
    sum = read_integer(reader);
  if (!reader.at_end()) return std::nullopt;
  return sums;
}

} // namespace onced::rocks
