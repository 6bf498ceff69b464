#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/suspects/guarded_run.hpp"
#include "store/unit_of_work.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// Takes one batch at a time from its look-up to its commit. First each delivery gets its verdict, and the handlers run;
// then a unit claims the keys of new jobs and puts what follows. Buffers serve batch after batch. One thread at a time.
class BatchCommit {
public:
  explicit BatchCommit(StoreContext &context) : context_(context), unit_(context), run_(context.suspects) {}

  // As Store::commit. After an error the store must be given up.
  [[nodiscard]] Result<std::vector<Settlement>> commit(std::span<const Delivery> batch, const Handlers &handlers);

private:
  // All deliveries of the batch that have the same key, and what is known of that key's row.
  struct Group {
    const Key *key = nullptr;
    std::span<const std::size_t> deliveries; // in the order of their arrival
    KeyRow row;                              // in the store
    bool locked = false;                     // `row` was read under a lock
    bool claimed = false;                    // `row` is absent, and this batch is to put one
    bool held = false;                       // by another unit, which is about to put it
    bool put = false;                        // by the unit in hand
    // Of the claim:
    KeyRow claim;
    std::size_t claimant = 0;
    Bytes record; // `claim`, encoded
    std::vector<RelayEntry> relayed;
    Reservation queue_room;
    Reservation relay_room;
  };

  // A dead letter to put: its first delivery, and how many there are in this batch.
  struct Letter {
    std::size_t delivery = 0;
    std::uint64_t deliveries = 0;
    Outcome reason = Outcome::invalid;
    std::string detail;
    std::optional<Digest> stored_digest;
    Phase stored_phase = Phase::committed;
    std::string_view refused; // why it is not put, and its deliveries are answered `busy`; empty: it is
  };

  void ask_cache();
  void group_by_key();
  [[nodiscard]] Result<void> look_up();

  void decide(std::size_t at, const Handlers *handlers);
  void settle_by_row(std::size_t at, const KeyRow &row, Branch branch);
  void run_handler(std::size_t at, Group &group, const Handlers &handlers);
  [[nodiscard]] std::string_view claim(std::size_t at, Group &group, Verdict &verdict);
  static void give_claim_up(Group &group);
  void settle(std::size_t at, Verdict verdict, Branch branch);
  void bury(std::size_t at, const Verdict &verdict);

  [[nodiscard]] Result<void> write();
  [[nodiscard]] bool put(engine::Patience patience);
  void claim_keys(engine::Patience patience);
  void yield_to(Group &group);
  void put_group(const Group &group);
  [[nodiscard]] bool put_letters();
  [[nodiscard]] bool put_letter_of(const DeadLetterId &id, Letter &letter);
  [[nodiscard]] DeadLetter describe_letter(const DeadLetterId &id, const Letter &letter) const;
  [[nodiscard]] bool is_held(std::size_t at) const;
  void finish_written();
  void answer_busy_where_unwritten(std::string_view detail);
  void tell_whereabouts();
  void keep_in_cache();

  StoreContext &context_;
  UnitOfWork unit_;
  GuardedRun run_;

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
  std::vector<bool> unwritten_; // its settlement rests on what this batch puts
  bool confirmed_ = false;      // by a commit behind all that was read
  std::vector<Settlement> settlements_;
  std::vector<Bytes> cleared_; // keys of suspects whose handlers have ended as they should

  // Buffers.
  std::vector<std::size_t> asked_; // groups
  std::vector<BytesView> keys_;
  std::vector<engine::Claim> claims_;
  std::vector<engine::Found> found_;
};

} // namespace onced::store
