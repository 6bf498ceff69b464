#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "crash/model.hpp"

namespace onced::crash {

// The figures of a campaign.
struct Tally {
  std::uint64_t rounds = 0;
  std::map<std::string, std::uint64_t> kills;    // with work in hand
  std::uint64_t kills_at_rest = 0;               // of workers
  std::uint64_t jobs = 0;                        // handed to senders
  std::map<std::string, std::uint64_t> outcomes; // told
  std::uint64_t changes = 0;                     // of dead letters, told
  std::uint64_t scans = 0;
  std::uint64_t keys = 0;              // offered, over all data directories
  std::uint64_t rows = 0;              // likewise, at the end of each
  std::uint64_t acknowledged_keys = 0; // likewise
  std::map<Harm, std::uint64_t> findings;
  std::vector<std::chrono::milliseconds> recoveries; // of workers killed with jobs in flight and started again at once
  std::uint64_t worker_peak_kib = 0;
  std::uint64_t sender_peak_kib = 0;

  void add(const Model &model); // at the end of its data directory
  [[nodiscard]] std::uint64_t deliveries() const;
  [[nodiscard]] std::uint64_t found() const;
};

std::ostream &operator<<(std::ostream &out, Tally tally);

// The most memory that a process has had resident, in KiB; 0: it is gone.
[[nodiscard]] std::uint64_t peak_memory_kib(int process);

} // namespace onced::crash
