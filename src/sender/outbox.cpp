#include "sender/outbox.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "job/messagepack.hpp"
#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "onced/version.hpp"
#include "store/database.hpp"
#include "store/descriptor.hpp"
#include "store/environment.hpp"
#include "store/info_log.hpp"
#include "store/never_recover.hpp"

namespace onced::sender {
namespace {

using messagepack::TokenReader;
using messagepack::Writer;

constexpr std::size_t mebibyte = 1024UL * 1024;
constexpr std::size_t key_bytes = 8;
constexpr std::size_t row_tokens_max = 8;
constexpr const char *meta_family = "meta";

// Big-endian, so that the order of the rows is that of the sequences.
using RowKey = std::array<char, key_bytes>;
RowKey key_of(Sequence sequence) {
  RowKey key{};
  std::uint64_t number = number_of(sequence);
  for (std::size_t at = key_bytes; at > 0; --at, number >>= 8U)
    key[at - 1] = static_cast<char>(number & 0xFFU);
  return key;
}
rocksdb::Slice slice_of(const RowKey &key) {
  return {key.data(), key.size()};
}
Sequence sequence_of(const rocksdb::Slice &key) {
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < key.size(); ++at)
    number = (number << 8U) | static_cast<std::uint8_t>(key[at]);
  return Sequence{number};
}

void encode(const OutboxJob &job, Bytes &out) {
  out.clear();
  const auto issued_at_us = std::max<std::int64_t>(job.issued_at.time_since_epoch().count(), 0);
  Writer(out)
      .array(4)
      .positive(outbox_format)
      .binary(job.tag.view())
      .positive(static_cast<std::uint64_t>(issued_at_us))
      .binary(job.job);
}

struct RowView {
  Tag tag;
  WallTime issued_at;
  BytesView job;
};

// Reads one row after another and keeps its buffer between them.
class RowDecoder {
public:
  std::optional<RowView> decode(BytesView value) {
    if (!messagepack::tokenize(value, tokens_, row_tokens_max)) return std::nullopt;
    TokenReader reader(tokens_);
    reader.array(4);
    reader.require(reader.positive() == outbox_format);
    const auto tag = Tag::from(reader.binary());
    const std::uint64_t issued_at_us = reader.positive();
    const BytesView job = reader.binary();
    reader.require(tag && issued_at_us <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    // A longer one was never written, and could never be sent.
    reader.require(job.size() <= limits::job_bytes_max);
    if (!reader.at_end()) return std::nullopt;
    return RowView{*tag, WallTime{std::chrono::microseconds{static_cast<std::int64_t>(issued_at_us)}}, job};
  }

private:
  std::vector<messagepack::Token> tokens_;
};

std::optional<std::uint64_t> decode_number(BytesView value) {
  std::vector<messagepack::Token> tokens;
  if (!messagepack::tokenize(value, tokens, 1)) return std::nullopt;
  TokenReader reader(tokens);
  const std::uint64_t number = reader.positive();
  if (!reader.at_end()) return std::nullopt;
  return number;
}

Bytes encoded(std::uint64_t number) {
  Bytes bytes;
  Writer(bytes).positive(number);
  return bytes;
}

// --- Options, each with its reason ----------------------------------------------------------------------------------

rocksdb::DBOptions database_options(const std::shared_ptr<StorageEnvironment> &environment,
                                    const std::filesystem::path &directory) {
  rocksdb::DBOptions db;
  if (environment) db.env = environment->env();
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.paranoid_checks = true;
  // A torn tail is what a crash leaves, and is cut off: its jobs were not promised. Damage before it is refused.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // The opening flushes and syncs what it recovers: what it finds is on stable storage, whatever the write said.
  db.avoid_flush_during_recovery = false;
  // After an error in the background the outbox is closed and opened again, never resumed.
  db.max_bgerror_resume_count = 0;
  db.listeners = {std::make_shared<store::NeverRecover>()};
  // A start after a kill reads at most this much log.
  db.max_total_wal_size = 32 * mebibyte;
  db.max_background_jobs = 2;
  db.max_open_files = 64;
  db.max_file_opening_threads = 1;
  // Tables are written out as they grow, so that a log sync does not queue behind one.
  db.bytes_per_sync = mebibyte;
  db.info_log = std::make_shared<store::InfoLog>(directory / "rocksdb.log");
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

rocksdb::ColumnFamilyOptions family_options(const std::shared_ptr<rocksdb::Cache> &cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  // The index counts against the cache, so memory is the same at any number of jobs. Rows are read in order, never
  // looked up, so there is no filter.
  table.cache_index_and_filter_blocks = true;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = limits::outbox_memtable_bytes;
  options.max_write_buffer_number = 2;
  const auto supported = rocksdb::GetSupportedCompressions();
  const bool lz4 = std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
  options.compression = lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = true;
  return options;
}

Error not_an_outbox(const std::filesystem::path &directory) {
  return {.code = ErrorCode::usage,
          .concerns = directory.string(),
          .cause = "is the data directory of a worker",
          .remedy = "give the outbox a directory of its own"};
}

Error newer_format(const std::string &path, const std::string &cause) {
  return {.code = ErrorCode::newer_format,
          .concerns = path,
          .cause = cause,
          .remedy = "use the program that wrote it, or a newer one"};
}

// A family that this program does not know was made by a newer one, or by a worker.
Result<void> check_families(const rocksdb::DBOptions &options, const std::filesystem::path &directory,
                            const std::string &path) {
  std::error_code error;
  if (std::filesystem::exists(directory / "durable.mark", error)) return tl::unexpected(not_an_outbox(directory));
  if (!std::filesystem::exists(std::filesystem::path(path) / "CURRENT", error)) return {};
  std::vector<std::string> names;
  const auto status = rocksdb::DB::ListColumnFamilies(options, path, &names);
  if (!status.ok()) return tl::unexpected(store::status_error(status, path));
  for (const std::string &name : names) {
    if (name == "operations") return tl::unexpected(not_an_outbox(directory));
    if (name != rocksdb::kDefaultColumnFamilyName && name != meta_family) {
      return tl::unexpected(
          newer_format(path, "the outbox has a column family '" + name + "' that this program does not know"));
    }
  }
  return {};
}

Error error_of(const rocksdb::Status &status, const std::string &path) {
  Error error = store::status_error(status, path);
  if (error.code == ErrorCode::store_unavailable) {
    error.remedy = "check the disk, its free space and the rights of this user; then start again with this outbox, and "
                   "send what was not taken again: nothing is done twice";
  }
  return error;
}

} // namespace

Result<std::unique_ptr<Outbox>> Outbox::open(const std::filesystem::path &directory, const SenderId &fresh_id,
                                             std::shared_ptr<StorageEnvironment> environment) {
  auto lock = DirectoryLock::take(directory, DirectoryLock::Mode::exclusive);
  if (!lock) return tl::unexpected(lock.error());
  std::unique_ptr<Outbox> outbox(new Outbox(std::move(*lock), directory, std::move(environment)));
  if (auto opened = outbox->open_database(); !opened) return tl::unexpected(opened.error());
  if (auto read = outbox->read_meta(fresh_id); !read) return tl::unexpected(read.error());
  if (auto counted = outbox->count_jobs(); !counted) return tl::unexpected(counted.error());
  return outbox;
}

Outbox::~Outbox() {
  if (!db_) return;
  for (auto *family : families_)
    db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
}

Result<void> Outbox::open_database() {
  const rocksdb::DBOptions options = database_options(environment_, directory_);
  if (auto checked = check_families(options, directory_, path()); !checked) return checked;
  const auto family = family_options(rocksdb::NewLRUCache(limits::outbox_cache_bytes));
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{{rocksdb::kDefaultColumnFamilyName, family},
                                                              {meta_family, family}};
  rocksdb::DB *db = nullptr;
  const auto status = rocksdb::DB::Open(options, path(), families, &families_, &db);
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  db_.reset(db);
  // RocksDB makes the names inside its folder durable, and not the folder's own.
  return store::sync_directory(directory_);
}

Result<std::optional<Bytes>> Outbox::meta_row(const char *name) const {
  Bytes value;
  const auto status = db_->Get(rocksdb::ReadOptions(), families_[1], name, &value);
  if (status.IsNotFound()) return std::optional<Bytes>{};
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  return std::optional<Bytes>(std::move(value));
}

Result<void> Outbox::read_meta(const SenderId &fresh_id) {
  const auto format = meta_row("format");
  const auto id = meta_row("sender_id");
  const auto last = meta_row("last_sequence");
  for (const auto *row : {&format, &id, &last}) {
    if (!*row) return tl::unexpected(row->error());
  }
  // The three are written together, before the first job.
  if (!*format && !*id && !*last) return begin(fresh_id);
  const auto number = *format ? decode_number(**format) : std::nullopt;
  if (number && *number > outbox_format) {
    return tl::unexpected(newer_format(path(), "the outbox has format " + std::to_string(*number) +
                                                   ", and this program knows up to " + std::to_string(outbox_format)));
  }
  if (number != outbox_format) return tl::unexpected(damaged("the row 'format' of 'meta'"));
  const auto sender = *id ? SenderId::from(**id) : std::nullopt;
  if (!sender) return tl::unexpected(damaged("the row 'sender_id' of 'meta'"));
  const auto sequence = *last ? decode_number(**last) : std::nullopt;
  if (!sequence) return tl::unexpected(damaged("the row 'last_sequence' of 'meta'"));
  id_ = *sender;
  found_.last_sequence = Sequence{*sequence};
  return {};
}

Result<void> Outbox::begin(const SenderId &fresh_id) {
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(store::scan_options()));
  rows->SeekToFirst();
  if (rows->Valid()) return tl::unexpected(damaged("'meta', which is empty although there are jobs,"));
  rocksdb::WriteBatch batch;
  auto status = batch.Put(families_[1], "format", encoded(outbox_format));
  if (status.ok()) status = batch.Put(families_[1], "sender_id", Bytes(fresh_id.view()));
  if (status.ok()) status = batch.Put(families_[1], "last_sequence", encoded(0));
  rocksdb::WriteOptions options;
  options.sync = true;
  if (status.ok()) status = db_->Write(options, &batch);
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  id_ = fresh_id;
  return {};
}

Result<void> Outbox::count_jobs() {
  RowDecoder decoder;
  Digester digester;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(store::scan_options()));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    auto row = decoder.decode(rows->value().ToStringView());
    // A worker takes no job with the tag of other bytes: it would be sent for ever.
    if (row && row->tag != digester.tag(row->job)) row.reset();
    const bool known = rows->key().size() == key_bytes && sequence_of(rows->key()) <= found_.last_sequence;
    if (!row || !known) return tl::unexpected(damaged("the job " + rows->key().ToString(true)));
    ++found_.jobs;
    found_.bytes += row->job.size();
  }
  if (!rows->status().ok()) return tl::unexpected(error_of(rows->status(), path()));
  return {};
}

Result<void> Outbox::append(std::span<const OutboxJob> jobs, Sequence last_sequence) {
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  Bytes value;
  for (const OutboxJob &job : jobs) {
    encode(job, value);
    if (status.ok()) status = batch.Put(slice_of(key_of(job.sequence)), value);
  }
  // In the same write, so that a sequence is never used again, whatever is removed.
  if (status.ok()) status = batch.Put(families_[1], "last_sequence", encoded(number_of(last_sequence)));
  rocksdb::WriteOptions options;
  options.sync = true;
  if (status.ok()) status = db_->Write(options, &batch);
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  return {};
}

Result<void> Outbox::remove(std::span<const Sequence> sequences) {
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  for (const Sequence sequence : sequences) {
    if (status.ok()) status = batch.Delete(slice_of(key_of(sequence)));
  }
  if (status.ok()) status = db_->Write(rocksdb::WriteOptions(), &batch);
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  return {};
}

Result<Outbox::Read> Outbox::read_after(Sequence after, std::size_t jobs_max, std::size_t bytes_max) const {
  Read read;
  RowDecoder decoder;
  std::size_t bytes = 0;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(store::scan_options()));
  for (rows->Seek(slice_of(key_of(Sequence{number_of(after) + 1}))); rows->Valid(); rows->Next()) {
    const auto row = decoder.decode(rows->value().ToStringView());
    if (!row || rows->key().size() != key_bytes) {
      return tl::unexpected(damaged("the job " + rows->key().ToString(true)));
    }
    if (read.jobs.size() >= jobs_max || row->job.size() > bytes_max - bytes) return read;
    bytes += row->job.size();
    read.jobs.push_back({sequence_of(rows->key()), row->tag, row->issued_at, Bytes(row->job)});
  }
  if (!rows->status().ok()) return tl::unexpected(error_of(rows->status(), path()));
  read.at_end = true;
  return read;
}

Error Outbox::damaged(const std::string &what) const {
  return {.code = ErrorCode::corrupt,
          .concerns = path(),
          .cause = what + " cannot be read",
          .remedy = "restore the outbox from a copy, or send its jobs again from their source with a new one: nothing "
                    "is done twice"};
}

} // namespace onced::sender
