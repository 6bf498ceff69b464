#include "line_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace onced::tools {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;
// Looks up from a wait at least so often, whatever the deadline.
constexpr std::chrono::milliseconds wait_max{10'000};

} // namespace

Result<InputFile> InputFile::open(const std::string &path) {
  if (path == "-") return InputFile(STDIN_FILENO, false, "standard input");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return tl::unexpected(Error{ErrorCode::not_found, path, std::generic_category().message(errno),
                                "name a file that can be read, or -"});
  }
  InputFile file(descriptor, true, path);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    return tl::unexpected(Error{ErrorCode::not_found, path, "is a directory", "name a file that can be read, or -"});
  }
  return file;
}

InputFile::InputFile(InputFile &&other) noexcept
    : descriptor_(other.descriptor_), owned_(std::exchange(other.owned_, false)), name_(std::move(other.name_)) {}

InputFile::~InputFile() {
  if (owned_) ::close(descriptor_);
}

Result<LineReader::Filled> LineReader::fill() {
  std::array<pollfd, 2> ready{{{file_.descriptor(), POLLIN, 0}, {stop_.descriptor(), POLLIN, 0}}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    if (stop_.requested() || left.count() <= 0) return Filled::interrupted;
    const auto wait = std::min(left, wait_max);
    if (::poll(ready.data(), ready.size(), static_cast<int>(wait.count())) <= 0 || ready[0].revents == 0) continue;
    const std::size_t size = buffer_.size();
    buffer_.resize(size + read_bytes);
    const ssize_t count = ::read(file_.descriptor(), buffer_.data() + size, read_bytes);
    buffer_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count > 0) return Filled::more;
    if (count == 0) return Filled::end;
    if (errno == EINTR || errno == EAGAIN) continue;
    return tl::unexpected(Error{ErrorCode::store_unavailable, file_.name(), std::generic_category().message(errno),
                                "what was read before it has been sent; run it again once it can be read"});
  }
}

ReadEnd LineReader::take(std::size_t length, std::size_t with_end, std::string_view &text) {
  text = std::string_view(buffer_).substr(begin_, length);
  begin_ += with_end;
  scanned_ = begin_;
  ++number_;
  return std::exchange(skipping_, false) || length > bytes_max_ ? ReadEnd::too_long : ReadEnd::line;
}

Result<ReadEnd> LineReader::next(std::string_view &text) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) return take(end - begin_, end - begin_ + 1, text);
    if (ended_) {
      if (begin_ == buffer_.size() && !skipping_) return ReadEnd::end;
      return take(buffer_.size() - begin_, buffer_.size() - begin_, text);
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (skipping_ || buffer_.size() > bytes_max_) {
      skipping_ = true;
      buffer_.clear();
    }
    scanned_ = buffer_.size();
    const auto filled = fill();
    if (!filled) return tl::unexpected(filled.error());
    if (*filled == Filled::interrupted) return ReadEnd::interrupted;
    ended_ = *filled == Filled::end;
  }
}

Result<ReadEnd> LineReader::rest(std::string &bytes) {
  while (buffer_.size() <= bytes_max_) {
    const auto filled = fill();
    if (!filled) return tl::unexpected(filled.error());
    if (*filled == Filled::interrupted) return ReadEnd::interrupted;
    if (*filled == Filled::end) break;
  }
  buffer_.resize(std::min(buffer_.size(), bytes_max_ + 1));
  bytes = std::move(buffer_);
  return ReadEnd::end;
}

} // namespace onced::tools
