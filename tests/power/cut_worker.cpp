// Cuts under a worker that is under load by two senders, which die with it or live on.
#include <array>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "power/cuts.hpp"
#include "power/ledger.hpp"
#include "power/scan.hpp"
#include "support/worker_process.hpp"

namespace onced::testing {
namespace {

// What a cut is made of, drawn from its seed.
struct Draw {
  Draw(std::uint64_t seed, bool expects_loss) : random(seed) {
    window = std::array<std::size_t, 4>{16, 64, 256, 1024}.at(random() % 4);
    pad_bytes = random() % 4 == 0 ? 100'000 : 100;
    senders_survive = !expects_loss && random() % 2 == 0;
  }

  [[nodiscard]] std::size_t below(std::size_t end) { return random() % end; }

  std::mt19937_64 random;
  std::size_t window = 0;
  std::size_t pad_bytes = 0;
  bool senders_survive = false;
};

class WorkerCut {
public:
  WorkerCut(CuttableDisk &disk, const CutOptions &options)
      : disk_(disk), options_(options), draw_(options.seed, options.expects_loss),
        load_(make_load("cut-" + std::to_string(options.seed) + "-", draw_.pad_bytes)), worker_(disk.path() / "data") {
    std::filesystem::remove_all(worker_.data());
  }

  CutReport run(bool again) {
    start();
    SendRun before(sending(), load_.before, load_.fates, ledger_);
    if (before.finish() != 0) throw Broken("the jobs before were not settled");
    const auto [first, second] = halves(load_.during);
    SendRun one(sending(), first, load_.fates, ledger_);
    SendRun other(sending(), second, load_.fates, ledger_);
    ledger_.wait_for(ledger_.names().size() + 1 + draw_.below(load_.fates.size() * 3 / 4));
    cut_under(worker_.process(), disk_);
    if (draw_.senders_survive) {
      worker_.kill_now();
    } else {
      one.end();
      other.end();
      let_fail();
    }
    power_on();
    if (again) cut_the_opening();
    start();
    if (draw_.senders_survive) {
      static_cast<void>(one.finish());
      static_cast<void>(other.finish());
    }
    if (!options_.expects_loss) settle_all();
    if (worker_.stop() != 0) throw Broken("the worker did not stop in order");
    if (!options_.expects_loss && scan_worker(worker_.data()) != load_.fates) {
      throw Broken("after all jobs were settled, the rows are not exactly theirs");
    }
    return report_;
  }

private:
  [[nodiscard]] Arguments sending() const {
    return worker_.send({"-", "--window", std::to_string(draw_.window), "--deadline", "120s"});
  }

  // Every other line each.
  static std::pair<std::string, std::string> halves(const std::string &lines) {
    std::pair<std::string, std::string> halves;
    bool first = true;
    for (std::size_t at = 0; at < lines.size(); first = !first) {
      const std::size_t end = lines.find('\n', at) + 1;
      (first ? halves.first : halves.second) += lines.substr(at, end - at);
      at = end;
    }
    return halves;
  }

  // Throws where it does not open what is there: no cut is a reason to refuse it.
  void start() {
    try {
      worker_.start({"--durability", options_.durability});
    } catch (const std::exception &error) {
      throw Broken(error.what());
    }
    ++report_.openings;
  }

  // The worker goes on for a moment, with nobody to tell: its disk fails, and it must live with that.
  void let_fail() {
    worker_.process().signal(SIGCONT);
    pause(draw_.random());
    if (!worker_.process().is_running()) report_.crash = worker_.process().wait().story;
    worker_.kill_now();
  }

  // What was acknowledged before this look must be there now.
  void power_on() {
    const auto acknowledged = ledger_.names();
    testing::power_on(disk_);
    const Fates found = scan_worker(worker_.data());
    report_.acknowledged = acknowledged.size();
    report_.acknowledged_bad = 0;
    report_.lost = 0;
    for (const std::string &name : acknowledged) {
      const std::string &fate = load_.fates.at(name);
      if (!fate.starts_with("stored")) ++report_.acknowledged_bad;
      const auto row = found.find(name);
      if (row == found.end()) {
        ++report_.lost;
        if (!options_.expects_loss) throw Broken("acknowledged and lost: " + name + ", " + fate);
      } else if (row->second != fate) {
        throw Broken("acknowledged as " + fate + " and found as " + row->second + ": " + name);
      }
    }
    report_.untold = found.size() - (acknowledged.size() - report_.lost);
  }

  // The power goes again at some moment of the worker's opening, which writes what it recovers into tables.
  void cut_the_opening() {
    Process opening({.arguments = worker_.serve({"--durability", options_.durability})});
    pause(draw_.random());
    cut_under(opening, disk_);
    opening.kill_now();
    power_on();
  }

  // Every job is sent, whatever became of it: what was acknowledged takes no effect again, all else does now.
  void settle_all() {
    const auto acknowledged = ledger_.names();
    const Finished sent = run_command({.arguments = sending(), .input = load_.before + load_.during});
    const auto lines = sent.lines();
    if (lines.size() != load_.fates.size()) throw Broken("not every job was settled: " + sent.errors);
    for (const Line &line : lines) {
      const auto [name, fate] = fate_in(line);
      if (load_.fates.at(name) != fate) throw Broken("settled as " + fate + ": " + name);
      if (line["outcome"] == "stored" && acknowledged.contains(name)) throw Broken("took effect again: " + name);
    }
  }

  CuttableDisk &disk_;
  const CutOptions &options_;
  Draw draw_;
  Load load_;
  Ledger ledger_;
  WorkerProcess worker_;
  CutReport report_;
};

} // namespace

void cut_under(Process &process, const CuttableDisk &disk) {
  process.signal(SIGSTOP);
  disk.cut();
}

void pause(std::uint64_t chance) {
  std::this_thread::sleep_for(std::chrono::milliseconds(chance % 80));
}

void power_on(CuttableDisk &disk) {
  SystemClock clock;
  disk.power_on(rehearsal::Patience(clock, [] { return false; }));
}

CutReport cut_worker(CuttableDisk &disk, const CutOptions &options, bool again) {
  return WorkerCut(disk, options).run(again);
}

} // namespace onced::testing
