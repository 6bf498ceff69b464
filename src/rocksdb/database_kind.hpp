#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <rocksdb/cache.h>
#include <rocksdb/options.h>

#include "base/directory_kind.hpp"
#include "engine/engine.hpp"
#include "onced/store.hpp"

namespace onced::rocks {

using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;

// In what the databases of a store and of an outbox differ.
struct DatabaseKind {
  DirectoryKind directory;
  std::string_view mark;       // the name of its durable mark
  bool began_without_mark;     // in its first format
  bool has_one_writer;         // so that its units need no locks
  std::string_view what;       // as messages name it
  std::uint64_t format;        // that is written
  std::uint64_t oldest_format; // that is read
  std::string_view loss_remedy;
  std::string_view unavailable_remedy; // of an I/O error
  std::uint64_t log_bytes_max;         // an opening after a kill reads at most this much
  int open_files_max;
  bool counts_memtables; // against the cache, so that one figure bounds both
  Families (*families)(const std::shared_ptr<rocksdb::Cache> &cache);
  std::array<std::size_t, 5> family_at; // where each engine::Family lies in them
};

extern const DatabaseKind store_database;
// Its jobs are the rows of Family::queue; of the other families it has `meta` alone.
extern const DatabaseKind outbox_database;

struct DatabaseOptions {
  const DatabaseKind &kind;
  std::filesystem::path directory;
  const DirectoryLock *lock = nullptr; // as in StoreOptions
  std::shared_ptr<StorageEnvironment> environment = nullptr;
  bool read_only = false;
  bool create = true;
  bool accept_loss = false;
  std::size_t cache_bytes = 0; // blocks, index and filters; memtables too where the kind counts them
};

[[nodiscard]] inline DatabaseOptions options_of_store(const StoreOptions &options) {
  return {.kind = store_database,
          .directory = options.directory,
          .lock = options.lock,
          .environment = options.environment,
          .read_only = options.read_only,
          .create = options.create,
          .accept_loss = options.accept_loss,
          .cache_bytes = options.block_cache_bytes};
}

} // namespace onced::rocks
