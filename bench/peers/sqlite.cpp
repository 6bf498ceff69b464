// SQLite in the client's own process: a transaction a batch. There is one writer at a time, whoever holds the mutex.
#include <mutex>
#include <stdexcept>

#include <sqlite3.h>

#include "peer.hpp"
#include "server.hpp"

namespace onced::bench::peers {
namespace {

class Database {
public:
  // `alone`: without other connections there is no need of locks in the file system and of shared memory.
  Database(const std::filesystem::path &file, bool alone) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3 *opened = nullptr;
    const int code = sqlite3_open_v2(file.c_str(), &opened, flags, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) throw std::runtime_error("sqlite cannot open " + file.string());
    sqlite3_busy_timeout(opened, 60'000);
    if (alone) run("PRAGMA locking_mode=EXCLUSIVE");
    run("PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-262144;"
        "PRAGMA wal_autocheckpoint=16384");
  }

  [[nodiscard]] sqlite3 *get() const { return database_.get(); }
  void run(const char *sql) const {
    if (sqlite3_exec(get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  [[noreturn]] void fail() const { throw std::runtime_error(std::string("sqlite: ") + sqlite3_errmsg(get())); }

private:
  struct Close {
    void operator()(sqlite3 *database) const { sqlite3_close(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

class Statement {
public:
  Statement(const Database &database, const char *sql) : database_(database) {
    sqlite3_stmt *prepared = nullptr;
    if (sqlite3_prepare_v3(database.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr) != SQLITE_OK) {
      database.fail();
    }
    statement_.reset(prepared);
  }

  // Borrowed until `reset`.
  void bind(int at, BytesView bytes) {
    sqlite3_bind_blob(statement_.get(), at, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
  }
  // Whether there is a row.
  bool step() {
    const int code = sqlite3_step(statement_.get());
    if (code != SQLITE_ROW && code != SQLITE_DONE) database_.fail();
    return code == SQLITE_ROW;
  }
  [[nodiscard]] BytesView column(int at) {
    const auto *bytes = static_cast<const char *>(sqlite3_column_blob(statement_.get(), at));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), at))};
  }
  [[nodiscard]] std::size_t number(int at) {
    return static_cast<std::size_t>(sqlite3_column_int64(statement_.get(), at));
  }
  void reset() { sqlite3_reset(statement_.get()); }

private:
  struct Finalize {
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
  };
  const Database &database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteConsumer final : public Consumer {
public:
  SqliteConsumer(const std::filesystem::path &file, std::mutex &writing, bool alone)
      : database_(file, alone), writing_(writing) {}

  void look(std::span<Offer *const> offers) override {
    begin_.step();
    begin_.reset();
    for (Offer *offer : offers)
      hold(*offer);
    end();
  }

  // A committed row is visible to others only after its fsync, so what `look` sees is durable too.
  void store(std::span<Offer *const> offers) override {
    const std::lock_guard lock(writing_);
    begin_immediate_.step();
    begin_immediate_.reset();
    for (Offer *offer : offers) {
      insert_.bind(1, offer->key.bytes);
      insert_.bind(2, offer->digest.view());
      insert_.bind(3, offer->result);
      insert_.step();
      insert_.reset();
      if (sqlite3_changes(database_.get()) == 0) hold(*offer);
    }
    end();
  }

private:
  void hold(Offer &offer) {
    select_.bind(1, offer.key.bytes);
    if (select_.step()) offer.hold(select_.column(0), select_.column(1));
    select_.reset();
  }
  void end() {
    commit_.step();
    commit_.reset();
  }

  Database database_;
  std::mutex &writing_;
  Statement begin_{database_, "BEGIN"};
  Statement begin_immediate_{database_, "BEGIN IMMEDIATE"};
  Statement commit_{database_, "COMMIT"};
  Statement insert_{database_, "INSERT INTO results VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"};
  Statement select_{database_, "SELECT digest, result FROM results WHERE key = ?1"};
};

class Sqlite final : public Peer {
public:
  explicit Sqlite(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::string version() override { return std::string("sqlite ") + sqlite3_libversion(); }
  void reset(unsigned connections) override {
    alone_ = connections == 1;
    std::filesystem::remove_all(directory_);
    make_folder(directory_);
    const Database database(file(), false);
    database.run(
        "CREATE TABLE results (key BLOB PRIMARY KEY, digest BLOB NOT NULL, result BLOB NOT NULL) WITHOUT ROWID");
  }
  std::unique_ptr<Consumer> connect() override { return std::make_unique<SqliteConsumer>(file(), writing_, alone_); }
  std::size_t count_rows() override {
    const Database database(file(), false);
    Statement count(database, "SELECT count(*) FROM results");
    count.step();
    return count.number(0);
  }

private:
  [[nodiscard]] std::filesystem::path file() const { return directory_ / "results.sqlite"; }

  std::filesystem::path directory_;
  std::mutex writing_;
  bool alone_ = false;
};

} // namespace

std::unique_ptr<Peer> make_sqlite(const std::filesystem::path &directory) {
  return std::make_unique<Sqlite>(directory);
}

} // namespace onced::bench::peers
