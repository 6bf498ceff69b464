#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>

#include "onced/error.hpp"
#include "store/descriptor.hpp"

namespace onced::store {

// `durable.mark`: the last RocksDB sequence number that is known to be on stable storage. It may lag, never lead, so a
// database whose last sequence lies below it has lost acknowledged rows. Written after each synced commit without a
// sync of its own: it survives the process, and after a power cut it may lag. Written by pwrite, not through a mapping:
// a mapped page that cannot be written back kills the process with SIGBUS.
class DurableMark {
public:
  // Creates the file durably with mark 0. Errors: `store_unavailable`.
  [[nodiscard]] static Result<DurableMark> create(const std::filesystem::path &directory);

  // Errors: `not_found`, `corrupt`, `store_unavailable`.
  [[nodiscard]] static Result<DurableMark> open(const std::filesystem::path &directory, bool read_only);

  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }

  // Raises the mark; a lower sequence changes nothing. A failed write leaves it lagging, which is allowed.
  void advance(std::uint64_t sequence);

  // Sets the mark whatever it was. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> reset(std::uint64_t sequence);

  // Puts the mark itself on stable storage.
  void sync();

  DurableMark(DurableMark &&other) noexcept;

private:
  DurableMark(std::filesystem::path path, Descriptor file, std::uint64_t sequence);
  bool write(std::uint64_t sequence);

  std::filesystem::path path_;
  Descriptor file_;
  std::mutex mutex_; // guards the order of writes, so that the file never goes back
  std::uint64_t sequence_;
};

} // namespace onced::store
