// Redis with its own queue: a stream and a consumer group. The script that keeps the results also acknowledges.
#include <charconv>
#include <stdexcept>

#include "redis.hpp"

namespace onced::bench::peers {
namespace {

// A script, so that a batch is one turn of the server's loop and one fsync. Ids are the deliveries' numbers.
constexpr std::string_view add_script = R"(
local first = tonumber(ARGV[1])
for at = 2, #ARGV do
  redis.call('XADD', KEYS[1], string.format('%d-1', first + at - 2), 'j', ARGV[at])
end
)";

constexpr std::string_view stream_script = R"(
local rows = {}
for at = 1, #KEYS do
  rows[at] = redis.call('SET', KEYS[at], ARGV[at], 'NX', 'GET')
end
redis.call('XACK', 'jobs', 'workers', unpack(ARGV, #KEYS + 1))
return rows
)";

class RedisStreamProducer final : public Producer {
public:
  explicit RedisStreamProducer(const std::string &socket)
      : connection_(socket), script_(connection_.load_script(add_script)) {}

  // The next batch is on its way while the one before it is synced.
  void add(std::size_t first, std::span<const BytesView> jobs) override {
    const std::string number = std::to_string(first);
    words_.assign({"EVALSHA", script_, "1", "jobs", number});
    words_.insert(words_.end(), jobs.begin(), jobs.end());
    connection_.send(words_);
    if (unanswered_) (void)connection_.receive();
    unanswered_ = true;
  }
  void finish() override {
    if (unanswered_) (void)connection_.receive();
    unanswered_ = false;
  }

private:
  RedisConnection connection_;
  std::string script_;
  std::vector<BytesView> words_;
  bool unanswered_ = false;
};

class RedisStreamConsumer final : public Consumer {
public:
  RedisStreamConsumer(const std::string &socket, std::string name)
      : rows_(socket), script_(rows_.connection().load_script(stream_script)), name_(std::move(name)) {}

  void take(std::size_t count, std::vector<Taken> &taken) override {
    taken.clear();
    ids_.clear();
    const std::string limit = std::to_string(count);
    entries_ = rows_.connection().call(
        {"XREADGROUP", "GROUP", "workers", name_, "COUNT", limit, "BLOCK", "50", "STREAMS", "jobs", ">"});
    if (entries_->type == REDIS_REPLY_NIL) return;
    const redisReply &entries = *entries_->element[0]->element[1];
    for (std::size_t at = 0; at < entries.elements; ++at) {
      const BytesView id = view(*entries.element[at]->element[0]);
      std::size_t delivery = 0;
      if (std::from_chars(id.data(), id.data() + id.size(), delivery).ec != std::errc{}) {
        throw std::runtime_error("an entry of the stream has a foreign id");
      }
      taken.push_back({.delivery = delivery, .job = view(*entries.element[at]->element[1]->element[1])});
      ids_.emplace_back(id);
    }
  }
  void look(std::span<Offer *const> offers) override { rows_.look(offers); }
  void store(std::span<Offer *const> offers) override { rows_.store(script_, offers, ids_); }

private:
  RedisRows rows_;
  std::string script_;
  std::string name_;
  RedisReply entries_; // what was taken points into it
  std::vector<std::string> ids_;
};

class RedisStream final : public Peer {
public:
  explicit RedisStream(const std::filesystem::path &directory) : server_(directory) {}

  std::string version() override { return server_.version(); }
  void reset(unsigned) override { RedisConnection(server_.socket()).call({"FLUSHALL"}); }
  std::unique_ptr<Consumer> connect() override {
    return std::make_unique<RedisStreamConsumer>(server_.socket(), "worker-" + std::to_string(++consumers_));
  }
  // With a stream anew: the ids of its entries, the deliveries' numbers, begin again.
  std::unique_ptr<Producer> connect_producer() override {
    RedisConnection connection(server_.socket());
    connection.call({"DEL", "jobs"});
    connection.call({"XGROUP", "CREATE", "jobs", "workers", "0", "MKSTREAM"});
    return std::make_unique<RedisStreamProducer>(server_.socket());
  }
  bool take_waits() const override { return true; }
  std::size_t count_rows() override { return server_.count_keys() - 1; } // the stream is a key too
  std::chrono::nanoseconds server_cpu() const override { return server_.process().cpu(); }

private:
  RedisServer server_;
  unsigned consumers_ = 0;
};

} // namespace

std::unique_ptr<Peer> make_redis_stream(const std::filesystem::path &directory) {
  return std::make_unique<RedisStream>(directory);
}

} // namespace onced::bench::peers
