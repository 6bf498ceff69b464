#include "event_file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/json_value.hpp"
#include "output.hpp"

namespace onced::tools {
namespace {

// Not blocking, which changes nothing for a file: a FIFO without a reader is an error, and a full one too.
int open_stream(const std::filesystem::path &path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
}

Error cannot_open(const std::filesystem::path &path, int error) {
  if (error == ENXIO) {
    return {ErrorCode::store_unavailable, path.string(), "nobody reads this FIFO", "start its reader first"};
  }
  return {ErrorCode::store_unavailable, path.string(), std::generic_category().message(error),
          "give a file that may be written to"};
}

} // namespace

Result<std::unique_ptr<EventFile>> EventFile::open(const std::filesystem::path &path, Clock &clock) {
  if (path.empty()) return nullptr;
  const int descriptor = open_stream(path);
  if (descriptor < 0) return tl::unexpected(cannot_open(path, errno));
  return std::unique_ptr<EventFile>(new EventFile(path, descriptor, clock));
}

EventFile::~EventFile() {
  try {
    tell_dropped();
  } catch (...) { // no memory: the log still tells it
  }
  ::close(descriptor_);
}

Result<void> EventFile::reopen() {
  const int descriptor = open_stream(path_);
  if (descriptor < 0) return tl::unexpected(cannot_open(path_, errno));
  ::dup3(descriptor, descriptor_, O_CLOEXEC); // at once, also for who is writing
  ::close(descriptor);
  return {};
}

void EventFile::write(const Event &event) noexcept {
  try {
    tell_dropped();
    put(event);
  } catch (...) { // no memory
    ++dropped_;
  }
}

void EventFile::tell_dropped_to(EventLog &log) const noexcept {
  if (const std::uint64_t dropped = dropped_.load(); dropped != 0)
    log.write({EventLevel::warning, "events.dropped", {{"dropped", dropped}}});
}

void EventFile::tell_dropped() {
  const std::uint64_t dropped = dropped_.load() - told_.load();
  if (dropped == 0) return;
  told_ += dropped;
  if (!put({EventLevel::warning, "events.dropped", {{"dropped", dropped}}})) {
    told_ -= dropped;
    --dropped_; // this line is none of the events
  }
}

// False: it is dropped.
bool EventFile::put(const Event &event) {
  Json line{{"at_us", clock_.wall().time_since_epoch().count()}, {"event", event.name}};
  for (const auto &field : event.fields)
    std::visit([&](const auto &value) { line[std::string(field.first)] = value; }, field.second);
  const std::string text = (unended_.exchange(false) ? "\n" : "") + visible(dump(line)) + "\n";
  const ssize_t written = ::write(descriptor_, text.data(), text.size());
  if (written >= 0 && static_cast<std::size_t>(written) == text.size()) return true;
  ++dropped_;
  // A line that was cut short is ended, so that the next is not lost with it.
  if (written > 0 && ::write(descriptor_, "\n", 1) != 1) unended_ = true;
  return false;
}

} // namespace onced::tools
