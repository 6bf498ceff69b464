#include "rocksdb/loss_check.hpp"

#include <algorithm>

#include <rocksdb/write_batch.h>

#include "base/messagepack.hpp"
#include "rocksdb/slices.hpp"
#include "rocksdb/status.hpp"

namespace onced::rocks {
namespace {

std::string name_of_log(std::uint64_t number) {
  return "log " + std::to_string(number);
}

// Of the first row of a batch: what RocksDB's batches begin with, 8 bytes little-endian.
std::uint64_t sequence_of(const rocksdb::WriteBatch &batch) {
  std::uint64_t number = 0;
  for (std::size_t at = sizeof number; at > 0; --at)
    number = number << 8U | static_cast<unsigned char>(batch.Data()[at - 1]);
  return number;
}

std::string boot_text(std::uint64_t boot) {
  return "boot " + std::to_string(boot);
}

} // namespace

void LogCheck::ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t> &first_needed,
                                        const std::map<std::string, std::uint32_t> &) {
  const auto least = std::min_element(first_needed.begin(), first_needed.end(),
                                      [](const auto &left, const auto &right) { return left.second < right.second; });
  if (least != first_needed.end()) first_needed_ = least->second;
}

rocksdb::WalFilter::WalProcessingOption LogCheck::LogRecordFound(unsigned long long number, const std::string &,
                                                                 const rocksdb::WriteBatch &batch,
                                                                 rocksdb::WriteBatch *, bool *) {
  const std::uint64_t first = sequence_of(batch);
  const std::uint64_t rows = batch.Count();
  if (rows == 0) return WalProcessingOption::kContinueProcessing;
  if (auto misplacement = misplaced(number, first)) {
    if (accept_loss_) return WalProcessingOption::kIgnoreCurrentRecord;
    violation_ = std::move(misplacement);
    return WalProcessingOption::kCorruptedRecord;
  }
  const std::uint64_t last = first + rows - 1;
  last_record_ = first;
  if (read_.empty() || read_.back().number != number) {
    read_.push_back({.number = number, .first = first, .last = last, .whole_to = last});
    return WalProcessingOption::kContinueProcessing;
  }
  ReadLog &log = read_.back();
  if (log.whole_to == log.last && first == log.last + 1) log.whole_to = last;
  log.last = last;
  return WalProcessingOption::kContinueProcessing;
}

// Whether the log is another one than its name says, or a record of it belongs before what was read already.
std::optional<std::string> LogCheck::misplaced(std::uint64_t number, std::uint64_t first) const {
  const std::uint64_t last_read = read_.empty() ? 0 : read_.back().last;
  const bool begins = read_.empty() || read_.back().number != number;
  if (!accept_loss_ && begins) {
    const auto known = std::find_if(known_.complete.begin(), known_.complete.end(),
                                    [&](const LogSpan &log) { return log.number == number; });
    const LogSpan *log = known != known_.complete.end() ? &*known : nullptr;
    if (known_.newest.number == number) log = &known_.newest;
    if (log != nullptr && first != log->first) {
      return name_of_log(number) + " begins with row " + std::to_string(first) + " instead of " +
             std::to_string(log->first) + ": it is another log, or its beginning is lost";
    }
  }
  if (read_.empty() || first > last_read) return std::nullopt;
  return name_of_log(number) + " has row " + std::to_string(first) + " after row " + std::to_string(last_read) +
         ", so it is a copy of another log, or the logs are exchanged";
}

const LogCheck::ReadLog *LogCheck::find(std::uint64_t number) const {
  const auto at = std::find_if(read_.begin(), read_.end(), [&](const ReadLog &log) { return log.number == number; });
  return at != read_.end() ? &*at : nullptr;
}

std::vector<LogSpan> LogCheck::logs_read() const {
  std::vector<LogSpan> logs;
  logs.reserve(read_.size());
  for (const ReadLog &log : read_)
    logs.push_back({.number = log.number, .first = log.first, .last = log.whole_to});
  return logs;
}

std::optional<std::string> LogCheck::missing(std::uint64_t first_kept) const {
  const std::uint64_t first_needed = std::max(first_kept, first_needed_);
  for (const LogSpan &log : known_.complete) {
    // Once a boot has begun, each family says of the logs before it that they are in tables. A family that does not has
    // lost a table, since MANIFEST was cut short; RocksDB's own word, which covers all families, may stand before the
    // cut.
    const bool is_of_earlier_boot = first_needed_ != 0 && log.number < known_.boot_log;
    if (log.number < (is_of_earlier_boot ? first_needed_ : first_needed) || log.last < log.first) continue;
    if (auto text = missing_of(log)) return text;
  }
  if (known_.newest.number == 0 || known_.sequence < known_.newest.first) return std::nullopt;
  if (known_.newest.number >= first_needed) return missing_since(known_.newest.number, known_.newest.first);
  // All of that log is in tables. What was written since lies in logs of which the mark does not know yet.
  return read_.empty() ? std::nullopt : missing_since(read_.front().number, read_.front().first);
}

std::optional<std::string> LogCheck::missing_of(const LogSpan &log) const {
  const ReadLog *read = find(log.number);
  if (read == nullptr) {
    return name_of_log(log.number) + " is missing or has no row, or MANIFEST was cut short: rows " +
           std::to_string(log.first) + " to " + std::to_string(log.last) + " were in it";
  }
  if (read->whole_to >= log.last) return std::nullopt;
  return name_of_log(log.number) + " could be read to row " + std::to_string(read->whole_to) + ", but row " +
         std::to_string(log.last) + " was on stable storage in it";
}

// From this log on, rows follow one another without a gap as far as the mark goes.
std::optional<std::string> LogCheck::missing_since(std::uint64_t number, std::uint64_t next) const {
  std::uint64_t in = number;
  for (const ReadLog &log : read_) {
    if (log.number < number) continue;
    if (log.first != next || next > known_.sequence) break;
    in = log.number;
    next = log.whole_to + 1;
    if (log.whole_to != log.last) break;
  }
  if (next > known_.sequence) return std::nullopt;
  return "from " + name_of_log(in) + " on rows could be read to " + std::to_string(next - 1) + ", but row " +
         std::to_string(known_.sequence) + " was on stable storage: a log (*.log) was cut short, damaged or deleted";
}

Result<Claims> read_claims(rocksdb::DB &database, rocksdb::ColumnFamilyHandle *meta) {
  Claims claims;
  std::string value;
  auto status = database.Get(rocksdb::ReadOptions(), meta, slice_of(identity_name), &value);
  if (!status.ok() && !status.IsNotFound()) return tl::unexpected(status_error(status, database.GetName()));
  if (status.ok()) claims.identity = StoreIdentity::from(value);
  status = database.Get(rocksdb::ReadOptions(), meta, slice_of(boots_name), &value);
  if (!status.ok() && !status.IsNotFound()) return tl::unexpected(status_error(status, database.GetName()));
  claims.boots = status.ok() ? messagepack::decode_number(value) : 0;
  return claims;
}

namespace {

std::optional<std::string> another_database(const MarkContent &known, const Claims &claims) {
  const bool is_known = known.identity != StoreIdentity{};
  if (known.older && claims.identity) return "the mark is of an older program than the database, or it is missing";
  if (is_known && !claims.identity) return "the database has no identity and the mark has: it is another database";
  if (is_known && *claims.identity != known.identity) {
    return "the database is that of " + to_hex(claims.identity->view()) + ", and the mark that of " +
           to_hex(known.identity.view());
  }
  return std::nullopt;
}

// The mark is raised before the first batch of a boot, so it may be ahead by one boot that wrote nothing.
std::optional<std::string> another_boot(const MarkContent &known, const Claims &claims) {
  if (known.older || !claims.boots) return std::nullopt; // who reads a damaged row for itself says so
  if (*claims.boots > known.boot) {
    return "the mark is older than the database: it ends with " + boot_text(known.boot) + ", and the database with " +
           boot_text(*claims.boots);
  }
  const bool wrote = known.newest.number != 0 && known.sequence >= known.newest.first;
  if (*claims.boots + (wrote ? 0 : 1) < known.boot) {
    return "the database is older than the mark: it ends with " + boot_text(*claims.boots) + ", and the mark with " +
           boot_text(known.boot);
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> find_loss(const MarkContent &known, const LogCheck &check, rocksdb::DB &database,
                                     const Claims &claims) {
  if (auto another = another_database(known, claims)) return another;
  std::uint64_t first_needed = 0;
  if (!database.GetIntProperty(rocksdb::DB::Properties::kMinLogNumberToKeep, &first_needed)) first_needed = 0;
  if (auto missing = check.missing(first_needed)) return missing;
  const std::uint64_t last = database.GetLatestSequenceNumber();
  if (last < known.sequence) {
    return "the last row is " + std::to_string(last) + ", but row " + std::to_string(known.sequence) +
           " was on stable storage: a log (*.log) was cut short or deleted";
  }
  if (known.older) return missing_log(database.GetName(), known.older_logs, first_needed);
  return another_boot(known, claims);
}

Result<MarkContent> content_of_boot(const MarkContent &known, const LogCheck &check, rocksdb::DB &database,
                                    std::uint64_t boot, bool forget) {
  std::unique_ptr<rocksdb::LogFile> log;
  const auto status = database.GetCurrentWalFile(&log);
  if (!status.ok()) return tl::unexpected(status_error(status, database.GetName()));
  MarkContent content;
  content.identity = known.identity;
  content.boot = boot;
  content.sequence = database.GetLatestSequenceNumber();
  content.newest = {.number = log->LogNumber(), .first = content.sequence + 1};
  content.boot_log = log->LogNumber();
  if (!forget) content.complete = known.complete;
  const auto put = [&](const LogSpan &span) {
    std::erase_if(content.complete, [&](const LogSpan &other) { return other.number == span.number; });
    content.complete.push_back(span);
  };
  // Where MANIFEST were cut short later it would ask for these logs again, whose files go now.
  if (!forget && known.newest.number != 0 && known.sequence >= known.newest.first) {
    put({.number = known.newest.number, .first = known.newest.first, .last = known.newest.first});
  }
  for (const LogSpan &read : check.logs_read())
    put(read);
  std::sort(content.complete.begin(), content.complete.end(),
            [](const LogSpan &left, const LogSpan &right) { return left.number < right.number; });
  // One place is left for the log that begins now.
  if (content.complete.size() >= DurableMark::logs_max) {
    const auto surplus = static_cast<std::ptrdiff_t>(content.complete.size() - DurableMark::logs_max + 1);
    content.complete.erase(content.complete.begin(), content.complete.begin() + surplus);
  }
  return content;
}

void LogWatch::watch(DurableMark &mark, rocksdb::DB &database) {
  database_ = &database;
  mark_.store(&mark, std::memory_order_release);
}

rocksdb::Status LogWatch::error() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::scoped_lock lock(mutex_);
  return error_;
}

void LogWatch::OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status *status) {
  const std::scoped_lock lock(mutex_);
  if (error_.ok()) error_ = *status;
  failed_.store(true, std::memory_order_release);
}

// A memtable is full, and commits go on in another log. RocksDB tells this between two commits, so the last sequence is
// that of the log before, and cannot change meanwhile.
void LogWatch::OnMemTableSealed(const rocksdb::MemTableInfo &) {
  DurableMark *mark = mark_.load(std::memory_order_acquire);
  if (mark == nullptr) return;
  std::unique_ptr<rocksdb::LogFile> log;
  if (!database_->GetCurrentWalFile(&log).ok()) return;
  mark->begin_log(log->LogNumber(), database_->GetLatestSequenceNumber() + 1);
}

// A memtable has become a table, and its log may go: a good moment to put the mark on stable storage.
void LogWatch::OnFlushCompleted(rocksdb::DB *, const rocksdb::FlushJobInfo &) {
  DurableMark *mark = mark_.load(std::memory_order_acquire);
  if (mark != nullptr) mark->sync();
}

} // namespace onced::rocks
