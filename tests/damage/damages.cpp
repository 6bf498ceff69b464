#include "damage/damages.hpp"

#include <algorithm>
#include <iostream>
#include <random>

#include <doctest/doctest.h>

#include "support/scene.hpp"
#include "support/seeds.hpp"

namespace onced::testing {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const Trial &trial, const std::string &begin, const std::string &ending) {
  std::vector<fs::path> files;
  for (const auto &entry : fs::recursive_directory_iterator(trial.original())) {
    const std::string name = entry.path().filename();
    const bool wanted = name.starts_with(begin) && name.ends_with(ending);
    if (wanted && entry.is_regular_file() && entry.file_size() > 0)
      files.push_back(fs::relative(entry.path(), trial.original()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> logs_of(const Trial &trial) {
  return files_of(trial, "0", ".log");
}
std::vector<fs::path> tables_of(const Trial &trial) {
  return files_of(trial, "0", ".sst");
}

std::uintmax_t size_of(const Trial &trial, const fs::path &file) {
  return fs::file_size(trial.original() / file);
}

std::vector<Damage> flips(const Trial &trial, const std::vector<fs::path> &files, std::uintmax_t stride) {
  std::vector<Damage> damages;
  for (const fs::path &file : files) {
    for (std::uintmax_t at = 0; at < size_of(trial, file); at += stride) {
      const auto bit = static_cast<std::uint8_t>(1U << (at % 8));
      damages.push_back({.kind = Damage::Kind::flip, .file = file, .at = at, .bits = bit});
    }
  }
  return damages;
}

std::vector<Damage> cuts(const Trial &trial, const fs::path &file, std::uintmax_t begin, std::uintmax_t stride) {
  std::vector<Damage> damages;
  for (std::uintmax_t at = begin; at < size_of(trial, file); at += stride)
    damages.push_back({.kind = Damage::Kind::cut, .file = file, .at = at});
  return damages;
}

std::vector<Damage> removals(const std::vector<fs::path> &files) {
  std::vector<Damage> damages;
  damages.reserve(files.size());
  for (const fs::path &file : files)
    damages.push_back({.kind = Damage::Kind::removal, .file = file});
  return damages;
}

std::vector<Damage> with_read_only(std::vector<Damage> damages, std::size_t stride) {
  const std::size_t count = damages.size();
  damages.reserve(count + count / stride + 1);
  for (std::size_t at = 0; at < count; at += stride) {
    Damage damage = damages[at];
    damage.opening = Opening::read_only;
    damages.push_back(damage);
  }
  return damages;
}

std::vector<Damage> drawn_from(std::vector<Damage> damages) {
  const std::string asked = scene_parameter("ONCED_DAMAGES");
  const std::size_t tried_max = asked.empty() ? 30 : std::stoul(asked);
  const Seed seed = seed_or(1);
  std::mt19937_64 random(seed.number);
  std::shuffle(damages.begin(), damages.end(), random);
  damages.resize(std::min(damages.size(), tried_max));
  std::cout << seed << ": ";
  return damages;
}

Tally check_all(const Trial &trial, const std::vector<Damage> &damages) {
  Tally tally{};
  const auto findings = trial.run(damages);
  for (std::size_t at = 0; at < damages.size(); ++at) {
    const Finding &finding = findings[at];
    const auto verdict = static_cast<std::size_t>(finding.verdict);
    ++tally[verdict];
    CHECK_MESSAGE(is_allowed(finding.verdict), describe(damages[at]), ": ", verdict_names[verdict], ", ", finding.text);
  }
  std::cout << damages.size() << " damages";
  for (std::size_t verdict = 0; verdict < tally.size(); ++verdict) {
    if (tally[verdict] > 0) std::cout << ", " << verdict_names[verdict] << ' ' << tally[verdict];
  }
  std::cout << std::endl;
  return tally;
}

std::size_t count(const Tally &tally, Verdict verdict) {
  return tally[static_cast<std::size_t>(verdict)];
}

namespace {

// Of a record of a log: its checksum, length and type, then the batch's first row, its count, and what follows.
std::vector<Damage> flips_of_fields(const fs::path &file, const LogRecord &record) {
  std::vector<Damage> damages;
  for (const std::size_t field : {0U, 3U, 4U, 5U, 6U, 7U, 9U, 15U, 19U, 24U}) {
    for (const unsigned bit : {0x01U, 0x40U}) {
      if (field >= record.bytes) continue;
      damages.push_back({.kind = Damage::Kind::flip,
                         .file = file,
                         .at = record.begin + field,
                         .bits = static_cast<std::uint8_t>(bit)});
    }
  }
  return damages;
}

} // namespace

std::vector<Damage> damages_of_record(const fs::path &file, const LogRecord &record) {
  using Kind = Damage::Kind;
  return flips_of_fields(file, record) +
         std::vector<Damage>{{.kind = Kind::zero, .file = file, .at = record.begin, .bytes = record.bytes},
                             {.kind = Kind::cut, .file = file, .at = record.begin},
                             {.kind = Kind::cut, .file = file, .at = record.begin + record.bytes - 1}};
}

std::vector<Damage> damages_of_log(const Trial &trial, const fs::path &file, const std::vector<fs::path> &others) {
  using Kind = Damage::Kind;
  const auto records = log_records(trial.original() / file);
  std::vector<Damage> damages{{.kind = Kind::removal, .file = file}, {.kind = Kind::cut, .file = file}};
  for (const LogRecord &record : {records.front(), records[records.size() / 2], records.back()})
    damages = damages + damages_of_record(file, record);
  for (const fs::path &other : others) {
    if (other == file) continue;
    damages.push_back({.kind = Kind::swap, .file = file, .other = other});
    damages.push_back({.kind = Kind::copy, .file = file, .other = other});
  }
  return damages;
}

} // namespace onced::testing
