#pragma once

#include <string>

#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include "onced/error.hpp"

namespace onced::rocks {

// A RocksDB status as an Error about `concerns`. Corruption is `corrupt`, a foreign lock `locked`, all else
// `store_unavailable`.
[[nodiscard]] Error status_error(const rocksdb::Status &status, const std::string &concerns);

// True where the same transaction may be tried again: it lost a race, and nothing of it was written.
[[nodiscard]] bool is_retryable(const rocksdb::Status &status);

// For reading every row once: a scan must not push out of the cache what the worker uses.
[[nodiscard]] rocksdb::ReadOptions scan_options();

} // namespace onced::rocks
