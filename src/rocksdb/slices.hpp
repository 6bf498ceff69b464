#pragma once

#include <rocksdb/slice.h>

#include "onced/bytes.hpp"

// Borrowed bytes in RocksDB's words and in ours; both live as long as their owner says.
namespace onced::rocks {

[[nodiscard]] inline rocksdb::Slice slice_of(BytesView bytes) {
  return {bytes.data(), bytes.size()};
}

[[nodiscard]] inline BytesView view_of(const rocksdb::Slice &slice) {
  return {slice.data(), slice.size()};
}

} // namespace onced::rocks
