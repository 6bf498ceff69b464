#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "onced/clock.hpp"

namespace onced::tools {

// One line on stderr that says how far `send` is, for a person who watches. Nothing at all where stderr is no terminal.
// One thread.
class Progress {
public:
  explicit Progress(Clock &clock);
  // Clears the line.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  // Shows the figures, a few times a second however often it is called.
  void show(std::uint64_t settled, std::uint64_t submitted);
  // The same for a count of which the end is not known: "12 redriven, 3/s".
  void show_count(std::uint64_t count, std::string_view what);

private:
  std::optional<double> seconds_if_due();

  Clock &clock_;
  bool terminal_;
  bool shown_ = false;
  MonotonicTime started_;
  MonotonicTime next_;
};

} // namespace onced::tools
