#include "store/rows/older_sums.hpp"

#include "base/messagepack.hpp"

namespace onced::store {
namespace {

using engine::Counter;
using engine::Counters;
using messagepack::TokenReader;

// Of each lane: its rows, and the bytes of the jobs in its dead letters.
constexpr std::string_view lane_prefix = older_sum_prefixes[0];
constexpr std::string_view lane_bytes_prefix = older_sum_prefixes[1];
// Of redrives, purges and resolutions.
constexpr std::string_view changes_name = older_sum_prefixes[2];
constexpr std::uint64_t format = 2;
constexpr std::size_t lane_fields = 11;
constexpr std::size_t change_fields = 13;

std::int64_t read_sum(TokenReader &reader) {
  return static_cast<std::int64_t>(reader.positive());
}

// What came in and what went out, rows and bytes.
void read_flow(TokenReader &reader, std::int64_t &rows, std::int64_t &bytes) {
  rows = read_sum(reader);
  rows -= read_sum(reader);
  bytes = read_sum(reader);
  bytes -= read_sum(reader);
}

void read_flows(TokenReader &reader, Counters &sums) {
  read_flow(reader, sums[Counter::queued], sums[Counter::queued_bytes]);
  read_flow(reader, sums[Counter::relayed], sums[Counter::relayed_bytes]);
}

} // namespace

bool is_older_sum(BytesView name) {
  return name.starts_with(lane_prefix) || name.starts_with(lane_bytes_prefix) || name == changes_name;
}

std::optional<Counters> decode_older_sum(BytesView name, BytesView value) {
  Counters sums;
  if (name.starts_with(lane_bytes_prefix)) {
    const auto bytes = messagepack::decode_number(value);
    if (!bytes) return std::nullopt;
    sums[Counter::dead_letter_bytes] = static_cast<std::int64_t>(*bytes);
    return sums;
  }
  const bool changes = name == changes_name;
  std::vector<messagepack::Token> tokens;
  if (!messagepack::tokenize(value, tokens, 1 + change_fields)) return std::nullopt;
  TokenReader reader(tokens);
  reader.array(changes ? change_fields : lane_fields);
  reader.require(reader.positive() == format);
  sums[Counter::results] = read_sum(reader);
  if (changes) {
    sums[Counter::dead_letters] = -read_sum(reader);
    sums[Counter::dead_letter_bytes] = read_sum(reader);
    sums[Counter::dead_letter_bytes] -= read_sum(reader);
  } else {
    sums[Counter::dead_letters] = read_sum(reader);
  }
  read_flows(reader, sums);
  if (!reader.at_end()) return std::nullopt;
  return sums;
}

} // namespace onced::store
