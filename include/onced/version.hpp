#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onced {

// The protocol versions spoken (docs/protocol.md) and the disk format written (docs/storage.md).
inline constexpr unsigned wire_version = 1;
inline constexpr unsigned disk_format = 4;
// The oldest disk format that is read, and upgraded by the first opening.
inline constexpr unsigned oldest_disk_format = 2;
// The format of an outbox (docs/outbox.md).
inline constexpr unsigned outbox_format = 2;

struct Version {
  std::string_view number; // of this program, "MAJOR.MINOR.PATCH"
  std::string_view commit; // of the sources; "unknown" outside a checkout, "-dirty" appended when they were edited
  std::string_view compiler;
  std::string_view build_type;
  std::vector<std::pair<std::string_view, std::string>> libraries; // name, version that is running
  bool rocksdb_asserts = false; // RocksDB was built with its assertions, as Debian's is: it is slower for them
};

[[nodiscard]] Version version();

// "NUMBER+COMMIT": what rows record as their worker build. At most 64 bytes.
[[nodiscard]] std::string_view worker_build();

} // namespace onced
