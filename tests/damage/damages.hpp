#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "damage/trial.hpp"
#include "support/log_records.hpp"

// The lists of damages that the tests try, and how a list is tried. File names are below the directory of the trial.
namespace onced::testing {

// The files that hold a byte, in the order of their names; `ending` as in ".log".
[[nodiscard]] std::vector<std::filesystem::path> files_of(const Trial &trial, const std::string &begin,
                                                          const std::string &ending = {});
// RocksDB's files are numbered, with six digits.
[[nodiscard]] std::vector<std::filesystem::path> logs_of(const Trial &trial);
[[nodiscard]] std::vector<std::filesystem::path> tables_of(const Trial &trial);
[[nodiscard]] std::uintmax_t size_of(const Trial &trial, const std::filesystem::path &file);

// One bit of every so many bytes.
[[nodiscard]] std::vector<Damage> flips(const Trial &trial, const std::vector<std::filesystem::path> &files,
                                        std::uintmax_t stride);
[[nodiscard]] std::vector<Damage> cuts(const Trial &trial, const std::filesystem::path &file, std::uintmax_t begin = 0,
                                       std::uintmax_t stride = 1);
[[nodiscard]] std::vector<Damage> removals(const std::vector<std::filesystem::path> &files);

// One record of a log: two bits of each field of its header and of its batch's header, zeros over it, a cut before it
// and a cut in it.
[[nodiscard]] std::vector<Damage> damages_of_record(const std::filesystem::path &file, const LogRecord &record);
// Everything that is done to one log of several.
[[nodiscard]] std::vector<Damage> damages_of_log(const Trial &trial, const std::filesystem::path &file,
                                                 const std::vector<std::filesystem::path> &others);

template <class Item>
[[nodiscard]] std::vector<Item> operator+(std::vector<Item> left, const std::vector<Item> &right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Every so many of them once more, before a read-only opening.
[[nodiscard]] std::vector<Damage> with_read_only(std::vector<Damage> damages, std::size_t stride);
// ONCED_DAMAGES of them (otherwise 30), drawn by ONCED_TEST_SEED, which is printed.
[[nodiscard]] std::vector<Damage> drawn_from(std::vector<Damage> damages);

using Tally = std::array<std::size_t, verdict_names.size()>;

// Tries all, prints what came of them, and fails for each that is not allowed.
Tally check_all(const Trial &trial, const std::vector<Damage> &damages);
[[nodiscard]] std::size_t count(const Tally &tally, Verdict verdict);

} // namespace onced::testing
