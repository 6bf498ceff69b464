#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rocksdb/options.h>
#include <rocksdb/utilities/transaction_db.h>

#include "onced/store.hpp"

// Every RocksDB option that onced sets, each with its reason.
namespace onced::store {

// How long a transaction waits for a lock. Locks are taken in one global order, so there is no deadlock to time out of;
// a wait ends when the other commit does, which a slow disk may make seconds.
inline constexpr std::int64_t lock_timeout_ms = 10'000;

[[nodiscard]] std::shared_ptr<rocksdb::Cache> block_cache(std::size_t bytes);

[[nodiscard]] rocksdb::DBOptions database_options(const StoreOptions &options,
                                                  const std::shared_ptr<rocksdb::Cache> &cache);
// For an opening that reads the logs with their checksums and sequence numbers, and no row of them.
void tune_for_looking(rocksdb::DBOptions &db, std::vector<rocksdb::ColumnFamilyDescriptor> &families);

[[nodiscard]] rocksdb::TransactionDBOptions transaction_options();

// default, operations, dead_letters, meta: in this order.
[[nodiscard]] std::vector<rocksdb::ColumnFamilyDescriptor>
column_families(const std::shared_ptr<rocksdb::Cache> &cache);

// Merges tables of nothing but deletions where there are many: each short run may leave one of a single deletion, which
// RocksDB moves to the last level as it is. Takes as long as it takes to rewrite what lies between their keys. A merge
// that fails is RocksDB's background error.
void drop_deletions(rocksdb::DB &database, const std::vector<rocksdb::ColumnFamilyHandle *> &families);

} // namespace onced::store
