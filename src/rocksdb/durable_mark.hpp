#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <vector>

#include "base/descriptor.hpp"
#include "onced/digest.hpp"
#include "onced/error.hpp"
#include "onced/ids.hpp"
#include "rocksdb/log_files.hpp"

namespace onced::rocks {

// Which store this is, or which outbox: 16 random bytes, drawn when it is created, in its database and in its mark.
using StoreIdentity = OpaqueId<struct StoreIdentityName, 16>;

// A log of RocksDB and the sequence numbers of its records, all on stable storage. `last` below `first`: nothing is
// known of the log but where it begins.
struct LogSpan {
  std::uint64_t number = 0; // of NUMBER.log; 0: none
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool operator==(const LogSpan &) const = default;
};

// What a mark says. Each statement is true by itself, whichever of the others a power cut has taken back.
struct MarkContent {
  StoreIdentity identity;        // zeros: none yet
  std::uint64_t boot = 0;        // the highest that was begun
  LogSpan newest;                // the log that was written last, as far as is known; its `last` is not used
  std::uint64_t boot_log = 0;    // the first log of that boot: all of the logs before it went into tables
  std::uint64_t sequence = 0;    // the last that is known to be on stable storage
  std::vector<LogSpan> complete; // logs that nothing is added to any more, by their numbers
  // Of a mark of an older form alone, which knows neither identity nor boot: complete logs by their bytes.
  bool older = false;
  std::vector<LogFile> older_logs;
};

// The file beside a database that says what is known to be on stable storage in it (docs/storage.md). It may lag, never
// lead, so a database that has less has lost acknowledged rows. Raised after each synced commit without a sync of its
// own: that survives the process, and after a power cut it may lag. Written by pwrite, not through a mapping: a mapped
// page that cannot be written back kills the process with SIGBUS. Any thread; `replace` and `adopt` while no other
// thread uses the mark.
class DurableMark {
public:
  static constexpr std::size_t logs_max = 128; // complete logs; the oldest give way

  // Creates the file `name`, or replaces it, durably and at once. Errors: `store_unavailable`.
  [[nodiscard]] static Result<DurableMark> create(const std::filesystem::path &directory, std::string_view name,
                                                  MarkContent content = {});

  // Reads the file, which may be of an older form. Errors: `not_found`, `corrupt`, `store_unavailable`.
  [[nodiscard]] static Result<DurableMark> open(const std::filesystem::path &directory, std::string_view name,
                                                bool read_only);

  [[nodiscard]] MarkContent content() const;
  [[nodiscard]] std::uint64_t sequence() const;

  // Raises the last synced sequence, which says that all below are synced too; a lower one changes nothing. A failed
  // write leaves the mark lagging, which is allowed.
  void advance(std::uint64_t sequence);

  // Commits go on in this log, at `first`: the log before is complete. A failed write leaves the mark lagging.
  void begin_log(std::uint64_t number, std::uint64_t first);

  // Says something else from now on, durably and at once. Errors: `store_unavailable`; the mark is as it was.
  [[nodiscard]] Result<void> replace(MarkContent content);

  // Takes the identity over, durably. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> adopt(const StoreIdentity &identity);

  // Puts the mark itself on stable storage. A failure only lets the mark lag after a power cut.
  void sync();

  DurableMark(DurableMark &&other) noexcept;

private:
  DurableMark(std::filesystem::path directory, std::string_view name, Descriptor file, MarkContent content);
  bool write_state();
  void write_log(std::size_t slot);
  void raise_complete_logs();

  std::filesystem::path directory_;
  std::string_view name_;
  Descriptor file_;
  mutable std::mutex mutex_; // guards the rest, and the order of writes, so that the file never goes back
  MarkContent content_;
  // Complete logs of which not all is known to be synced: where each is in the list, and where it ends.
  struct Lagging {
    std::size_t slot;
    std::uint64_t end;
  };
  std::vector<Lagging> lagging_;
  Digester digester_;
};

} // namespace onced::rocks
