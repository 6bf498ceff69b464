#include "rocksdb/info_log.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace onced::rocks {
namespace {

constexpr std::uintmax_t file_bytes_max = 1024 * 1024;
constexpr std::size_t line_bytes_max = 1024;

} // namespace

InfoLog::InfoLog(const std::filesystem::path &path) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {
  if (path.empty()) return;
  std::error_code error;
  const bool is_large = std::filesystem::file_size(path, error) > file_bytes_max && !error;
  file_ = Descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (is_large ? O_TRUNC : 0), 0600));
}

void InfoLog::Logv(const char *format, va_list arguments) {
  std::array<char, line_bytes_max> line{};
  const int length = std::vsnprintf(line.data(), line.size() - 1, format, arguments);
  if (length < 0) return;
  const auto end = std::min(static_cast<std::size_t>(length), line.size() - 2);
  // "…/000004.log: dropping 123 bytes; Corruption: …"
  const std::string_view text(line.data(), end);
  if (text.find(": dropping ") != std::string_view::npos) {
    const std::scoped_lock lock(mutex_);
    damage_ = text;
  }
  line[end] = '\n';
  if (file_.is_open()) static_cast<void>(!::write(file_.number(), line.data(), end + 1));
}

std::string InfoLog::damage() const {
  const std::scoped_lock lock(mutex_);
  return damage_;
}

} // namespace onced::rocks
