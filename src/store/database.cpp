#include "store/database.hpp"

#include <algorithm>
#include <mutex>

#include <rocksdb/cache.h>

#include "store/descriptor.hpp"
#include "store/info_log.hpp"
#include "store/log_files.hpp"
#include "store/never_recover.hpp"
#include "store/tuning.hpp"

namespace onced::store {

// Told by RocksDB's background threads, asked by ours.
class Health final : public NeverRecover {
public:
  // From before the database opens until before it closes. `synced`: every commit is on stable storage.
  void watch(DurableMark &mark, std::filesystem::path database, bool synced) {
    const std::scoped_lock lock(mutex_);
    mark_ = &mark;
    path_ = std::move(database);
    synced_ = synced;
  }
  void rest() {
    const std::scoped_lock lock(mutex_);
    mark_ = nullptr;
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status *status) override {
    const std::scoped_lock lock(mutex_);
    if (error_.ok()) error_ = *status;
    failed_.store(true, std::memory_order_release);
  }

  // A memtable is full, so its log is complete: commits go on in another one. What it holds of other families is not
  // flushed, so it will be needed beside the new one.
  void OnFlushBegin(rocksdb::DB *, const rocksdb::FlushJobInfo &) override {
    const std::scoped_lock lock(mutex_);
    remember_logs();
  }

  // A memtable has become a table, and its log may go: a good moment to put the mark on stable storage.
  void OnFlushCompleted(rocksdb::DB *, const rocksdb::FlushJobInfo &) override {
    const std::scoped_lock lock(mutex_);
    if (mark_ == nullptr) return;
    remember_logs();
    mark_->sync();
  }

  [[nodiscard]] rocksdb::Status error() const {
    if (!failed_.load(std::memory_order_acquire)) return {};
    const std::scoped_lock lock(mutex_);
    return error_;
  }

private:
  // All but the newest log are complete. Where commits are not synced, nobody knows what of them is on stable storage.
  void remember_logs() {
    if (mark_ == nullptr || !synced_) return;
    auto logs = log_files(path_);
    if (!logs.empty()) logs.pop_back();
    mark_->remember(logs);
  }

  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  rocksdb::Status error_;
  DurableMark *mark_ = nullptr;
  std::filesystem::path path_;
  bool synced_ = false;
};

namespace {

constexpr std::size_t families_of_format_1 = 4;

Error loss_error(const std::string &concerns, const std::string &cause) {
  return {
      .code = ErrorCode::loss_suspected,
      .concerns = concerns,
      .cause = cause,
      .remedy =
          "restore the missing files; or open with --accept-loss to go on without those rows, whose jobs would then "
          "take effect again if they are delivered again"};
}

// RocksDB names the file where it can; of a damaged log only its warnings do.
Error opening_error(const rocksdb::Status &status, const std::string &concerns, const std::string &damage) {
  Error error = status_error(status, concerns);
  if (status.IsCorruption() && !damage.empty()) error.cause += "; " + damage;
  return error;
}

bool database_exists(const std::filesystem::path &path) {
  std::error_code error;
  return std::filesystem::exists(path / "CURRENT", error);
}

// The mark of a new database is made before the database, so that a database without one has lost it.
Result<DurableMark> open_mark(const StoreOptions &options, const std::filesystem::path &path) {
  const bool exists = database_exists(path);
  if (!exists && (options.read_only || !options.create)) {
    return tl::unexpected(Error{.code = ErrorCode::not_found,
                                .concerns = path.string(),
                                .cause = "there is no database",
                                .remedy = "check --data; a worker creates its database when it starts"});
  }
  auto mark = DurableMark::open(options.directory, options.read_only);
  if (mark) {
    if (exists || mark->sequence() == 0 || options.accept_loss) return mark;
    return tl::unexpected(loss_error(path.string(), "the database is gone, or its file CURRENT is, and it held rows"));
  }
  const bool absent = mark.error().code == ErrorCode::not_found;
  if (absent && exists && !options.accept_loss) {
    return tl::unexpected(loss_error((options.directory / "durable.mark").string(),
                                     "the file is missing, so it cannot be seen whether rows are"));
  }
  const bool may_create = !options.read_only && (options.accept_loss || (absent && !exists));
  return may_create ? DurableMark::create(options.directory) : std::move(mark);
}

// The names of the families that there are. One that this program does not know was made by a newer one.
Result<std::vector<std::string>> check_families(const rocksdb::DBOptions &options, const std::string &path) {
  std::vector<std::string> names;
  const auto status = rocksdb::DB::ListColumnFamilies(options, path, &names);
  if (!status.ok()) return tl::unexpected(status_error(status, path));
  const auto known = column_families(nullptr);
  for (const std::string &name : names) {
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&](const auto &family) { return family.name == name; });
    if (!is_known) {
      return tl::unexpected(
          Error{.code = ErrorCode::newer_format,
                .concerns = path,
                .cause = "the database has a column family '" + name + "' that this program does not know",
                .remedy = "use the program that wrote it, or a newer one"});
    }
  }
  return names;
}

} // namespace

Error status_error(const rocksdb::Status &status, const std::string &concerns) {
  const std::string text = status.ToString();
  if (status.IsCorruption()) {
    return {.code = ErrorCode::corrupt,
            .concerns = concerns,
            .cause = text,
            .remedy = "restore the named file from a copy of the whole data directory; do not delete it"};
  }
  if (text.find("Resource temporarily unavailable") != std::string::npos) {
    return {.code = ErrorCode::locked,
            .concerns = concerns,
            .cause = "another process has the database open",
            .remedy = "stop that process first"};
  }
  return {.code = ErrorCode::store_unavailable,
          .concerns = concerns,
          .cause = text,
          .remedy = "check the disk, its free space and the rights of this user; then open again: jobs that were not "
                    "acknowledged are found out by their next delivery"};
}

Error write_error(const rocksdb::Status &status, const std::string &concerns) {
  Error error = status_error(status, concerns);
  error.code = ErrorCode::store_unavailable;
  return error;
}

rocksdb::WriteOptions synced_write() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

rocksdb::ReadOptions scan_options() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return options;
}

bool is_retryable(const rocksdb::Status &status) {
  return status.IsBusy() || status.IsTimedOut() || status.IsTryAgain();
}

Result<std::unique_ptr<Database>> Database::open(const StoreOptions &options) {
  return open_for(Purpose::use, options);
}

Result<std::unique_ptr<Database>> Database::open_for(Purpose purpose, const StoreOptions &options) {
  const auto path = options.directory / "db";
  auto mark = open_mark(options, path);
  if (!mark) return tl::unexpected(mark.error());
  if (!options.read_only && !options.accept_loss && mark->sequence() > 0) {
    if (auto looked = look_first(options); !looked) return tl::unexpected(looked.error());
    if (auto kept = keep_logs(path, *mark); !kept) return tl::unexpected(kept.error());
  }

  std::unique_ptr<Database> database(
      new Database(path, options.read_only, options.environment, std::move(*mark), std::make_shared<Health>()));
  if (auto opened = database->open_files(purpose, options); !opened) return tl::unexpected(opened.error());

  if (const auto loss = database->suspected_loss()) {
    if (!options.accept_loss || options.read_only) return tl::unexpected(loss_error(path.string(), *loss));
    const std::uint64_t last = database->db_->GetLatestSequenceNumber();
    if (auto reset = database->mark_.reset(last); !reset) return tl::unexpected(reset.error());
  }
  return database;
}

// What the mark knows to be missing. RocksDB itself opens without a log, or without its end.
std::optional<std::string> Database::suspected_loss() const {
  const std::uint64_t last = db_->GetLatestSequenceNumber();
  if (last < mark_.sequence()) {
    return "the last sequence number is " + std::to_string(last) + ", but " + std::to_string(mark_.sequence()) +
           " was on stable storage: a log (*.log) was cut short or deleted";
  }
  std::uint64_t first_needed = 0;
  if (!db_->GetIntProperty(rocksdb::DB::Properties::kMinLogNumberToKeep, &first_needed)) return std::nullopt;
  return missing_log(path_, mark_.complete_logs(), first_needed);
}

// RocksDB's opening writes out what it recovers and will not look at those logs again: a log that is put back after a
// refusal would then be passed over in silence, its rows lost and the mark content. So what could be refused is looked
// for by an opening that writes nothing.
Result<void> Database::look_first(const StoreOptions &options) {
  StoreOptions looking = options;
  looking.read_only = true;
  const auto database = open_for(Purpose::look, looking);
  if (!database) return tl::unexpected(database.error());
  return {};
}

// The opening turns the logs into tables and deletes them, and a MANIFEST that is cut short later on forgets those
// tables: it would ask for these logs again. That they are there is known; that all their bytes are on stable storage
// is not.
Result<void> Database::keep_logs(const std::filesystem::path &path, DurableMark &mark) {
  if (auto synced = sync_directory(path); !synced) return synced;
  auto logs = log_files(path);
  for (LogFile &log : logs)
    log.bytes = 0;
  mark.remember(logs);
  return {};
}

Database::Database(std::filesystem::path path, bool read_only, std::shared_ptr<StorageEnvironment> environment,
                   DurableMark mark, std::shared_ptr<Health> health)
    : path_(std::move(path)), read_only_(read_only), environment_(std::move(environment)), mark_(std::move(mark)),
      health_(std::move(health)) {}

Result<void> Database::open_files(Purpose purpose, const StoreOptions &options) {
  const auto cache = block_cache(options.block_cache_bytes);
  rocksdb::DBOptions db_options = database_options(options, cache);
  db_options.listeners = {health_};
  const auto log = std::make_shared<InfoLog>(read_only_ ? std::filesystem::path() : options.directory / "rocksdb.log");
  db_options.info_log = log;
  auto families = column_families(cache);
  if (database_exists(path_)) {
    const auto names = check_families(db_options, path_.string());
    if (!names) return tl::unexpected(names.error());
    // The last ones came with format 2. An opening for writing makes them; what only reads does without.
    while (read_only_ && families.size() > families_of_format_1 &&
           std::find(names->begin(), names->end(), families.back().name) == names->end())
      families.pop_back();
  }
  if (purpose == Purpose::look) tune_for_looking(db_options, families);
  rocksdb::Status status;
  rocksdb::DB *db = nullptr;
  if (read_only_) {
    status = rocksdb::DB::OpenForReadOnly(db_options, path_.string(), families, &families_, &db);
  } else {
    health_->watch(mark_, path_, options.durability == Durability::fsync);
    status = rocksdb::TransactionDB::Open(db_options, transaction_options(), path_.string(), families, &families_,
                                          &transactions_);
    db = transactions_;
  }
  if (!status.ok()) return tl::unexpected(opening_error(status, path_.string(), log->damage()));
  db_.reset(db);
  // RocksDB makes the names inside its folder durable, and not the folder's own.
  return read_only_ ? Result<void>{} : sync_directory(options.directory);
}

Database::~Database() {
  health_->rest();
  if (!db_) return;
  for (auto *family : families_)
    db_->DestroyColumnFamilyHandle(family);
  if (!read_only_) mark_.sync();
}

Result<void> Database::health() const {
  const auto status = health_->error();
  if (status.ok()) return {};
  return tl::unexpected(status_error(status, path_.string()));
}

} // namespace onced::store
