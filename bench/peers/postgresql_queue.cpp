// PostgreSQL with a queue table: what is taken, is stored and removed in one transaction, in two round trips.
#include <stdexcept>

#include "postgresql.hpp"

namespace onced::bench::peers {
namespace {

constexpr const char *take_statement =
    "DELETE FROM queue WHERE ctid = ANY (ARRAY (SELECT ctid FROM queue ORDER BY id LIMIT $1::int8 FOR UPDATE SKIP "
    "LOCKED)) RETURNING id, job";

std::size_t read_big_endian(BytesView bytes) {
  std::size_t number = 0;
  for (const char byte : bytes)
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

class PostgresqlQueueProducer final : public Producer {
public:
  explicit PostgresqlQueueProducer(const std::string &socket_folder) : connection_(socket_folder) {
    connection_.prepare("add", "INSERT INTO queue VALUES ($1::int8, $2::bytea)");
  }

  void add(std::size_t first, std::span<const BytesView> jobs) override {
    bytes_.clear();
    if (jobs.size() == 1) { // one round trip where COPY takes two
      append_big_endian(bytes_, first, 8);
      const std::array<BytesView, 2> row{bytes_, jobs.front()};
      connection_.call("add", row);
      return;
    }
    bytes_.append("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19); // signature, flags, no extension
    for (std::size_t at = 0; at < jobs.size(); ++at) {
      append_big_endian(bytes_, 2, 2); // fields
      append_big_endian(bytes_, 8, 4);
      append_big_endian(bytes_, first + at, 8);
      append_big_endian(bytes_, jobs[at].size(), 4);
      bytes_ += jobs[at];
    }
    append_big_endian(bytes_, 0xffff, 2); // the end
    connection_.copy("COPY queue FROM STDIN BINARY", bytes_);
  }

private:
  PostgresqlConnection connection_;
  Bytes bytes_;
};

class PostgresqlQueueConsumer final : public Consumer {
public:
  explicit PostgresqlQueueConsumer(const std::string &socket_folder) : connection_(socket_folder), rows_(connection_) {
    connection_.prepare("begin", "BEGIN");
    connection_.prepare("commit", "COMMIT");
    connection_.prepare("take", take_statement);
  }

  void take(std::size_t count, std::vector<Taken> &taken) override {
    taken.clear();
    Bytes limit;
    append_big_endian(limit, count, 8);
    const std::array<BytesView, 1> parameters{limit};
    connection_.begin_pipeline();
    connection_.queue("begin", {});
    connection_.queue("take", parameters);
    answers_ = connection_.flush();
    const PGresult &rows = *answers_[1];
    for (int row = 0; row < PQntuples(&rows); ++row)
      taken.push_back({.delivery = read_big_endian(column(rows, row, 0)), .job = column(rows, row, 1)});
    if (taken.empty()) connection_.call("commit", {});
  }

  void look(std::span<Offer *const> offers) override { rows_.look(offers); }

  void store(std::span<Offer *const> offers) override {
    connection_.begin_pipeline();
    if (!offers.empty()) connection_.queue("insert", rows_.insert_parameters(offers));
    connection_.queue("commit", {});
    const auto answers = connection_.flush();
    if (!offers.empty()) rows_.inserted(*answers.front(), offers);
  }

private:
  PostgresqlConnection connection_;
  PostgresqlRows rows_;
  std::vector<PostgresqlAnswer> answers_; // what was taken points into it
};

class PostgresqlQueue final : public Peer {
public:
  explicit PostgresqlQueue(const std::filesystem::path &directory) : server_(directory) {}

  std::string version() override { return server_.version(); }
  void reset(unsigned) override {
    PostgresqlConnection(server_.socket_folder())
        .run("SET client_min_messages = warning; DROP TABLE IF EXISTS queue;"
             "CREATE TABLE queue (id bigint PRIMARY KEY, job bytea NOT NULL)");
    server_.reset();
  }
  std::unique_ptr<Consumer> connect() override {
    return std::make_unique<PostgresqlQueueConsumer>(server_.socket_folder());
  }
  std::unique_ptr<Producer> connect_producer() override {
    return std::make_unique<PostgresqlQueueProducer>(server_.socket_folder());
  }
  std::size_t count_rows() override {
    if (PostgresqlConnection(server_.socket_folder()).count("SELECT count(*) FROM queue") != 0) {
      throw std::runtime_error("postgresql: jobs are left in the queue");
    }
    return server_.count_rows();
  }
  std::chrono::nanoseconds server_cpu() const override { return server_.process().cpu(); }

private:
  PostgresqlServer server_;
};

} // namespace

std::unique_ptr<Peer> make_postgresql_queue(const std::filesystem::path &directory) {
  return std::make_unique<PostgresqlQueue>(directory);
}

} // namespace onced::bench::peers
