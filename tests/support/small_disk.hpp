#pragma once

#include <filesystem>
#include <optional>

#include "base/scratch_directory.hpp"
#include "rehearsal/disk.hpp"

namespace onced::testing {

// A file system of its own, a few MiB large, in memory. It takes root to mount one.
class SmallDisk {
public:
  SmallDisk() {
    try {
      disk_.emplace(directory_.path() / "disk");
    } catch (const rehearsal::StageUnavailable &) { // not mounted
    }
  }

  [[nodiscard]] bool is_mounted() const { return disk_.has_value(); }
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "disk"; }

  // Fills it to its end, or until so much is free.
  void fill(std::uintmax_t free_bytes = 0) const { disk_.value().fill(free_bytes); }
  void free() const { disk_.value().free(); }

private:
  ScratchDirectory directory_;
  std::optional<rehearsal::SmallDisk> disk_;
};

} // namespace onced::testing
