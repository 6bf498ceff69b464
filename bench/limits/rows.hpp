#pragma once

#include <cstdint>
#include <vector>

#include "onced/bytes.hpp"
#include "workload.hpp"

namespace onced::bench::limits {

// A row of `operations` as onced would write it.
struct NewRow {
  Bytes key;
  Bytes value;
};

// For each batch (a message) that brings jobs for the first time, the rows of these, made with onced's own code. Of a
// traffic without conflicts.
[[nodiscard]] std::vector<std::vector<NewRow>> rows_by_batch(const Traffic &traffic);

// Keys and values.
[[nodiscard]] std::uint64_t bytes_of(const std::vector<std::vector<NewRow>> &batches);

} // namespace onced::bench::limits
