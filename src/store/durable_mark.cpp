#include "store/durable_mark.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace onced::store {
namespace {

// The file: 16 bytes of magic, the sequence, 8 bytes unused, then for each log its number and its bytes; every number 8
// bytes little-endian. The sequence, and a log, lie in one sector each, so they are never seen half written.
constexpr std::string_view file_name = "durable.mark";
constexpr std::string_view magic{"onced mark 2\0\0\0\n", 16};
constexpr std::string_view older_magic{"onced mark 1\0\0\0\n", 16}; // the sequence, and nothing behind it
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t sequence_offset = magic.size();
constexpr std::size_t logs_offset = 32;
constexpr std::size_t log_bytes = 2 * word_bytes;

void append(std::string &bytes, std::uint64_t number) {
  for (std::size_t at = 0; at < word_bytes; ++at, number >>= 8U)
    bytes += static_cast<char>(number & 0xFFU);
}

std::uint64_t decode(const char *bytes) {
  std::uint64_t number = 0;
  for (std::size_t at = word_bytes; at > 0; --at)
    number = number << 8U | static_cast<unsigned char>(bytes[at - 1]);
  return number;
}

bool write_at(const Descriptor &file, const std::string &bytes, std::size_t offset) {
  return ::pwrite(file.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes.size());
}

Error no_mark(const std::filesystem::path &path) {
  return {.code = ErrorCode::corrupt,
          .concerns = path.string(),
          .cause = "this is no durable mark",
          .remedy =
              "restore it with the database it belongs to; or open with --accept-loss, which gives up the check for "
              "lost rows once"};
}

} // namespace

DurableMark::DurableMark(std::filesystem::path path, Descriptor file, std::uint64_t sequence, const Logs &logs)
    : path_(std::move(path)), file_(std::move(file)), sequence_(sequence), logs_(logs) {}

DurableMark::DurableMark(DurableMark &&other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)), sequence_(other.sequence_), logs_(other.logs_) {}

Result<DurableMark> DurableMark::create(const std::filesystem::path &directory, std::uint64_t sequence) {
  // Written whole under another name first, so that a file of this name is always a whole one.
  const auto path = directory / file_name;
  const auto draft = directory / "durable.mark.new";
  Descriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.is_open()) return tl::unexpected(system_error(draft, "create"));
  std::string content(magic);
  append(content, sequence);
  content.resize(logs_offset + logs_max * log_bytes);
  if (!write_at(file, content, 0) || ::fsync(file.number()) != 0 || ::rename(draft.c_str(), path.c_str()) != 0) {
    return tl::unexpected(system_error(draft, "write"));
  }
  if (auto synced = sync_directory(directory); !synced) return tl::unexpected(synced.error());
  return DurableMark(path, std::move(file), sequence, {});
}

Result<DurableMark> DurableMark::open(const std::filesystem::path &directory, bool read_only) {
  const auto path = directory / file_name;
  Descriptor file(::open(path.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
  if (!file.is_open()) return tl::unexpected(system_error(path, "open"));
  std::array<char, logs_offset + logs_max * log_bytes> content{};
  const ssize_t size = ::pread(file.number(), content.data(), content.size(), 0);
  if (size < 0) return tl::unexpected(system_error(path, "read"));
  const std::string_view read(content.data(), static_cast<std::size_t>(size));
  const std::uint64_t sequence = decode(content.data() + sequence_offset);
  if (read.starts_with(older_magic) && read.size() == sequence_offset + word_bytes) {
    return read_only ? DurableMark(path, std::move(file), sequence, {}) : create(directory, sequence);
  }
  if (!read.starts_with(magic) || read.size() != content.size()) return tl::unexpected(no_mark(path));
  Logs logs;
  for (std::size_t at = 0; at < logs_max; ++at) {
    const char *log = content.data() + logs_offset + at * log_bytes;
    logs[at] = {.number = decode(log), .bytes = decode(log + word_bytes)};
  }
  return DurableMark(path, std::move(file), sequence, logs);
}

bool DurableMark::write(std::uint64_t sequence) {
  std::string bytes;
  append(bytes, sequence);
  return write_at(file_, bytes, sequence_offset);
}

bool DurableMark::write_logs(const Logs &logs) {
  std::string bytes;
  for (const LogFile &log : logs) {
    append(bytes, log.number);
    append(bytes, log.bytes);
  }
  return write_at(file_, bytes, logs_offset);
}

void DurableMark::advance(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (sequence <= sequence_) return;
  if (write(sequence)) sequence_ = sequence;
}

void DurableMark::remember(std::span<const LogFile> complete) {
  const std::scoped_lock lock(mutex_);
  Logs logs = logs_;
  for (const LogFile &log : complete) {
    auto place =
        std::find_if(logs.begin(), logs.end(), [&](const LogFile &known) { return known.number == log.number; });
    // The oldest gives way: it is the likeliest to be in tables by now.
    if (place == logs.end()) {
      place = std::min_element(logs.begin(), logs.end(),
                               [](const LogFile &left, const LogFile &right) { return left.number < right.number; });
    }
    if (place->number > log.number) continue;
    *place = {.number = log.number,
              .bytes = place->number == log.number ? std::max(place->bytes, log.bytes) : log.bytes};
  }
  if (logs != logs_ && write_logs(logs)) logs_ = logs;
}

std::vector<LogFile> DurableMark::complete_logs() const {
  const std::scoped_lock lock(mutex_);
  std::vector<LogFile> logs(logs_.begin(), logs_.end());
  logs.erase(std::remove_if(logs.begin(), logs.end(), [](const LogFile &log) { return log.number == 0; }), logs.end());
  return logs;
}

Result<void> DurableMark::reset(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (!write(sequence) || !write_logs({}) || ::fsync(file_.number()) != 0) {
    return tl::unexpected(system_error(path_, "write"));
  }
  sequence_ = sequence;
  logs_ = {};
  return {};
}

void DurableMark::sync() {
  ::fdatasync(file_.number()); // a failure only lets the mark lag after a power cut
}

} // namespace onced::store
