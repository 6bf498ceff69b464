#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rocksdb/options.h>
#include <rocksdb/utilities/transaction_db.h>

#include "rocksdb/database_kind.hpp"

// Every RocksDB option that onced sets, each with its reason.
namespace onced::rocks {

// How long a transaction waits for a lock. Locks are taken in one global order, so there is no deadlock to time out of;
// a wait ends when the other commit does, which a slow disk may make seconds.
inline constexpr std::int64_t lock_timeout_ms = 10'000;

[[nodiscard]] std::shared_ptr<rocksdb::Cache> block_cache(std::size_t bytes);

[[nodiscard]] rocksdb::DBOptions database_options(const DatabaseOptions &options,
                                                  const std::shared_ptr<rocksdb::Cache> &cache);
// For an opening that reads the logs with their checksums and sequence numbers, and no row of them.
void tune_for_looking(rocksdb::DBOptions &db, std::vector<rocksdb::ColumnFamilyDescriptor> &families);

[[nodiscard]] rocksdb::TransactionDBOptions transaction_options();

// Merges the tables that many short runs have left: each opening writes out what it recovers, as a table of a few rows
// or of a single deletion, and RocksDB moves a table that meets no other to the last level as it is. Rewrites at most
// 32 MiB of a family, or what lies between the keys of such deletions. A merge that fails is RocksDB's background
// error.
void merge_leftovers(rocksdb::DB &database, const std::vector<rocksdb::ColumnFamilyHandle *> &families);

} // namespace onced::rocks
