// What the store does with a job whose inline handler has ended the process: it counts, runs it singly, and gives it up
// after limits::max_receive_count times. The end of a process is mostly a job left in its slot; where a handler must
// really end it, it is a process of its own that is killed. Not here: the file itself (running_slots_test.cpp), and a
// worker that is started again and again (tests/contract/poison_test.cpp).
#include <doctest/doctest.h>

#include <algorithm>

#include "store/rows/records.hpp"
#include "store/store_keeper.hpp"
#include "store/suspects/running_slots.hpp"
#include "support/raw_database.hpp"
#include "support/scene.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;
using store::CrashCount;
using store::RunningSlots;

namespace {

Bytes demo_job(std::string_view operation_id = "poison") {
  return job_bytes({.operation_id = operation_id, .numbers = {1}, .type = "demo"});
}

Bytes key_of_demo(std::string_view operation_id = "poison") {
  return key_of_operation("demo", operation_id).bytes;
}

struct Running {
  std::string operation_id;
  bool alone = false;
};

// With a type `demo`, whose runs are counted, and which looks at its own slot.
struct SuspectHarness : StoreHarness {
  SuspectHarness() { add_demo(Done{.result = integer_result(7)}); }
  explicit SuspectHarness(const std::filesystem::path &borrowed) : StoreHarness(borrowed) {
    add_demo(Done{.result = integer_result(7)});
  }

  void add_demo(HandlerResult result) {
    handlers = built_in_handlers();
    const auto added = handlers.add_inline("demo", [this, result = std::move(result)](const HandlerCall &) {
      ++runs;
      seen = RunningSlots::open(options.directory).value()->found();
      return result;
    });
    REQUIRE(added.has_value());
  }

  // The process has ended while these ran.
  void crash_with(const std::vector<Running> &running) {
    close();
    const auto slots = RunningSlots::open(options.directory);
    REQUIRE(slots.has_value());
    for (const Running &one : running)
      (*slots)->take().enter(key_of_demo(one.operation_id), one.alone);
  }
  void crash_alone(unsigned times) {
    for (unsigned time = 0; time < times; ++time) {
      crash_with({{"poison", true}});
      open();
    }
  }

  // The counts, by operation id.
  [[nodiscard]] std::map<std::string, std::uint64_t> suspects() const {
    std::map<std::string, std::uint64_t> found;
    for (const Suspect &suspect : store->handler_crashes().suspects)
      found[suspect.key.substr(7)] = suspect.crashes; // after a tag, "demo" and their lengths
    return found;
  }
  Redriven redrive(const DeadLetterId &id) {
    auto redriven = store->redrive(id, handlers, kim);
    if (!redriven) throw std::runtime_error(describe(redriven.error()));
    return std::move(*redriven);
  }
  DeadLetter only_letter() {
    const auto letters = dead_letters();
    REQUIRE(letters.size() == 1);
    return letters[0];
  }
  // Closes the store.
  [[nodiscard]] std::size_t crash_rows() {
    close();
    const auto rows = RawDatabase(options.directory).rows("meta");
    return static_cast<std::size_t>(std::count_if(
        rows.begin(), rows.end(), [](const auto &row) { return row.first.starts_with(store::crashes_prefix); }));
  }

  int runs = 0;
  std::vector<RunningSlots::Found> seen; // by the latest run
};

using Crashes = std::map<std::string, std::uint64_t>;

class NameLog final : public EventLog {
public:
  void write(const Event &event) noexcept override { names.emplace_back(event.name); }
  std::vector<std::string> names;
};

} // namespace

// --- Counting -------------------------------------------------------------------------------------------------------

TEST_CASE("normal running notes the job beside others and leaves nothing behind") {
  SuspectHarness harness;
  harness.open();
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::stored);
  REQUIRE(harness.seen.size() == 1);
  CHECK(harness.seen[0].key == key_of_demo());
  CHECK_FALSE(harness.seen[0].alone);
  CHECK(harness.crash_rows() == 0);
  CHECK(RunningSlots::open(harness.options.directory).value()->found().empty());
  harness.open();
  CHECK(harness.suspects().empty());
  CHECK_FALSE(harness.store->handler_crashes().blind);
}

TEST_CASE("a job that was running when the process ended runs alone and is no suspect once it has ended") {
  SuspectHarness harness;
  harness.open();
  harness.crash_with({{"poison"}});
  harness.open();
  CHECK(harness.suspects() == Crashes{{"poison", 1}});
  CHECK(harness.store->handler_crashes().suspects[0].just_now);
  CHECK(harness.commit_one(demo_job("other")).outcome == Outcome::stored);
  CHECK_FALSE(harness.seen.at(0).alone);
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::stored);
  CHECK(harness.seen.at(0).alone);
  CHECK(harness.suspects().empty());
  CHECK(harness.crash_rows() == 0);
}

TEST_CASE("a suspect that is refused by its handler is no suspect any more") {
  for (const HandlerResult &result : {HandlerResult(Failed{"no"}), HandlerResult(Invalid{"no"})}) {
    SuspectHarness harness;
    harness.add_demo(result);
    harness.open();
    harness.crash_alone(1);
    CHECK_FALSE(traits_of(harness.commit_one(demo_job()).outcome).success);
    CHECK(harness.suspects().empty());
    CHECK(harness.crash_rows() == 0);
  }
}

TEST_CASE("counts are durable and grow with each end of the process") {
  SuspectHarness harness;
  harness.open();
  for (std::uint64_t crashes = 1; crashes <= 7; ++crashes) {
    harness.crash_alone(1);
    CHECK(harness.suspects() == Crashes{{"poison", crashes}});
    harness.reopen(); // in order: nothing was running
    CHECK(harness.suspects() == Crashes{{"poison", crashes}});
    CHECK_FALSE(harness.store->handler_crashes().suspects[0].just_now);
  }
  const auto verified = harness.store->verify();
  REQUIRE(verified.has_value());
  CHECK(verified->problems == 0);
  CHECK(harness.crash_rows() == 1);
}

TEST_CASE("all that ran beside each other are counted once and of one that ran alone only that") {
  SuspectHarness harness;
  harness.open();
  harness.crash_with({{"poison"}, {"good"}, {"poison"}});
  harness.open();
  CHECK(harness.suspects() == Crashes{{"good", 1}, {"poison", 1}});
  harness.crash_with({{"good"}, {"poison", true}, {"new"}});
  harness.open();
  CHECK(harness.suspects() == Crashes{{"good", 1}, {"poison", 2}});
}

TEST_CASE("a job that is settled is no suspect and its old count goes") {
  SuspectHarness harness;
  harness.open();
  harness.crash_alone(2);
  CHECK(harness.suspects() == Crashes{{"poison", 2}});
  harness.handlers = built_in_handlers();
  REQUIRE(harness.handlers.add_queued({.type = "demo"}).has_value());
  CHECK(harness.commit_one(demo_job("queued")).outcome == Outcome::accepted);
  harness.add_demo(Done{.result = integer_result(7)});
  CHECK(harness.commit_one(demo_job("good")).outcome == Outcome::stored);
  harness.crash_with({{"good"}, {"queued"}});
  harness.open();
  CHECK(harness.suspects() == Crashes{{"poison", 2}});
}

TEST_CASE("an opening that only reads leaves the slots to the next that writes") {
  SuspectHarness harness;
  harness.open();
  harness.crash_with({{"poison"}});
  harness.options.read_only = true;
  harness.open();
  CHECK(harness.suspects().empty());
  harness.options.read_only = false;
  harness.open();
  CHECK(harness.suspects() == Crashes{{"poison", 1}});
}

TEST_CASE("a store whose slots cannot be used works without and says why") {
  SuspectHarness harness;
  std::filesystem::create_directory(harness.options.directory / "running.slots");
  harness.open();
  const auto blind = harness.store->handler_crashes().blind;
  REQUIRE(blind.has_value());
  CHECK(blind->concerns == (harness.options.directory / "running.slots").string());
  CHECK(harness.commit(std::vector<Bytes>{job_bytes("demo-1", {1})})[0].outcome == Outcome::stored);
}

TEST_CASE("what an opening has counted is told and what it cannot count too") {
  SuspectHarness harness;
  harness.open();
  const auto told_by_opening = [&] {
    NameLog log;
    store::StoreKeeper keeper(
        harness.options, harness.clock, harness.random, log, [] {}, [](const Error &) {});
    REQUIRE(keeper.open().has_value());
    keeper.close();
    return log.names;
  };
  harness.crash_with({{"poison"}, {"good"}});
  CHECK(told_by_opening() == std::vector<std::string>{"handler.suspected", "handler.suspected"});
  CHECK(told_by_opening().empty());
  std::filesystem::remove(harness.options.directory / "running.slots");
  std::filesystem::create_directory(harness.options.directory / "running.slots");
  CHECK(told_by_opening() == std::vector<std::string>{"crashes.unseen"});
}

TEST_CASE("at most so many suspects are kept and those with the fewest crashes are forgotten first") {
  SuspectHarness harness;
  harness.open();
  harness.close();
  Bytes value;
  {
    RawDatabase raw(harness.options.directory);
    for (std::size_t number = 0; number < limits::suspects_max; ++number) {
      store::encode_crash_count({.crashes = number == 3 ? 1U : 2U, .redriven = false}, value);
      raw.put("meta", store::crashes_name(key_of_demo("job-" + std::to_string(number))), value);
    }
  }
  harness.crash_with({{"new"}});
  harness.open();
  const auto suspects = harness.suspects();
  CHECK(suspects.size() == limits::suspects_max);
  CHECK(suspects.contains("new"));
  CHECK_FALSE(suspects.contains("job-3"));
  CHECK(harness.crash_rows() == limits::suspects_max);
}

TEST_CASE("a damaged count is told by verify and counts for nothing") {
  SuspectHarness harness;
  harness.open();
  harness.close();
  RawDatabase(harness.options.directory).put("meta", store::crashes_name(key_of_demo()), "\x93\x02\x01\x01");
  harness.open();
  CHECK(harness.suspects().empty());
  const auto verified = harness.store->verify();
  REQUIRE(verified.has_value());
  CHECK(verified->problems == 1);
  harness.crash_alone(1); // it is written anew
  CHECK(harness.store->verify().value().problems == 0);
  CHECK(harness.suspects() == Crashes{{"poison", 1}});
}

// --- The dead letter ------------------------------------------------------------------------------------------------

TEST_CASE("a job whose handler has ended the process five times is a dead letter and is not run again") {
  SuspectHarness harness;
  harness.open();
  harness.crash_alone(limits::max_receive_count);
  const auto settled = harness.commit(std::vector<Bytes>{demo_job("good"), demo_job(), demo_job("too")});
  CHECK(outcomes_of(settled) == std::vector{Outcome::stored, Outcome::failed, Outcome::stored});
  CHECK(settled[1].detail == "the handler has ended the worker 5 times, and was not run");
  CHECK(harness.runs == 2);
  CHECK_FALSE(harness.row("poison", "demo").has_value());
  harness.reopen();
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
  CHECK(harness.runs == 2);
  const DeadLetter letter = harness.only_letter();
  CHECK(letter.reason == Outcome::failed);
  CHECK(letter.detail == settled[1].detail);
  CHECK(letter.operation_id == "poison");
  CHECK(letter.deliveries == 2);
}

TEST_CASE("a suspect whose type is queued by now is accepted") {
  SuspectHarness harness;
  harness.open();
  harness.crash_alone(limits::max_receive_count);
  harness.handlers = built_in_handlers();
  REQUIRE(harness.handlers.add_queued({.type = "demo"}).has_value());
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::accepted);
  CHECK(harness.crash_rows() == 1);
  harness.open(); // its key has a row now
  CHECK(harness.suspects().empty());
  CHECK(harness.crash_rows() == 0);
}

TEST_CASE("a program that lacks the handler neither clears a suspect nor begins its runs again") {
  SuspectHarness harness;
  harness.open();
  harness.crash_alone(limits::max_receive_count);
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
  const DeadLetter letter = harness.only_letter();
  harness.handlers = built_in_handlers();
  CHECK(harness.redrive(letter.id).settlement.outcome == Outcome::invalid);
  CHECK(harness.suspects() == Crashes{{"poison", limits::max_receive_count}});
  harness.add_demo(Done{.result = integer_result(7)});
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
  CHECK(harness.runs == 0);
}

TEST_CASE("a purge of its dead letter forgets what was counted") {
  SuspectHarness harness;
  harness.open();
  harness.crash_alone(limits::max_receive_count);
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
  CHECK(harness.store->purge(harness.only_letter().id, kim).has_value());
  CHECK(harness.suspects().empty());
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::stored);
  CHECK(harness.crash_rows() == 0);
}

TEST_CASE("a redrive of its dead letter runs it again and once it has ended nothing of it is left") {
  SuspectHarness harness;
  harness.open();
  harness.crash_alone(limits::max_receive_count);
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
  CHECK(harness.redrive(harness.only_letter().id).settlement.outcome == Outcome::stored);
  CHECK(harness.runs == 1);
  CHECK(harness.seen.at(0).alone);
  CHECK(harness.dead_letters().empty());
  CHECK(harness.suspects().empty());
  CHECK(harness.crash_rows() == 0);
}

TEST_CASE("scene: a redrive whose handler ends the process" * doctest::skip()) {
  const std::string directory = scene_parameter("ONCED_SCENE_DIRECTORY");
  if (directory.empty()) return;
  SuspectHarness harness{std::filesystem::path(directory)};
  harness.handlers = built_in_handlers();
  const auto added =
      harness.handlers.add_inline("demo", [](const HandlerCall &) -> HandlerResult { kill_this_process(); });
  REQUIRE(added.has_value());
  harness.open();
  harness.redrive(harness.only_letter().id);
}

TEST_CASE("a redrive gives five runs again however often it is asked and is then answered") {
  const ScratchDirectory directory;
  SuspectHarness harness{directory.path()};
  harness.open();
  harness.crash_alone(limits::max_receive_count);
  CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
  harness.close();
  const Scene::Parameters parameters{{"ONCED_SCENE_DIRECTORY", directory.path().string()}};
  // Twice: each redrive that is answered gives as many.
  for (std::uint64_t redrives = 1; redrives <= 2; ++redrives) {
    for (std::uint64_t run = 1; run <= limits::max_receive_count; ++run) {
      CAPTURE(run);
      CHECK(play("scene: a redrive whose handler ends the process", parameters).is_kill());
      harness.open();
      CHECK(harness.suspects() == Crashes{{"poison", run}});
      harness.close();
    }
    harness.open();
    const Redriven redriven = harness.redrive(harness.only_letter().id);
    CHECK(redriven.settlement.outcome == Outcome::failed);
    CHECK_FALSE(redriven.removed);
    CHECK(harness.only_letter().redrives == redrives);
    CHECK(harness.commit_one(demo_job()).outcome == Outcome::failed);
    CHECK(harness.runs == 0);
    CHECK(harness.suspects() == Crashes{{"poison", limits::max_receive_count}});
    harness.close();
  }
  harness.open();
  CHECK(harness.redrive(harness.only_letter().id).settlement.outcome == Outcome::stored);
  CHECK(harness.crash_rows() == 0);
}
