#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <libpq-fe.h>

#include "peer.hpp"
#include "server.hpp"

// What both PostgreSQL peers share: server, connection, and the rows of results.
namespace onced::bench::peers {

struct PostgresqlAnswerDeleter {
  void operator()(PGresult *answer) const { PQclear(answer); }
};
using PostgresqlAnswer = std::unique_ptr<PGresult, PostgresqlAnswerDeleter>;

[[nodiscard]] BytesView column(const PGresult &answer, int row, int column);
void append_big_endian(Bytes &bytes, std::uint64_t number, unsigned size);

// A parameter in PostgreSQL's binary form: an array of bytea of one dimension.
class ArrayParameter {
public:
  void begin(std::size_t count);
  void add(BytesView element);
  [[nodiscard]] BytesView bytes() const { return bytes_; }

private:
  Bytes bytes_;
};

// Throws where the server answers an error.
class PostgresqlConnection {
public:
  explicit PostgresqlConnection(const std::string &socket_folder);

  void run(const char *sql);
  void prepare(const char *name, const char *sql);
  // With binary parameters and a binary answer.
  PostgresqlAnswer call(const char *name, std::span<const BytesView> parameters);

  // The same, many in one round trip.
  void begin_pipeline();
  void queue(const char *name, std::span<const BytesView> parameters);
  // The answers to all that was queued since the last call.
  std::vector<PostgresqlAnswer> flush();

  // COPY ... FROM STDIN BINARY with these bytes.
  void copy(const char *sql, BytesView bytes);
  [[nodiscard]] std::size_t count(const char *sql);

private:
  void bind(std::span<const BytesView> parameters);
  PostgresqlAnswer check(PGresult *answer) const;
  [[noreturn]] void fail() const;

  struct Deleter {
    void operator()(PGconn *connection) const { PQfinish(connection); }
  };
  std::unique_ptr<PGconn, Deleter> connection_;
  std::size_t queued_ = 0;
  std::vector<const char *> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

// A cluster of this program, run by the user that the package made, on a unix socket in its data folder.
class PostgresqlServer {
public:
  explicit PostgresqlServer(const std::filesystem::path &directory);
  [[nodiscard]] const std::string &socket_folder() const { return socket_folder_; }
  [[nodiscard]] const ServerProcess &process() const { return *process_; }
  [[nodiscard]] std::string version() const;
  // An empty table of results, and a checkpoint that is then not in the run's way.
  void reset() const;
  [[nodiscard]] std::size_t count_rows() const;

private:
  std::string socket_folder_;
  std::unique_ptr<ServerProcess> process_;
};

// The statements on results, on a connection.
class PostgresqlRows {
public:
  explicit PostgresqlRows(PostgresqlConnection &connection);

  void look(std::span<Offer *const> offers);
  // The parameters of the prepared statement `insert`, valid until the next call. Its answer goes to `inserted`.
  [[nodiscard]] std::span<const BytesView> insert_parameters(std::span<Offer *const> offers);
  // Holds what was not inserted: it is there, committed by another.
  void inserted(const PGresult &answer, std::span<Offer *const> offers);

private:
  PostgresqlConnection &connection_;
  ArrayParameter keys_;
  ArrayParameter digests_;
  ArrayParameter results_;
  std::vector<BytesView> parameters_;
};

} // namespace onced::bench::peers
