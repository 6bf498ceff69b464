#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <rocksdb/db.h>

#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/ids.hpp"
#include "onced/store.hpp"
#include "rocksdb/durable_mark.hpp"
#include "rocksdb/loss_check.hpp"
#include "rocksdb/place.hpp"

namespace onced::sender {

// A job as the outbox keeps it. Attempts are not kept: after a start they count anew, which nobody relies on.
struct OutboxJob {
  Sequence sequence{0};
  Tag tag;
  WallTime issued_at;
  Bytes job;
};

// The unsettled jobs of one sender on disk (docs/outbox.md), with its id and its last sequence. It holds its directory
// against every other process. `append` by one thread at a time; all else by any thread, beside it.
class Outbox {
public:
  // Opens or creates DIRECTORY, and counts what it holds by a scan. `fresh_id` is the sender id of a new outbox.
  // Errors: `locked`, `newer_format`, `corrupt`, `store_unavailable`; `usage` where the directory is a worker's;
  // `loss_suspected` where jobs are missing, unless `accept_loss`. A refused opening has changed nothing.
  [[nodiscard]] static Result<std::unique_ptr<Outbox>> open(const std::filesystem::path &directory,
                                                            const SenderId &fresh_id,
                                                            std::shared_ptr<StorageEnvironment> environment = nullptr,
                                                            bool accept_loss = false);

  ~Outbox();
  Outbox(const Outbox &) = delete;
  Outbox &operator=(const Outbox &) = delete;

  [[nodiscard]] const SenderId &id() const { return id_; }

  // What the opening found.
  struct Found {
    Sequence last_sequence{0}; // the last that was ever used
    std::uint64_t jobs = 0;
    std::uint64_t bytes = 0; // of jobs
  };
  [[nodiscard]] const Found &found() const { return found_; }

  // Keeps the jobs, in ascending order of sequences that were never used, and `last_sequence`, the highest used so far,
  // in one write, which is on stable storage when it returns. Error `store_unavailable`: whether it is there is
  // unknown, and every later write fails too; the next opening finds out.
  [[nodiscard]] Result<void> append(std::span<const OutboxJob> jobs, Sequence last_sequence);

  // Forgets these jobs, without waiting for the disk: a removal that a power cut undoes means one more delivery, which
  // is answered as a duplicate.
  [[nodiscard]] Result<void> remove(std::span<const Sequence> sequences);

  struct Read {
    std::vector<OutboxJob> jobs; // in the order of their sequences
    bool at_end = false;         // there are no more behind them
  };
  // The jobs behind `after`, as many as keep within both figures. Errors: `corrupt`, `store_unavailable`.
  [[nodiscard]] Result<Read> read_after(Sequence after, std::size_t jobs_max, std::size_t bytes_max) const;

private:
  Outbox(DirectoryLock lock, std::shared_ptr<StorageEnvironment> environment, bool accept_loss);

  [[nodiscard]] Result<rocks::MarkContent> read_mark(bool exists) const;
  [[nodiscard]] Result<void> look_first(const rocksdb::DBOptions &options, const rocks::MarkContent &known,
                                        const std::vector<std::string> &names) const;
  [[nodiscard]] Result<void> open_database();
  [[nodiscard]] Result<void> begin_boot();
  [[nodiscard]] Result<void> write_marked(rocksdb::WriteBatch &batch);
  [[nodiscard]] Result<void> read_meta(const SenderId &fresh_id);
  [[nodiscard]] Result<void> begin(const SenderId &fresh_id);
  [[nodiscard]] Result<void> count_jobs();
  [[nodiscard]] Result<std::optional<Bytes>> meta_row(const char *name) const;
  [[nodiscard]] Error lost(const std::string &cause) const;
  [[nodiscard]] std::string path() const { return (directory_ / "db").string(); }

  DirectoryLock lock_;
  std::filesystem::path directory_;
  std::shared_ptr<StorageEnvironment> environment_;
  bool accept_loss_;
  std::mutex writing_; // so that what is marked after a synced write was written before it
  std::optional<rocks::DurableMark> mark_;
  std::unique_ptr<rocks::LogCheck> check_; // RocksDB keeps its address
  std::shared_ptr<rocks::LogWatch> watch_;
  rocks::Claims claims_;
  std::shared_ptr<rocks::Place> place_;
  std::vector<rocksdb::ColumnFamilyHandle *> families_; // jobs, meta
  std::unique_ptr<rocksdb::DB> db_;
  SenderId id_;
  Found found_;
};

} // namespace onced::sender
