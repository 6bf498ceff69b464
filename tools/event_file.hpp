#pragma once

#include <filesystem>
#include <memory>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/event_log.hpp"

namespace onced::tools {

// Appends every event to a file, as one JSON object a line: `at_us`, `event`, and its fields. Each line is written at
// once, so it survives a kill -9 of the process right after it. What cannot be written is dropped: the stream is
// evidence, never a part of the work.
class EventFile final : public EventLog {
public:
  // Null where `path` is empty. `clock` must outlive it. Errors: `store_unavailable`, the file cannot be written to.
  [[nodiscard]] static Result<std::unique_ptr<EventFile>> open(const std::filesystem::path &path, Clock &clock);

  ~EventFile() override;
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  void write(const Event &event) noexcept override;

private:
  EventFile(int descriptor, Clock &clock) : descriptor_(descriptor), clock_(clock) {}

  int descriptor_;
  Clock &clock_;
};

// Writes to two logs. Both must outlive it.
class BothLogs final : public EventLog {
public:
  BothLogs(EventLog &first, EventLog &second) : first_(first), second_(second) {}

  void write(const Event &event) noexcept override {
    first_.write(event);
    second_.write(event);
  }

private:
  EventLog &first_;
  EventLog &second_;
};

} // namespace onced::tools
