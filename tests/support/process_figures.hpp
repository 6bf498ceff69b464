#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>

#include "support/process.hpp"

// What the kernel says of a process (proc(5)).
namespace onced::testing {

// A number of /proc/PID/status, such as VmHWM, the most memory that was resident, in KiB. 0 where there is none.
[[nodiscard]] inline std::size_t status_figure(pid_t process, std::string_view name) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(std::string(name) + ":")) return std::stoul(line.substr(name.size() + 1));
  }
  return 0;
}

[[nodiscard]] inline std::size_t resident_max_mib(pid_t process) {
  return status_figure(process, "VmHWM") / 1024;
}

[[nodiscard]] inline std::size_t open_files(pid_t process) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(process) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// How far a process has read its standard input, where that is a file.
[[nodiscard]] inline std::size_t input_position(pid_t process) {
  std::ifstream info("/proc/" + std::to_string(process) + "/fdinfo/0");
  std::string name;
  std::size_t position = 0;
  info >> name >> position; // the first line: "pos: N"
  return position;
}

// True once the figure has been the same for so long; false where it still grows after a few times of that.
template <class Figure> bool stands_still(std::chrono::seconds length, Figure figure) {
  const Deadline deadline = patience_from_now() + 3 * length;
  std::size_t last = figure();
  Deadline since = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < deadline) {
    if (const std::size_t now = figure(); now != last) {
      last = now;
      since = std::chrono::steady_clock::now();
    }
    if (std::chrono::steady_clock::now() - since >= length) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{20}); // leaves the machine to those that are looked at
  }
  return false;
}

} // namespace onced::testing
