#include "disk/trial.hpp"
#include "support/seeds.hpp"

#include <exception>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace onced::testing {
namespace {

constexpr unsigned trial_seconds_max = 120; // then it hangs

Notebook *new_notebook() {
  void *memory = ::mmap(nullptr, sizeof(Notebook), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return new (memory) Notebook;
}
void free_notebook(Notebook *notebook) {
  ::munmap(notebook, sizeof(Notebook));
}

// Starts a copy of this process. What `work` throws is the complaint. It ends by SIGALRM if it hangs.
ChildProcess start(Notebook &notebook, const std::function<void()> &work) {
  auto copy = ChildProcess::start_copy([&] {
    ::alarm(trial_seconds_max);
    try {
      work();
    } catch (const std::exception &failure) {
      notebook.complain(failure.what());
      return 1;
    }
    return 0;
  });
  return std::move(copy.value());
}

} // namespace

Trial::Trial(const Workload &workload, Part part, const fs::path &before, const TrialOptions &options)
    : workload_(workload), part_(part), before_(before), options_(options), notebook_(new_notebook(), &free_notebook) {
  process_ = start(*notebook_, [this] { run(); });
}

void Trial::run() {
  Notebook &notebook = *notebook_;
  const fs::path root = directory_.path() / "disk";
  const fs::path graveyard = directory_.path() / "graveyard";
  fs::create_directory(root);
  fs::create_directory(graveyard);
  if (!before_.empty()) fs::copy(before_, data(), fs::copy_options::recursive);
  notebook.asked = notebook.told = part_.first;
  notebook.ended = start(notebook, [&] {
                     SimulatedDisk disk(root, graveyard, options_.plan, notebook.disk);
                     workload_.play(disk, data(), part_, options_, notebook);
                   }).wait();
  notebook.told_in_run = notebook.told;
  const bool may_die = options_.plan.trouble == Trouble::death || options_.plan.trouble == Trouble::power_cut;
  const bool died = notebook.ended.is_kill() && notebook.disk.struck;
  if (notebook.complaint[0] == '\0' && !notebook.ended.is_success() && !(may_die && died))
    notebook.complain("the run crashed");
  if (notebook.complaint[0] != '\0' || !options_.checked) return;
  if (options_.second_life) live_again();
  if (notebook.complaint[0] != '\0') return;
  const ProcessEnd checked = start(notebook, [&] { workload_.check(data(), nullptr, options_, notebook); }).wait();
  if (notebook.complaint[0] == '\0' && !checked.is_success()) notebook.complain("the check: " + checked.text());
}

void Trial::live_again() {
  Notebook &notebook = *notebook_;
  const DiskPlan plan{
      .trouble = Trouble::power_cut, .step = UINT64_MAX, .seed = options_.plan.seed + options_.plan.step};
  ChildProcess life = start(notebook, [&] {
    SimulatedDisk disk(directory_.path() / "disk", directory_.path() / "graveyard", plan, notebook.second_disk);
    disk.remember(notebook.disk);
    workload_.check(data(), disk.environment(), options_, notebook);
    disk.cut();
  });
  const ProcessEnd end = life.wait();
  if (notebook.complaint[0] == '\0' && !end.is_kill()) notebook.complain("the second life: " + end.text());
}

const Notebook &Trial::finish() {
  const ProcessEnd end = process_.wait();
  if (notebook_->complaint[0] == '\0' && !end.is_success()) notebook_->complain("the trial: " + end.text());
  return *notebook_;
}

std::string Trial::describe() const {
  const DiskPlan &plan = options_.plan;
  return std::string(workload_.name) + " from action " + std::to_string(part_.first) + ", step " +
         std::to_string(plan.step) + " of trouble " + std::to_string(static_cast<int>(plan.trouble)) +
         (plan.lasting ? " (lasting)" : "") + (plan.garbage ? " (garbage)" : "") +
         ", ONCED_TEST_SEED=" + std::to_string(plan.seed) + ": " + notebook_->disk.struck_at.data() + "; asked " +
         std::to_string(notebook_->asked) + ", told " + std::to_string(notebook_->told_in_run) +
         ", the run ended with " + notebook_->ended.text() + "; " + notebook_->complaint.data();
}

} // namespace onced::testing
