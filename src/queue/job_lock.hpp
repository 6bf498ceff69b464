#pragma once

#include <filesystem>
#include <optional>

#include "onced/error.hpp"
#include "store/descriptor.hpp"

// The lock of a job's file is held by the command that works on the job, and by what that has started, through an
// inherited descriptor. It ends with the last of them, also where this process did not live to see it.
namespace onced::queue {

// Takes the lock of a file, which is made where there is none. Nothing: somebody holds it.
[[nodiscard]] Result<std::optional<store::Descriptor>> take_lock(const std::filesystem::path &lock_file);

// Whether nobody holds the lock; so where there is no such file.
[[nodiscard]] Result<bool> lock_is_free(const std::filesystem::path &lock_file);

// Removes the file of a job that has ended, if nobody holds its lock. True: it is gone.
[[nodiscard]] Result<bool> remove_lock(const std::filesystem::path &lock_file);

} // namespace onced::queue
