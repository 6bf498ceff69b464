#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/scratch_directory.hpp"
#include "disk/simulated_disk.hpp"
#include "onced/store.hpp"

namespace onced::testing {

// What the processes of a trial tell each other, in memory that outlives each of them, outside of the disk.
struct Notebook {
  DiskDiary disk;
  DiskDiary second_disk;         // of the second life
  std::uint64_t asked = 0;       // actions begun
  std::uint64_t told = 0;        // actions whose answer was given
  std::uint64_t told_in_run = 0; // that many when the run ended; the check goes on
  std::uint64_t lost = 0;        // of those told, how many are not there
  bool refused = false;          // the opening after a cut with garbage was refused, as it may be
  ProcessEnd ended{0};           // of the process that played
  std::array<char, 4096> complaint{};

  void complain(std::string_view text) { text.copy(complaint.data(), complaint.size() - 1); }
};

struct TrialOptions {
  DiskPlan plan = {};
  Durability durability = Durability::fsync;
  bool may_lose = false; // what was told may be gone, from the end: it is counted
  // After a death the next process opens what there is, goes on with the next action, and then the power is cut.
  bool second_life = false;
  bool checked = true; // false: what is left is only for other trials to begin with
};

// Some actions of a workload, one after another.
struct Part {
  std::uint64_t first = 0; // so many are done before it
  std::uint64_t end = 0;   // so many are done after it
};

// What runs on the disk and is looked at afterwards: a list of actions, the same every time.
struct Workload {
  std::string_view name;
  // On which troubles come. Between them lies what only has to be done for the next. Each begins with an opening.
  std::vector<Part> parts;
  // Plays the actions on the disk. Throws where an answer is not what it must be.
  void (*play)(SimulatedDisk &disk, const std::filesystem::path &directory, Part part, const TrialOptions &options,
               Notebook &notebook);
  // Opens what was left and holds it against what was asked and told; then does the action that was in hand, or the
  // next one, and notes that it was told. Throws.
  void (*check)(const std::filesystem::path &directory, const std::shared_ptr<StorageEnvironment> &environment,
                const TrialOptions &options, Notebook &notebook);
};

// One run of a workload on a disk of its own, in a process of its own, and the check in another: this one never opens a
// database, so it has one thread, and forks without harm.
class Trial {
public:
  // Starts it. The workload outlives the trial. It begins with a copy of `before`, where the actions before the part
  // are done; empty: with nothing.
  Trial(const Workload &workload, Part part, const std::filesystem::path &before, const TrialOptions &options);
  ~Trial() = default;
  Trial(const Trial &) = delete;
  Trial &operator=(const Trial &) = delete;

  // Waits for its end. What it found lies in the notebook; a complaint where something is wrong.
  const Notebook &finish();

  // What the run and the check left; it goes with the trial.
  [[nodiscard]] std::filesystem::path data() const { return directory_.path() / "disk" / "data"; }
  // For a failure: what happened, and how to repeat it.
  [[nodiscard]] std::string describe() const;

private:
  void run();
  void live_again();

  const Workload &workload_;
  Part part_;
  std::filesystem::path before_;
  TrialOptions options_;
  ScratchDirectory directory_;
  std::unique_ptr<Notebook, void (*)(Notebook *)> notebook_;
  ChildProcess process_;
};

} // namespace onced::testing
