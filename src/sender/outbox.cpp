#include "sender/outbox.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "base/descriptor.hpp"
#include "base/directory_kind.hpp"
#include "base/draw_id.hpp"
#include "base/messagepack.hpp"
#include "onced/digest.hpp"
#include "onced/limits.hpp"
#include "onced/random.hpp"
#include "onced/version.hpp"
#include "rocksdb/database.hpp"
#include "rocksdb/environment.hpp"
#include "rocksdb/info_log.hpp"
#include "rocksdb/slices.hpp"
#include "rocksdb/tuning.hpp"
#include "store/rows/records.hpp"

namespace onced::sender {
namespace {

using messagepack::TokenReader;
using messagepack::Writer;

constexpr std::size_t mebibyte = 1024UL * 1024;
constexpr std::size_t key_bytes = 8;
constexpr std::size_t row_tokens_max = 8;
constexpr std::uint64_t row_version = 1;
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
      .positive(row_version)
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
    reader.require(reader.positive() == row_version);
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
  // A start after a kill reads at most this much log.
  db.max_total_wal_size = 32 * mebibyte;
  db.max_background_jobs = 2;
  db.max_open_files = 64;
  db.max_file_opening_threads = 1;
  // Tables are written out as they grow, so that a log sync does not queue behind one.
  db.bytes_per_sync = mebibyte;
  db.info_log = std::make_shared<rocks::InfoLog>(directory / "rocksdb.log");
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

Error newer_format(const std::string &path, const std::string &cause) {
  return {.code = ErrorCode::newer_format,
          .concerns = path,
          .cause = cause,
          .remedy = "use the program that wrote it, or a newer one"};
}

Error damaged(const std::string &path, const std::string &what) {
  return {.code = ErrorCode::corrupt,
          .concerns = path,
          .cause = what + " cannot be read",
          .remedy = "restore the outbox from a copy, or send its jobs again from their source with a new one: nothing "
                    "is done twice"};
}

// The families that there are; none: there is no database yet. One that this program does not know was made by a newer
// one.
Result<std::vector<std::string>> check_families(const rocksdb::DBOptions &options,
                                                const std::filesystem::path &directory, const std::string &path) {
  if (auto expected = expect_kind(DirectoryKind::outbox, directory); !expected) {
    return tl::unexpected(expected.error());
  }
  std::error_code error;
  std::vector<std::string> names;
  if (!std::filesystem::exists(std::filesystem::path(path) / "CURRENT", error)) return names;
  const auto status = rocksdb::DB::ListColumnFamilies(options, path, &names);
  if (status.IsPathNotFound()) return tl::unexpected(damaged(path, "the manifest that 'CURRENT' names"));
  if (!status.ok()) return tl::unexpected(rocks::status_error(status, path));
  for (const std::string &name : names) {
    if (name != rocksdb::kDefaultColumnFamilyName && name != meta_family) {
      return tl::unexpected(
          newer_format(path, "the outbox has a column family '" + name + "' that this program does not know"));
    }
  }
  return names;
}

Error error_of(const rocksdb::Status &status, const std::string &path) {
  Error error = rocks::status_error(status, path);
  if (error.code == ErrorCode::store_unavailable) {
    error.remedy = "check the disk, its free space and the rights of this user; then start again with this outbox, and "
                   "send what was not taken again: nothing is done twice";
  }
  return error;
}

} // namespace

Outbox::Outbox(DirectoryLock lock, std::shared_ptr<StorageEnvironment> environment, bool accept_loss)
    : lock_(std::move(lock)), directory_(lock_.directory()), environment_(std::move(environment)),
      accept_loss_(accept_loss), watch_(std::make_shared<rocks::LogWatch>()) {}

Result<std::unique_ptr<Outbox>> Outbox::open(const std::filesystem::path &directory, const SenderId &fresh_id,
                                             std::shared_ptr<StorageEnvironment> environment, bool accept_loss) {
  auto lock = DirectoryLock::take(directory, DirectoryLock::Mode::exclusive);
  if (!lock) return tl::unexpected(lock.error());
  std::unique_ptr<Outbox> outbox(new Outbox(std::move(*lock), std::move(environment), accept_loss));
  if (auto opened = outbox->open_database(); !opened) return tl::unexpected(opened.error());
  if (auto read = outbox->read_meta(fresh_id); !read) return tl::unexpected(read.error());
  if (auto counted = outbox->count_jobs(); !counted) return tl::unexpected(counted.error());
  if (auto begun = outbox->begin_boot(); !begun) return tl::unexpected(begun.error());
  return outbox;
}

Outbox::~Outbox() {
  if (!db_) return;
  for (auto *family : families_)
    db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  if (mark_) mark_->sync();
}

// An outbox of before has none: it then says what a mark that knows nothing does.
Result<rocks::MarkContent> Outbox::read_mark(bool exists) const {
  auto mark = rocks::DurableMark::open(directory_, outbox_mark_name, true);
  if (mark && !exists && mark->sequence() > 0 && !accept_loss_)
    return tl::unexpected(lost("the database is gone, or its file CURRENT is, and it held jobs"));
  if (mark) return mark->content();
  rocks::MarkContent nothing;
  nothing.older = true;
  if (accept_loss_ || mark.error().code == ErrorCode::not_found) return nothing;
  return tl::unexpected(mark.error());
}

// RocksDB's own opening writes out what it recovers, and deletes the logs. So what could be refused is looked for by an
// opening that writes nothing.
Result<void> Outbox::look_first(const rocksdb::DBOptions &options, const rocks::MarkContent &known,
                                const std::vector<std::string> &names) const {
  rocks::LogCheck check(known, false);
  rocksdb::DBOptions looking = options;
  looking.create_if_missing = false;
  looking.create_missing_column_families = false;
  looking.wal_filter = &check;
  const auto family = family_options(rocksdb::NewLRUCache(limits::outbox_cache_bytes));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string &name : names)
    families.emplace_back(name, family);
  std::vector<rocksdb::ColumnFamilyHandle *> handles;
  rocksdb::DB *opened = nullptr;
  const auto status = rocksdb::DB::OpenForReadOnly(looking, path(), families, &handles, &opened);
  if (!status.ok()) return tl::unexpected(check.violation() ? lost(*check.violation()) : error_of(status, path()));
  const std::unique_ptr<rocksdb::DB> database(opened);
  Result<rocks::Claims> claims;
  for (auto *handle : handles) {
    if (handle->GetName() == meta_family) claims = rocks::read_claims(*database, handle);
  }
  const auto loss = claims ? rocks::find_loss(known, check, *database, *claims) : std::nullopt;
  for (auto *handle : handles)
    database->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  if (!claims) return tl::unexpected(claims.error());
  if (loss) return tl::unexpected(lost(*loss));
  return {};
}

Result<void> Outbox::open_database() {
  rocksdb::DBOptions options = database_options(environment_, directory_);
  const auto names = check_families(options, directory_, path());
  if (!names) return tl::unexpected(names.error());
  const auto known = read_mark(!names->empty());
  if (!known) return tl::unexpected(known.error());
  if (!names->empty() && !accept_loss_) {
    if (auto looked = look_first(options, *known, *names); !looked) return looked;
  }
  check_ = std::make_unique<rocks::LogCheck>(*known, accept_loss_);
  place_ = std::make_shared<rocks::Place>(path(), &lock_);
  options.wal_filter = check_.get();
  options.listeners = {watch_, place_};
  const auto family = family_options(rocksdb::NewLRUCache(limits::outbox_cache_bytes));
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{{rocksdb::kDefaultColumnFamilyName, family},
                                                              {meta_family, family}};
  rocksdb::DB *db = nullptr;
  const auto status = rocksdb::DB::Open(options, path(), families, &families_, &db);
  if (!status.ok()) return tl::unexpected(check_->violation() ? lost(*check_->violation()) : error_of(status, path()));
  db_.reset(db);
  place_->settle();
  rocks::merge_leftovers(*db_, families_);
  auto claims = rocks::read_claims(*db_, families_[1]);
  if (!claims) return tl::unexpected(claims.error());
  claims_ = *claims;
  if (!accept_loss_) {
    if (const auto loss = rocks::find_loss(*known, *check_, *db_, claims_)) return tl::unexpected(lost(*loss));
  }
  // RocksDB makes the names inside its folder durable, and not the folder's own.
  return sync_directory(directory_);
}

// The mark first, then the batch with which the outbox has this boot and this identity.
Result<void> Outbox::begin_boot() {
  if (!claims_.boots) return tl::unexpected(damaged(path(), "the row 'boots' of 'meta'"));
  const std::uint64_t boot = *claims_.boots + 1;
  auto content = rocks::content_of_boot(check_->known(), *check_, *db_, boot, accept_loss_);
  if (!content) return tl::unexpected(content.error());
  SystemRandom random;
  const rocks::StoreIdentity identity = claims_.identity.value_or(draw_id<rocks::StoreIdentity>(random));
  auto mark = rocks::DurableMark::create(directory_, outbox_mark_name, std::move(*content));
  if (!mark) return tl::unexpected(mark.error());
  mark_.emplace(std::move(*mark));
  watch_->watch(*mark_, *db_);
  rocksdb::WriteBatch batch;
  auto status = batch.Put(families_[1], "format", messagepack::encode_number(outbox_format));
  if (status.ok()) status = batch.Put(families_[1], "sender_id", Bytes(id_.view()));
  if (status.ok())
    status = batch.Put(families_[1], "last_sequence", messagepack::encode_number(number_of(found_.last_sequence)));
  if (status.ok()) status = batch.Put(families_[1], rocks::slice_of(rocks::identity_name), Bytes(identity.view()));
  if (status.ok())
    status = batch.Put(families_[1], rocks::slice_of(rocks::boots_name), messagepack::encode_number(boot));
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  if (auto written = write_marked(batch); !written) return written;
  return mark_->adopt(identity);
}

// On stable storage when it returns, and the mark says so.
Result<void> Outbox::write_marked(rocksdb::WriteBatch &batch) {
  const std::scoped_lock lock(writing_);
  const auto status = db_->Write(rocks::synced_write(), &batch);
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  mark_->advance(db_->GetLatestSequenceNumber());
  return {};
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
  // They are written together, before the first job.
  if (!*format && !*id && !*last) return begin(fresh_id);
  const auto number = *format ? messagepack::decode_number(**format) : std::nullopt;
  if (number && *number > outbox_format) {
    return tl::unexpected(newer_format(path(), "the outbox has format " + std::to_string(*number) +
                                                   ", and this program knows up to " + std::to_string(outbox_format)));
  }
  if (!number || *number == 0) return tl::unexpected(damaged(path(), "the row 'format' of 'meta'"));
  const auto sender = *id ? SenderId::from(**id) : std::nullopt;
  if (!sender) return tl::unexpected(damaged(path(), "the row 'sender_id' of 'meta'"));
  const auto sequence = *last ? messagepack::decode_number(**last) : std::nullopt;
  if (!sequence) return tl::unexpected(damaged(path(), "the row 'last_sequence' of 'meta'"));
  id_ = *sender;
  found_.last_sequence = Sequence{*sequence};
  return {};
}

// A new outbox: its rows are written when it has begun its boot.
Result<void> Outbox::begin(const SenderId &fresh_id) {
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(rocks::scan_options()));
  rows->SeekToFirst();
  if (rows->Valid()) return tl::unexpected(damaged(path(), "'meta', which is empty although there are jobs,"));
  id_ = fresh_id;
  return {};
}

Result<void> Outbox::count_jobs() {
  RowDecoder decoder;
  Digester digester;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(rocks::scan_options()));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    auto row = decoder.decode(rows->value().ToStringView());
    // A worker takes no job with the tag of other bytes: it would be sent for ever.
    if (row && row->tag != digester.tag(row->job)) row.reset();
    const bool known = rows->key().size() == key_bytes && sequence_of(rows->key()) <= found_.last_sequence;
    if (!row || !known) return tl::unexpected(damaged(path(), "the job " + rows->key().ToString(true)));
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
  if (status.ok())
    status = batch.Put(families_[1], "last_sequence", messagepack::encode_number(number_of(last_sequence)));
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  if (auto written = write_marked(batch); !written) return written;
  return place_->check(); // what is not where the next opening looks is not kept
}

Result<void> Outbox::remove(std::span<const Sequence> sequences) {
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  for (const Sequence sequence : sequences) {
    if (status.ok()) status = batch.Delete(slice_of(key_of(sequence)));
  }
  const std::scoped_lock lock(writing_);
  if (status.ok()) status = db_->Write(rocksdb::WriteOptions(), &batch);
  if (!status.ok()) return tl::unexpected(error_of(status, path()));
  return place_->check(); // those that are left were promised too
}

Result<Outbox::Read> Outbox::read_after(Sequence after, std::size_t jobs_max, std::size_t bytes_max) const {
  Read read;
  RowDecoder decoder;
  std::size_t bytes = 0;
  const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(rocks::scan_options()));
  for (rows->Seek(slice_of(key_of(Sequence{number_of(after) + 1}))); rows->Valid(); rows->Next()) {
    const auto row = decoder.decode(rows->value().ToStringView());
    if (!row || rows->key().size() != key_bytes) {
      return tl::unexpected(damaged(path(), "the job " + rows->key().ToString(true)));
    }
    if (read.jobs.size() >= jobs_max || row->job.size() > bytes_max - bytes) return read;
    bytes += row->job.size();
    read.jobs.push_back({sequence_of(rows->key()), row->tag, row->issued_at, Bytes(row->job)});
  }
  if (!rows->status().ok()) return tl::unexpected(error_of(rows->status(), path()));
  read.at_end = true;
  return read;
}

Error Outbox::lost(const std::string &cause) const {
  return {.code = ErrorCode::loss_suspected,
          .concerns = path(),
          .cause = cause,
          .remedy =
              "restore the missing files; or open it with --accept-loss to go on with the jobs that are left, and "
              "send the input again: nothing is done twice"};
}

} // namespace onced::sender
