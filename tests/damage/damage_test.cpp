// Damage to the files of a store: a bit flipped, a file cut short, a file gone. After each the store either has every
// acknowledged row, or is refused with the place, the cause and a remedy, or says of the damaged rows that they are.
// None is silently absent or another one, no job takes effect again, and the process lives. What it does not show: two
// damages at once, damage while the store is open, rows that were never acknowledged, and damage that RocksDB cannot
// see where the mark does not look (an older copy of the whole directory).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "base/directory_kind.hpp"
#include "damage/damages.hpp"
#include "rocksdb/durable_mark.hpp"
#include "support/eventually.hpp"
#include "support/log_records.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

namespace fs = std::filesystem;

// The log that was being written at the end.
fs::path last_log_of(const Trial &trial) {
  return logs_of(trial).back();
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

  check_all(trial, drawn_from(more));
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
