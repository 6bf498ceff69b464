#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "rehearsal/disk.hpp"
#include "support/process.hpp"

namespace onced::testing {

using rehearsal::CuttableDisk;

// A promise was broken, or something failed that must not.
class Broken : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// What came out of one cut.
struct CutReport {
  std::size_t acknowledged = 0;     // jobs with a final outcome before the cut
  std::size_t acknowledged_bad = 0; // of these, those with a dead letter
  std::size_t lost = 0;             // acknowledged, and not on the disk after the cut
  std::size_t untold = 0;           // on the disk after the cut although nobody was told: allowed
  std::size_t accepted = 0;         // jobs that an outbox had taken over
  std::size_t openings = 0;         // of what there is, each accepted
  std::string crash;                // what a worker said that ended by itself when its disk failed; empty: it lived on
};

struct CutOptions {
  std::uint64_t seed = 0;
  std::string durability = "fsync";
  // Losses are counted and reported, and end nothing: the control.
  bool expects_loss = false;
};

// Stops the process first, as a power cut does: an fdatasync that is under way as the file system is shut down may
// report success for what is lost, which must not be told to anybody.
void cut_under(Process &process, const CuttableDisk &disk);
// Mounts it again. No file on it may be open.
void power_on(CuttableDisk &disk);

// A moment, of some milliseconds.
void pause(std::uint64_t chance);

// Cuts the disk under a worker and its senders. `again`: and once more while the worker opens what was left. Throws
// Broken.
[[nodiscard]] CutReport cut_worker(CuttableDisk &disk, const CutOptions &options, bool again);

// Cuts the disk under the outbox of a sender; the data of its worker lies in `elsewhere`. Throws Broken.
[[nodiscard]] CutReport cut_outbox(CuttableDisk &disk, const CutOptions &options,
                                   const std::filesystem::path &elsewhere);

} // namespace onced::testing
