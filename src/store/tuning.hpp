#pragma once

#include <memory>
#include <vector>

#include <rocksdb/options.h>
#include <rocksdb/utilities/transaction_db.h>

#include "onced/store.hpp"

// Every RocksDB option that onced sets, each with its reason.
namespace onced::store {

[[nodiscard]] rocksdb::DBOptions database_options(const StoreOptions &options,
                                                  const std::shared_ptr<rocksdb::Cache> &cache);
[[nodiscard]] rocksdb::TransactionDBOptions transaction_options();

// default, operations, dead_letters, meta: in this order.
[[nodiscard]] std::vector<rocksdb::ColumnFamilyDescriptor>
column_families(const std::shared_ptr<rocksdb::Cache> &cache);

} // namespace onced::store
