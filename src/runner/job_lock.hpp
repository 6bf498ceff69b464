#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

#include "base/descriptor.hpp"
#include "onced/error.hpp"

// The lock of a job's file is held by the command that works on the job, and by what that has started, through an
// inherited descriptor. It ends with the last of them, also where this process did not live to see it.
namespace onced::runner {

// Takes the lock of a file, which is made where there is none. Nothing: somebody holds it.
[[nodiscard]] Result<std::optional<Descriptor>> take_lock(const std::filesystem::path &lock_file);

// Whether nobody holds the lock; so where there is no such file.
[[nodiscard]] Result<bool> lock_is_free(const std::filesystem::path &lock_file);

// Removes the file of a job that no command works on, if nobody holds its lock. True: it is gone.
[[nodiscard]] Result<bool> remove_lock(const std::filesystem::path &lock_file);

// The folder of the files of all jobs. There are no more files in it than jobs that commands or what they have started
// work on, but for some that were let go lately. Any thread.
class JobLocks {
public:
  explicit JobLocks(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Makes the folder, and removes what an earlier process has left and nobody holds. Errors: `store_unavailable`.
  [[nodiscard]] Result<void> prepare();

  [[nodiscard]] std::filesystem::path file_of(std::string_view idempotency_key) const {
    return folder_ / idempotency_key;
  }

  // No command works on the job any more: its file is removed. Where what a command has started still holds the lock,
  // that is tried again at later calls.
  void remove(const std::filesystem::path &lock_file);

private:
  void try_held_again();

  std::filesystem::path folder_;
  std::mutex mutex_;                     // guards the next
  std::set<std::filesystem::path> held_; // still there; each is held by a process, or was
  std::filesystem::path tried_last_;     // of those
};

} // namespace onced::runner
