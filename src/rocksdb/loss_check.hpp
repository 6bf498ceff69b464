#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/wal_filter.h>

#include "onced/error.hpp"
#include "onced/ids.hpp"
#include "rocksdb/durable_mark.hpp"
#include "rocksdb/never_recover.hpp"

// What holds a database against its mark: of a store and of an outbox.
namespace onced::rocks {

// Sees each record of the logs that an opening reads, and holds them against the mark. One opening; RocksDB calls it
// from the opening's thread. Must outlive the database.
class LogCheck final : public rocksdb::WalFilter {
public:
  // `accept_loss`: records that cannot belong where they stand are passed over instead of refused.
  LogCheck(MarkContent known, bool accept_loss) : known_(std::move(known)), accept_loss_(accept_loss) {}

  // What the mark said when the opening began.
  [[nodiscard]] const MarkContent &known() const { return known_; }

  // Why RocksDB was told to refuse a record, where it was. RocksDB itself ends the process by an assertion where
  // sequence numbers go back.
  [[nodiscard]] const std::optional<std::string> &violation() const { return violation_; }

  // What the mark knows and was not read, or nothing. RocksDB says that the logs below `first_kept` may be gone, since
  // their rows are in tables.
  [[nodiscard]] std::optional<std::string> missing(std::uint64_t first_kept) const;

  // Whether the last record that was read ends with row `last`, and a mark at `synced` covers that record: a mark names
  // the first row of the record that was synced last.
  [[nodiscard]] bool ends_with(std::uint64_t last, std::uint64_t synced) const {
    return !read_.empty() && read_.back().last == last && last_record_ <= synced;
  }

  // The logs that were read, by their numbers, as far as each is without a gap.
  [[nodiscard]] std::vector<LogSpan> logs_read() const;

  // --- Of rocksdb::WalFilter ---
  [[nodiscard]] const char *Name() const override { return "onced.LogCheck"; }
  void ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t> &first_needed,
                                const std::map<std::string, std::uint32_t> &ids) override;
  WalProcessingOption LogRecordFound(unsigned long long number, const std::string &name,
                                     const rocksdb::WriteBatch &batch, rocksdb::WriteBatch *changed,
                                     bool *is_changed) override;

private:
  struct ReadLog {
    std::uint64_t number;
    std::uint64_t first;
    std::uint64_t last;
    std::uint64_t whole_to; // as far as there is no gap
  };

  [[nodiscard]] std::optional<std::string> misplaced(std::uint64_t number, std::uint64_t first) const;
  [[nodiscard]] std::optional<std::string> missing_of(const LogSpan &log) const;
  [[nodiscard]] std::optional<std::string> missing_since(std::uint64_t number, std::uint64_t next) const;
  [[nodiscard]] const ReadLog *find(std::uint64_t number) const;

  MarkContent known_;
  bool accept_loss_;
  std::uint64_t first_needed_ = 0; // by some family, as MANIFEST says of each; 0: no log was read
  std::vector<ReadLog> read_;      // by their numbers
  std::uint64_t last_record_ = 0;  // the first row of the last record that was read
  std::optional<std::string> violation_;
};

// Names in the family `meta` of a store and of an outbox.
inline constexpr std::string_view boots_name = "boots";
inline constexpr std::string_view identity_name = "identity";

// What a database says of itself in its family `meta`.
struct Claims {
  std::optional<StoreIdentity> identity; // nothing: it is of a format of before
  std::optional<std::uint64_t> boots;    // that were begun; nothing: the row is damaged
};

// Errors: `corrupt` and `store_unavailable`, as RocksDB says them of the look-up. Damaged rows claim nothing.
[[nodiscard]] Result<Claims> read_claims(rocksdb::DB &database, rocksdb::ColumnFamilyHandle *meta);

// Why the database is not the one that the mark knows, or has less than the mark knows; nothing where it has all.
[[nodiscard]] std::optional<std::string> find_loss(const MarkContent &known, const LogCheck &check,
                                                   rocksdb::DB &database, const Claims &claims);

// What the mark has to say before the first batch of a boot: that it has begun, and where its log begins. All that the
// opening read is in tables by now. `forget`: a loss was accepted, so what was known before does not count.
[[nodiscard]] Result<MarkContent> content_of_boot(const MarkContent &known, const LogCheck &check,
                                                  rocksdb::DB &database, std::uint64_t boot, bool forget);

// Told by RocksDB's threads while the database is open: where a log ends and the next begins, which goes into the mark,
// and errors in the background. RocksDB goes read-only after one; nobody must go on with that database.
class LogWatch final : public NeverRecover {
public:
  // Once, after the opening and before the first write. Both must outlive the database's threads.
  void watch(DurableMark &mark, rocksdb::DB &database);

  // The first error in the background, or OK.
  [[nodiscard]] rocksdb::Status error() const;

  // --- Of rocksdb::EventListener ---
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status *status) override;
  void OnMemTableSealed(const rocksdb::MemTableInfo &info) override;
  void OnFlushCompleted(rocksdb::DB *database, const rocksdb::FlushJobInfo &info) override;

private:
  mutable std::mutex mutex_; // guards the next
  rocksdb::Status error_;
  std::atomic<bool> failed_{false};
  rocksdb::DB *database_ = nullptr; // set before `mark_`
  std::atomic<DurableMark *> mark_{nullptr};
};

} // namespace onced::rocks
