#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/event_log.hpp"

namespace onced::tools {

// Appends every event to a file, as one JSON object a line: `at_us`, `event`, and its fields. Each line is written at
// once, so it survives a kill -9 of the process right after it. What cannot be written (a full disk, a FIFO whose
// reader does not read) is dropped: the stream is evidence, never a part of the work. An event `events.dropped` with
// the number `dropped` stands where events are missing, as soon as something can be written again.
class EventFile final : public EventLog {
public:
  // Null where `path` is empty. `clock` must outlive it. Errors: `store_unavailable`, the file cannot be written
  // to, or is a FIFO that nobody reads.
  [[nodiscard]] static Result<std::unique_ptr<EventFile>> open(const std::filesystem::path &path, Clock &clock);

  ~EventFile() override;
  EventFile(const EventFile &) = delete;
  EventFile &operator=(const EventFile &) = delete;

  void write(const Event &event) noexcept override;

  // Goes on in the file that has the path now, as another was moved away (logrotate). Where that cannot be opened it
  // goes on in the file that it has. Errors: as of `open`. Any thread.
  [[nodiscard]] Result<void> reopen();

  // A warning `events.dropped`, if events are missing so far. Any thread.
  void tell_dropped_to(EventLog &log) const noexcept;

private:
  EventFile(std::filesystem::path path, int descriptor, Clock &clock)
      : path_(std::move(path)), descriptor_(descriptor), clock_(clock) {}

  void tell_dropped();
  bool put(const Event &event);

  std::filesystem::path path_;
  int descriptor_;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> told_{0}; // of those that were dropped
  std::atomic<bool> unended_{false};   // the last line in it was cut short
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
