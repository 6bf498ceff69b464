#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/file_content.hpp"

// Where the records of a RocksDB log lie, for tests that damage them: blocks of 32 KiB, each record with a checksum (4
// bytes), its length (2) and its type (1) before it. The product reads no logs.
namespace onced::testing {

struct LogRecord {
  static constexpr std::size_t header_bytes = 7;
  std::size_t begin = 0;
  std::size_t bytes = 0; // with its header
  unsigned type = 0;     // 1: whole; 2, 3, 4: the first, a middle, the last part
};

inline std::vector<LogRecord> log_records(const std::filesystem::path &log) {
  constexpr std::size_t block_bytes = 32UL * 1024;
  const std::string content = content_of(log);
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(content[at]); };
  std::vector<LogRecord> records;
  for (std::size_t at = 0; at + LogRecord::header_bytes <= content.size();) {
    const std::size_t left = block_bytes - at % block_bytes;
    if (left < LogRecord::header_bytes) {
      at += left;
      continue;
    }
    const std::size_t length = byte(at + 4) | static_cast<std::size_t>(byte(at + 5)) << 8U;
    const unsigned type = byte(at + 6);
    if (type == 0) break; // space that was reserved
    records.push_back({.begin = at, .bytes = LogRecord::header_bytes + length, .type = type});
    at += LogRecord::header_bytes + length;
  }
  return records;
}

// The logs of a data directory or an outbox that have a record, oldest first.
inline std::vector<std::filesystem::path> logs_in(const std::filesystem::path &directory) {
  std::vector<std::filesystem::path> logs;
  for (const auto &entry : std::filesystem::directory_iterator(directory / "db")) {
    if (entry.path().extension() == ".log" && !log_records(entry.path()).empty()) logs.push_back(entry.path());
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

inline void change_byte(const std::filesystem::path &path, std::size_t at, unsigned bits) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(static_cast<unsigned>(file.get()) ^ bits);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

inline void zero_bytes(const std::filesystem::path &path, std::size_t at, std::size_t bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  const std::string zeros(bytes, '\0');
  file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
}

} // namespace onced::testing
