#include "rocksdb/tuning.hpp"

#include <algorithm>

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include "onced/limits.hpp"
#include "onced/version.hpp"
#include "rocksdb/environment.hpp"

namespace onced::rocks {
namespace {

constexpr std::size_t mebibyte = 1024UL * 1024;

// LZ4 costs less CPU than the bytes it saves cost I/O; a RocksDB built without it still opens.
rocksdb::CompressionType best_compression() {
  const auto supported = rocksdb::GetSupportedCompressions();
  const bool lz4 = std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
  return lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

rocksdb::BlockBasedTableOptions table_options(const std::shared_ptr<rocksdb::Cache> &cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  // Ten bits a key: one absent key in a hundred costs a read. Every new job looks up an absent key.
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.optimize_filters_for_memory = true;
  // Index and filters count against the cache, so memory stays bounded at any number of keys. They are kept in small
  // partitions: a whole filter of a table does not fit into a shard of the cache, and would be read at each look-up.
  table.cache_index_and_filter_blocks = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.pin_top_level_index_and_filter = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  // Look-ups are of single keys: a hash in each block spares its binary search.
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  return table;
}

rocksdb::ColumnFamilyOptions family(const std::shared_ptr<rocksdb::Cache> &cache, std::size_t memtable_bytes) {
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(cache)));
  options.write_buffer_size = memtable_bytes;
  // One is filled while another is flushed. What is flushed goes: a TransactionDB else keeps two of them (it reads a 0
  // so), in which to look for newer writes than a snapshot's, and no transaction here has a snapshot.
  options.max_write_buffer_number = 2;
  options.max_write_buffer_size_to_maintain = 1;
  // A bloom filter over the memtable: an absent key does not walk the skip list.
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.1;
  options.compression = best_compression();
  options.level_compaction_dynamic_level_bytes = true;
  // Absent keys are what the filters of the last level are for.
  options.optimize_filters_for_hits = false;
  return options;
}

// Two of them, one being filled and one being flushed, take half of the cache, and leave the rest to blocks and
// filters.
std::size_t memtable_bytes(const std::shared_ptr<rocksdb::Cache> &cache) {
  constexpr std::size_t least = 4 * mebibyte;
  return cache ? std::clamp(cache->GetCapacity() / 4, least, 64 * mebibyte) : least;
}

} // namespace

std::shared_ptr<rocksdb::Cache> block_cache(std::size_t bytes) {
  // A few large shards: few threads share them, and a shard must hold what the memtables reserve and the largest
  // blocks.
  constexpr int shard_bits = 2;
  return rocksdb::NewLRUCache(bytes, shard_bits);
}

rocksdb::DBOptions database_options(const DatabaseOptions &options, const std::shared_ptr<rocksdb::Cache> &cache) {
  rocksdb::DBOptions db;
  if (options.environment) db.env = options.environment->env();
  db.create_if_missing = !options.read_only && options.create;
  db.create_missing_column_families = !options.read_only;
  db.paranoid_checks = true;

  // A torn tail is what a crash leaves, and is cut off; damage before the tail is refused. What this mode lets pass (a
  // log cut short or deleted) the durable mark finds.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // The opening flushes and syncs what it recovers: a row seen after it is on stable storage.
  db.avoid_flush_during_recovery = false;
  // "Visible means durable" rests on these: one queue, a write visible only after its group's log sync.
  db.enable_pipelined_write = false;
  db.unordered_write = false;
  db.two_write_queues = false;
  db.manual_wal_flush = false;
  db.recycle_log_file_num = 0;
  // After an error in the background the store is closed and opened again, never resumed.
  db.max_bgerror_resume_count = 0;

  if (options.kind.counts_memtables) {
    db.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(
        std::max<std::size_t>(options.cache_bytes / 2, 16 * mebibyte), cache);
  }
  db.max_background_jobs = 2;
  // Recovery after a kill reads at most this much log.
  db.max_total_wal_size = options.kind.log_bytes_max;
  // Descriptors stay bounded at any size; the table cache closes the files it has not used for longest.
  db.max_open_files = options.kind.open_files_max;
  // An opening reads a few tables; threads for it cost more than they save.
  db.max_file_opening_threads = 1;
  // Tables are written out as they grow, not all at their end, so that a log sync does not queue behind one.
  db.bytes_per_sync = mebibyte;

  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

void tune_for_looking(rocksdb::DBOptions &db, std::vector<rocksdb::ColumnFamilyDescriptor> &families) {
  db.allow_concurrent_memtable_write = false; // which a vector does not know
  for (auto &family : families) {
    // Most of the time of reading a log goes into sorting its rows.
    family.options.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
    family.options.memtable_prefix_bloom_size_ratio = 0;
  }
}

rocksdb::TransactionDBOptions transaction_options() {
  rocksdb::TransactionDBOptions options;
  options.transaction_lock_timeout = lock_timeout_ms;
  options.default_lock_timeout = lock_timeout_ms;
  return options;
}

namespace {

Families store_families(const std::shared_ptr<rocksdb::Cache> &cache) {
  return {{rocksdb::kDefaultColumnFamilyName, family(cache, mebibyte)}, // unused; RocksDB wants it
          {"operations", family(cache, memtable_bytes(cache))},
          {"dead_letters", family(cache, 8 * mebibyte)},
          {"meta", family(cache, mebibyte)},
          {"queue", family(cache, 8 * mebibyte)},
          {"relay", family(cache, 8 * mebibyte)}};
}

// Rows are read in order, never looked up, so there is no filter. The index counts against the cache, so memory is the
// same at any number of jobs.
rocksdb::ColumnFamilyOptions outbox_family(const std::shared_ptr<rocksdb::Cache> &cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = limits::outbox_memtable_bytes;
  options.max_write_buffer_number = 2;
  options.compression = best_compression();
  options.level_compaction_dynamic_level_bytes = true;
  return options;
}

Families outbox_families(const std::shared_ptr<rocksdb::Cache> &cache) {
  return {{rocksdb::kDefaultColumnFamilyName, outbox_family(cache)}, {"meta", outbox_family(cache)}};
}

} // namespace

// Of families: operations, queue, relay, dead_letters, meta.
const DatabaseKind store_database{
    .directory = DirectoryKind::worker,
    .mark = store_mark_name,
    .began_without_mark = false,
    .has_one_writer = false,
    .what = "database",
    .format = disk_format,
    .oldest_format = oldest_disk_format,
    .loss_remedy =
        "restore the missing files; or open with --accept-loss to go on without those rows, whose jobs would then "
        "take effect again if they are delivered again",
    .unavailable_remedy = "check the disk, its free space and the rights of this user; then open again: jobs that were "
                          "not acknowledged are found out by their next delivery",
    .log_bytes_max = 128 * mebibyte,
    .open_files_max = 512,
    .counts_memtables = true,
    .families = store_families,
    .family_at = {1, 4, 5, 2, 3}};

const DatabaseKind outbox_database{
    .directory = DirectoryKind::outbox,
    .mark = outbox_mark_name,
    .began_without_mark = true,
    .has_one_writer = true,
    .what = "outbox",
    .format = outbox_format,
    .oldest_format = 1,
    .loss_remedy = "restore the missing files; or open it with --accept-loss to go on with the jobs that are left, and "
                   "send the input again: nothing is done twice",
    .unavailable_remedy = "check the disk, its free space and the rights of this user; then start again with this "
                          "outbox, and send what was not taken again: nothing is done twice",
    .log_bytes_max = 32 * mebibyte,
    .open_files_max = 64,
    .counts_memtables = false, // its cache is no larger than one of them
    .families = outbox_families,
    .family_at = {0, 0, 0, 0, 1}};

namespace {

// What of a family's tables are many and small.
struct Leftovers {
  std::size_t deletions = 0; // tables of nothing but deletions, between these keys
  std::string first;
  std::string last;
  std::size_t small = 0;
  std::uint64_t bytes = 0; // of all tables
};

Leftovers leftovers_of(rocksdb::DB &database, rocksdb::ColumnFamilyHandle *family) {
  constexpr std::uint64_t small_bytes = 64UL * 1024;
  Leftovers found;
  rocksdb::ColumnFamilyMetaData tables;
  database.GetColumnFamilyMetaData(family, &tables);
  for (const auto &level : tables.levels) {
    for (const auto &table : level.files) {
      found.bytes += table.size;
      found.small += table.size < small_bytes ? 1 : 0;
      if (table.num_entries == 0 || table.num_deletions != table.num_entries) continue;
      if (found.deletions == 0 || table.smallestkey < found.first) found.first = table.smallestkey;
      if (found.deletions == 0 || table.largestkey > found.last) found.last = table.largestkey;
      ++found.deletions;
    }
  }
  return found;
}

} // namespace

void merge_leftovers(rocksdb::DB &database, const std::vector<rocksdb::ColumnFamilyHandle *> &families) {
  constexpr std::size_t tables_max = 8;
  constexpr std::uint64_t merged_whole_max = 32 * mebibyte; // in a larger family a new table meets others
  for (auto *family : families) {
    const Leftovers found = leftovers_of(database, family);
    const bool whole = found.small > tables_max && found.bytes <= merged_whole_max;
    if (!whole && found.deletions <= tables_max) continue;
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    const rocksdb::Slice first(found.first);
    const rocksdb::Slice last(found.last);
    database.CompactRange(options, family, whole ? nullptr : &first, whole ? nullptr : &last).PermitUncheckedError();
  }
}

} // namespace onced::rocks
