#include "rocksdb/rocksdb_engine.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <rocksdb/iostats_context.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/snapshot.h>

#include "base/draw_id.hpp"
#include "base/messagepack.hpp"
#include "engine/outbox.hpp"
#include "onced/limits.hpp"
#include "rocksdb/database.hpp"
#include "rocksdb/slices.hpp"
#include "rocksdb/sum_rows.hpp"
#include "rocksdb/tuning.hpp"

namespace onced::rocks {
namespace {

using engine::Counter;
using engine::Counters;
using engine::Failure;
using engine::Family;
using engine::Found;
using engine::Patience;
using engine::Step;
using engine::Sync;

constexpr std::string_view format_name = "format";

Error damaged_meta(const Database &database, std::string_view name) {
  return engine::damaged_row(database.path(), Family::meta, name);
}

// Gives each session that adds to sums a row of its own, which nobody else writes. Any thread.
class SumRows {
public:
  struct Seat {
    Bytes name;
    Counters sums;
  };

  // What the rows say, by number. Before any `take`.
  void begin(std::vector<Counters> found) { found_ = std::move(found); }

  [[nodiscard]] Seat take() {
    const std::scoped_lock lock(mutex_);
    const unsigned number = taken_++;
    return {.name = sums_name(number), .sums = number < found_.size() ? found_[number] : Counters{}};
  }

private:
  std::mutex mutex_; // guards the rest
  std::vector<Counters> found_;
  unsigned taken_ = 0;
};

// What all sessions of an engine share.
struct Shared {
  Database &database;
  bool has_one_writer;
  Durability durability;
  Clock *clock; // this and the next null: commits are not counted
  StoreCounters *counters;
  SumRows &sums;
  std::atomic<bool> &has_failed;
};

class RocksdbSession final : public engine::Session {
public:
  explicit RocksdbSession(const Shared &shared) : shared_(shared) {}

  [[nodiscard]] Result<void> read(Family family, std::span<const BytesView> keys, std::vector<Found> &found) override {
    const auto status = read_rows(family, keys, found);
    if (!status.ok()) return tl::unexpected(shared_.database.error_of_write(status));
    return {};
  }

  void begin(Sync sync) override;
  [[nodiscard]] Step lock(Family family, std::span<const BytesView> keys, Patience patience,
                          std::vector<Found> &found) override;
  [[nodiscard]] Step claim(Family family, std::span<const engine::Claim> claims, Patience patience,
                           std::vector<Found> &found) override;
  [[nodiscard]] Step put(Family family, BytesView key, BytesView value) override {
    return step_of(transaction_->PutUntracked(shared_.database.family(family), slice_of(key), slice_of(value)));
  }
  [[nodiscard]] Step erase(Family family, BytesView key) override {
    return step_of(transaction_->DeleteUntracked(shared_.database.family(family), slice_of(key)));
  }
  void add(Counter counter, std::int64_t amount) override {
    added_[counter] += amount;
    adds_ = true;
  }
  [[nodiscard]] Step commit() override;
  void abandon() override;
  [[nodiscard]] Result<void> confirm() override;

private:
  [[nodiscard]] rocksdb::Status read_rows(Family family, std::span<const BytesView> keys, std::vector<Found> &found);
  void let_go_of_values();
  [[nodiscard]] Step step_of(const rocksdb::Status &status) const;
  [[nodiscard]] rocksdb::Status lock_each(Family family, Patience patience, std::vector<Found> &found);
  [[nodiscard]] rocksdb::Status read_locked(Family family, std::vector<Found> &found);
  [[nodiscard]] rocksdb::Status put_sums();
  [[nodiscard]] rocksdb::Status timed_commit();

  Shared shared_;
  std::unique_ptr<rocksdb::Transaction> transaction_; // serves unit after unit
  std::optional<SumRows::Seat> seat_;                 // taken by the first unit that adds
  Sync sync_ = Sync::stable;
  Counters added_; // by the unit in hand
  bool adds_ = false;

  // Buffers.
  std::vector<BytesView> keys_;
  std::vector<BytesView> locked_keys_;
  std::vector<std::size_t> locked_;
  std::vector<Found> found_locked_;
  std::vector<rocksdb::Slice> read_keys_;
  std::vector<rocksdb::PinnableSlice> read_values_;
  std::size_t values_read_ = 0; // of them, by the last read
  std::vector<rocksdb::Status> read_statuses_;
  Bytes record_;
};

rocksdb::Status RocksdbSession::read_rows(Family family, std::span<const BytesView> keys, std::vector<Found> &found) {
  found.assign(keys.size(), {});
  read_keys_.clear();
  for (const BytesView key : keys)
    read_keys_.push_back(slice_of(key));
  // Before they are moved: a PinnableSlice that is moved while it pins a block has no buffer ever after (RocksDB 7.8).
  let_go_of_values();
  values_read_ = keys.size();
  if (keys.empty()) return {};
  if (read_values_.size() < keys.size()) read_values_.resize(keys.size());
  read_statuses_.assign(keys.size(), {});
  shared_.database.db()->MultiGet(rocksdb::ReadOptions(), shared_.database.family(family), keys.size(),
                                  read_keys_.data(), read_values_.data(), read_statuses_.data(), true);
  for (std::size_t at = 0; at < keys.size(); ++at) {
    const rocksdb::Status &status = read_statuses_[at];
    if (status.IsNotFound()) continue;
    if (status.IsCorruption()) {
      found[at].state = Found::State::damaged;
      continue;
    }
    if (!status.ok()) return status;
    found[at] = {.state = Found::State::present, .value = view_of(read_values_[at])};
  }
  return {};
}

// What was read pins its blocks in the cache until then.
void RocksdbSession::let_go_of_values() {
  for (std::size_t at = 0; at < values_read_; ++at)
    read_values_[at].Reset();
  values_read_ = 0;
}

// A step before the commit: nothing of the unit is written yet.
Step RocksdbSession::step_of(const rocksdb::Status &status) const {
  if (status.ok()) return {};
  const auto kind = is_retryable(status) ? Failure::Kind::retry : Failure::Kind::unavailable;
  return tl::unexpected(Failure{.kind = kind, .error = shared_.database.error_of_write(status)});
}

void RocksdbSession::begin(Sync sync) {
  sync_ = sync;
  rocksdb::WriteOptions options;
  // sync: the commit returns after fdatasync of the log, and only then is the write visible (RocksDB,
  // WriteOptions::sync).
  options.sync = sync == Sync::stable;
  rocksdb::TransactionOptions unit;
  unit.skip_concurrency_control = shared_.has_one_writer;
  transaction_.reset(shared_.database.transactions()->BeginTransaction(options, unit, transaction_.release()));
  transaction_->DisableIndexing(); // nothing is read back from the batch
  added_ = {};
  adds_ = false;
}

// Only locks: the rows are read together afterwards.
rocksdb::Status RocksdbSession::lock_each(Family family, Patience patience, std::vector<Found> &found) {
  found.assign(keys_.size(), {});
  locked_.clear();
  locked_keys_.clear();
  transaction_->SetLockTimeout(patience == Patience::none ? 0 : lock_timeout_ms);
  for (std::size_t at = 0; at < keys_.size(); ++at) {
    auto status = transaction_->GetForUpdate(rocksdb::ReadOptions(), shared_.database.family(family),
                                             slice_of(keys_[at]), static_cast<rocksdb::PinnableSlice *>(nullptr));
    if (status.ok()) {
      locked_.push_back(at);
      locked_keys_.push_back(keys_[at]);
    } else if (status.IsTimedOut() && patience == Patience::none) {
      found[at].state = Found::State::held;
    } else {
      return status;
    }
  }
  transaction_->SetLockTimeout(lock_timeout_ms);
  return {};
}

rocksdb::Status RocksdbSession::read_locked(Family family, std::vector<Found> &found) {
  auto status = read_rows(family, locked_keys_, found_locked_);
  for (std::size_t at = 0; status.ok() && at < locked_.size(); ++at)
    found[locked_[at]] = found_locked_[at];
  return status;
}

Step RocksdbSession::lock(Family family, std::span<const BytesView> keys, Patience patience,
                          std::vector<Found> &found) {
  keys_.assign(keys.begin(), keys.end());
  auto status = lock_each(family, patience, found);
  if (status.ok()) status = read_locked(family, found);
  return step_of(status);
}

Step RocksdbSession::claim(Family family, std::span<const engine::Claim> claims, Patience patience,
                           std::vector<Found> &found) {
  keys_.clear();
  for (const engine::Claim &claim : claims)
    keys_.push_back(claim.key);
  auto status = lock_each(family, patience, found);
  if (status.ok()) status = read_locked(family, found);
  for (std::size_t at = 0; status.ok() && at < claims.size(); ++at) {
    if (found[at].state != Found::State::absent) continue;
    status = transaction_->Put(shared_.database.family(family), slice_of(claims[at].key), slice_of(claims[at].value),
                               true); // it was locked just now
  }
  return step_of(status);
}

rocksdb::Status RocksdbSession::put_sums() {
  if (!adds_) return {};
  if (!seat_) seat_ = shared_.sums.take();
  Counters sums = seat_->sums;
  sums += added_;
  encode_sums(sums, record_);
  return transaction_->PutUntracked(shared_.database.family(Family::meta), slice_of(seat_->name), slice_of(record_));
}

rocksdb::Status RocksdbSession::timed_commit() {
  // RocksDB times the syncs of this thread, which does one for all commits that wait with it, or has another do it.
  rocksdb::IOStatsContext &io = *rocksdb::get_iostats_context();
  const std::uint64_t sync_ns_before = io.fsync_nanos;
  const bool is_timed = shared_.counters != nullptr;
  const MonotonicTime begun = is_timed ? shared_.clock->monotonic() : MonotonicTime{};
  if (is_timed) rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableTimeExceptForMutex);
  auto status = transaction_->Commit();
  if (is_timed) rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  if (!is_timed || !status.ok()) return status;
  const std::uint64_t sync_ns = io.fsync_nanos - sync_ns_before;
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(shared_.clock->monotonic() - begun);
  ++shared_.counters->commits;
  shared_.counters->commit_us += static_cast<std::uint64_t>(took.count());
  if (sync_ns > 0) ++shared_.counters->log_syncs;
  shared_.counters->log_sync_us += sync_ns / 1000;
  return status;
}

Step RocksdbSession::commit() {
  if (auto put = step_of(put_sums()); !put) return put;
  // Without rows it takes no sequence number that the mark could name.
  const bool has_rows = transaction_->GetNumPuts() + transaction_->GetNumDeletes() > 0;
  const auto status = timed_commit();
  if (!status.ok()) {
    const auto kind = is_retryable(status) ? Failure::Kind::retry : Failure::Kind::unknown;
    if (kind == Failure::Kind::unknown) shared_.has_failed = true;
    return tl::unexpected(Failure{.kind = kind, .error = shared_.database.error_of_write(status)});
  }
  const bool is_stable = shared_.durability == Durability::fsync && sync_ == Sync::stable;
  if (has_rows && is_stable) shared_.database.mark_durable(*transaction_);
  if (adds_) seat_->sums += added_;
  // What went into files that were deleted or replaced, the next opening will not find.
  if (auto placed = confirm(); !placed) {
    return tl::unexpected(Failure{.kind = Failure::Kind::unknown, .error = placed.error()});
  }
  return {};
}

void RocksdbSession::abandon() {
  let_go_of_values();
  const auto status = transaction_->Rollback(); // of a failed commit it fails too; the engine is given up then
  status.PermitUncheckedError();
}

// What can be seen is on stable storage, since a synced write is visible only after its sync; so only the place of the
// files is in question.
Result<void> RocksdbSession::confirm() {
  let_go_of_values();
  if (auto placed = shared_.database.check_place(); !placed) {
    shared_.has_failed = true;
    return placed;
  }
  return {};
}

// --- Reading at one moment ------------------------------------------------------------------------------------------

class RocksdbView final : public engine::View {
public:
  explicit RocksdbView(const Database &database) : database_(database), snapshot_(database.db()) {}

  [[nodiscard]] Result<std::optional<Bytes>> get(Family family, BytesView key) const override {
    rocksdb::ReadOptions reading;
    reading.snapshot = snapshot_.snapshot();
    Bytes value;
    const auto status = database_.db()->Get(reading, database_.family(family), slice_of(key), &value);
    if (status.IsNotFound()) return std::optional<Bytes>();
    if (!status.ok()) return tl::unexpected(database_.error_of(status));
    return std::optional<Bytes>(std::move(value));
  }

  [[nodiscard]] Result<void> scan(const engine::Range &range, const engine::Visit &visit) const override {
    auto reading = scan_options();
    reading.snapshot = snapshot_.snapshot();
    const std::unique_ptr<rocksdb::Iterator> rows(database_.db()->NewIterator(reading, database_.family(range.family)));
    if (range.backwards) {
      seek_last(*rows, range.prefix);
    } else {
      rows->Seek(slice_of(std::max(range.from, range.prefix)));
    }
    while (rows->Valid() && view_of(rows->key()).starts_with(range.prefix) &&
           visit(view_of(rows->key()), view_of(rows->value())))
      range.backwards ? rows->Prev() : rows->Next();
    if (!rows->status().ok()) return tl::unexpected(database_.error_of(rows->status()));
    return {};
  }

  [[nodiscard]] Result<Counters> counters() const override {
    Counters sums;
    std::optional<Error> damaged;
    const auto scanned = scan({.family = Family::meta, .prefix = sums_prefix}, [&](BytesView name, BytesView value) {
      const auto row = sums_number(name) ? decode_sums(value) : std::nullopt;
      if (!row) damaged = damaged_meta(database_, name);
      if (row) sums += *row;
      return row.has_value();
    });
    if (!scanned) return tl::unexpected(scanned.error());
    if (damaged) return tl::unexpected(*damaged);
    return sums;
  }

private:
  // The last row whose key begins with the prefix, or one before it.
  static void seek_last(rocksdb::Iterator &rows, BytesView prefix) {
    Bytes beyond(prefix);
    while (!beyond.empty() && beyond.back() == '\xFF')
      beyond.pop_back();
    if (beyond.empty()) return rows.SeekToLast();
    beyond.back() = static_cast<char>(static_cast<unsigned char>(beyond.back()) + 1);
    rows.SeekForPrev(slice_of(beyond));
    if (rows.Valid() && view_of(rows.key()) == beyond) rows.Prev();
  }

  const Database &database_;
  mutable rocksdb::ManagedSnapshot snapshot_; // its one reader is not const
};

// How commits are made and measured.
struct Metering {
  Durability durability = Durability::fsync;
  Clock *clock = nullptr;
  StoreCounters *counters = nullptr;
};

// --- The engine -----------------------------------------------------------------------------------------------------

class RocksdbEngine final : public engine::Engine {
public:
  RocksdbEngine(const DatabaseOptions &options, const Metering &metering, std::unique_ptr<Database> database)
      : options_(options), metering_(metering), database_(std::move(database)) {}
  ~RocksdbEngine() override {
    // What was left in the page cache is put on stable storage when a store is closed in order. What an outbox leaves
    // there are removals, which may be lost.
    if (begun_ && !options_.kind.has_one_writer && !has_failed_ && database_->health()) database_->mark_all_durable();
  }
  RocksdbEngine(const RocksdbEngine &) = delete;
  RocksdbEngine &operator=(const RocksdbEngine &) = delete;

  [[nodiscard]] Result<void> check_format();

  [[nodiscard]] std::unique_ptr<engine::Session> session() override {
    return std::make_unique<RocksdbSession>(shared(metering_.counters));
  }
  [[nodiscard]] std::unique_ptr<engine::View> view() const override {
    return std::make_unique<RocksdbView>(*database_);
  }
  [[nodiscard]] Result<std::uint64_t> begin_boot(std::uint64_t at_least, Random &random) override;
  [[nodiscard]] Result<void> health() const override { return database_->health(); }
  [[nodiscard]] bool is_all_stable() const override {
    const bool synced = !options_.read_only && metering_.durability == Durability::fsync;
    return synced || database_->mark_covers_all();
  }
  [[nodiscard]] std::string place() const override { return database_->path(); }
  [[nodiscard]] std::string identity() const override {
    const auto &identity = database_->claims().identity;
    return identity ? to_hex(identity->view()) : std::string();
  }
  [[nodiscard]] std::optional<std::uint64_t> format_found() const override { return format_found_; }
  [[nodiscard]] bool is_own_row(BytesView name, BytesView value) const override {
    if (sums_number(name)) return decode_sums(value).has_value();
    if (name == identity_name) return StoreIdentity::from(value).has_value();
    return (name == format_name || name == boots_name) && messagepack::decode_number(value);
  }
  [[nodiscard]] Result<engine::FilesReport> verify_files() const override;

private:
  [[nodiscard]] Shared shared(StoreCounters *counters) {
    return {.database = *database_,
            .has_one_writer = options_.kind.has_one_writer,
            .durability = metering_.durability,
            .clock = metering_.clock,
            .counters = counters,
            .sums = sums_,
            .has_failed = has_failed_};
  }
  // The names of damaged rows.
  [[nodiscard]] Result<std::vector<Bytes>> read_sums();

  DatabaseOptions options_;
  Metering metering_;
  std::unique_ptr<Database> database_;
  SumRows sums_;
  std::optional<std::uint64_t> format_found_;
  bool begun_ = false; // for writing
  std::atomic<bool> has_failed_{false};
};

Result<void> RocksdbEngine::check_format() {
  const auto row = view()->get(Family::meta, format_name);
  if (!row) return tl::unexpected(row.error());
  const auto unreadable = [&](const std::string &cause) {
    return tl::unexpected(Error{.code = ErrorCode::newer_format,
                                .concerns = database_->path(),
                                .cause = cause,
                                .remedy = "use the program that wrote it, or a newer one"});
  };
  const bool is_new = !row->has_value() && database_->db()->GetLatestSequenceNumber() == 0;
  if (is_new && (options_.read_only || !options_.create)) {
    return tl::unexpected(never_begun(database_->path()));
  }
  if (is_new) return {};
  // The row may be among what was lost; rows carry their format too.
  if (!row->has_value() && options_.accept_loss) return {};
  format_found_ = row->has_value() ? messagepack::decode_number(**row) : std::nullopt;
  if (!format_found_) return tl::unexpected(damaged_meta(*database_, format_name));
  if (*format_found_ > options_.kind.format) {
    return unreadable("the " + std::string(options_.kind.what) + " has format " + std::to_string(*format_found_) +
                      ", and this program knows formats up to " + std::to_string(options_.kind.format));
  }
  if (*format_found_ < options_.kind.oldest_format) {
    return unreadable("the " + std::string(options_.kind.what) + " has format " + std::to_string(*format_found_) +
                      ", and this program knows formats from " + std::to_string(options_.kind.oldest_format) + " on");
  }
  return {};
}

Result<std::vector<Bytes>> RocksdbEngine::read_sums() {
  std::vector<Counters> found;
  std::vector<Bytes> damaged;
  const auto scanned =
      view()->scan({.family = Family::meta, .prefix = sums_prefix}, [&](BytesView name, BytesView value) {
        const auto number = sums_number(name);
        const auto row = number ? decode_sums(value) : std::nullopt;
        if (!row) damaged.emplace_back(name);
        if (row && found.size() <= *number) found.resize(*number + 1);
        if (row) found[*number] = *row;
        return true;
      });
  if (!scanned) return tl::unexpected(scanned.error());
  if (!damaged.empty() && !options_.accept_loss) return tl::unexpected(damaged_meta(*database_, damaged.front()));
  sums_.begin(std::move(found));
  return damaged;
}

Result<std::uint64_t> RocksdbEngine::begin_boot(std::uint64_t at_least, Random &random) {
  const auto boots = database_->claims().boots;
  if (!boots) return tl::unexpected(damaged_meta(*database_, boots_name));
  // Where rows were lost the count of boots may be too.
  const std::uint64_t marked = options_.accept_loss ? database_->marked_boot() + 1 : 0;
  const std::uint64_t boot = std::max({*boots + 1, at_least, marked});
  if (auto raised = database_->begin_boot(boot); !raised) return tl::unexpected(raised.error());
  const auto damaged = read_sums();
  if (!damaged) return tl::unexpected(damaged.error());
  const StoreIdentity identity = database_->claims().identity.value_or(draw_id<StoreIdentity>(random));
  RocksdbSession session(shared(nullptr));
  session.begin(Sync::stable);
  auto step = session.put(Family::meta, format_name, messagepack::encode_number(options_.kind.format));
  if (step) step = session.put(Family::meta, boots_name, messagepack::encode_number(boot));
  if (step) step = session.put(Family::meta, identity_name, identity.view());
  for (const Bytes &name : *damaged)
    if (step) step = session.erase(Family::meta, name);
  if (step) step = session.commit();
  // Damage that RocksDB met in the background is the better word for it: another opening would not mend it.
  if (const auto healthy = health(); !step && !healthy) return tl::unexpected(healthy.error());
  if (!step) return tl::unexpected(step.error().error);
  if (auto begun = database_->boot_begun(identity); !begun) return tl::unexpected(begun.error());
  begun_ = true;
  return boot;
}

Result<engine::FilesReport> RocksdbEngine::verify_files() const {
  engine::FilesReport report;
  std::vector<rocksdb::LiveFileMetaData> tables;
  database_->db()->GetLiveFilesMetaData(&tables);
  report.files = tables.size();
  for (const rocksdb::LiveFileMetaData &table : tables)
    report.bytes += table.size;
  const auto status = database_->db()->VerifyChecksum(rocksdb::ReadOptions());
  if (status.IsCorruption()) {
    report.damage = status.ToString();
  } else if (!status.ok()) {
    return tl::unexpected(database_->error_of(status));
  }
  return report;
}

Result<std::unique_ptr<engine::Engine>> open(const DatabaseOptions &options, const Metering &metering) {
  auto database = Database::open(options);
  if (!database) return tl::unexpected(database.error());
  auto engine = std::make_unique<RocksdbEngine>(options, metering, std::move(*database));
  if (auto checked = engine->check_format(); !checked) return tl::unexpected(checked.error());
  return engine;
}

} // namespace

Result<std::unique_ptr<engine::Engine>> open_engine(const StoreOptions &options, Clock &clock) {
  return open(options_of_store(options),
              {.durability = options.durability, .clock = &clock, .counters = options.counters});
}

} // namespace onced::rocks

namespace onced::engine {

Result<std::unique_ptr<Engine>> open_outbox(const OutboxOptions &options) {
  return rocks::open({.kind = rocks::outbox_database,
                      .directory = options.lock.directory(),
                      .lock = &options.lock,
                      .environment = options.environment,
                      .accept_loss = options.accept_loss,
                      .cache_bytes = limits::outbox_cache_bytes},
                     {});
}

} // namespace onced::engine
