#include "rocksdb/database.hpp"

#include <algorithm>

#include <rocksdb/cache.h>

#include "base/descriptor.hpp"
#include "rocksdb/info_log.hpp"
#include "rocksdb/tuning.hpp"

namespace onced::rocks {

namespace {

Error loss_error(const DatabaseKind &kind, const std::string &concerns, const std::string &cause) {
  return {
      .code = ErrorCode::loss_suspected, .concerns = concerns, .cause = cause, .remedy = std::string(kind.loss_remedy)};
}

// RocksDB names the file where it can; of a damaged log only its warnings do.
Error opening_error(const DatabaseOptions &options, const rocksdb::Status &status, const std::string &concerns,
                    const std::string &damage) {
  Error error = status_error(status, concerns);
  if (status.IsCorruption() && !damage.empty()) error.cause += "; " + damage;
  if (error.code == ErrorCode::store_unavailable) error.remedy = options.kind.unavailable_remedy;
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

// What a mark says of a database, and the mark itself where there is one.
struct FoundMark {
  MarkContent known;
  std::optional<DurableMark> mark;
};

// Of a database that is there, and whose mark cannot be read.
Result<FoundMark> without_mark(const DatabaseOptions &options, const Error &error) {
  const bool absent = error.code == ErrorCode::not_found;
  FoundMark nothing;
  nothing.known.older = options.kind.began_without_mark;
  if (absent && options.kind.began_without_mark) return nothing;
  if (options.accept_loss && !options.read_only) return nothing;
  if (!absent) return tl::unexpected(error);
  return tl::unexpected(loss_error(options.kind, (options.directory / options.kind.mark).string(),
                                   "the file is missing, so it cannot be seen whether rows are"));
}

// The mark of a new store is made before its database, so that a database without one has lost it.
Result<FoundMark> find_mark(const DatabaseOptions &options, const std::filesystem::path &path) {
  const bool exists = database_exists(path);
  const bool may_begin = !options.read_only && options.create;
  auto mark = DurableMark::open(options.directory, options.kind.mark, options.read_only);
  if (!mark && exists) return without_mark(options, mark.error());
  if (mark && !exists && mark->sequence() > 0 && !options.accept_loss) {
    return tl::unexpected(
        loss_error(options.kind, path.string(), "the database is gone, or its file CURRENT is, and it held rows"));
  }
  if (!exists && !may_begin) return tl::unexpected(no_database(path));
  const bool absent = !mark && mark.error().code == ErrorCode::not_found;
  if (!mark && !absent && !options.accept_loss) return tl::unexpected(mark.error());
  if (!mark && options.kind.began_without_mark) return FoundMark{};
  auto made = mark ? std::move(mark) : DurableMark::create(options.directory, options.kind.mark);
  if (!made) return tl::unexpected(made.error());
  FoundMark found{.known = made->content(), .mark = std::nullopt};
  found.mark.emplace(std::move(*made));
  return found;
}

// The names of the families that there are. One that this program does not know was made by a newer one.
Result<std::vector<std::string>> check_families(const DatabaseOptions &options, const rocksdb::DBOptions &db,
                                                const std::string &path) {
  std::vector<std::string> names;
  const auto status = rocksdb::DB::ListColumnFamilies(db, path, &names);
  if (status.IsPathNotFound()) {
    return tl::unexpected(Error{.code = ErrorCode::corrupt,
                                .concerns = path,
                                .cause = "the manifest that the file CURRENT names cannot be read",
                                .remedy = "restore the named file from a copy of the whole directory"});
  }
  if (!status.ok()) return tl::unexpected(opening_error(options, status, path, {}));
  const auto known = options.kind.families(nullptr);
  for (const std::string &name : names) {
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&](const auto &family) { return family.name == name; });
    if (!is_known) {
      return tl::unexpected(Error{.code = ErrorCode::newer_format,
                                  .concerns = path,
                                  .cause = "the " + std::string(options.kind.what) + " has a column family '" + name +
                                           "' that this program does not know",
                                  .remedy = "use the program that wrote it, or a newer one"});
    }
  }
  return names;
}

} // namespace

Error never_begun(const std::filesystem::path &path) {
  return {.code = ErrorCode::not_found,
          .concerns = path.string(),
          .cause = "the database was made, but never begun",
          .remedy = "start a worker on it first"};
}

Result<std::unique_ptr<Database>> Database::open(const DatabaseOptions &options) {
  return open_for(Purpose::use, options);
}

Result<std::unique_ptr<Database>> Database::open_for(Purpose purpose, const DatabaseOptions &options) {
  const auto path = options.directory / "db";
  if (auto expected = expect_kind(options.kind.directory, options.directory); !expected) {
    return tl::unexpected(expected.error());
  }
  if (options.lock != nullptr && !options.read_only) {
    if (auto checked = options.lock->check(); !checked) return tl::unexpected(checked.error());
  }
  auto mark = find_mark(options, path);
  if (!mark) return tl::unexpected(mark.error());
  // A database of which no boot was begun holds nothing, and may lack families: its making was cut short.
  const bool was_begun = mark->known.boot > 0 || mark->known.sequence > 0;
  if (!options.read_only && !options.accept_loss && was_begun && database_exists(path)) {
    if (auto looked = look_first(options); !looked) return tl::unexpected(looked.error());
  }
  std::unique_ptr<Database> database(new Database(path, options, std::move(mark->known), std::move(mark->mark)));
  if (auto opened = database->open_files(purpose, options); !opened) return tl::unexpected(opened.error());
  if (auto whole = database->check_whole(options); !whole) return tl::unexpected(whole.error());
  return database;
}

// RocksDB itself opens without a log, or without its end.
Result<void> Database::check_whole(const DatabaseOptions &options) {
  const bool accepts = options.accept_loss && !options.read_only;
  const auto claims = read_claims(*db_, family(engine::Family::meta));
  if (!claims && !accepts) return tl::unexpected(claims.error());
  if (claims) claims_ = *claims;
  if (accepts) return {};
  const auto loss = find_loss(check_->known(), *check_, *db_, claims_);
  if (loss) return tl::unexpected(loss_error(kind_, path_.string(), *loss));
  return {};
}

// RocksDB's opening writes out what it recovers and will not look at those logs again: a log that is put back after a
// refusal would then be passed over in silence, its rows lost and the mark content. So what could be refused is looked
// for by an opening that writes nothing.
Result<void> Database::look_first(const DatabaseOptions &options) {
  DatabaseOptions looking = options;
  looking.read_only = true;
  const auto database = open_for(Purpose::look, looking);
  if (!database) return tl::unexpected(database.error());
  return {};
}

Database::Database(std::filesystem::path path, const DatabaseOptions &options, MarkContent known,
                   std::optional<DurableMark> mark)
    : path_(std::move(path)), kind_(options.kind), read_only_(options.read_only),
      accepts_loss_(options.accept_loss && !options.read_only), environment_(options.environment),
      mark_(std::move(mark)), check_(std::make_unique<LogCheck>(std::move(known), accepts_loss_)),
      watch_(std::make_shared<LogWatch>()) {}

Result<void> Database::open_files(Purpose purpose, const DatabaseOptions &options) {
  const auto cache = block_cache(options.cache_bytes);
  rocksdb::DBOptions db_options = database_options(options, cache);
  db_options.listeners = {watch_};
  db_options.wal_filter = check_.get();
  if (!read_only_) {
    place_ = std::make_shared<Place>(path_, options.lock);
    db_options.listeners.push_back(place_);
  }
  const auto log = std::make_shared<InfoLog>(read_only_ ? std::filesystem::path() : options.directory / "rocksdb.log");
  db_options.info_log = log;
  auto families = kind_.families(cache);
  if (database_exists(path_)) {
    const auto names = check_families(options, db_options, path_.string());
    if (!names) return tl::unexpected(names.error());
    // An opening for writing makes those that are missing.
    const bool lacks_families = read_only_ && names->size() < families.size();
    const bool was_begun = check_->known().boot > 0 || check_->known().sequence > 0;
    if (lacks_families && was_begun) {
      return tl::unexpected(
          loss_error(kind_, path_.string(), "a column family is missing: MANIFEST was cut short, or is another file"));
    }
    if (lacks_families) return tl::unexpected(never_begun(path_));
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
  if (!status.ok() && check_->violation())
    return tl::unexpected(loss_error(kind_, path_.string(), *check_->violation()));
  if (!status.ok()) return tl::unexpected(opening_error(options, status, path_.string(), log->damage()));
  db_.reset(db);
  if (read_only_) return {};
  place_->settle();
  merge_leftovers(*db_, families_);
  // RocksDB makes the names inside its folder durable, and not the folder's own.
  return sync_directory(options.directory);
}

Result<void> Database::begin_boot(std::uint64_t boot) {
  auto content = content_of_boot(check_->known(), *check_, *db_, boot, accepts_loss_);
  if (!content) return tl::unexpected(content.error());
  if (mark_) {
    if (auto replaced = mark_->replace(std::move(*content)); !replaced) return replaced;
  } else {
    auto mark = DurableMark::create(path_.parent_path(), kind_.mark, std::move(*content));
    if (!mark) return tl::unexpected(mark.error());
    mark_.emplace(std::move(*mark));
  }
  watch_->watch(*mark_, *db_);
  return {};
}

Result<void> Database::boot_begun(const StoreIdentity &identity) {
  claims_.identity = identity;
  mark_->advance(db_->GetLatestSequenceNumber());
  return mark_->adopt(identity);
}

void Database::mark_all_durable() {
  if (db_->FlushWAL(true).ok()) mark_->advance(db_->GetLatestSequenceNumber());
}

Database::~Database() {
  if (!db_) return;
  for (auto *family : families_)
    db_->DestroyColumnFamilyHandle(family);
  if (!read_only_ && mark_) mark_->sync();
}

Error Database::error_of(const rocksdb::Status &status) const {
  Error error = status_error(status, path());
  if (error.code == ErrorCode::store_unavailable) error.remedy = kind_.unavailable_remedy;
  return error;
}

Error Database::error_of_write(const rocksdb::Status &status) const {
  Error error = error_of(status);
  error.code = ErrorCode::store_unavailable;
  error.remedy = kind_.unavailable_remedy;
  return error;
}

Result<void> Database::health() const {
  const auto status = watch_->error();
  if (status.ok()) return {};
  // RocksDB calls it a corruption when a file that it had written is gone.
  if (auto placed = check_place(); !placed) return placed;
  return tl::unexpected(error_of(status));
}

} // namespace onced::rocks
