#include "rocksdb/log_files.hpp"

#include <algorithm>
#include <charconv>

namespace onced::rocks {
namespace {

// The number in "000040.log".
std::optional<std::uint64_t> number_of(const std::filesystem::path &file) {
  if (file.extension() != ".log") return std::nullopt;
  const std::string stem = file.stem();
  std::uint64_t number = 0;
  const auto read = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  if (stem.empty() || read.ec != std::errc() || read.ptr != stem.data() + stem.size()) return std::nullopt;
  return number;
}

} // namespace

std::string LogFile::name() const {
  constexpr std::size_t digits_min = 6;
  std::string digits = std::to_string(number);
  digits.insert(0, digits_min - std::min(digits_min, digits.size()), '0');
  return digits + ".log";
}

std::vector<LogFile> log_files(const std::filesystem::path &database) {
  std::vector<LogFile> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(database, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const auto number = number_of(entries->path());
    std::error_code gone; // it may be deleted meanwhile
    const std::uint64_t bytes = number ? entries->file_size(gone) : 0;
    if (number && !gone) files.push_back({.number = *number, .bytes = bytes});
  }
  std::sort(files.begin(), files.end(),
            [](const LogFile &left, const LogFile &right) { return left.number < right.number; });
  return files;
}

std::optional<std::string> missing_log(const std::filesystem::path &database, std::span<const LogFile> known,
                                       std::uint64_t first_needed) {
  const std::vector<LogFile> found = log_files(database);
  for (const LogFile &log : known) {
    if (log.number < first_needed) continue;
    const auto at =
        std::find_if(found.begin(), found.end(), [&](const LogFile &file) { return file.number == log.number; });
    const std::string name = "log " + std::to_string(log.number);
    if (at == found.end()) return name + " is missing, or MANIFEST was cut short";
    if (at->bytes < log.bytes) {
      return name + " has " + std::to_string(at->bytes) + " bytes of at least " + std::to_string(log.bytes);
    }
  }
  return std::nullopt;
}

} // namespace onced::rocks
