// Redis, fed by the client: one script call carries a batch.
#include "redis.hpp"

namespace onced::bench::peers {
namespace {

// The digests are compared by the client, which spares the server's only thread.
constexpr std::string_view fed_script = R"(
local rows = {}
for at = 1, #KEYS do
  rows[at] = redis.call('SET', KEYS[at], ARGV[at], 'NX', 'GET')
end
return rows
)";

class RedisFedConsumer final : public Consumer {
public:
  explicit RedisFedConsumer(const std::string &socket)
      : rows_(socket), script_(rows_.connection().load_script(fed_script)) {}

  void look(std::span<Offer *const> offers) override { rows_.look(offers); }
  void store(std::span<Offer *const> offers) override { rows_.store(script_, offers, {}); }

private:
  RedisRows rows_;
  std::string script_;
};

class RedisFed final : public Peer {
public:
  explicit RedisFed(const std::filesystem::path &directory) : server_(directory) {}

  std::string version() override { return server_.version(); }
  void reset(unsigned) override { RedisConnection(server_.socket()).call({"FLUSHALL"}); }
  std::unique_ptr<Consumer> connect() override { return std::make_unique<RedisFedConsumer>(server_.socket()); }
  std::size_t count_rows() override { return server_.count_keys(); }
  std::chrono::nanoseconds server_cpu() const override { return server_.process().cpu(); }

private:
  RedisServer server_;
};

} // namespace

std::unique_ptr<Peer> make_redis_fed(const std::filesystem::path &directory) {
  return std::make_unique<RedisFed>(directory);
}

} // namespace onced::bench::peers
