#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

#include "peer.hpp"
#include "server.hpp"

// What both Redis peers share: server, connection, and the script that keeps the first result of a key.
namespace onced::bench::peers {

struct RedisReplyDeleter {
  void operator()(redisReply *reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, RedisReplyDeleter>;

[[nodiscard]] BytesView view(const redisReply &reply);

// Throws where the server answers an error.
class RedisConnection {
public:
  explicit RedisConnection(const std::string &socket);

  // Words are borrowed until the call returns.
  void send(const std::vector<BytesView> &words);
  [[nodiscard]] RedisReply receive();
  RedisReply call(const std::vector<BytesView> &words);
  // The name by which EVALSHA calls it.
  [[nodiscard]] std::string load_script(std::string_view script);

private:
  struct Deleter {
    void operator()(redisContext *context) const { redisFree(context); }
  };
  std::unique_ptr<redisContext, Deleter> context_;
  std::vector<const char *> starts_;
  std::vector<std::size_t> lengths_;
};

// A redis-server of this program, on a unix socket in its data folder.
class RedisServer {
public:
  explicit RedisServer(const std::filesystem::path &directory);
  [[nodiscard]] const std::string &socket() const { return socket_; }
  [[nodiscard]] const ServerProcess &process() const { return *process_; }
  [[nodiscard]] std::string version() const;
  [[nodiscard]] std::size_t count_keys() const;

private:
  std::string socket_;
  std::unique_ptr<ServerProcess> process_;
};

// Rows are strings: 32 bytes of digest, then the result.
class RedisRows {
public:
  explicit RedisRows(const std::string &socket) : connection_(socket) {}

  [[nodiscard]] RedisConnection &connection() { return connection_; }
  void look(std::span<Offer *const> offers);
  // Calls a script whose keys are those of the offers, and whose arguments their rows, then `more`; it answers for each
  // key the row that was there.
  void store(const std::string &script, std::span<Offer *const> offers, const std::vector<std::string> &more);

private:
  void hold(const redisReply &rows, std::span<Offer *const> offers);

  RedisConnection connection_;
  std::vector<Bytes> values_;
  std::vector<BytesView> words_;
};

} // namespace onced::bench::peers
