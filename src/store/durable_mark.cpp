#include "store/durable_mark.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace onced::store {
namespace {

// The file: 16 bytes of magic, then the sequence as 8 bytes little-endian. The sequence is one aligned word in one
// sector, so it is never seen half written.
constexpr std::string_view file_name = "durable.mark";
constexpr std::string_view magic{"onced mark 1\0\0\0\n", 16};
constexpr std::size_t file_bytes = magic.size() + sizeof(std::uint64_t);

std::array<char, sizeof(std::uint64_t)> encode(std::uint64_t sequence) {
  std::array<char, sizeof(std::uint64_t)> bytes{};
  for (char &byte : bytes) {
    byte = static_cast<char>(sequence & 0xFFU);
    sequence >>= 8U;
  }
  return bytes;
}

std::uint64_t decode(const char *bytes) {
  std::uint64_t sequence = 0;
  for (std::size_t at = sizeof(std::uint64_t); at > 0; --at) {
    sequence = sequence << 8U | static_cast<unsigned char>(bytes[at - 1]);
  }
  return sequence;
}

} // namespace

DurableMark::DurableMark(std::filesystem::path path, Descriptor file, std::uint64_t sequence)
    : path_(std::move(path)), file_(std::move(file)), sequence_(sequence) {}

DurableMark::DurableMark(DurableMark &&other) noexcept
    : path_(std::move(other.path_)), file_(std::move(other.file_)), sequence_(other.sequence_) {}

Result<DurableMark> DurableMark::create(const std::filesystem::path &directory) {
  // Written whole under another name first, so that a file of this name is always a whole one.
  const auto path = directory / file_name;
  const auto draft = directory / "durable.mark.new";
  Descriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.is_open()) return tl::unexpected(system_error(draft, "create"));
  std::string content(magic);
  content.append(encode(0).data(), sizeof(std::uint64_t));
  if (::pwrite(file.number(), content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()) ||
      ::fsync(file.number()) != 0 || ::rename(draft.c_str(), path.c_str()) != 0) {
    return tl::unexpected(system_error(draft, "write"));
  }
  if (auto synced = sync_directory(directory); !synced) return tl::unexpected(synced.error());
  return DurableMark(path, std::move(file), 0);
}

Result<DurableMark> DurableMark::open(const std::filesystem::path &directory, bool read_only) {
  const auto path = directory / file_name;
  Descriptor file(::open(path.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC));
  if (!file.is_open()) return tl::unexpected(system_error(path, "open"));
  std::array<char, file_bytes> content{};
  const ssize_t size = ::pread(file.number(), content.data(), content.size(), 0);
  if (size < 0) return tl::unexpected(system_error(path, "read"));
  if (size != static_cast<ssize_t>(file_bytes) || !std::string_view(content.data(), file_bytes).starts_with(magic)) {
    return tl::unexpected(Error{.code = ErrorCode::corrupt,
                                .concerns = path.string(),
                                .cause = "this is no durable mark",
                                .remedy =
                                    "restore it with the database it belongs to; or open with --accept-loss, which "
                                    "gives up the check for lost rows once"});
  }
  return DurableMark(path, std::move(file), decode(content.data() + magic.size()));
}

bool DurableMark::write(std::uint64_t sequence) {
  const auto bytes = encode(sequence);
  return ::pwrite(file_.number(), bytes.data(), bytes.size(), magic.size()) == static_cast<ssize_t>(bytes.size());
}

void DurableMark::advance(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (sequence <= sequence_) return;
  if (write(sequence)) sequence_ = sequence;
}

Result<void> DurableMark::reset(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (!write(sequence) || ::fsync(file_.number()) != 0) return tl::unexpected(system_error(path_, "write"));
  sequence_ = sequence;
  return {};
}

void DurableMark::sync() {
  ::fdatasync(file_.number()); // a failure only lets the mark lag after a power cut
}

} // namespace onced::store
