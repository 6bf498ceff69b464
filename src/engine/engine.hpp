#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "onced/bytes.hpp"
#include "onced/error.hpp"
#include "onced/random.hpp"

// What keeps the rows of a store. The store's logic knows no more of an engine than this header says. Every engine
// passes tests/unit/engine/contract.
namespace onced::engine {

// The tables of a store (docs/storage.md). Where a unit locks rows of several families, it locks them in this order.
enum class Family : std::uint8_t { operations, queue, relay, dead_letters, meta };
inline constexpr std::array<Family, 5> all_families{Family::operations, Family::queue, Family::relay,
                                                    Family::dead_letters, Family::meta};
[[nodiscard]] std::string_view name_of(Family family);

// Sums that the engine keeps exact: a unit adds to them, and they change with its rows or not at all.
enum class Counter : std::uint8_t {
  results,      // committed rows of `operations`
  dead_letters, // rows, and the bytes of the jobs in them
  dead_letter_bytes,
  queued,
  queued_bytes,
  relayed,
  relayed_bytes,
};
inline constexpr std::size_t counter_count = 7;

class Counters {
public:
  [[nodiscard]] std::int64_t operator[](Counter counter) const { return sums_.at(static_cast<std::size_t>(counter)); }
  [[nodiscard]] std::int64_t &operator[](Counter counter) { return sums_.at(static_cast<std::size_t>(counter)); }
  Counters &operator+=(const Counters &other);
  Counters &operator-=(const Counters &other);
  bool operator==(const Counters &) const = default;

  [[nodiscard]] std::array<std::int64_t, counter_count> &all() { return sums_; }
  [[nodiscard]] const std::array<std::int64_t, counter_count> &all() const { return sums_; }

private:
  std::array<std::int64_t, counter_count> sums_{};
};

// A row, as it was looked for.
struct Found {
  enum class State : std::uint8_t {
    absent,
    present,
    damaged, // there is one, or was, and it cannot be read
    held,    // another unit holds it; only where nobody waits
  };
  State state = State::absent;
  BytesView value; // present only; valid until the session is used again
};

// Whether a row that another unit holds is waited for.
enum class Patience : std::uint8_t { none, wait };

// Where a commit is when it returns.
enum class Sync : std::uint8_t {
  stable,     // on stable storage
  page_cache, // safe from the end of the process, and not from that of the machine
};

// Why a step of a unit has failed.
struct Failure {
  enum class Kind : std::uint8_t {
    retry,       // it lost a race: nothing was written, and the unit may be made again
    unavailable, // the engine has failed: nothing was written
    unknown,     // the engine has failed after the commit was sent: nobody knows whether it was written
  };
  Kind kind = Kind::unavailable;
  Error error; // `store_unavailable`; unused with `retry`
};
using Step = tl::expected<void, Failure>;

// A row that a unit puts where there is none.
struct Claim {
  BytesView key;
  BytesView value;
};

// One unit of work at a time, and reads beside it: a transaction of an embedded engine, or a connection to a server.
// One thread at a time. Its engine must outlive it.
class Session {
public:
  virtual ~Session() = default;

  // Reads rows that are committed, by keys in ascending order. `found` gets one element a key. Error
  // `store_unavailable`; a row that cannot be read is no error, but `damaged`.
  [[nodiscard]] virtual Result<void> read(Family family, std::span<const BytesView> keys,
                                          std::vector<Found> &found) = 0;

  // Begins a unit. There must be none.
  virtual void begin(Sync sync) = 0;

  // Locks the rows that are there until the unit ends and says what they are now. An absent row may stay unlocked: only
  // `claim` keeps others from putting one. Keys in ascending order. `held` only without patience.
  [[nodiscard]] virtual Step lock(Family family, std::span<const BytesView> keys, Patience patience,
                                  std::vector<Found> &found) = 0;

  // For each key, in ascending order: `absent`: there was no row, this unit puts one, and no other unit can; `present`
  // or `damaged`: there is one, which stays as it is and may be unlocked; `held`: another unit holds the key (without
  // patience alone).
  [[nodiscard]] virtual Step claim(Family family, std::span<const Claim> claims, Patience patience,
                                   std::vector<Found> &found) = 0;

  // Puts or erases a row that this unit has locked, or that the lock of another row keeps others from.
  [[nodiscard]] virtual Step put(Family family, BytesView key, BytesView value) = 0;
  [[nodiscard]] virtual Step erase(Family family, BytesView key) = 0;
  virtual void add(Counter counter, std::int64_t amount) = 0;

  // Ends the unit. All of it is there when this returns, or, after a failure of the kind `retry`, nothing. After
  // `unknown` the session's engine must be given up.
  [[nodiscard]] virtual Step commit() = 0;
  // Ends the unit, and nothing of it is there. After a failed commit it changes nothing, and must be called.
  virtual void abandon() = 0;

  // What this session has read is as safe as a commit would make it, and the rows are still where the next opening
  // looks for them. Before this, or a commit, nothing that rests on a read may be acknowledged or cached. Error
  // `store_unavailable`.
  [[nodiscard]] virtual Result<void> confirm() = 0;
};

// Rows that are visited in the order of their keys.
struct Range {
  Family family = Family::operations;
  BytesView from = {};    // the first key, where there is a row; the prefix, if that is greater
  BytesView prefix = {};  // ends before the first row whose key begins otherwise; empty: at the end of the family
  bool backwards = false; // from the last row of the prefix; `from` is not used
};
// False: enough. What it is given is valid during the call.
using Visit = std::function<bool(BytesView key, BytesView value)>;

// All rows as they were at one moment. Any thread; its engine must outlive it.
class View {
public:
  virtual ~View() = default;

  // Nothing where there is no row. Errors: `corrupt`: it cannot be read; `store_unavailable`.
  [[nodiscard]] virtual Result<std::optional<Bytes>> get(Family family, BytesView key) const = 0;
  // Errors: `corrupt`: the rows can be read only so far; `store_unavailable`.
  [[nodiscard]] virtual Result<void> scan(const Range &range, const Visit &visit) const = 0;
  // Errors: `corrupt`: a row of the sums is damaged; `store_unavailable`.
  [[nodiscard]] virtual Result<Counters> counters() const = 0;
};

// What an engine has found out of its own files.
struct FilesReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::string damage; // empty: none
};

// That a row cannot be read, in the words of every engine and of the store. `place` as of Engine::place.
[[nodiscard]] Error damaged_row(const std::string &place, Family family, BytesView key);

// Any thread, except that nothing may run beside the destructor.
class Engine {
public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual std::unique_ptr<Session> session() = 0;
  [[nodiscard]] virtual std::unique_ptr<View> view() const = 0;

  // Begins a boot: its number, greater than all before and at least `at_least`, is on stable storage when this returns.
  // Before the first unit, once. Errors: `store_unavailable`, `corrupt`.
  [[nodiscard]] virtual Result<std::uint64_t> begin_boot(std::uint64_t at_least, Random &random) = 0;

  // Nothing, or what has failed outside of any unit: the engine must be given up. Errors: `store_unavailable`,
  // `corrupt`.
  [[nodiscard]] virtual Result<void> health() const = 0;
  // Whether all that can be read is known to be on stable storage.
  [[nodiscard]] virtual bool is_all_stable() const = 0;
  // Where the rows are, for messages.
  [[nodiscard]] virtual std::string place() const = 0;
  // Which store it is, as people see it; empty: unknown.
  [[nodiscard]] virtual std::string identity() const = 0;
  // The format that the rows had when the engine was opened; nothing: there were none.
  [[nodiscard]] virtual std::optional<std::uint64_t> format_found() const = 0;

  // Whether a row of `meta` is one that the engine keeps for itself, and can be read.
  [[nodiscard]] virtual bool is_own_row(BytesView name, BytesView value) const = 0;

  // Reads every file of the engine with its checksums. Error `store_unavailable`; damage is told in the report.
  [[nodiscard]] virtual Result<FilesReport> verify_files() const = 0;
};

} // namespace onced::engine
