#include "own_process.hpp"

#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include "held_signals.hpp"
#include "process_usage.hpp"

namespace onced::bench::scale {
namespace {

// The number behind "NAME:" in a file of /proc/self.
std::uint64_t figure(const std::string &file, const std::string &name) {
  std::ifstream lines("/proc/self/" + file);
  for (std::string word; lines >> word;) {
    std::uint64_t value = 0;
    if (word == name + ":" && lines >> value) return value;
  }
  throw std::runtime_error("/proc/self/" + file + " does not say " + name);
}

std::chrono::nanoseconds cpu_of(clockid_t clock) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

} // namespace

std::chrono::nanoseconds own_thread_cpu() {
  return cpu_of(CLOCK_THREAD_CPUTIME_ID);
}

OwnUsage own_usage() {
  // The clocks first and together: reading the rest takes CPU too.
  return {.process_cpu = cpu_of(CLOCK_PROCESS_CPUTIME_ID),
          .thread_cpu = own_thread_cpu(),
          .disk_read_bytes = figure("io", "read_bytes"),
          .read_calls = figure("io", "syscr"),
          .resident_bytes = figure("status", "VmRSS") * 1024,
          .resident_max_bytes = usage_of(::getpid()).resident_max_bytes};
}

std::chrono::nanoseconds wait_until_idle() {
  constexpr std::chrono::milliseconds look{500};
  const auto begin = std::chrono::steady_clock::now();
  auto idle_since = begin;
  while (true) {
    if (HeldSignals::pending()) throw std::runtime_error("told to stop");
    const auto before = cpu_of(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(look);
    if (cpu_of(CLOCK_PROCESS_CPUTIME_ID) - before < look / 20) return idle_since - begin;
    idle_since = std::chrono::steady_clock::now();
  }
}

} // namespace onced::bench::scale
