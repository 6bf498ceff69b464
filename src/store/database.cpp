#include "store/database.hpp"

#include <algorithm>
#include <mutex>

#include <rocksdb/cache.h>
#include <rocksdb/listener.h>

#include "store/tuning.hpp"

namespace onced::store {

// Told by RocksDB's background threads, asked by ours.
class Health final : public rocksdb::EventListener {
public:
  // Set before the database opens and cleared before it closes.
  void watch(DurableMark *mark) {
    const std::scoped_lock lock(mutex_);
    mark_ = mark;
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status *status) override {
    const std::scoped_lock lock(mutex_);
    if (error_.ok()) error_ = *status;
    failed_.store(true, std::memory_order_release);
  }

  // A memtable has become a table, and its log is about to go: a good moment to put the mark on stable storage.
  void OnFlushCompleted(rocksdb::DB *, const rocksdb::FlushJobInfo &) override {
    const std::scoped_lock lock(mutex_);
    if (mark_ != nullptr) mark_->sync();
  }

  [[nodiscard]] rocksdb::Status error() const {
    if (!failed_.load(std::memory_order_acquire)) return {};
    const std::scoped_lock lock(mutex_);
    return error_;
  }

private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  rocksdb::Status error_;
  DurableMark *mark_ = nullptr;
};

namespace {

Error loss_error(const std::string &concerns, const std::string &cause) {
  return {
      .code = ErrorCode::loss_suspected,
      .concerns = concerns,
      .cause = cause,
      .remedy =
          "restore the missing files; or open with --accept-loss to go on without those rows, whose jobs would then "
          "take effect again if they are delivered again"};
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

// A family that this program does not know was made by a newer one.
Result<void> check_families(const rocksdb::DBOptions &options, const std::string &path) {
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
  return {};
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

bool is_retryable(const rocksdb::Status &status) {
  return status.IsBusy() || status.IsTimedOut() || status.IsTryAgain();
}

Result<std::unique_ptr<Database>> Database::open(const StoreOptions &options) {
  const auto path = options.directory / "db";
  auto mark = open_mark(options, path);
  if (!mark) return tl::unexpected(mark.error());
  if (!options.read_only && !options.accept_loss && mark->sequence() > 0) {
    if (auto looked = look_first(options); !looked) return tl::unexpected(looked.error());
  }

  std::unique_ptr<Database> database(
      new Database(path, options.read_only, options.environment, std::move(*mark), std::make_shared<Health>()));
  if (auto opened = database->open_files(options); !opened) return tl::unexpected(opened.error());

  const std::uint64_t last = database->db_->GetLatestSequenceNumber();
  if (last < database->mark_.sequence()) {
    if (!options.accept_loss || options.read_only) {
      return tl::unexpected(
          loss_error(path.string(), "the last sequence number is " + std::to_string(last) + ", but " +
                                        std::to_string(database->mark_.sequence()) +
                                        " was on stable storage: a log (*.log) was cut short or deleted"));
    }
    if (auto reset = database->mark_.reset(last); !reset) return tl::unexpected(reset.error());
  }
  return database;
}

// RocksDB's opening writes out what it recovers and will not look at those logs again: a log that is put back after a
// refusal would then be passed over in silence, its rows lost and the mark content. So what could be refused is looked
// for by an opening that writes nothing.
Result<void> Database::look_first(const StoreOptions &options) {
  StoreOptions looking = options;
  looking.read_only = true;
  const auto database = open(looking);
  if (!database) return tl::unexpected(database.error());
  return {};
}

Database::Database(std::filesystem::path path, bool read_only, std::shared_ptr<StorageEnvironment> environment,
                   DurableMark mark, std::shared_ptr<Health> health)
    : path_(std::move(path)), read_only_(read_only), environment_(std::move(environment)), mark_(std::move(mark)),
      health_(std::move(health)) {}

Result<void> Database::open_files(const StoreOptions &options) {
  const auto cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  rocksdb::DBOptions db_options = database_options(options, cache);
  db_options.listeners = {health_};
  if (database_exists(path_)) {
    if (auto checked = check_families(db_options, path_.string()); !checked) return checked;
  }
  rocksdb::Status status;
  rocksdb::DB *db = nullptr;
  if (read_only_) {
    status = rocksdb::DB::OpenForReadOnly(db_options, path_.string(), column_families(cache), &families_, &db);
  } else {
    health_->watch(&mark_);
    status = rocksdb::TransactionDB::Open(db_options, transaction_options(), path_.string(), column_families(cache),
                                          &families_, &transactions_);
    db = transactions_;
  }
  if (!status.ok()) return tl::unexpected(status_error(status, path_.string()));
  db_.reset(db);
  return {};
}

Database::~Database() {
  health_->watch(nullptr);
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
