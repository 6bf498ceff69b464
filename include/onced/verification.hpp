#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onced/bytes.hpp"

namespace onced {

// Something in a store that should not be so.
struct Problem {
  std::string where; // a column family, or "tables"
  Bytes key;         // of the row; empty: it is about no single row
  std::string what;
};

// What was looked at, all at one moment of the store, and what was found.
struct Verification {
  std::uint64_t tables = 0; // files whose every block was held against its checksum
  std::uint64_t table_bytes = 0;
  std::uint64_t operations = 0;        // rows: readable, under their own key, their result canonical
  std::uint64_t dead_letters = 0;      // rows: readable, under their own id, their digest that of their bytes
  std::uint64_t queued = 0;            // rows: readable, under their own key, which is pending with their digest
  std::uint64_t relayed = 0;           // rows: readable, their job that of their key, whose parent is committed
  std::uint64_t audit_rows = 0;        // readable, and none missing in between
  std::uint64_t counters = 0;          // sums held against the rows there are
  std::uint64_t problems = 0;          // found
  std::vector<Problem> first_problems; // at most limits::problems_told_max of them
};

} // namespace onced
