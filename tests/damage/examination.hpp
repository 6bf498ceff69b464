#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "damage/prepared_store.hpp"
#include "onced/error.hpp"

namespace onced::testing {

// What a store says of rows that it has acknowledged, after its files were damaged.
enum class Verdict : std::uint8_t {
  complete,        // it opens, and every row is there
  refused,         // it does not open; the error names the file, the cause and a remedy
  said_corruption, // it opens, and says of the rows that it cannot read that they are damaged
  silent_loss,     // forbidden: a row is absent, or would be stored again
  wrong,           // forbidden: a row is there that was never written, or a different one
  bad_error,       // forbidden: an error that lacks the file, the cause or the remedy
  crashed,         // forbidden: the process died or hung
};
inline constexpr std::array<std::string_view, 7> verdict_names{
    "complete", "refused", "said corruption", "silent loss", "wrong", "bad error", "crashed"};

[[nodiscard]] constexpr bool is_allowed(Verdict verdict) {
  return verdict <= Verdict::said_corruption;
}

struct Finding {
  Verdict verdict = Verdict::complete;
  std::string text; // what was refused, or what was found, in a line
};

enum class Opening : std::uint8_t { writable, read_only };

// An error of an opening or a look-up: `verdict`, or `bad_error` where it lacks the place in `directory`, the cause or
// the remedy.
[[nodiscard]] Finding finding_of(const Error &error, const std::filesystem::path &directory, Verdict verdict);

// Opens the store in `directory` and asks for every acknowledged row: by its key, by a scan, and, where it is writable,
// by delivering all jobs again.
[[nodiscard]] Finding examine(const std::filesystem::path &directory, std::span<const Acknowledged> jobs,
                              Opening opening);

} // namespace onced::testing
