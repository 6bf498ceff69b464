// What an outbox notices of jobs that are missing, and what many short runs leave. What it does not show: power loss.
#include "sender/outbox.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/scratch_directory.hpp"
#include "onced/digest.hpp"
#include "support/file_content.hpp"
#include "support/log_records.hpp"
#include "support/raw_database.hpp"

namespace onced::testing {
namespace {

using sender::Outbox;
using sender::OutboxJob;

namespace fs = std::filesystem;

SenderId lost_sender() {
  SenderId id;
  id.bytes.fill(7);
  return id;
}

struct LossScene {
  ScratchDirectory temp;
  fs::path directory = temp.path() / "outbox";

  Result<std::uint64_t> jobs_found(bool accept_loss = false) const {
    const auto opened = Outbox::open(directory, lost_sender(), nullptr, accept_loss);
    if (!opened) return tl::unexpected(opened.error());
    return (*opened)->found().jobs;
  }
  // Batches of 20 jobs, each on stable storage; then the process is gone.
  void leave(std::uint64_t first, std::uint64_t last) const {
    const auto outbox = Outbox::open(directory, lost_sender());
    REQUIRE(outbox.has_value());
    for (std::uint64_t begin = first; begin <= last; begin += 20) {
      std::vector<OutboxJob> jobs;
      for (std::uint64_t number = begin; number < begin + 20; ++number) {
        const Bytes job = "job " + std::to_string(number);
        jobs.push_back({Sequence{number}, Digester().tag(job), WallTime{}, job});
      }
      REQUIRE((*outbox)->append(jobs, Sequence{begin + 19}).has_value());
    }
  }
  void check_noticed(const std::string &words = {}) const {
    for (int time = 0; time < 2; ++time) {
      const auto opened = jobs_found();
      REQUIRE(!opened.has_value());
      CAPTURE(describe(opened.error()));
      CHECK(opened.error().code == ErrorCode::loss_suspected);
      CHECK(opened.error().cause.find(words) != std::string::npos);
      CHECK(!opened.error().remedy.empty());
    }
  }
};

} // namespace

TEST_CASE("an outbox whose log has lost its end is refused until that is accepted or the log is put back") {
  const std::vector<std::pair<std::string, std::function<void(const fs::path &, const LogRecord &)>>> damages{
      {"a bit of the length",
       [](const fs::path &log, const LogRecord &last) { change_byte(log, last.begin + 5, 0x40); }},
      {"zeros", [](const fs::path &log, const LogRecord &last) { zero_bytes(log, last.begin, last.bytes); }},
      {"one byte is gone",
       [](const fs::path &log, const LogRecord &last) { fs::resize_file(log, last.begin + last.bytes - 1); }},
      {"it is gone", [](const fs::path &log, const LogRecord &) { fs::remove(log); }}};
  for (const auto &each : damages) {
    const std::string &name = each.first;
    const auto &damage = each.second;
    CAPTURE(name);
    const LossScene scene;
    scene.leave(1, 400);
    const fs::path log = logs_in(scene.directory).back();
    const std::string whole = content_of(log);
    const LogRecord last = log_records(log).back();
    damage(log, last);
    scene.check_noticed();
    std::ofstream(log, std::ios::binary | std::ios::trunc) << whole;
    CHECK(scene.jobs_found().value() == 400);

    const fs::path newest = logs_in(scene.directory).back(); // of the boot that this was
    damage(newest, log_records(newest).back());
    scene.check_noticed();
    const auto left = scene.jobs_found(true);
    REQUIRE(left.has_value());
    CHECK(*left == 400); // its jobs were in tables
    CHECK(scene.jobs_found().value() == 400);
  }
}

TEST_CASE("accepting the loss of an outbox goes on with the jobs that are left") {
  const LossScene scene;
  scene.leave(1, 400);
  const fs::path log = logs_in(scene.directory).back();
  fs::resize_file(log, log_records(log).back().begin);
  scene.check_noticed();
  CHECK(scene.jobs_found(true).value() == 380);
  CHECK(scene.jobs_found().value() == 380);
}

TEST_CASE("an outbox that is not the one of its mark is refused") {
  const LossScene scene;
  const LossScene other;
  scene.leave(1, 20);
  other.leave(1, 40);
  const auto copy = [](const fs::path &from, const fs::path &to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  };
  SUBCASE("it is another's") {
    copy(other.directory / "db", scene.directory / "db");
    scene.check_noticed("the database is that of");
  }
  SUBCASE("it is an older one") {
    copy(scene.directory / "db", other.directory / "older");
    scene.leave(21, 40);
    copy(other.directory / "older", scene.directory / "db");
    scene.check_noticed();
  }
  SUBCASE("the mark is an older one") {
    const std::string mark = content_of(scene.directory / "outbox.mark");
    scene.leave(21, 40);
    std::ofstream(scene.directory / "outbox.mark", std::ios::binary) << mark;
    const fs::path log = logs_in(scene.directory).back();
    fs::resize_file(log, fs::file_size(log) / 2);
    scene.check_noticed();
  }
  SUBCASE("the mark is gone") {
    fs::remove(scene.directory / "outbox.mark");
    scene.check_noticed("missing");
  }
  SUBCASE("the database is gone") {
    fs::remove_all(scene.directory / "db");
    scene.check_noticed("the database is gone");
  }
}

TEST_CASE("removals that are lost are no loss of jobs") {
  const LossScene scene;
  scene.leave(1, 40);
  {
    const auto outbox = Outbox::open(scene.directory, lost_sender());
    REQUIRE(outbox.has_value());
    CHECK((*outbox)->remove(std::vector<Sequence>{Sequence{1}, Sequence{2}}).has_value());
  }
  const fs::path log = logs_in(scene.directory).back();
  fs::resize_file(log, log_records(log).back().begin);
  CHECK(scene.jobs_found().value() == 40);
}

TEST_CASE("an outbox of format 1 has no mark and adopts one with an identity") {
  const LossScene scene;
  scene.leave(1, 40);
  {
    RawDatabase raw(scene.directory);
    raw.put("meta", "format", Bytes("\x01"));
    raw.erase("meta", "identity");
    raw.erase("meta", "boots");
  }
  fs::remove(scene.directory / "outbox.mark");
  CHECK(scene.jobs_found().value() == 40);
  const auto meta = RawDatabase(scene.directory).rows("meta");
  CHECK(to_hex(meta.at("format")) == "02");
  CHECK(to_hex(meta.at("boots")) == "01");
  CHECK(meta.at("identity").size() == 16);
  CHECK(fs::exists(scene.directory / "outbox.mark"));
}

TEST_CASE("three hundred short runs of an outbox leave no more than forty") {
  const LossScene scene;
  std::size_t early = 0;
  std::size_t late = 0;
  for (std::uint64_t run = 0; run < 300; ++run) {
    const auto outbox = Outbox::open(scene.directory, lost_sender());
    REQUIRE(outbox.has_value());
    const Sequence sequence{run + 1};
    const Bytes job = "job " + std::to_string(run);
    REQUIRE((*outbox)
                ->append(std::vector<OutboxJob>{{sequence, Digester().tag(job), WallTime{}, job}}, sequence)
                .has_value());
    REQUIRE((*outbox)->remove(std::vector<Sequence>{sequence}).has_value());
    const auto files = static_cast<std::size_t>(files_in(scene.directory / "db"));
    std::size_t &most = run < 40 ? early : late;
    most = std::max(most, files);
  }
  MESSAGE("at most ", early, " files in 40 runs, ", late, " in 260 more");
  CHECK(late <= early + 4);
  CHECK(scene.jobs_found().value() == 0);
}

} // namespace onced::testing
