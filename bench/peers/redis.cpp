#include "redis.hpp"

#include <csignal>
#include <stdexcept>

namespace onced::bench::peers {
namespace {

// One write and one fsync for all commands of a turn of the server's loop, before their replies. No snapshots and no
// rewriting of the log beside the run.
std::string redis_configuration(const std::filesystem::path &directory, const std::string &socket) {
  return "port 0\nunixsocket " + socket + "\ndir " + directory.string() +
         "\nappendonly yes\nappendfsync always\nsave \"\"\nauto-aof-rewrite-percentage 0\n"
         "stream-node-max-bytes 16384\nstream-node-max-entries 512\nlua-time-limit 0\n";
}

} // namespace

BytesView view(const redisReply &reply) {
  return {reply.str, reply.len};
}

RedisConnection::RedisConnection(const std::string &socket) : context_(redisConnectUnix(socket.c_str())) {
  if (context_ == nullptr || context_->err != 0) throw std::runtime_error("no connection to redis-server");
  context_->reader->maxbuf = 0; // keep the buffer between replies
  redisSetTimeout(context_.get(), timeval{.tv_sec = 60, .tv_usec = 0});
}

void RedisConnection::send(const std::vector<BytesView> &words) {
  starts_.clear();
  lengths_.clear();
  for (const BytesView word : words) {
    starts_.push_back(word.data());
    lengths_.push_back(word.size());
  }
  redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), starts_.data(), lengths_.data());
  for (int done = 0; done == 0;) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) throw std::runtime_error("redis-server is gone");
  }
}

RedisReply RedisConnection::receive() {
  void *read = nullptr;
  if (redisGetReply(context_.get(), &read) != REDIS_OK) {
    throw std::runtime_error(std::string("redis-server: ") + context_->errstr);
  }
  RedisReply reply(static_cast<redisReply *>(read));
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error("redis-server: " + std::string(view(*reply)));
  return reply;
}

RedisReply RedisConnection::call(const std::vector<BytesView> &words) {
  send(words);
  return receive();
}

std::string RedisConnection::load_script(std::string_view script) {
  return std::string(view(*call({"SCRIPT", "LOAD", script})));
}

RedisServer::RedisServer(const std::filesystem::path &directory) : socket_((directory / "redis.sock").string()) {
  const std::string program = require_program("/usr/bin/redis-server");
  make_folder(directory);
  const auto file = directory / "redis.conf";
  write_file(file, redis_configuration(directory, socket_));
  process_ = std::make_unique<ServerProcess>(
      std::vector<std::string>{"setpriv", "--pdeathsig", "KILL", program, file.string()}, SIGKILL,
      directory / "redis.log", [this] {
        const std::unique_ptr<redisContext, void (*)(redisContext *)> probe(redisConnectUnix(socket_.c_str()),
                                                                            redisFree);
        return probe != nullptr && probe->err == 0;
      });
}

std::string RedisServer::version() const {
  RedisConnection connection(socket_);
  const RedisReply reply = connection.call({"INFO", "server"});
  const std::string text(view(*reply));
  const std::string name = "redis_version:";
  const auto start = text.find(name) + name.size();
  return "redis " + text.substr(start, text.find('\r', start) - start);
}

std::size_t RedisServer::count_keys() const {
  RedisConnection connection(socket_);
  return static_cast<std::size_t>(connection.call({"DBSIZE"})->integer);
}

void RedisRows::hold(const redisReply &rows, std::span<Offer *const> offers) {
  if (rows.elements != offers.size()) throw std::runtime_error("redis-server answered for other keys");
  for (std::size_t at = 0; at < offers.size(); ++at) {
    const redisReply &row = *rows.element[at];
    if (row.type == REDIS_REPLY_NIL) continue;
    const BytesView value = view(row);
    offers[at]->hold(value.substr(0, Digest::size), value.substr(std::min(value.size(), Digest::size)));
  }
}

void RedisRows::look(std::span<Offer *const> offers) {
  words_.assign({"MGET"});
  for (const Offer *offer : offers)
    words_.emplace_back(offer->key.bytes);
  hold(*connection_.call(words_), offers);
}

void RedisRows::store(const std::string &script, std::span<Offer *const> offers, const std::vector<std::string> &more) {
  const std::string count = std::to_string(offers.size());
  if (values_.size() < offers.size()) values_.resize(offers.size());
  words_.assign({"EVALSHA", script, count});
  for (const Offer *offer : offers)
    words_.emplace_back(offer->key.bytes);
  for (std::size_t at = 0; at < offers.size(); ++at) {
    values_[at].assign(offers[at]->digest.view());
    values_[at] += offers[at]->result;
    words_.emplace_back(values_[at]);
  }
  words_.insert(words_.end(), more.begin(), more.end());
  hold(*connection_.call(words_), offers);
}

} // namespace onced::bench::peers
