// Damage to the files of a store: a bit flipped, a file cut short, a file gone. After each the store either has every
// acknowledged row, or is refused with the place, the cause and a remedy, or says of the damaged rows that they are.
// None is silently absent or another one, no job takes effect again, and the process lives. What it does not show: two
// damages at once, damage while the store is open, rows that were never acknowledged, and damage that RocksDB cannot
// see where the mark does not look (an older copy of the whole directory).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/directory_kind.hpp"
#include "damage/trial.hpp"
#include "rocksdb/durable_mark.hpp"
#include "support/log_records.hpp"
#include "support/scene.hpp"
#include "support/seeds.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

namespace fs = std::filesystem;

// The files of a store that hold what it needs to know, in the order of their names; `ending` as in ".log".
std::vector<fs::path> files_of(const Trial &trial, const std::string &begin, const std::string &ending = {}) {
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

// RocksDB's files are numbered, with six digits.
std::vector<fs::path> logs_of(const Trial &trial) {
  return files_of(trial, "0", ".log");
}
std::vector<fs::path> tables_of(const Trial &trial) {
  return files_of(trial, "0", ".sst");
}

std::uintmax_t size_of(const Trial &trial, const fs::path &file) {
  return fs::file_size(trial.original() / file);
}

// The log that was being written at the end.
fs::path last_log_of(const Trial &trial) {
  return logs_of(trial).back();
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

std::vector<Damage> cuts(const Trial &trial, const fs::path &file, std::uintmax_t begin = 0,
                         std::uintmax_t stride = 1) {
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

template <class Item> std::vector<Item> operator+(std::vector<Item> left, const std::vector<Item> &right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Every so many of them once more, before a read-only opening.
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

using Tally = std::array<std::size_t, verdict_names.size()>;

// Tries all, prints what came of them, and fails for each that is not allowed.
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

} // namespace

TEST_CASE("an undamaged store is complete") {
  for (const Shape shape : {Shape::closed, Shape::killed, Shape::two_logs}) {
    const Trial trial(shape);
    const auto tally = check_all(trial, with_read_only({Damage{}}, 1));
    CHECK(count(tally, Verdict::complete) == 2);
    CHECK(tables_of(trial).size() >= 5);
  }
}

TEST_CASE("a log that is cut to any length is refused") {
  const Trial trial(Shape::killed);
  const fs::path log = last_log_of(trial);
  REQUIRE(size_of(trial, log) > 1000);
  REQUIRE(size_of(trial, log) <= 4096);
  const auto damages = with_read_only(cuts(trial, log), 10);
  CHECK(count(check_all(trial, damages), Verdict::refused) == damages.size());
}

TEST_CASE("a flipped bit in a log or a table never goes unnoticed") {
  for (const Shape shape : {Shape::closed, Shape::killed}) {
    const Trial trial(shape);
    const auto logs = flips(trial, {last_log_of(trial)}, 13);
    CHECK(count(check_all(trial, logs), Verdict::refused) == logs.size());
    check_all(trial, with_read_only(flips(trial, logs_of(trial), 97), 2));
    const auto tables = check_all(trial, with_read_only(flips(trial, tables_of(trial), 37), 4));
    CHECK(count(tables, Verdict::complete) < count(tables, Verdict::refused) + count(tables, Verdict::said_corruption));
  }
}

TEST_CASE("damage to the files that say what the database is never goes unnoticed") {
  const Trial trial(Shape::killed);
  const fs::path manifest = files_of(trial, "MANIFEST-").back();
  check_all(trial, with_read_only(flips(trial, {manifest}, 7) + cuts(trial, manifest, 0, 11), 10));
  const auto names = files_of(trial, "CURRENT") + files_of(trial, "durable.mark");
  check_all(trial, with_read_only(flips(trial, names, 1), 10));
  for (const fs::path &name : names)
    check_all(trial, with_read_only(cuts(trial, name), 10));
}

TEST_CASE("a file that is gone never goes unnoticed") {
  for (const Shape shape : {Shape::closed, Shape::killed}) {
    const Trial trial(shape);
    check_all(trial, with_read_only(removals(files_of(trial, "")), 1));
    auto needed = removals(tables_of(trial) + files_of(trial, "MANIFEST-") + files_of(trial, "CURRENT") +
                           files_of(trial, "durable.mark"));
    needed.push_back({.kind = Damage::Kind::removal, .file = last_log_of(trial)});
    CHECK(count(check_all(trial, needed), Verdict::refused) == needed.size());
  }
}

// A table of one family may be written while rows of the others are in the older log alone, which then is needed as
// long as the newer one.
TEST_CASE("the older of two live logs is missed as the newer one is") {
  const Trial trial(Shape::two_logs);
  const auto logs = logs_of(trial);
  REQUIRE(logs.size() >= 2);
  const fs::path older = logs[logs.size() - 2];
  REQUIRE(size_of(trial, older) > 1'000'000);
  check_all(trial, removals({older, logs.back()}));
  check_all(trial, cuts(trial, older, size_of(trial, older) - 2000, 150));
  check_all(trial, cuts(trial, logs.back(), size_of(trial, logs.back()) - 2000, 150));
  check_all(trial, flips(trial, {older}, 499'979));
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

// Everything that is done to one log of several.
std::vector<Damage> damages_of_log(const Trial &trial, const fs::path &file, const std::vector<fs::path> &others) {
  using Kind = Damage::Kind;
  const auto records = log_records(trial.original() / file);
  std::vector<Damage> damages{{.kind = Kind::removal, .file = file}, {.kind = Kind::cut, .file = file}};
  for (const LogRecord &record : {records.front(), records[records.size() / 2], records.back()}) {
    damages = damages + flips_of_fields(file, record);
    damages.push_back({.kind = Kind::zero, .file = file, .at = record.begin, .bytes = record.bytes});
    damages.push_back({.kind = Kind::cut, .file = file, .at = record.begin});
    damages.push_back({.kind = Kind::cut, .file = file, .at = record.begin + record.bytes - 1});
  }
  for (const fs::path &other : others) {
    if (other == file) continue;
    damages.push_back({.kind = Kind::swap, .file = file, .other = other});
    damages.push_back({.kind = Kind::copy, .file = file, .other = other});
  }
  return damages;
}

} // namespace

namespace {

struct LogLine {
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
};

// The batches of a log as Debian's ldb reads them: lines that begin with the first sequence number and the count.
std::vector<LogLine> lines_of_ldb(const fs::path &log) {
  Pipe pipe = make_pipe().value();
  const auto ldb = ChildProcess::start({.words = {"ldb", "dump_wal", "--header", "--walfile=" + log.string()},
                                        .environment = {},
                                        .output = pipe.writing.number(),
                                        .errors = pipe.writing.number()});
  REQUIRE_MESSAGE(ldb.has_value(), "ldb, of Debian's rocksdb-tools, is missing");
  pipe.writing = Descriptor();
  ChildOutput output(std::move(pipe.reading));
  std::vector<LogLine> lines;
  while (const auto text = output.next_line(patience_from_now())) {
    LogLine line;
    if (std::sscanf(text->c_str(), "%lu,%lu,", &line.first, &line.rows) == 2) lines.push_back(line);
  }
  return lines;
}

} // namespace

// Read by another program than the product: what the mark says of each log is so.
TEST_CASE("ldb reads every row in the logs of a killed store and the mark names the first and the last of each") {
  const Trial trial(Shape::many_logs);
  const auto mark = rocks::DurableMark::open(trial.original(), store_mark_name, true);
  REQUIRE(mark.has_value());
  const auto content = mark->content();
  std::uint64_t next = 0;
  for (const fs::path &log : logs_of(trial)) {
    const auto lines = lines_of_ldb(trial.original() / log);
    REQUIRE_MESSAGE(!lines.empty(), "ldb, of Debian's rocksdb-tools, reads nothing of ", log.string());
    const std::uint64_t number = std::stoull(log.stem().string());
    const auto known = std::find_if(content.complete.begin(), content.complete.end(),
                                    [&](const rocks::LogSpan &span) { return span.number == number; });
    const bool is_newest = number == content.newest.number;
    REQUIRE((known != content.complete.end()) != is_newest);
    CHECK(lines.front().first == (is_newest ? content.newest.first : known->first));
    if (next != 0) CHECK(lines.front().first == next);
    next = lines.front().first;
    for (const LogLine &line : lines) {
      CHECK(line.first == next);
      next += line.rows;
    }
    const LogLine last = lines.back();
    // The last batch of the newest log stands in the mark by its first row.
    CHECK((is_newest ? content.sequence == last.first : known->last == next - 1));
  }
}

// RocksDB takes what is damaged at the end of any log for a torn tail, and ends the process where rows go back.
TEST_CASE("each of several live logs is missed in whatever way it is damaged") {
  const Trial trial(Shape::many_logs);
  const auto logs = logs_of(trial);
  REQUIRE(logs.size() >= 3);
  // What always is tried: the last record of each log, which RocksDB does not miss.
  std::vector<Damage> damages;
  std::vector<Damage> more;
  for (const fs::path &log : logs) {
    const LogRecord last = log_records(trial.original() / log).back();
    damages.push_back({.kind = Damage::Kind::flip, .file = log, .at = last.begin + 5, .bits = 0x40});
    damages.push_back({.kind = Damage::Kind::zero, .file = log, .at = last.begin, .bytes = last.bytes});
    more = more + damages_of_log(trial, log, logs);
  }
  damages.push_back({.kind = Damage::Kind::swap, .file = logs[0], .other = logs[1]});
  damages.push_back({.kind = Damage::Kind::copy, .file = logs.back(), .other = logs[0]});
  damages.push_back({.kind = Damage::Kind::copy, .file = logs[0].parent_path() / "999999.log", .other = logs[0]});
  CHECK(count(check_all(trial, damages), Verdict::refused) == damages.size());

  const std::string asked = scene_parameter("ONCED_DAMAGES");
  const std::size_t tried_max = asked.empty() ? 30 : std::stoul(asked);
  const Seed seed = seed_or(1);
  CAPTURE(seed);
  std::mt19937_64 random(seed.number);
  std::shuffle(more.begin(), more.end(), random);
  more.resize(std::min(more.size(), tried_max));
  std::cout << seed << ": ";
  check_all(trial, more);
}

TEST_CASE("files of an older self and of another store are missed") {
  const Trial trial(Shape::killed);
  const Trial another(Shape::killed);
  const ScratchDirectory older;
  fs::copy(trial.original(), older.path(), fs::copy_options::recursive);
  boot_once_more(trial.original());
  using Kind = Damage::Kind;
  std::vector<Damage> damages;
  for (const fs::path &from : {older.path(), another.original()}) {
    for (const char *name : {"db", "durable.mark"})
      damages.push_back({.kind = Kind::copy, .file = name, .other = from / name});
  }
  CHECK(count(check_all(trial, damages), Verdict::refused) == damages.size());
}

// The control: without the mark nobody would notice, and this test would see that.
TEST_CASE("with a mark that knows no row those of a log that was cut are silently lost") {
  const Trial trial(Shape::killed);
  {
    const auto mark = rocks::DurableMark::open(trial.original(), store_mark_name, true);
    REQUIRE(mark.has_value());
    auto content = mark->content();
    content.sequence = 0;
    content.complete.clear();
    content.identity = {};
    REQUIRE(rocks::DurableMark::create(trial.original(), store_mark_name, content).has_value());
  }
  const auto findings = trial.run(cuts(trial, last_log_of(trial), 200, 150));
  REQUIRE(findings.size() >= 5);
  for (const Finding &finding : findings)
    CHECK_MESSAGE(finding.verdict == Verdict::silent_loss, finding.text);
}
