#include "rocksdb/database.hpp"

#include <algorithm>

#include <rocksdb/cache.h>

#include "base/descriptor.hpp"
#include "base/directory_kind.hpp"
#include "rocksdb/info_log.hpp"
#include "rocksdb/tuning.hpp"

namespace onced::rocks {

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

Error no_database(const std::filesystem::path &path) {
  return {.code = ErrorCode::not_found,
          .concerns = path.string(),
          .cause = "there is no database",
          .remedy = "check --data; a worker creates its database when it starts"};
}

Error never_begun(const std::filesystem::path &path) {
  return {.code = ErrorCode::not_found,
          .concerns = path.string(),
          .cause = "the database was made, but never begun",
          .remedy = "start a worker on it first"};
}

// The mark of a new database is made before the database, so that a database without one has lost it.
Result<DurableMark> open_mark(const StoreOptions &options, const std::filesystem::path &path) {
  const bool exists = database_exists(path);
  const bool may_begin = !options.read_only && options.create;
  auto mark = DurableMark::open(options.directory, store_mark_name, options.read_only);
  if (mark) {
    if (exists) return mark;
    if (mark->sequence() > 0 && !options.accept_loss) {
      return tl::unexpected(
          loss_error(path.string(), "the database is gone, or its file CURRENT is, and it held rows"));
    }
    return may_begin ? std::move(mark) : tl::unexpected(no_database(path));
  }
  const bool absent = mark.error().code == ErrorCode::not_found;
  if (!exists && !may_begin) return tl::unexpected(no_database(path));
  if (absent && exists && !options.accept_loss) {
    return tl::unexpected(loss_error((options.directory / store_mark_name).string(),
                                     "the file is missing, so it cannot be seen whether rows are"));
  }
  const bool may_create = !options.read_only && (options.accept_loss || (absent && !exists));
  return may_create ? DurableMark::create(options.directory, store_mark_name) : std::move(mark);
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

Result<std::unique_ptr<Database>> Database::open(const StoreOptions &options) {
  return open_for(Purpose::use, options);
}

Result<std::unique_ptr<Database>> Database::open_for(Purpose purpose, const StoreOptions &options) {
  const auto path = options.directory / "db";
  if (auto expected = expect_kind(DirectoryKind::worker, options.directory); !expected) {
    return tl::unexpected(expected.error());
  }
  if (options.lock != nullptr && !options.read_only) {
    if (auto checked = options.lock->check(); !checked) return tl::unexpected(checked.error());
  }
  auto mark = open_mark(options, path);
  if (!mark) return tl::unexpected(mark.error());
  // A database of which no boot was begun holds nothing, and may lack families: its making was cut short.
  const bool was_begun = mark->content().boot > 0 || mark->sequence() > 0;
  if (!options.read_only && !options.accept_loss && was_begun && database_exists(path)) {
    if (auto looked = look_first(options); !looked) return tl::unexpected(looked.error());
  }
  std::unique_ptr<Database> database(new Database(path, options, std::move(*mark)));
  if (auto opened = database->open_files(purpose, options); !opened) return tl::unexpected(opened.error());
  if (auto whole = database->check_whole(options); !whole) return tl::unexpected(whole.error());
  return database;
}

// RocksDB itself opens without a log, or without its end.
Result<void> Database::check_whole(const StoreOptions &options) {
  const bool accepts = options.accept_loss && !options.read_only;
  const auto claims = read_claims(*db_, family(engine::Family::meta));
  if (!claims && !accepts) return tl::unexpected(claims.error());
  if (claims) claims_ = *claims;
  if (accepts) return {};
  const auto loss = find_loss(mark_.content(), *check_, *db_, claims_);
  if (loss) return tl::unexpected(loss_error(path_.string(), *loss));
  return {};
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

Database::Database(std::filesystem::path path, const StoreOptions &options, DurableMark mark)
    : path_(std::move(path)), read_only_(options.read_only), accepts_loss_(options.accept_loss && !options.read_only),
      environment_(options.environment), mark_(std::move(mark)),
      check_(std::make_unique<LogCheck>(mark_.content(), accepts_loss_)), watch_(std::make_shared<LogWatch>()) {}

Result<void> Database::open_files(Purpose purpose, const StoreOptions &options) {
  const auto cache = block_cache(options.block_cache_bytes);
  rocksdb::DBOptions db_options = database_options(options, cache);
  db_options.listeners = {watch_};
  db_options.wal_filter = check_.get();
  if (!read_only_) {
    place_ = std::make_shared<Place>(path_, options.lock);
    db_options.listeners.push_back(place_);
  }
  const auto log = std::make_shared<InfoLog>(read_only_ ? std::filesystem::path() : options.directory / "rocksdb.log");
  db_options.info_log = log;
  auto families = column_families(cache);
  if (database_exists(path_)) {
    const auto names = check_families(db_options, path_.string());
    if (!names) return tl::unexpected(names.error());
    // An opening for writing makes those that are missing.
    if (read_only_ && names->size() < families.size()) return tl::unexpected(never_begun(path_));
  }
  if (purpose == Purpose::look) tune_for_looking(db_options, families);
  rocksdb::DB *db = nullptr;
  auto status = read_only_ ? rocksdb::DB::OpenForReadOnly(db_options, path_.string(), families, &families_, &db)
                           : rocksdb::DB::Open(db_options, path_.string(), families, &families_, &db);
  // Not TransactionDB::Open: it would keep the logs of all boots, for prepared transactions, which there are none of.
  if (status.ok() && !read_only_) {
    status = rocksdb::TransactionDB::WrapDB(db, transaction_options(), {}, families_, &transactions_);
    db = transactions_;
  }
  if (!status.ok() && check_->violation()) return tl::unexpected(loss_error(path_.string(), *check_->violation()));
  if (!status.ok()) return tl::unexpected(opening_error(status, path_.string(), log->damage()));
  db_.reset(db);
  if (read_only_) return {};
  place_->settle();
  watch_->watch(mark_, *db_);
  merge_leftovers(*db_, families_);
  // RocksDB makes the names inside its folder durable, and not the folder's own.
  return sync_directory(options.directory);
}

Result<void> Database::begin_boot(std::uint64_t boot) {
  auto content = content_of_boot(mark_.content(), *check_, *db_, boot, accepts_loss_);
  if (!content) return tl::unexpected(content.error());
  return mark_.replace(std::move(*content));
}

Result<void> Database::boot_begun(const StoreIdentity &identity) {
  claims_.identity = identity;
  mark_.advance(db_->GetLatestSequenceNumber());
  return mark_.adopt(identity);
}

void Database::mark_all_durable() {
  if (db_->FlushWAL(true).ok()) mark_.advance(db_->GetLatestSequenceNumber());
}

Database::~Database() {
  if (!db_) return;
  for (auto *family : families_)
    db_->DestroyColumnFamilyHandle(family);
  if (!read_only_) mark_.sync();
}

Result<void> Database::health() const {
  const auto status = watch_->error();
  if (status.ok()) return {};
  // RocksDB calls it a corruption when a file that it had written is gone.
  if (auto placed = check_place(); !placed) return placed;
  return tl::unexpected(status_error(status, path_.string()));
}

} // namespace onced::rocks
