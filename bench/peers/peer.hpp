#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batch.hpp"

// What the driver needs of a peer. Whatever fails throws std::runtime_error: a run that saw a failure is void.
namespace onced::bench::peers {

// A delivery out of a peer's queue.
struct Taken {
  std::size_t delivery = 0;
  BytesView job; // valid until the next `take`
};

// A connection that settles deliveries. One thread.
class Consumer {
public:
  virtual ~Consumer() = default;

  // Only of a peer with a queue: up to `count` deliveries; fewer or none when they are not there.
  virtual void take(std::size_t count, std::vector<Taken> &taken);
  // Reads the rows of these offers, and holds those that are there. What it sees is durable.
  virtual void look(std::span<Offer *const> offers) = 0;
  // Stores what is absent, holds what is there. A peer with a queue also removes from it what was taken, and is called
  // for that even when there is nothing to store. On return all of it is durable.
  virtual void store(std::span<Offer *const> offers) = 0;
};

// The connection that fills a peer's queue. One thread.
class Producer {
public:
  virtual ~Producer() = default;
  // Puts the deliveries from `first` on, in order. May return before the last call's are durable.
  virtual void add(std::size_t first, std::span<const BytesView> jobs) = 0;
  virtual void finish() {}
};

class Peer {
public:
  virtual ~Peer() = default;

  [[nodiscard]] virtual std::string version() = 0;
  // Removes all rows. No connection is open. `connections` will be.
  virtual void reset(unsigned connections) = 0;
  [[nodiscard]] virtual std::unique_ptr<Consumer> connect() = 0;
  // Null: the peer has no queue, the client feeds it.
  [[nodiscard]] virtual std::unique_ptr<Producer> connect_producer() { return nullptr; }
  // `take` waits for a delivery by itself; else the driver calls it when one has been added.
  [[nodiscard]] virtual bool take_waits() const { return false; }
  [[nodiscard]] virtual std::size_t count_rows() = 0;
  // Of all its processes so far. None where the peer lives in the client.
  [[nodiscard]] virtual std::chrono::nanoseconds server_cpu() const { return {}; }
};

inline void Consumer::take(std::size_t, std::vector<Taken> &taken) {
  taken.clear();
}

// Each starts its server, with its data in `directory`, and ends it when it is destroyed.
[[nodiscard]] std::unique_ptr<Peer> make_redis_fed(const std::filesystem::path &directory);
[[nodiscard]] std::unique_ptr<Peer> make_redis_stream(const std::filesystem::path &directory);
[[nodiscard]] std::unique_ptr<Peer> make_postgresql_fed(const std::filesystem::path &directory);
[[nodiscard]] std::unique_ptr<Peer> make_postgresql_queue(const std::filesystem::path &directory);
[[nodiscard]] std::unique_ptr<Peer> make_sqlite(const std::filesystem::path &directory);

} // namespace onced::bench::peers
