#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/digest.hpp"
#include "onced/error.hpp"
#include "onced/handler.hpp"
#include "onced/ids.hpp"
#include "onced/job.hpp"
#include "onced/kill_point.hpp"
#include "onced/limits.hpp"
#include "onced/outcome.hpp"
#include "onced/random.hpp"
#include "onced/store_counters.hpp"
#include "onced/verification.hpp"

namespace onced {

// What an acknowledgement of a final outcome promises.
enum class Durability : std::uint8_t {
  // The row is on stable storage: fdatasync of the log has returned. It survives a crash of the process and of the
  // machine
  // (RocksDB, WriteOptions::sync).
  fsync,
  // The row is in the page cache of the operating system. It survives a crash of the process; a power cut may lose it.
  page_cache,
};

// "fsync" or "page-cache", as on the command line, in replies and in rows.
[[nodiscard]] std::string_view name_of(Durability durability);
[[nodiscard]] std::optional<Durability> durability_of(std::string_view name);

// Holds the data directory against every other process, by a kernel lock on `onced.lock` that ends with the process.
// A worker takes it before it binds a socket and keeps it across reopenings of the store.
class DirectoryLock {
public:
  enum class Mode : std::uint8_t { exclusive, shared };

  // Creates the directory (mode 0700) and the lock file when `exclusive`. Errors: `locked`, naming the process that
  // holds it; `not_found` (shared only); `store_unavailable` when the directory cannot be used.
  [[nodiscard]] static Result<DirectoryLock> take(const std::filesystem::path &directory, Mode mode);

  DirectoryLock(DirectoryLock &&other) noexcept;
  DirectoryLock &operator=(DirectoryLock &&other) noexcept;
  ~DirectoryLock();

  // The directory without symbolic links, as it was when the lock was taken. Whoever holds the lock uses this path, so
  // that a link that is turned to another directory later on changes nothing.
  [[nodiscard]] const std::filesystem::path &directory() const { return directory_; }

  // Whether this path still names the directory and the lock file that were locked. After both were deleted or
  // replaced, another process may hold the path, and the next opening does not see what is written here. Two system
  // calls; any thread. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> check() const;

private:
  struct Identity;
  DirectoryLock(int descriptor, std::filesystem::path directory, std::unique_ptr<Identity> identity);
  int descriptor_ = -1;
  std::filesystem::path directory_;
  std::unique_ptr<Identity> identity_; // of the directory and of the lock file
};

// The file system under the store; opaque here. Fault tests pass their own (src/rocksdb/environment.hpp).
class StorageEnvironment;

// Is told what a store has on stable storage for others to act on, by the thread that wrote it. It must not block.
class StoreObserver {
public:
  virtual ~StoreObserver() = default;
  // A job waits in the queue: it was accepted, redriven, or its effect was found to be absent.
  virtual void queued(BytesView key, std::string_view type, WallTime accepted_at) = 0;
  // Messages wait to be sent on.
  virtual void relayed() = 0;
};

struct StoreOptions {
  std::filesystem::path directory; // the data directory; the caller holds its DirectoryLock
  // Checked after every commit, before anything is acknowledged; must outlive the store. Null: whether the directory
  // was replaced is not noticed, only whether the database in it was.
  const DirectoryLock *lock = nullptr;
  Durability durability = Durability::fsync;
  bool read_only = false;   // nothing is written, not even recovery
  bool create = true;       // the database, where there is none
  bool accept_loss = false; // open although acknowledged rows may be missing, and forget that they were there
  std::size_t block_cache_bytes = 128U * 1024 * 1024;    // blocks, index and filters, memtables included
  std::size_t committed_cache_bytes = 16U * 1024 * 1024; // of jobs committed or asked for lately; 0: none
  std::uint64_t dead_letters_max = limits::dead_letters_max;
  std::uint64_t dead_letter_bytes_max = limits::dead_letter_bytes_max; // of the jobs in them
  // As fast as dead letters are written, by and by; beyond it a delivery that would write one is answered `busy`.
  std::uint64_t dead_letter_bytes_a_second = limits::dead_letter_bytes_a_second;
  std::uint64_t queue_jobs_max = limits::queue_jobs_max;
  std::uint64_t queue_bytes_max = limits::queue_bytes_max; // of the jobs in it
  std::uint64_t relay_jobs_max = limits::relay_jobs_max;
  std::uint64_t relay_bytes_max = limits::relay_bytes_max; // of the jobs in it
  std::uint64_t audit_rows_max = limits::audit_rows_max;
  std::shared_ptr<StorageEnvironment> environment; // null: the operating system's
  KillSwitch *kill_switch = nullptr;               // null: none; must outlive the store
  std::chrono::milliseconds delay_commit{0};       // lab: how long a commit waits between look-up and transaction
  StoreCounters *counters = nullptr;               // likewise
  StoreObserver *observer = nullptr;               // likewise
};

// One arrival of a job, ready to be committed. Everything borrowed stays valid during the call.
struct Delivery {
  BytesView bytes;          // as they arrived; kept when it becomes a dead letter
  SenderId sender;          // zero: a bare message
  Sequence sequence{0};     // 0: a bare message
  WallTime issued_at{};     // the sender's claim; zero: none
  const Job *job = nullptr; // null: no canonical form, and `defect` says why
  std::string_view defect;  // why there is no job
  const Key *key = nullptr; // of the job
  Digest digest;            // of the job
  Tag tag;                  // of the bytes: `Store::recall` gives it back with them
};

// Which way a delivery took through the store.
enum class Branch : std::uint8_t {
  none,      // nothing was done
  no_job,    // it has no key
  cached,    // the key is in the cache of committed rows
  looked_up, // the look-up has found the key
  locked,    // the transaction has found the key, once it was locked: another had put the row after the look-up
  in_batch,  // a copy in the same batch has claimed the key
  absent,    // the key is absent: the handler has run
};

// What became of one delivery, in full.
struct Settlement {
  Outcome outcome = Outcome::busy;
  Bytes result;       // canonical MessagePack; empty unless stored or duplicate
  std::string detail; // why, for the outcomes that are no success; empty otherwise
  Branch branch = Branch::none;
};

// What the store recalls of a job.
struct Recollection {
  bool committed = false; // false: it does not know
  Tag tag;                // where it was committed, this and the next: that of the delivery of the same bytes
  Bytes result;           // canonical MessagePack
};

enum class Phase : std::uint8_t {
  committed = 0, // the result is there
  pending = 1,   // a queued job holds the key
  failed = 2,    // a queued job failed for good
};

[[nodiscard]] std::string_view name_of(Phase phase);

// One row of `operations`.
struct OperationRow {
  Phase phase = Phase::committed;
  Digest digest;
  Bytes result;
  std::string operation_id;
  std::string type;
  std::string effect_key;
  WallTime issued_at; // zero: the producer said none
  WallTime committed_at;
  std::string worker_build;
  Durability durability = Durability::fsync;
};

// One row of `dead_letters`.
struct DeadLetter {
  DeadLetterId id;
  Outcome reason = Outcome::invalid; // conflict, invalid, failed or expired
  std::string detail;
  Bytes bytes;              // as they arrived
  std::string operation_id; // this and the next two empty where the bytes are no job
  std::string type;
  std::string effect_key;
  SenderId sender;
  Sequence sequence{0};
  WallTime issued_at;
  std::uint64_t deliveries = 0; // arrivals of this same bad job
  std::uint64_t receives = 0;
  std::uint64_t redrives = 0;
  WallTime first_at;
  WallTime last_at;
  std::optional<Digest> stored_digest;   // of the row that was there; conflict only
  Phase stored_phase = Phase::committed; // of that row then: only a committed one is there for ever
  std::optional<Digest> offered_digest;  // of this job; absent where the bytes are no job
  std::vector<std::string> errors;       // of a queued job: the latest, oldest first
  bool effect_unknown = false;           // of a queued job: it may have had its effect outside all the same
  Bytes relay_key;                       // of a message that a result sent on: its row's in `relay`; empty: it is none
};

// Which dead letters; an empty text is any.
struct DeadLetterFilter {
  std::optional<Outcome> reason;
  std::string type;
};

struct DeadLetterPage {
  std::vector<DeadLetter> letters;
  std::optional<DeadLetterId> next; // to go on after; nothing: there are no more
};

// Who changes something, and why: an incident's reference, say. Kept in the audit.
struct Operator {
  std::string by;  // 1 to limits::audit_by_bytes_max bytes of UTF-8
  std::string why; // 1 to limits::audit_why_bytes_max bytes of UTF-8
};

// What became of a redriven dead letter.
struct Redriven {
  Settlement settlement; // as a delivery of its job would be settled now
  bool removed = false;  // it is no dead letter any more
  DeadLetterId id;       // under which it lies now: another one when it has another reason
};

// One change, as it was made.
struct AuditRow {
  std::uint64_t number = 0; // from 1, in the order of the changes
  WallTime at;
  std::string action;       // "redrive", "purge" or "resolve"
  DeadLetterId dead_letter; // zero: a resolution, which is of no dead letter
  std::string outcome;      // the name of the outcome of a redrive or resolution; empty: none
  std::string by;
  std::string why;
  Bytes key; // of the job that was resolved; empty: none was
};

// A job whose inline handler has ended the process, or was running when something else did.
struct Suspect {
  Bytes key;
  std::uint64_t crashes = 0; // at limits::max_receive_count its handler is not run any more, and it is `failed`
  bool just_now = false;     // the end of the process before this opening is one of them
};

struct HandlerCrashes {
  std::vector<Suspect> suspects; // as a rule none; at most limits::suspects_max
  std::optional<Error> blind;    // why it is not noted which handlers run, so that their crashes cannot be counted
};

// Rows, counted by scanning: the figure by which effects are counted.
struct Counts {
  std::uint64_t results = 0;
  std::uint64_t dead_letters = 0;
  std::uint64_t pending = 0; // jobs in the queue
  std::uint64_t relayed = 0; // messages of results that wait to be sent on
};

// What `Store::commit` does, for whoever reads a record of a rehearsal.
inline constexpr std::string_view transaction_definition =
    "RocksDB TransactionDB: look every key up; lock those that are absent, read them again, put a row only where it is "
    "still absent, commit the batch, by a synced log unless the durability is page-cache; the reply follows the commit";

// The first opening of a database that an older program wrote last.
struct Upgrade {
  std::uint64_t from = 0; // disk formats
  std::uint64_t to = 0;
  std::string identity; // of the store, in hex
};

class Store;

namespace engine {
class Engine;
} // namespace engine

namespace store {
class JobQueue;
class RelayQueue;
// A store over an engine that is open already (src/engine/engine.hpp). `clock`, `random` and what the options point to
// must outlive it. Errors: those of Store::open.
[[nodiscard]] Result<std::unique_ptr<Store>> open_over(std::unique_ptr<engine::Engine> engine,
                                                       const StoreOptions &options, Clock &clock, Random &random);
} // namespace store

// The rows of one worker: at most one committed row a key, whatever is delivered how often by how many threads.
// All calls may be made from any thread, except that nothing may run beside the destructor.
class Store {
public:
  // Opens or creates the database and begins a new boot (except read-only). `clock` and `random` must outlive the
  // store. Errors: `not_found` (read-only), `newer_format`, `corrupt`, `loss_suspected`, `locked`, `store_unavailable`.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(const StoreOptions &options, Clock &clock, Random &random);

  ~Store();
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  // Settles every delivery of the batch in one transaction and returns their settlements in order, after what they say
  // is on stable storage (page_cache: in the page cache). Deliveries whose key is there already neither lock nor write.
  // A new job of a queued type claims its key and is in custody: `accepted`; `busy` where the queue is full. The
  // messages of a result wait in the relay from the same transaction on; `busy` where that is full.
  // Error `store_unavailable`: an I/O error; whether the batch was written is unknown, nothing may be acknowledged, and
  // from then on every commit of this store fails: close it and open it again.
  [[nodiscard]] Result<std::vector<Settlement>> commit(std::span<const Delivery> batch, const Handlers &handlers);

  // For each job, as many recollections as jobs: whether one was committed that was delivered in exactly these bytes,
  // its tag and its result. A delivery of the same bytes is therefore its duplicate, and need not be parsed. Asks a
  // bounded cache: of what it does not hold it says nothing. What it says is on stable storage (page_cache: in the page
  // cache), but is to be told only once a commit after it has succeeded, of an empty batch if there is nothing else: a
  // store that has failed says nothing more.
  void recall(std::span<const BytesView> jobs, std::span<Recollection> recollections) const;

  // Whether all that can be read here is known to be on stable storage. So it is where a store was opened for writing
  // in mode `fsync`: what can be seen was synced. Where it only reads, and in mode page_cache, `durable.mark` must
  // cover it.
  [[nodiscard]] bool reads_durable() const;

  // The row of a key, or nothing. Errors: `corrupt`, `store_unavailable`.
  [[nodiscard]] Result<std::optional<OperationRow>> get(const Key &key) const;

  // Scans everything, so it takes time in proportion. Errors: `corrupt`, `store_unavailable`.
  [[nodiscard]] Result<Counts> count() const;

  // Up to `rows` dead letters in the order of their ids, from the one after `after`; fewer where these have more than
  // limits::dead_letters_scanned_bytes_max, and none only where there is none. Errors: as `count`.
  [[nodiscard]] Result<std::vector<DeadLetter>> dead_letters(std::size_t rows,
                                                             const std::optional<DeadLetterId> &after) const;
  // Up to `rows` of those that the filter wants, of at most limits::dead_letters_scanned_max (and bytes) looked at; so
  // a page may be empty and yet have a next one. Errors: as `count`.
  [[nodiscard]] Result<DeadLetterPage> find_dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after,
                                                         const DeadLetterFilter &filter) const;
  [[nodiscard]] Result<std::optional<DeadLetter>> dead_letter(const DeadLetterId &id) const;

  // Settles the dead letter's job as if it were delivered now, with its first operation id, bytes and issue time, and
  // in one transaction, on stable storage in every mode, writes what follows: stored or duplicate (or accepted) removes
  // the dead letter; any other verdict keeps it, its redrives raised, its reason and so its id the new ones. A queued
  // job that has failed goes back to the queue, accepted, with as many receives again; a message of a result is not
  // handled here, but goes back to the relay, accepted. `busy` (its key's row is damaged, others hold it for too long,
  // or the queue or the relay is full) writes nothing. Else it leaves an audit row.
  // Errors: `not_found`; `usage` (the operator, read-only); `corrupt` (its row is damaged: purge it);
  // `store_unavailable`: as of `commit`; the dead letter or its result is there, never both and never neither.
  [[nodiscard]] Result<Redriven> redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who);

  // Removes the dead letter, damaged or not, on stable storage in every mode, and leaves an audit row. That of a queued
  // job that has failed frees its key: delivered again, the job is a new one. (Damaged, it cannot say which key, which
  // is then looked for by a scan.)
  // Errors: `not_found`, `usage`, `store_unavailable`: as `redrive`.
  [[nodiscard]] Result<void> purge(const DeadLetterId &id, const Operator &who);

  // Decides what nobody knew of a held job: with a result, in canonical form, its effect took place, and the result is
  // committed; without, it did not, and the job waits in the queue again, with as many receives as a new one. On stable
  // storage in every mode; leaves an audit row. Errors: `not_found` (no job is held under this key); `usage` (the
  // operator, the result, read-only); `corrupt` (its row is damaged); `timed_out`; `store_unavailable`: as `redrive`.
  [[nodiscard]] Result<void> resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who);

  // The queued jobs, for who hands them to their handlers (src/store/job_queue.hpp). Lives as long as the store.
  [[nodiscard]] store::JobQueue &queue();
  [[nodiscard]] const store::JobQueue &queue() const;

  // The messages that wait to be sent on, for who does that (src/store/relay_queue.hpp). Lives as long as the store.
  [[nodiscard]] store::RelayQueue &relay();
  [[nodiscard]] const store::RelayQueue &relay() const;

  // Up to `rows` changes in their order, from the one after number `after`. Errors: as `count`.
  [[nodiscard]] Result<std::vector<AuditRow>> audit(std::size_t rows, std::uint64_t after) const;

  // Reads everything, with its checksums, and holds it against what it must be; takes time in proportion. Damage is
  // told in what it returns. Errors: `store_unavailable`.
  [[nodiscard]] Result<Verification> verify() const;

  // The jobs that run singly, as their inline handlers have ended the process, and are not settled yet. Of a store that
  // is open for writing.
  [[nodiscard]] HandlerCrashes handler_crashes() const;

  // Nothing where this opening has upgraded nothing.
  [[nodiscard]] std::optional<Upgrade> upgrade() const;

  // The id of this opening. Zero when read-only.
  [[nodiscard]] BootId boot() const;
  [[nodiscard]] Durability durability() const;

private:
  class Impl;
  friend Result<std::unique_ptr<Store>> store::open_over(std::unique_ptr<engine::Engine> engine,
                                                         const StoreOptions &options, Clock &clock, Random &random);
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace onced
