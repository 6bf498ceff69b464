#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "onced/error.hpp"
#include "store/descriptor.hpp"
#include "store/log_files.hpp"

namespace onced::store {

// `durable.mark`: the last RocksDB sequence number that is known to be on stable storage, and the logs that were
// complete. It may lag, never lead, so a database whose last sequence lies below it has lost acknowledged rows; and so
// has one that still needs one of those logs and does not have it whole, whatever a newer log says. Written after each
// synced commit without a sync of its own: it survives the process, and after a power cut it may lag. Written by
// pwrite, not through a mapping: a mapped page that cannot be written back kills the process with SIGBUS.
class DurableMark {
public:
  // Creates the file durably, with no logs. Errors: `store_unavailable`.
  [[nodiscard]] static Result<DurableMark> create(const std::filesystem::path &directory, std::uint64_t sequence = 0);

  // A mark of the older form is made anew, unless read-only. Errors: `not_found`, `corrupt`, `store_unavailable`.
  [[nodiscard]] static Result<DurableMark> open(const std::filesystem::path &directory, bool read_only);

  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }

  // Raises the mark; a lower sequence changes nothing. A failed write leaves it lagging, which is allowed.
  void advance(std::uint64_t sequence);

  // Logs that nothing is added to any more, every byte of them on stable storage. The newest are remembered. A failed
  // write leaves the mark lagging, which is allowed.
  void remember(std::span<const LogFile> complete);
  [[nodiscard]] std::vector<LogFile> complete_logs() const;

  // Sets the mark whatever it was, and forgets the logs. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> reset(std::uint64_t sequence);

  // Puts the mark itself on stable storage.
  void sync();

  DurableMark(DurableMark &&other) noexcept;

private:
  static constexpr std::size_t logs_max = 64;
  using Logs = std::array<LogFile, logs_max>; // number 0: none

  DurableMark(std::filesystem::path path, Descriptor file, std::uint64_t sequence, const Logs &logs);
  bool write(std::uint64_t sequence);
  bool write_logs(const Logs &logs);

  std::filesystem::path path_;
  Descriptor file_;
  mutable std::mutex mutex_; // guards the rest, and the order of writes, so that the file never goes back
  std::uint64_t sequence_;
  Logs logs_;
};

} // namespace onced::store
