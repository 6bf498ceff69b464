#include "event_file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "job/json_value.hpp"
#include "output.hpp"

namespace onced::tools {

Result<std::unique_ptr<EventFile>> EventFile::open(const std::filesystem::path &path, Clock &clock) {
  if (path.empty()) return nullptr;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return tl::unexpected(Error{ErrorCode::store_unavailable, path.string(), std::generic_category().message(errno),
                                "give a file that may be written to"});
  }
  return std::unique_ptr<EventFile>(new EventFile(descriptor, clock));
}

EventFile::~EventFile() {
  ::close(descriptor_);
}

void EventFile::write(const Event &event) noexcept {
  try {
    Json line{{"at_us", clock_.wall().time_since_epoch().count()}, {"event", event.name}};
    for (const auto &field : event.fields)
      std::visit([&](const auto &value) { line[std::string(field.first)] = value; }, field.second);
    const std::string text = visible(dump(line)) + "\n";
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    // A line that was cut short is ended, so that the next is not lost with it.
    if (written > 0 && static_cast<std::size_t>(written) < text.size()) {
      static_cast<void>(::write(descriptor_, "\n", 1) == 1);
    }
  } catch (...) { // no memory: it is dropped
  }
}

} // namespace onced::tools
