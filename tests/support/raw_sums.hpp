#pragma once

#include <stdexcept>

#include "rocksdb/sum_rows.hpp"
#include "support/raw_database.hpp"

namespace onced::testing {

// What the rows of a closed store's sums say, added up.
[[nodiscard]] inline engine::Counters sums_of(const RawDatabase &raw) {
  engine::Counters sums;
  for (const auto &[name, value] : raw.rows("meta")) {
    if (!name.starts_with(rocks::sums_prefix)) continue;
    const auto row = rocks::decode_sums(value);
    if (!row) throw std::runtime_error("the row " + name + " is damaged");
    sums += *row;
  }
  return sums;
}

// Adds to the sums of a closed store, as if it had counted wrongly.
inline void falsify_sum(RawDatabase &raw, engine::Counter counter, std::int64_t amount) {
  const Bytes name = rocks::sums_name(0);
  engine::Counters sums = rocks::decode_sums(raw.rows("meta").at(name)).value();
  sums[counter] += amount;
  Bytes value;
  rocks::encode_sums(sums, value);
  raw.put("meta", name, value);
}

} // namespace onced::testing
