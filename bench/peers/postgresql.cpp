#include "postgresql.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include <pwd.h>
#include <unistd.h>

namespace onced::bench::peers {
namespace {

// No checkpoint, no full page written twice and no growing of the log within a run; plans that use the index from the
// first row on, whatever the statistics say.
constexpr const char *configuration = R"(
listen_addresses = ''
fsync = on
synchronous_commit = on
full_page_writes = on
wal_sync_method = fdatasync
shared_buffers = 512MB
wal_buffers = 64MB
wal_level = minimal
max_wal_senders = 0
max_wal_size = 8GB
min_wal_size = 2GB
checkpoint_timeout = 1h
max_connections = 40
jit = off
track_activities = off
plan_cache_mode = force_generic_plan
enable_seqscan = off
enable_bitmapscan = off
autovacuum_naptime = 5s
logging_collector = off
)";

// The newest of the installed versions.
std::filesystem::path find_binaries() {
  const std::filesystem::path root = "/usr/lib/postgresql";
  int newest = 0;
  std::error_code none;
  for (const auto &entry : std::filesystem::directory_iterator(root, none)) {
    newest = std::max(newest, std::atoi(entry.path().filename().c_str()));
  }
  if (newest == 0) throw Missing("postgresql is not installed");
  return root / std::to_string(newest) / "bin";
}

// The server refuses to run as root: then it runs as the user of its package, who is given the folder.
std::vector<std::string> words_to_run_as_owner(const std::filesystem::path &folder) {
  std::vector<std::string> words{"setpriv", "--pdeathsig", "QUIT"};
  if (::geteuid() != 0) return words;
  passwd user{};
  passwd *found = nullptr;
  std::vector<char> buffer(16384);
  if (::getpwnam_r("postgres", &user, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    throw Missing("there is no user postgres");
  }
  if (::chown(folder.c_str(), found->pw_uid, found->pw_gid) != 0) throw std::runtime_error("chown failed");
  words.insert(words.end(), {"--reuid", "postgres", "--regid", "postgres", "--clear-groups"});
  return words;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string> &more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

} // namespace

BytesView column(const PGresult &answer, int row, int column) {
  return {PQgetvalue(&answer, row, column), static_cast<std::size_t>(PQgetlength(&answer, row, column))};
}

void append_big_endian(Bytes &bytes, std::uint64_t number, unsigned size) {
  for (unsigned at = size; at > 0; --at)
    bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * (at - 1))));
}

void ArrayParameter::begin(std::size_t count) {
  bytes_.clear();
  append_big_endian(bytes_, 1, 4);  // dimensions
  append_big_endian(bytes_, 0, 4);  // no nulls
  append_big_endian(bytes_, 17, 4); // the type bytea
  append_big_endian(bytes_, count, 4);
  append_big_endian(bytes_, 1, 4); // the first index
}

void ArrayParameter::add(BytesView element) {
  append_big_endian(bytes_, element.size(), 4);
  bytes_ += element;
}

PostgresqlConnection::PostgresqlConnection(const std::string &socket_folder)
    : connection_(PQconnectdb(("host='" + socket_folder + "' user=postgres dbname=postgres").c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
}

void PostgresqlConnection::fail() const {
  throw std::runtime_error(std::string("postgresql: ") + PQerrorMessage(connection_.get()));
}

PostgresqlAnswer PostgresqlConnection::check(PGresult *answer) const {
  PostgresqlAnswer owned(answer);
  const auto status = PQresultStatus(answer);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_COPY_IN &&
      status != PGRES_PIPELINE_SYNC) {
    fail();
  }
  return owned;
}

void PostgresqlConnection::run(const char *sql) {
  check(PQexec(connection_.get(), sql));
}

void PostgresqlConnection::prepare(const char *name, const char *sql) {
  check(PQprepare(connection_.get(), name, sql, 0, nullptr));
}

void PostgresqlConnection::bind(std::span<const BytesView> parameters) {
  values_.clear();
  lengths_.clear();
  for (const BytesView parameter : parameters) {
    values_.push_back(parameter.data());
    lengths_.push_back(static_cast<int>(parameter.size()));
  }
  formats_.assign(parameters.size(), 1);
}

PostgresqlAnswer PostgresqlConnection::call(const char *name, std::span<const BytesView> parameters) {
  bind(parameters);
  return check(PQexecPrepared(connection_.get(), name, static_cast<int>(parameters.size()), values_.data(),
                              lengths_.data(), formats_.data(), 1));
}

void PostgresqlConnection::begin_pipeline() {
  if (PQenterPipelineMode(connection_.get()) != 1) fail();
}

void PostgresqlConnection::queue(const char *name, std::span<const BytesView> parameters) {
  bind(parameters);
  if (PQsendQueryPrepared(connection_.get(), name, static_cast<int>(parameters.size()), values_.data(), lengths_.data(),
                          formats_.data(), 1) != 1) {
    fail();
  }
  ++queued_;
}

std::vector<PostgresqlAnswer> PostgresqlConnection::flush() {
  if (PQpipelineSync(connection_.get()) != 1) fail();
  std::vector<PostgresqlAnswer> answers;
  answers.reserve(queued_);
  for (; queued_ > 0; --queued_) {
    answers.push_back(check(PQgetResult(connection_.get())));
    PQgetResult(connection_.get()); // null: the end of this one
  }
  check(PQgetResult(connection_.get())); // of the sync
  if (PQexitPipelineMode(connection_.get()) != 1) fail();
  return answers;
}

void PostgresqlConnection::copy(const char *sql, BytesView bytes) {
  run(sql);
  if (PQputCopyData(connection_.get(), bytes.data(), static_cast<int>(bytes.size())) != 1 ||
      PQputCopyEnd(connection_.get(), nullptr) != 1) {
    fail();
  }
  while (PGresult *answer = PQgetResult(connection_.get()))
    check(answer);
}

std::size_t PostgresqlConnection::count(const char *sql) {
  const PostgresqlAnswer answer = check(PQexec(connection_.get(), sql));
  return std::stoul(PQgetvalue(answer.get(), 0, 0));
}

PostgresqlServer::PostgresqlServer(const std::filesystem::path &directory) : socket_folder_(directory.string()) {
  const auto binaries = find_binaries();
  const std::string postgres = require_program(binaries / "postgres");
  const std::string initdb = require_program(binaries / "initdb");
  make_folder(directory);
  const auto as_owner = words_to_run_as_owner(directory);
  const auto data = directory / "data";
  const auto log = directory / "postgresql.log";
  run_program(with(as_owner, {initdb, "-D", data.string(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
                              "--no-sync", "--wal-segsize=64"}),
              log);
  write_file(directory / "bench.conf",
             std::string(configuration) + "unix_socket_directories = '" + socket_folder_ + "'\n");
  process_ = std::make_unique<ServerProcess>(
      with(as_owner, {postgres, "-D", data.string(), "-c", "config_file=" + (directory / "bench.conf").string(), "-c",
                      "hba_file=" + (data / "pg_hba.conf").string()}),
      SIGQUIT, log, [this] { return PQping(("host='" + socket_folder_ + "'").c_str()) == PQPING_OK; });
}

std::string PostgresqlServer::version() const {
  PostgresqlConnection connection(socket_folder_);
  connection.prepare("version", "SELECT current_setting('server_version')");
  const PostgresqlAnswer answer = connection.call("version", {});
  return "postgresql " + std::string(column(*answer, 0, 0));
}

void PostgresqlServer::reset() const {
  PostgresqlConnection connection(socket_folder_);
  connection.run("SET client_min_messages = warning; DROP TABLE IF EXISTS results;"
                 "CREATE TABLE results (key bytea PRIMARY KEY, digest bytea NOT NULL, result bytea NOT NULL)");
  connection.run("CHECKPOINT");
}

std::size_t PostgresqlServer::count_rows() const {
  return PostgresqlConnection(socket_folder_).count("SELECT count(*) FROM results");
}

PostgresqlRows::PostgresqlRows(PostgresqlConnection &connection) : connection_(connection) {
  connection_.prepare("insert", "INSERT INTO results SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) "
                                "ON CONFLICT DO NOTHING RETURNING key");
  connection_.prepare("look", "SELECT key, digest, result FROM results WHERE key = ANY ($1::bytea[])");
}

void PostgresqlRows::look(std::span<Offer *const> offers) {
  keys_.begin(offers.size());
  for (const Offer *offer : offers)
    keys_.add(offer->key.bytes);
  parameters_.assign({keys_.bytes()});
  const PostgresqlAnswer rows = connection_.call("look", parameters_);
  for (int row = 0; row < PQntuples(rows.get()); ++row) {
    const BytesView key = column(*rows, row, 0);
    const auto found = std::lower_bound(offers.begin(), offers.end(), key, [](const Offer *offer, BytesView wanted) {
      return BytesView(offer->key.bytes) < wanted;
    });
    if (found == offers.end() || (*found)->key.bytes != key) throw std::runtime_error("postgresql: a foreign key");
    (*found)->hold(column(*rows, row, 1), column(*rows, row, 2));
  }
}

std::span<const BytesView> PostgresqlRows::insert_parameters(std::span<Offer *const> offers) {
  keys_.begin(offers.size());
  digests_.begin(offers.size());
  results_.begin(offers.size());
  for (const Offer *offer : offers) {
    keys_.add(offer->key.bytes);
    digests_.add(offer->digest.view());
    results_.add(offer->result);
  }
  parameters_.assign({keys_.bytes(), digests_.bytes(), results_.bytes()});
  return parameters_;
}

void PostgresqlRows::inserted(const PGresult &answer, std::span<Offer *const> offers) {
  const auto count = static_cast<std::size_t>(PQntuples(&answer));
  if (count == offers.size()) return;
  std::vector<Offer *> others;
  others.reserve(offers.size() - count);
  int row = 0; // in the order of the offers
  for (Offer *offer : offers) {
    const bool ours = row < PQntuples(&answer) && column(answer, row, 0) == offer->key.bytes;
    if (ours) ++row;
    if (!ours) others.push_back(offer);
  }
  look(others);
  if (row != PQntuples(&answer) ||
      std::any_of(others.begin(), others.end(), [](auto *offer) { return !offer->held; })) {
    throw std::runtime_error("postgresql: a row is neither inserted nor there");
  }
}

} // namespace onced::bench::peers
