// Damage to the files of an outbox, as damage_test.cpp does it to those of a store. After each the outbox either has
// every job that `append` had returned, or is refused as `loss_suspected` or `corrupt` with the place, the cause and a
// remedy. It never opens with a job missing, with another job, or with a sequence that it would use again. What it does
// not show: two damages at once, damage while the outbox is open, and an older copy of the whole directory.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/directory_kind.hpp"
#include "base/scratch_directory.hpp"
#include "damage/damages.hpp"
#include "onced/digest.hpp"
#include "rocksdb/durable_mark.hpp"
#include "sender/outbox.hpp"
#include "support/eventually.hpp"

namespace onced::testing {
namespace {

namespace fs = std::filesystem;
using sender::Outbox;
using sender::OutboxJob;

constexpr std::uint64_t jobs_a_batch = 4;
constexpr std::uint64_t jobs_a_boot = 20;
constexpr std::size_t large_job_bytes = 1'000'000;

// An outbox is described by the sequences that it has used: the jobs follow from that.
struct Kept {
  std::uint64_t last = 0;                            // the last sequence that `append` has returned
  std::uint64_t large_from = std::uint64_t{1} << 32; // from here on the first job of each batch is large

  [[nodiscard]] Bytes job(std::uint64_t number) const {
    const bool is_large = number >= large_from && number % jobs_a_batch == 1;
    return "job " + std::to_string(number) + (is_large ? Bytes(large_job_bytes, 'x') : Bytes());
  }
  // Its removal was not synced: the job may be there.
  [[nodiscard]] bool is_removed(std::uint64_t number) const { return number % 7 == 3; }
};

SenderId sender_of(std::uint8_t name) {
  SenderId id;
  id.bytes.fill(name);
  return id;
}

std::unique_ptr<Outbox> opened_outbox(const fs::path &directory, std::uint8_t name) {
  auto opened = Outbox::open(directory, sender_of(name));
  if (!opened) throw std::runtime_error(describe(opened.error()));
  return std::move(*opened);
}

// Batch after batch, each followed by its removals, the last one excepted: so the log ends with a promise.
void fill(Outbox &outbox, const Kept &kept, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t begin = first; begin <= last; begin += jobs_a_batch) {
    std::vector<OutboxJob> jobs;
    std::vector<Sequence> removed;
    for (std::uint64_t number = begin; number < begin + jobs_a_batch; ++number) {
      const Bytes job = kept.job(number);
      jobs.push_back({Sequence{number}, Digester().tag(job), WallTime{}, job});
      if (kept.is_removed(number)) removed.push_back(Sequence{number});
    }
    const bool is_removing = !removed.empty() && begin + jobs_a_batch <= last;
    if (!outbox.append(jobs, jobs.back().sequence) || (is_removing && !outbox.remove(removed)))
      throw std::runtime_error("the outbox did not take its jobs");
  }
}

std::size_t count_logs(const fs::path &directory) {
  return logs_in(directory).size();
}

// One boot, which is killed.
void leave(const fs::path &directory, std::uint8_t name, const Kept &kept, std::uint64_t first, std::uint64_t last) {
  play_apart(
      [&] {
        const auto outbox = opened_outbox(directory, name);
        fill(*outbox, kept, first, last);
        ::kill(::getpid(), SIGKILL);
      },
      true);
}

// Of three boots, so that some jobs are in tables and some in the log alone. `older`: where a copy of its younger self
// goes, of two boots.
void prepare_outbox(const fs::path &directory, std::uint8_t name, const fs::path &older) {
  const Kept kept;
  for (std::uint64_t boot = 0; boot < 3; ++boot) {
    if (boot == 2 && !older.empty()) fs::copy(directory, older, fs::copy_options::recursive);
    leave(directory, name, kept, boot * jobs_a_boot + 1, (boot + 1) * jobs_a_boot);
  }
}

// The memtables of the jobs are written out, and the row of the last sequence is in none: each log is needed.
constexpr std::uint64_t large_begin = jobs_a_boot + 1;
constexpr std::uint64_t large_end = large_begin + 22 * jobs_a_batch - 1;
constexpr std::uint64_t many_logs_end = large_end + jobs_a_boot;
const Kept kept_in_many_logs{.last = many_logs_end, .large_from = large_begin};

void prepare_many_logs(const fs::path &directory) {
  Kept kept = kept_in_many_logs;
  leave(directory, 1, kept, 1, jobs_a_boot);
  play_apart(
      [&] {
        const auto outbox = opened_outbox(directory, 1);
        fill(*outbox, kept, large_begin, large_end);
        if (!eventually([&] { return count_logs(directory) >= 3; })) throw std::runtime_error("no second log");
        kept.large_from = many_logs_end + 1; // small ones end the newest log
        fill(*outbox, kept, large_end + 1, many_logs_end);
        ::kill(::getpid(), SIGKILL);
      },
      true);
}

class OutboxExamination {
public:
  OutboxExamination(fs::path directory, std::uint8_t name, const Kept &kept)
      : directory_(std::move(directory)), name_(name), kept_(kept) {}

  [[nodiscard]] Finding run() {
    if (!look(kept_.last)) return finding_;
    // It goes on: one more job is kept beside the others.
    const std::uint64_t next = kept_.last + 1;
    const Bytes job = kept_.job(next);
    const std::vector<OutboxJob> jobs{{Sequence{next}, Digester().tag(job), WallTime{}, job}};
    if (const auto appended = outbox_->append(jobs, Sequence{next}); !appended) {
      note(Verdict::bad_error, describe(appended.error()));
    } else if (finding_.verdict == Verdict::complete) {
      // Damage to a table that the first opening had no need of is met when tables are merged.
      (void)look(next);
    }
    return finding_;
  }

private:
  void note(Verdict verdict, const std::string &text) {
    if (verdict > finding_.verdict) finding_ = {verdict, text};
  }

  // False: it does not open.
  bool look(std::uint64_t last) {
    outbox_.reset();
    auto opened = Outbox::open(directory_, sender_of(0xEE));
    if (!opened) {
      const Finding refused = finding_of(opened.error(), directory_, Verdict::refused);
      const ErrorCode code = opened.error().code;
      const bool is_right = code == ErrorCode::loss_suspected || code == ErrorCode::corrupt;
      note(is_right ? refused.verdict : Verdict::bad_error, refused.text);
      return false;
    }
    outbox_ = std::move(*opened);
    if (outbox_->id() != sender_of(name_)) note(Verdict::wrong, "it is the outbox of another sender");
    if (outbox_->found().last_sequence < Sequence{last}) note(Verdict::silent_loss, "it would use a sequence again");
    compare(last);
    return true;
  }

  void compare(std::uint64_t last) {
    const auto read = outbox_->read_after(Sequence{0}, std::numeric_limits<std::size_t>::max(),
                                          std::numeric_limits<std::size_t>::max());
    if (!read) return note(Verdict::bad_error, describe(read.error()));
    std::vector<bool> seen(last + 1);
    for (const OutboxJob &found : read->jobs) {
      const auto number = static_cast<std::uint64_t>(found.sequence);
      const bool is_known = number >= 1 && number <= last;
      if (is_known) seen[number] = true;
      if (!is_known || !is_right(found, number)) note(Verdict::wrong, "job " + std::to_string(number));
    }
    for (std::uint64_t number = 1; number <= last; ++number) {
      if (!seen[number] && (number > kept_.last || !kept_.is_removed(number)))
        note(Verdict::silent_loss, "job " + std::to_string(number) + " is missing");
    }
  }

  [[nodiscard]] bool is_right(const OutboxJob &found, std::uint64_t number) const {
    Kept kept = kept_;
    if (number > large_end) kept.large_from = many_logs_end + 1;
    return found.job == kept.job(number) && found.tag == Digester().tag(found.job) && found.issued_at == WallTime{};
  }

  fs::path directory_;
  std::uint8_t name_;
  Kept kept_;
  Finding finding_;
  std::unique_ptr<Outbox> outbox_;
};

Trial::Examine examination_of(std::uint8_t name, const Kept &kept) {
  return [name, kept](const fs::path &directory, Opening) { return OutboxExamination(directory, name, kept).run(); };
}

Trial trial_of_small(std::uint8_t name, const fs::path &older = {}) {
  return {[&](const fs::path &directory) { prepare_outbox(directory, name, older); },
          examination_of(name, {.last = 3 * jobs_a_boot})};
}

// RocksDB's files have a number before or behind what they are.
std::string kind_of(const fs::path &file) {
  std::string name = file.filename();
  name.erase(std::remove_if(name.begin(), name.end(), [](char letter) { return letter >= '0' && letter <= '9'; }),
             name.end());
  return name;
}

std::vector<Damage> replacements(const fs::path &file, const Trial &trial, const fs::path &from) {
  std::vector<Damage> damages;
  for (const auto &entry : fs::recursive_directory_iterator(from)) {
    if (entry.is_regular_file() && kind_of(entry.path()) == kind_of(file))
      damages.push_back({.kind = Damage::Kind::copy, .file = file, .other = entry.path()});
  }
  REQUIRE_MESSAGE((!damages.empty() || size_of(trial, file) == 0), file.string());
  return damages;
}

// Bits, lengths and zeros of one file, whatever is in it.
std::vector<Damage> damages_of_content(const Trial &trial, const fs::path &file) {
  using Kind = Damage::Kind;
  const std::uintmax_t size = size_of(trial, file);
  const std::uintmax_t half = size / 2;
  return flips(trial, {file}, std::max<std::uintmax_t>(size / 60, 1)) +
         cuts(trial, file, 0, std::max<std::uintmax_t>(size / 20, 1)) +
         std::vector<Damage>{{.kind = Kind::removal, .file = file},
                             {.kind = Kind::cut, .file = file, .at = size - 1},
                             {.kind = Kind::zero, .file = file, .bytes = size},
                             {.kind = Kind::zero, .file = file, .at = half, .bytes = size - half}};
}

std::vector<Damage> damages_by_others(const fs::path &file, const std::vector<fs::path> &others) {
  std::vector<Damage> damages;
  for (const fs::path &other : others) {
    if (other == file) continue;
    damages.push_back({.kind = Damage::Kind::copy, .file = file, .other = other});
    if (file < other) damages.push_back({.kind = Damage::Kind::swap, .file = file, .other = other});
  }
  return damages;
}

} // namespace

TEST_CASE("an undamaged outbox has every job") {
  const Trial small = trial_of_small(1);
  CHECK(count(check_all(small, {Damage{}}), Verdict::complete) == 1);
  CHECK(tables_of(small).size() >= 2);
  const Trial many(prepare_many_logs, examination_of(1, kept_in_many_logs));
  CHECK(count(check_all(many, {Damage{}}), Verdict::complete) == 1);
  CHECK(logs_of(many).size() >= 3);
}

TEST_CASE("damage to a file of an outbox, of whatever kind, loses no job silently") {
  const Trial trial = trial_of_small(1);
  const auto files = files_of(trial, "");
  REQUIRE(files.size() >= 8);
  for (const fs::path &file : files) {
    std::cout << file.string() << ": ";
    check_all(trial, damages_of_content(trial, file) + damages_by_others(file, files));
  }
}

TEST_CASE("the newest log of an outbox is missed in whatever field it is damaged and at whatever length it ends") {
  const Trial trial = trial_of_small(1);
  const fs::path log = logs_of(trial).back();
  REQUIRE(size_of(trial, log) <= 4096);
  auto damages = cuts(trial, log, 0, 9);
  for (const LogRecord &record : log_records(trial.original() / log))
    damages = damages + damages_of_record(log, record);
  CHECK(count(check_all(trial, damages), Verdict::refused) == damages.size());
}

TEST_CASE("no field of a record of an outbox's manifest is damaged unnoticed") {
  const Trial trial = trial_of_small(1);
  const fs::path manifest = files_of(trial, "MANIFEST-").back();
  std::vector<Damage> damages;
  for (const LogRecord &record : log_records(trial.original() / manifest))
    damages = damages + damages_of_record(manifest, record);
  check_all(trial, damages);
}

TEST_CASE("files of an outbox's older self and of another outbox are missed") {
  const ScratchDirectory temp;
  const fs::path older = temp.path() / "older";
  const Trial trial = trial_of_small(1, older);
  const Trial another = trial_of_small(2);
  for (const fs::path &from : {older, another.original()}) {
    std::vector<Damage> damages;
    for (const fs::path &file : files_of(trial, ""))
      damages = damages + replacements(file, trial, from);
    check_all(trial, damages);
    std::vector<Damage> halves;
    for (const char *name : {"db", "outbox.mark"})
      halves.push_back({.kind = Damage::Kind::copy, .file = name, .other = from / name});
    CHECK(count(check_all(trial, halves), Verdict::refused) == halves.size());
  }
}

TEST_CASE("each of several live logs of an outbox is missed in whatever way it is damaged") {
  const Trial trial(prepare_many_logs, examination_of(1, kept_in_many_logs));
  const auto logs = logs_of(trial);
  REQUIRE(logs.size() >= 3);
  std::vector<Damage> always;
  std::vector<Damage> drawn;
  for (const fs::path &log : logs) {
    const LogRecord last = log_records(trial.original() / log).back();
    always.push_back({.kind = Damage::Kind::flip, .file = log, .at = last.begin + 5, .bits = 0x40});
    always.push_back({.kind = Damage::Kind::zero, .file = log, .at = last.begin, .bytes = last.bytes});
    drawn = drawn + damages_of_log(trial, log, logs);
  }
  always.push_back({.kind = Damage::Kind::swap, .file = logs[0], .other = logs[1]});
  always.push_back({.kind = Damage::Kind::copy, .file = logs.back(), .other = logs[0]});
  always.push_back({.kind = Damage::Kind::copy, .file = logs[0].parent_path() / "999999.log", .other = logs[0]});
  CHECK(count(check_all(trial, always), Verdict::refused) == always.size());
  check_all(trial, drawn_from(drawn));
}

// The control: without the mark nobody would notice, and these tests would see that.
TEST_CASE("with a mark that knows no row the jobs of an outbox whose log was cut are silently lost") {
  const Trial trial = trial_of_small(1);
  {
    const auto mark = rocks::DurableMark::open(trial.original(), outbox_mark_name, true);
    REQUIRE(mark.has_value());
    auto content = mark->content();
    content.sequence = 0;
    content.complete.clear();
    content.identity = {};
    REQUIRE(rocks::DurableMark::create(trial.original(), outbox_mark_name, content).has_value());
  }
  const auto findings = trial.run(cuts(trial, logs_of(trial).back(), 200, 100));
  REQUIRE(findings.size() >= 3);
  for (const Finding &finding : findings)
    CHECK_MESSAGE(finding.verdict == Verdict::silent_loss, finding.text);
}

} // namespace onced::testing
