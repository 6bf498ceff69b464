// What 300 restarts leave behind: as much as 30 do. What it does not show: restarts of the whole process, whose other
// files are the worker's.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "support/file_content.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

namespace fs = std::filesystem;

struct Footprint {
  std::size_t files = 0;
  std::uintmax_t bytes = 0;
  std::size_t descriptors = 0;
};

Footprint footprint_of(const fs::path &directory) {
  Footprint found;
  for (const auto &entry : fs::recursive_directory_iterator(directory)) {
    std::error_code gone; // RocksDB may be deleting it
    if (!entry.is_regular_file(gone)) continue;
    ++found.files;
    found.bytes += entry.file_size(gone);
  }
  const fs::directory_iterator descriptors("/proc/self/fd");
  found.descriptors = static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
  return found;
}

std::chrono::microseconds median(std::vector<std::chrono::microseconds> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

} // namespace

TEST_CASE("three hundred restarts leave no more than thirty") {
  StoreHarness harness;
  Footprint early{};
  Footprint late{};
  std::vector<std::chrono::microseconds> first_times;
  std::vector<std::chrono::microseconds> last_times;
  for (unsigned restart = 0; restart < 300; ++restart) {
    const auto begun = std::chrono::steady_clock::now();
    harness.open();
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
    if (restart >= 10 && restart < 40) first_times.push_back(took);
    if (restart >= 270) last_times.push_back(took);
    // Half of the runs end before any job came, as where a port is taken.
    if (restart % 2 == 0)
      CHECK(harness.commit_one(job_bytes("job-" + std::to_string(restart), {restart})).outcome == Outcome::stored);
    Footprint &most = restart < 40 ? early : late;
    const Footprint now = footprint_of(harness.directory.path());
    most = {.files = std::max(most.files, now.files),
            .bytes = std::max(most.bytes, now.bytes),
            .descriptors = std::max(most.descriptors, now.descriptors)};
    harness.close();
  }
  MESSAGE("at most ", early.files, " files, ", early.bytes, " bytes, ", early.descriptors,
          " descriptors in 40 restarts; ", late.files, ", ", late.bytes, ", ", late.descriptors,
          " in 260 more; median opening ", median(first_times).count(), " us at first, ", median(last_times).count(),
          " us at last");
  CHECK(late.files <= early.files + 4);
  CHECK(late.bytes <= early.bytes + 64UL * 1024); // the rows themselves
  CHECK(late.descriptors <= early.descriptors + 4);
  CHECK(median(last_times) < median(first_times) * 3);
  harness.open();
  CHECK(harness.counts().results == 150);
}
