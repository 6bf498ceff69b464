#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "power/load.hpp"

// What lies on disk, read by docs/storage.md and docs/outbox.md with RocksDB and MessagePack alone: nothing here is
// onced's. It opens read-only and writes nothing. It throws where the bytes are not what those pages say.
namespace onced::testing {

// The fate of every job that has a row in the data directory of a worker, running or not.
[[nodiscard]] Fates scan_worker(const std::filesystem::path &data);

// The operation ids of the jobs in an outbox.
[[nodiscard]] std::set<std::string> scan_outbox(const std::filesystem::path &outbox);

} // namespace onced::testing
