#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/pool.hpp"
#include "store/rows/relay_row.hpp"
#include "store/unit_of_work.hpp"

namespace onced::store {

struct RelayPage {
  std::vector<RelayEntry> entries;
  std::optional<Bytes> next; // to go on after; nothing: there are no more
  std::uint64_t damaged = 0; // rows that cannot be read, and are not among the entries; `verify` names them
};

enum class RelayBuried : std::uint8_t {
  buried, // it is a dead letter, and has left the relay
  gone,   // it had left the relay before, or its row is damaged: nothing has changed
  busy,   // nothing has changed: the dead letters are at their cap, or others hold the dead letter's row
};

// The messages of committed results, for who sends them on. A row comes with the result that it is of, or with the
// redrive of its dead letter, and leaves once its job has its final outcome at its destination. Any thread.
//
//     committed with its result ──▶ waits ──stored or duplicate there──▶ gone
//                                   │   ▲
//       refused there for good      │   │ redrive
//                                   ▼   │
//                                dead letter here ──purge──▶ gone
class RelayQueue {
public:
  RelayQueue(StoreContext &context, Pool<UnitOfWork> &units) : context_(context), units_(units) {}
  RelayQueue(const RelayQueue &) = delete;
  RelayQueue &operator=(const RelayQueue &) = delete;

  // Up to `rows` rows to one destination, and up to limits::relay_read_bytes of jobs, at least one row; in the order of
  // their keys from the one after `after`, which is empty at first. Errors: `store_unavailable`, `corrupt`.
  [[nodiscard]] Result<RelayPage> page(std::string_view to, BytesView after, std::size_t rows) const;

  // The destinations that rows wait for, at most so many. Errors: as above.
  [[nodiscard]] Result<std::vector<std::string>> destinations(std::size_t max) const;

  // The messages in it, and their bytes.
  [[nodiscard]] RowAmount depth() const { return context_.relay_room.taken(); }

  // They are settled as a success: takes them out, in one transaction. Those that are gone already do not matter.
  // False: others held a row for too long, and nothing has changed. On stable storage, though no promise needs it: what
  // came back after a crash would be a duplicate there; but the durable mark never leads (docs/storage.md).
  // Errors: `usage` (read-only); `store_unavailable`: as of Store::commit, and whether they are gone is unknown.
  [[nodiscard]] Result<bool> remove(std::span<const Bytes> keys);

  // Its destination has said `outcome` for good, which is no success: the message becomes a dead letter here, on stable
  // storage in every mode. Errors: as above.
  [[nodiscard]] Result<RelayBuried> bury(BytesView key, Outcome outcome, std::string_view detail);

private:
  StoreContext &context_;
  Pool<UnitOfWork> &units_;
};

} // namespace onced::store
