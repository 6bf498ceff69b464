// The wall clock of a running worker and a running sender is set forward and back by an hour: nothing is sent again
// because of it and nothing stands still, as every timer is on the monotonic clock. What this does not show: a
// monotonic clock that jumps, as it may where a machine was suspended.
#include <doctest/doctest.h>

#include <cmath>
#include <ctime>
#include <fstream>

#include "support/sanitized.hpp"
#include "support/worker_process.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

using std::chrono::seconds;

// libfaketime of the Debian package; empty where it is not installed.
std::string faketime_library() {
  std::error_code ignored;
  for (const auto &folder : std::filesystem::directory_iterator("/usr/lib", ignored)) {
    const auto library = folder.path() / "faketime" / "libfaketimeMT.so.1";
    if (std::filesystem::exists(library, ignored)) return library.string();
  }
  return {};
}

// The wall clock of the processes that it wraps: the true one and an offset, which may be changed while they run. Their
// monotonic clock is the true one.
class SteppedClock {
public:
  explicit SteppedClock(std::string library) : library_(std::move(library)) { step_to(seconds{0}); }

  void step_to(seconds offset) {
    const auto next = directory_.path() / "next";
    std::ofstream(next) << (offset < seconds{0} ? "" : "+") << offset.count() << '\n';
    std::filesystem::rename(next, offset_file());
  }

  [[nodiscard]] std::vector<std::string> wrapper() const {
    return {
        "/usr/bin/env",        "LD_PRELOAD=" + library_,         "FAKETIME_TIMESTAMP_FILE=" + offset_file().string(),
        "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"};
  }

private:
  [[nodiscard]] std::filesystem::path offset_file() const { return directory_.path() / "offset"; }

  ScratchDirectory directory_;
  std::string library_;
};

// By how much a time of a row, "2026-01-31T12:00:00.000000Z", is off the true time, to the nearest hour.
long hours_off(const std::string &time) {
  std::tm parts{};
  REQUIRE(::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) != nullptr);
  const double off = std::difftime(::timegm(&parts), std::time(nullptr));
  return std::lround(off / 3600);
}

// Runs the phases, each with the clock at its offset in hours. A step comes with jobs in flight: after the first
// outcome of the phase before. Gives the last line of the sender.
Line run_phases(WorkerProcess &worker, SteppedClock &clock, const std::vector<long> &hours, std::size_t jobs) {
  worker.start({}, clock.wrapper());
  Process sender({.arguments = worker.send({"--stats", "--deadline", "10m", "--acknowledgement-timeout", "20s"}),
                  .input = std::nullopt,
                  .wrapper = clock.wrapper()});
  for (std::size_t phase = 0; phase < hours.size(); ++phase) {
    sender.write_input(jobs_as_json("phase-" + std::to_string(phase), jobs));
    for (std::size_t line = 0; line < jobs; ++line) {
      REQUIRE(sender.next_line().has_value());
      if (line == 0 && phase + 1 < hours.size()) clock.step_to(std::chrono::hours(hours[phase + 1]));
    }
  }
  sender.end_input();
  const Finished sent = finish(sender);
  CHECK(sent.exit == 0);
  return sent.line();
}

} // namespace

TEST_CASE("steps of the wall clock by an hour either way cause no resends and no stall") {
  const std::string library = faketime_library();
  if (sanitized || library.empty()) {
    MESSAGE("skipped: libfaketime is not installed, or a sanitizer beside it");
    return;
  }
  constexpr std::size_t jobs = 4000;
  std::vector<std::string> resends;
  for (const std::vector<long> &hours : {std::vector<long>{0, 0, 0, 0, 0}, std::vector<long>{0, 1, 0, -1, 0}}) {
    SteppedClock clock(library);
    WorkerProcess worker;
    const Line stats = run_phases(worker, clock, hours, jobs);
    resends.push_back(stats["resends"]);
    CHECK(stats["stored"] == std::to_string(jobs * hours.size()));
    CHECK(stats["new_boots"] == "0");
    // The clock was as said, for both: the sender records when a job was issued, the worker when it was committed.
    for (std::size_t phase = 0; phase < hours.size(); ++phase) {
      CAPTURE(phase);
      const std::string id = "phase-" + std::to_string(phase) + "-1";
      const Line row = run_command({"get", id, "--data", worker.data().string()}).line();
      CHECK(hours_off(row["issued_at"]) == hours[phase]);
      CHECK(hours_off(row["committed_at"]) == hours[phase]);
    }
    CHECK(worker.stop() == 0);
    CHECK(worker.rows() == Rows{jobs * hours.size(), 0});
  }
  CHECK(resends == std::vector<std::string>{"0", "0"});
}
