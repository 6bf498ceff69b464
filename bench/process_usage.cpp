#include "process_usage.hpp"

#include <ctime>
#include <fstream>
#include <string>

namespace onced::bench {
namespace {

std::chrono::nanoseconds cpu_of(int process) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// The number behind "NAME:" in a file of /proc.
std::optional<std::uint64_t> figure(int process, const std::string &file, const std::string &name) {
  std::ifstream lines("/proc/" + std::to_string(process) + "/" + file);
  for (std::string word; lines >> word;) {
    std::uint64_t value = 0;
    if (word == name + ":" && lines >> value) return value;
  }
  return std::nullopt;
}

} // namespace

ProcessUsage usage_of(int process) {
  return {.cpu = cpu_of(process),
          .written_bytes = figure(process, "io", "write_bytes"),
          .resident_max_bytes = figure(process, "status", "VmHWM").value_or(0) * 1024};
}

} // namespace onced::bench
