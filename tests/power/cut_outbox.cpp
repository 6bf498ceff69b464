// Cuts under the outbox of a sender: a job counts from when `submit` has returned.
#include <random>
#include <set>
#include <sstream>

#include "power/cuts.hpp"
#include "power/ledger.hpp"
#include "power/scan.hpp"
#include "power/submitter.hpp"
#include "support/worker_process.hpp"

namespace onced::testing {
namespace {

class OutboxCut {
public:
  OutboxCut(CuttableDisk &disk, const CutOptions &options, const std::filesystem::path &elsewhere)
      : disk_(disk), random_(options.seed), prefix_("kept-" + std::to_string(options.seed) + "-"),
        worker_(elsewhere / "data"), outbox_(disk.path() / "outbox") {
    std::filesystem::remove_all(outbox_);
    std::filesystem::remove_all(worker_.data());
  }

  CutReport run() {
    const bool with_worker = random_() % 2 == 0; // else every job is still in the outbox at the cut
    if (with_worker) worker_.start();
    submit_until_cut();
    power_on(disk_);
    check_outbox(with_worker);
    if (!with_worker) worker_.start();
    const Finished sent = run_command(worker_.send({"--outbox", outbox_.string(), "--deadline", "120s"}));
    if (!(sent.exit == 0)) throw Broken("the outbox did not settle: " + sent.errors);
    ++report_.openings;
    if (worker_.stop() != 0) throw Broken("the worker did not stop in order");
    check_rows();
    return report_;
  }

private:
  [[nodiscard]] std::string name(std::size_t number) const { return name_of_job(prefix_, number); }

  void submit_until_cut() {
    Process process(submitter({.outbox = outbox_.string(),
                               .jobs_endpoint = worker_.jobs(),
                               .replies_endpoint = worker_.replies(),
                               .prefix = prefix_,
                               .seed = random_()}));
    const std::size_t promises = 1 + random_() % (submitted_jobs * 3 / 4);
    Task reader([&] { read(process); });
    accepted_.wait_for(promises);
    cut_under(process, disk_);
    accepted_names_ = accepted_.names();
    process.signal(SIGCONT); // its disk fails, and it must live with that
    pause(random_());
    process.signal(SIGKILL);
    reader.finish();
    const ExitStatus end = process.wait();
    if (end.signal != 0 && end.signal != SIGKILL) report_.crash = end.story;
  }

  // Every line up to the end of the process.
  void read(Process &process) {
    while (const auto line = process.next_line()) {
      std::istringstream words(*line);
      std::string promise;
      std::size_t number = 0;
      std::size_t end = 0;
      words >> promise >> number;
      if (promise == "settled") {
        settled_.insert(name(number));
      } else if (promise == "accepted" && words >> end) {
        for (; number < end; ++number)
          accepted_.add(name(number));
      } else {
        throw Broken("the submitter says: " + *line);
      }
    }
    accepted_.close();
  }

  void check_outbox(bool with_worker) {
    const auto kept = scan_outbox(outbox_);
    report_.accepted = accepted_names_.size();
    for (const std::string &job : accepted_names_) {
      if (!kept.contains(job) && !settled_.contains(job)) throw Broken("accepted and lost: " + job);
    }
    if (!with_worker) report_.untold = kept.size() - accepted_names_.size();
  }

  // Each accepted job has its effect; what was being accepted at the cut may have it.
  void check_rows() {
    const Fates rows = scan_worker(worker_.data());
    std::size_t found = 0;
    for (std::size_t number = 0; number < submitted_jobs; ++number) {
      const auto row = rows.find(name(number));
      if (row == rows.end() && accepted_names_.contains(name(number)))
        throw Broken("accepted, no result: " + name(number));
      if (row != rows.end() && row->second != stored(number + 3)) throw Broken("another result: " + name(number));
      if (row != rows.end()) ++found;
    }
    if (found != rows.size()) throw Broken("a result of no submitted job");
  }

  CuttableDisk &disk_;
  std::mt19937_64 random_;
  std::string prefix_;
  WorkerProcess worker_;
  std::filesystem::path outbox_;
  Ledger accepted_;
  std::set<std::string> accepted_names_; // before the cut
  std::set<std::string> settled_;        // may be gone from the outbox
  CutReport report_;
};

} // namespace

CutReport cut_outbox(CuttableDisk &disk, const CutOptions &options, const std::filesystem::path &elsewhere) {
  return OutboxCut(disk, options, elsewhere).run();
}

} // namespace onced::testing
