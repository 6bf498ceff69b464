// A sender whose outbox's disk is full: it says so and ends, and what it had taken is settled by a later one, once
// there is space again. What a disk in memory does not show: a write that the disk itself reports as failed only at the
// sync.
#include <doctest/doctest.h>

#include <set>

#include "sender/outbox.hpp"
#include "support/sanitized.hpp"
#include "support/small_disk.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// Reading what is told of each is most of the time, and with a sanitizer some minutes.
constexpr std::size_t job_count = sanitized ? 36'000 : 60'000;
constexpr std::uintmax_t little_bytes = 2UL * 1024 * 1024; // less than the jobs need

struct FullOutbox {
  SmallDisk disk;
  std::filesystem::path outbox = disk.path() / "outbox";
  WorkerProcess worker;
  std::string input = jobs_as_json("job", job_count);

  [[nodiscard]] bool is_possible() const {
    if (!disk.is_mounted()) MESSAGE("skipped: mounting a small file system takes root");
    return disk.is_mounted();
  }
  [[nodiscard]] Arguments send(const Arguments &more) const {
    return worker.send(Arguments{"--outbox", outbox.string(), "--deadline", "5m"} + more);
  }
  [[nodiscard]] std::uint64_t jobs_kept() const {
    const auto opened = sender::Outbox::open(outbox, SenderId{});
    REQUIRE(opened.has_value());
    return (*opened)->found().jobs;
  }
};

void check_says_what_to_do(const Finished &sent, const std::filesystem::path &outbox) {
  CHECK(sent.exit == 74);
  CHECK(sent.errors.find(outbox.string()) != std::string::npos);
  CHECK(sent.errors.find("No space left on device") != std::string::npos);
  CHECK(sent.errors.find("free space") != std::string::npos);
}

// N of "onced: N jobs are kept in …".
std::size_t said_to_be_kept(const Finished &sent) {
  const std::size_t end = sent.errors.find(" jobs are kept in ");
  REQUIRE(end != std::string::npos);
  return std::stoul(sent.errors.substr(sent.errors.rfind(' ', end - 1)));
}

// Each of them told as stored or duplicate, with its own result.
std::set<std::string> told(const Finished &sent) {
  std::set<std::string> ids;
  for (const Line &line : sent.lines()) {
    const std::string id = line["operation_id"];
    const auto number = std::stoull(id.substr(id.rfind('-') + 1));
    const bool success = line["outcome"] == "stored" || line["outcome"] == "duplicate";
    if (success && line["result"] == std::to_string(number + 1)) ids.insert(id);
  }
  CHECK(ids.size() == sent.lines().size());
  return ids;
}

// With space again: the whole input is told, and each job has one effect.
void check_the_input_again(const FullOutbox &scene) {
  const Finished again = run_command(scene.send({"-"}), scene.input);
  CHECK(again.exit == 0);
  CHECK(told(again).size() == job_count);
  CHECK(scene.jobs_kept() == 0);
  CHECK(scene.worker.rows() == Rows{job_count, 0});
}

} // namespace

TEST_CASE("a sender whose outbox fills its disk exits with 74 and loses nothing that it had taken") {
  FullOutbox scene;
  if (!scene.is_possible()) return;
  CHECK(run_command(scene.send({"-"})).exit == 0); // makes the outbox
  scene.disk.fill(little_bytes);
  const Finished full = run_command(scene.send({"-"}), scene.input); // no worker runs
  check_says_what_to_do(full, scene.outbox);
  CHECK(full.output.empty());
  // What it says that it keeps is the least that there is: of the write that failed it cannot know.
  const std::size_t kept = said_to_be_kept(full);
  scene.disk.free();
  CHECK(kept > 0);
  const std::uint64_t found = scene.jobs_kept();
  CHECK(found >= kept);
  CHECK(found < job_count);
  MESSAGE(found << " jobs are in the outbox, " << kept << " were known to be");

  scene.worker.start();
  const Finished resumed = run_command(scene.send({}));
  CHECK(resumed.exit == 0);
  CHECK(told(resumed).size() == found);
  CHECK(scene.worker.rows() == Rows{found, 0});
  check_the_input_again(scene);
}

TEST_CASE("a disk that fills while outcomes come leaves every job that was sent either told or in the outbox") {
  FullOutbox scene;
  if (!scene.is_possible()) return;
  CHECK(run_command(scene.send({"-"})).exit == 0); // makes the outbox
  scene.disk.fill(little_bytes);
  scene.worker.start();
  const Finished full = run_command(scene.send({"-"}), scene.input);
  check_says_what_to_do(full, scene.outbox);
  scene.disk.free();
  std::set<std::string> ids = told(full);
  CHECK(!ids.empty());
  const Finished resumed = run_command(scene.send({}));
  CHECK(resumed.exit == 0);
  ids.merge(told(resumed));
  CHECK(scene.worker.rows() == Rows{ids.size(), 0});
  check_the_input_again(scene);
}

TEST_CASE("a sender that finds the disk full when it opens its outbox takes nothing and exits with 74") {
  FullOutbox scene;
  if (!scene.is_possible()) return;
  scene.worker.start();
  scene.disk.fill();
  const Finished full = run_command(scene.send({"-"}), scene.input);
  check_says_what_to_do(full, scene.outbox);
  CHECK(full.output.empty());
  CHECK(scene.worker.rows() == Rows{0, 0});
  scene.disk.free();
  check_the_input_again(scene);
}
