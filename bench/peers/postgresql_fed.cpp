// PostgreSQL, fed by the client: one statement, and so one transaction, inserts a batch.
#include "postgresql.hpp"

namespace onced::bench::peers {
namespace {

class PostgresqlFedConsumer final : public Consumer {
public:
  explicit PostgresqlFedConsumer(const std::string &socket_folder) : connection_(socket_folder), rows_(connection_) {}

  void look(std::span<Offer *const> offers) override { rows_.look(offers); }
  void store(std::span<Offer *const> offers) override {
    const PostgresqlAnswer answer = connection_.call("insert", rows_.insert_parameters(offers));
    rows_.inserted(*answer, offers);
  }

private:
  PostgresqlConnection connection_;
  PostgresqlRows rows_;
};

class PostgresqlFed final : public Peer {
public:
  explicit PostgresqlFed(const std::filesystem::path &directory) : server_(directory) {}

  std::string version() override { return server_.version(); }
  void reset(unsigned) override { server_.reset(); }
  std::unique_ptr<Consumer> connect() override {
    return std::make_unique<PostgresqlFedConsumer>(server_.socket_folder());
  }
  std::size_t count_rows() override { return server_.count_rows(); }
  std::chrono::nanoseconds server_cpu() const override { return server_.process().cpu(); }

private:
  PostgresqlServer server_;
};

} // namespace

std::unique_ptr<Peer> make_postgresql_fed(const std::filesystem::path &directory) {
  return std::make_unique<PostgresqlFed>(directory);
}

} // namespace onced::bench::peers
