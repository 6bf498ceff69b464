#pragma once

#include <cstdint>
#include <filesystem>

#include "onced/error.hpp"

namespace onced {

// The file beside its database that says what is on stable storage, by which a worker's directory and an outbox are
// known.
inline constexpr std::string_view store_mark_name = "durable.mark";
inline constexpr std::string_view outbox_mark_name = "outbox.mark";

// The directories that this program makes, each for one use.
enum class DirectoryKind : std::uint8_t {
  worker, // its data: `serve --data`
  outbox, // of a sender: `send --outbox`
  record, // of a rehearsal: `rehearse --out`
  none,   // absent, empty, or somebody else's
};

// By what lies in it; nothing is changed. A damaged one may be `none`.
[[nodiscard]] DirectoryKind kind_of_directory(const std::filesystem::path &directory);

// That a directory is not of another kind than it is used as. Error `usage`, with the command that it is for.
[[nodiscard]] Result<void> expect_kind(DirectoryKind expected, const std::filesystem::path &directory);

// The same, of a record alone, which takes no look at a database.
[[nodiscard]] Result<void> expect_no_record(const std::filesystem::path &directory);

} // namespace onced
