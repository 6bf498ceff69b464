#include "crash/tally.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "crash/kills.hpp"

namespace onced::crash {
namespace {

void print_kills(std::ostream &out, const Tally &tally, std::string_view side) {
  std::uint64_t sum = 0;
  std::string parts;
  for (const auto &[kill, times] : tally.kills) {
    if (!kill.starts_with(side)) continue;
    sum += times;
    parts.append(parts.empty() ? "" : ", ").append(kill.substr(side.size() + 1)).append(" " + std::to_string(times));
  }
  out << "kills of a " << side << " at work: " << sum << " (" << parts << ")\n";
}

void print_harm(std::ostream &out, const Tally &tally, Harm harm, std::string_view plural, const std::string &of) {
  const auto times = tally.findings.find(harm);
  out << plural << ": " << (times == tally.findings.end() ? 0 : times->second) << " of " << of << "\n";
}

void print_recoveries(std::ostream &out, Tally &tally) {
  auto &times = tally.recoveries;
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  out << "recovery after the kill of a worker: p50 " << times[(times.size() - 1) / 2].count() << " ms, max "
      << times.back().count() << " ms, of " << times.size() << "\n";
}

} // namespace

void Tally::add(const Model &model) {
  keys += model.keys();
  rows += model.rows_seen();
  acknowledged_keys += model.acknowledged_keys();
  for (const auto &[outcome, times] : model.outcomes())
    outcomes[outcome] += times;
}

std::uint64_t Tally::deliveries() const {
  std::uint64_t sum = 0;
  for (const auto &[outcome, times] : outcomes)
    sum += times;
  return sum;
}

std::uint64_t Tally::found() const {
  std::uint64_t sum = 0;
  for (const auto &[harm, times] : findings)
    sum += times;
  return sum;
}

std::ostream &operator<<(std::ostream &out, Tally tally) {
  print_kills(out, tally, "worker");
  print_kills(out, tally, "sender");
  out << "kills of a worker at rest: " << tally.kills_at_rest << "\n";
  out << "jobs handed to senders: " << tally.jobs << "; outcomes told: " << tally.deliveries() << " (";
  const char *separator = "";
  for (const auto &[outcome, times] : tally.outcomes) {
    out << separator << outcome << " " << times;
    separator = ", ";
  }
  out << "); changes of dead letters told: " << tally.changes << "\n";
  const std::string scans = " in " + std::to_string(tally.scans) + " scans";
  print_harm(out, tally, Harm::loss, "losses", std::to_string(tally.acknowledged_keys) + " committed keys" + scans);
  print_harm(out, tally, Harm::double_effect, "double effects",
             std::to_string(tally.rows) + " rows of " + std::to_string(tally.keys) + " keys");
  print_harm(out, tally, Harm::false_acknowledgement, "false acknowledgements",
             std::to_string(tally.deliveries()) + " outcomes");
  print_harm(out, tally, Harm::stray, "strays", std::to_string(tally.rows) + " rows, and dead letters");
  print_recoveries(out, tally);
  constexpr std::uint64_t kib_a_mib = 1024;
  return out << "peak resident memory: worker " << tally.worker_peak_kib / kib_a_mib << " MiB, sender "
             << tally.sender_peak_kib / kib_a_mib << " MiB\n";
}

std::uint64_t peak_memory_kib(int process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6));
  }
  return 0;
}

} // namespace onced::crash
