#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "crash/job.hpp"

// What lies on disk, read with RocksDB and MessagePack alone, by docs/storage.md and docs/outbox.md. Nothing is
// changed.
namespace onced::crash {

struct Row {
  Bytes digest;
  Bytes result;
  std::string operation_id;
  std::string type;
  std::string effect_key; // empty: none
  Bytes value;            // the whole of it, which never changes
};

struct Letter {
  unsigned reason = 0;
  Bytes bytes;
  std::string operation_id; // empty: the bytes are no job
  std::uint64_t deliveries = 0;
  Bytes stored_digest;  // empty: none
  Bytes offered_digest; // likewise
};

struct Scan {
  std::map<Bytes, Row> rows;
  std::map<Bytes, Letter> letters;
  // By the counters of `meta`.
  std::int64_t results_counted = 0;
  std::int64_t letters_counted = 0;
};

// A data directory. Throws where the database does not open or a row is damaged.
[[nodiscard]] Scan scan(const std::filesystem::path &data);

// The operation id of every job in an outbox. Throws likewise.
[[nodiscard]] std::vector<std::string> scan_outbox(const std::filesystem::path &outbox);

} // namespace onced::crash
