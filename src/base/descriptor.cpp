#include "base/descriptor.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace onced {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor raised(int file) {
  constexpr int lowest = 100;
  return Descriptor(::fcntl(file, F_DUPFD_CLOEXEC, lowest));
}

tl::expected<Pipe, int> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tl::unexpected(errno);
  const Descriptor reading(ends[0]);
  const Descriptor writing(ends[1]);
  Pipe pipe{.reading = raised(reading.number()), .writing = raised(writing.number())};
  if (!pipe.reading.is_open() || !pipe.writing.is_open()) return tl::unexpected(errno);
  return pipe;
}

bool write_all(const Descriptor &file, BytesView content) {
  while (!content.empty()) {
    const ssize_t count = ::write(file.number(), content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Error system_error(const std::filesystem::path &path, const std::string &doing) {
  const int number = errno;
  const bool absent = number == ENOENT || number == ENOTDIR;
  return {.code = absent ? ErrorCode::not_found : ErrorCode::store_unavailable,
          .concerns = path.string(),
          .cause = "cannot " + doing + ": " + std::generic_category().message(number),
          .remedy = absent ? "check the path" : "check the disk, its free space and the rights of this user"};
}

Result<void> sync_directory(const std::filesystem::path &directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return tl::unexpected(system_error(directory, "open"));
  if (::fsync(opened.number()) != 0) return tl::unexpected(system_error(directory, "sync"));
  return {};
}

} // namespace onced
