#include "disk/trial.hpp"

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Forks; what `work` throws is the complaint. A child dies with its parent, and by SIGALRM if it hangs.
pid_t start(Notebook &notebook, const std::function<void()> &work) {
  std::cout.flush(); // or the child, if it crashes, says all of it again
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error("cannot fork");
  if (process > 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::alarm(trial_seconds_max);
  try {
    work();
  } catch (const std::exception &failure) {
    notebook.complain(failure.what());
    ::_exit(1);
  }
  ::_exit(0);
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

} // namespace

Trial::Trial(const Workload &workload, Part part, const fs::path &before, const TrialOptions &options)
    : workload_(workload), part_(part), before_(before), options_(options), notebook_(new_notebook(), &free_notebook) {
  process_ = start(*notebook_, [this] { run(); });
}

Trial::~Trial() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  wait_for(process_);
}

void Trial::run() {
  Notebook &notebook = *notebook_;
  const fs::path root = directory_.path() / "disk";
  const fs::path graveyard = directory_.path() / "graveyard";
  fs::create_directory(root);
  fs::create_directory(graveyard);
  if (!before_.empty()) fs::copy(before_, data(), fs::copy_options::recursive);
  notebook.asked = notebook.told = part_.first;
  notebook.ended = wait_for(start(notebook, [&] {
    SimulatedDisk disk(root, graveyard, options_.plan, notebook.disk);
    workload_.play(disk, data(), part_, options_, notebook);
  }));
  notebook.told_in_run = notebook.told;
  const bool may_die = options_.plan.trouble == Trouble::death || options_.plan.trouble == Trouble::power_cut;
  const bool died = WIFSIGNALED(notebook.ended) && WTERMSIG(notebook.ended) == SIGKILL && notebook.disk.struck;
  const bool went_well = WIFEXITED(notebook.ended) && WEXITSTATUS(notebook.ended) == 0;
  if (notebook.complaint[0] == '\0' && !went_well && !(may_die && died)) notebook.complain("the run crashed");
  if (notebook.complaint[0] != '\0' || !options_.checked) return;
  if (options_.second_life) live_again();
  if (notebook.complaint[0] != '\0') return;
  const int checked = wait_for(start(notebook, [&] { workload_.check(data(), nullptr, options_, notebook); }));
  if (notebook.complaint[0] == '\0' && checked != 0) notebook.complain("the check: " + how_it_ended(checked));
}

void Trial::live_again() {
  Notebook &notebook = *notebook_;
  const DiskPlan plan{
      .trouble = Trouble::power_cut, .step = UINT64_MAX, .seed = options_.plan.seed + options_.plan.step};
  const int ended = wait_for(start(notebook, [&] {
    SimulatedDisk disk(directory_.path() / "disk", directory_.path() / "graveyard", plan, notebook.second_disk);
    disk.remember(notebook.disk);
    workload_.check(data(), disk.environment(), options_, notebook);
    disk.cut();
  }));
  const bool cut = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
  if (notebook.complaint[0] == '\0' && !cut) notebook.complain("the second life: " + how_it_ended(ended));
}

const Notebook &Trial::finish() {
  if (process_ <= 0) return *notebook_;
  const int status = wait_for(process_);
  process_ = -1;
  if (notebook_->complaint[0] == '\0' && status != 0) notebook_->complain("the trial: " + how_it_ended(status));
  return *notebook_;
}

std::string Trial::describe() const {
  const DiskPlan &plan = options_.plan;
  return std::string(workload_.name) + " from action " + std::to_string(part_.first) + ", step " +
         std::to_string(plan.step) + " of trouble " + std::to_string(static_cast<int>(plan.trouble)) +
         (plan.lasting ? " (lasting)" : "") + (plan.garbage ? " (garbage)" : "") + ", seed " +
         std::to_string(plan.seed) + ": " + notebook_->disk.struck_at.data() + "; asked " +
         std::to_string(notebook_->asked) + ", told " + std::to_string(notebook_->told_in_run) +
         ", the run ended with " + how_it_ended(notebook_->ended) + "; " + notebook_->complaint.data();
}

} // namespace onced::testing
