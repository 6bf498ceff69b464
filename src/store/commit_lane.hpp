#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/messagepack.hpp"
#include "onced/store.hpp"
#include "rocksdb/database.hpp"
#include "store/allowance.hpp"
#include "store/cache/committed_cache.hpp"
#include "store/row_room.hpp"
#include "store/rows/records.hpp"
#include "store/suspects/guarded_run.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// What all of a store that writes shares.
struct CommitContext {
  Database &database;
  const StoreOptions &options;
  Clock &clock;
  RowRoom &letter_room;
  Allowance &letter_allowance;
  RowRoom &queue_room;
  RowRoom &relay_room;
  CommittedCache &cache;
  Suspects &suspects;

  void arrive(KillPoint point) const {
    if (options.kill_switch != nullptr) options.kill_switch->arrive(point);
  }
};

// Takes one batch at a time through look-up, verdicts and one transaction. A store keeps a lane for each thread that
// commits at the same time; its buffers and its Transaction object serve batch after batch. One thread at a time.
class CommitLane {
public:
  // `number` names this lane's row of counters, which no other lane writes: a shared row would serialise the
  // transactions.
  CommitLane(CommitContext context, unsigned number, LaneCounters counters);

  // As Store::commit. An error means that the store must be given up.
  [[nodiscard]] Result<std::vector<Settlement>> commit(std::span<const Delivery> batch, const Handlers &handlers);

private:
  // Every delivery of the batch that has the same key, and what is known of that key's row.
  struct Group {
    const Key *key = nullptr;
    std::span<const std::size_t> deliveries; // in the order of their arrival
    KeyRow row;                              // in the database
    KeyRow claim;                            // the one that this batch is about to write, while `claimed`
    bool claimed = false;                    // `row` is absent
    bool held = false;                       // by another lane, which is about to write it
    bool locked = false;                     // `row` was read while its key was locked
    std::size_t claimant = 0;
    std::vector<RelayEntry> relayed; // what the claim's result sends on
  };

  // A dead letter to write: its first delivery, and how many there are in this batch.
  struct Letter {
    std::size_t delivery = 0;
    std::uint64_t deliveries = 0;
    Outcome reason = Outcome::invalid;
    std::string detail;
    std::optional<Digest> stored_digest;
    Phase stored_phase = Phase::committed;
    std::string_view refused; // why it is not written, and its deliveries are answered `busy`; empty: it is
  };

  enum class Step : std::uint8_t { committed, retry };
  // Whether keys that another lane holds are waited for.
  enum class Patience : std::uint8_t { none, wait };

  void ask_cache();
  void group_by_key();
  [[nodiscard]] Result<void> look_up();
  [[nodiscard]] rocksdb::Status read_rows();

  void decide(const Handlers &handlers);
  void decide_group_anew(Group &group, const Handlers &handlers);
  void forget_letters(const Group &group);
  void decide_one(std::size_t at, const Handlers &handlers);
  void settle_by_row(std::size_t at, const KeyRow &row, Branch branch);
  [[nodiscard]] std::string whereabouts(const Key &key);
  void run_handler(std::size_t at, Group &group, const Handlers &handlers);
  [[nodiscard]] std::string_view claim(std::size_t at, Group &group, const Verdict &verdict);
  void give_claim_up(Group &group);
  void settle(std::size_t at, Verdict verdict, Branch branch);
  void bury(std::size_t at, const Verdict &verdict);

  [[nodiscard]] Result<void> write(const Handlers &handlers);
  [[nodiscard]] Result<Step> try_write(Patience patience, const Handlers &handlers);
  [[nodiscard]] rocksdb::Status claim_keys(Patience patience, const Handlers &handlers);
  [[nodiscard]] rocksdb::Status lock_keys(Patience patience);
  [[nodiscard]] rocksdb::Status put_row(const Group &group);
  [[nodiscard]] rocksdb::Status put_letters();
  [[nodiscard]] rocksdb::Status put_letter(const DeadLetterId &id, Letter &letter);
  [[nodiscard]] rocksdb::Status clear_suspects();
  [[nodiscard]] rocksdb::Status put_counters(LaneCounters &counters);
  void finish_written();
  void abandon();
  void answer_busy_where_unwritten(std::string_view detail);

  [[nodiscard]] DeadLetter describe_letter(const DeadLetterId &id, const Letter &letter) const;
  [[nodiscard]] bool reserve_dead_letter(const Letter &letter);

  CommitContext context_;
  LaneCounters counters_;
  std::string counters_name_;
  std::string bytes_name_;
  std::unique_ptr<rocksdb::Transaction> transaction_;
  GuardedRun run_;
  JobParser parser_;
  Digester digester_;
  RecordDecoder decoder_;

  // The batch in hand.
  std::span<const Delivery> batch_;
  WallTime now_;
  std::vector<KeyRow> cached_rows_; // of each delivery, as the cache has it; at least as long as the batch
  std::vector<std::size_t> by_key_; // the other deliveries that are jobs, in the order of their keys, then of arrival
  std::vector<std::size_t> group_of_;
  std::vector<Group> groups_;
  std::size_t group_count_ = 0;
  std::map<DeadLetterId, Letter> letters_;
  std::vector<std::optional<DeadLetterId>> letter_of_;
  std::vector<bool> unwritten_; // there is no settlement yet, or it rests on what this batch writes
  std::vector<Settlement> settlements_;
  std::vector<Bytes> cleared_; // keys of suspects whose handlers have ended as they should
  RowAmount reserved_;         // for dead letters of the transaction in hand

  // Buffers.
  std::vector<std::size_t> asked_; // the groups whose rows are read at once
  std::vector<rocksdb::Slice> read_keys_;
  std::vector<rocksdb::PinnableSlice> read_values_;
  std::vector<rocksdb::Status> read_statuses_;
  Bytes record_;
};

} // namespace onced::store
