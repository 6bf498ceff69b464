#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace onced::rocks {

// A log of RocksDB: NUMBER.log in the database's folder.
struct LogFile {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  bool operator==(const LogFile &) const = default;
  // "000040.log"
  [[nodiscard]] std::string name() const;
};

// Those that are there, by their numbers. Nothing where the folder cannot be read.
[[nodiscard]] std::vector<LogFile> log_files(const std::filesystem::path &database);

// Of those that must be there, the first that is missing or shorter, named with what is wrong with it. Logs below
// `first_needed` may be gone: their rows are in tables.
[[nodiscard]] std::optional<std::string> missing_log(const std::filesystem::path &database,
                                                     std::span<const LogFile> known, std::uint64_t first_needed);

} // namespace onced::rocks
