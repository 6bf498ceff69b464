#include "rocksdb/durable_mark.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

namespace onced::rocks {
namespace {

// The file, its numbers 8 bytes little-endian: what a program of before takes for an empty mark of its own; then the
// state, the sequence and the complete logs, each record with a check behind it and inside one sector, so that it is
// never seen half written.
constexpr std::string_view magic{"onced mark 3\0\0\0\n", 16};
constexpr std::string_view magic_of_form_2{"onced mark 2\0\0\0\n", 16}; // the sequence, 8 bytes, 64 logs by their bytes
constexpr std::string_view magic_of_form_1{"onced mark 1\0\0\0\n", 16}; // the sequence, and nothing behind it
constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t sector_bytes = 512;
constexpr std::size_t bytes_of_form_1 = 24;
constexpr std::size_t bytes_of_form_2 = 1056;
constexpr std::size_t logs_at_of_form_2 = 32;
constexpr std::size_t state_at = 3 * sector_bytes;
constexpr std::size_t state_bytes = magic.size() + StoreIdentity::size + 4 * word_bytes;
constexpr std::size_t sequence_at = 4 * sector_bytes;
constexpr std::size_t logs_at = 5 * sector_bytes;
constexpr std::size_t log_bytes = 4 * word_bytes; // number, first, last, check
constexpr std::size_t mark_bytes = logs_at + DurableMark::logs_max * log_bytes;
static_assert(state_bytes + word_bytes <= sector_bytes && sector_bytes % log_bytes == 0, "a record lies in one sector");
static_assert(bytes_of_form_2 <= state_at, "a program of before sees a mark of its own alone");

void append(std::string &bytes, std::uint64_t number) {
  for (std::size_t at = 0; at < word_bytes; ++at, number >>= 8U)
    bytes += static_cast<char>(number & 0xFFU);
}

std::uint64_t number_at(BytesView bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t at = word_bytes; at > 0; --at)
    number = number << 8U | static_cast<unsigned char>(bytes[offset + at - 1]);
  return number;
}

// The record with its check: the first 8 bytes of SHA-256.
std::string checked(std::string record, Digester &digester) {
  record += digester.tag(record).view();
  return record;
}

// Whether the record of so many bytes is followed by its check.
bool is_checked(BytesView bytes, std::size_t offset, std::size_t size, Digester &digester) {
  return bytes.substr(offset + size, word_bytes) == digester.tag(bytes.substr(offset, size)).view();
}

std::string encode_state(const MarkContent &content, Digester &digester) {
  std::string record(magic);
  record += content.identity.view();
  append(record, content.boot);
  append(record, content.newest.number);
  append(record, content.newest.first);
  append(record, content.boot_log);
  return checked(std::move(record), digester);
}

std::string encode_sequence(std::uint64_t sequence, Digester &digester) {
  std::string record;
  append(record, sequence);
  return checked(std::move(record), digester);
}

std::string encode_log(const LogSpan &log, Digester &digester) {
  std::string record;
  append(record, log.number);
  append(record, log.first);
  append(record, log.last);
  return checked(std::move(record), digester);
}

std::string encode(const MarkContent &content, Digester &digester) {
  std::string bytes(magic_of_form_2);
  const auto place = [&](std::size_t offset, const std::string &record) {
    bytes.resize(offset);
    bytes += record;
  };
  place(state_at, encode_state(content, digester));
  place(sequence_at, encode_sequence(content.sequence, digester));
  for (std::size_t at = 0; at < content.complete.size(); ++at)
    place(logs_at + at * log_bytes, encode_log(content.complete[at], digester));
  bytes.resize(mark_bytes);
  return bytes;
}

// Nothing where the bytes are none of this form.
std::optional<MarkContent> decode(BytesView bytes, Digester &digester) {
  const bool is_whole = bytes.size() == mark_bytes && bytes.substr(state_at).starts_with(magic) &&
                        is_checked(bytes, state_at, state_bytes, digester) &&
                        is_checked(bytes, sequence_at, word_bytes, digester);
  if (!is_whole) return std::nullopt;
  MarkContent content;
  std::size_t at = state_at + magic.size();
  content.identity = *StoreIdentity::from(bytes.substr(at, StoreIdentity::size));
  at += StoreIdentity::size;
  content.boot = number_at(bytes, at);
  content.newest = {.number = number_at(bytes, at + word_bytes), .first = number_at(bytes, at + 2 * word_bytes)};
  content.boot_log = number_at(bytes, at + 3 * word_bytes);
  content.sequence = number_at(bytes, sequence_at);
  for (at = logs_at; at < mark_bytes; at += log_bytes) {
    if (bytes.substr(at, log_bytes).find_first_not_of('\0') == BytesView::npos) continue; // none
    if (!is_checked(bytes, at, 3 * word_bytes, digester)) return std::nullopt;
    content.complete.push_back({.number = number_at(bytes, at),
                                .first = number_at(bytes, at + word_bytes),
                                .last = number_at(bytes, at + 2 * word_bytes)});
  }
  return content;
}

std::optional<MarkContent> decode_older(BytesView bytes) {
  const bool is_first = bytes.starts_with(magic_of_form_1) && bytes.size() == bytes_of_form_1;
  const bool is_second = bytes.starts_with(magic_of_form_2) && bytes.size() == bytes_of_form_2;
  if (!is_first && !is_second) return std::nullopt;
  MarkContent content;
  content.older = true;
  content.sequence = number_at(bytes, magic.size());
  for (std::size_t at = logs_at_of_form_2; is_second && at < bytes_of_form_2; at += 2 * word_bytes) {
    const LogFile log{.number = number_at(bytes, at), .bytes = number_at(bytes, at + word_bytes)};
    if (log.number != 0) content.older_logs.push_back(log);
  }
  return content;
}

bool write_at(const Descriptor &file, const std::string &bytes, std::size_t offset) {
  return ::pwrite(file.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes.size());
}

// Written whole under another name first, so that a file of this name is always a whole one.
Result<Descriptor> make_file(const std::filesystem::path &directory, std::string_view name, const std::string &bytes) {
  const auto draft = directory / (std::string(name) + ".new");
  Descriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return tl::unexpected(system_error(draft, "create"));
  if (!write_at(file, bytes, 0) || ::fsync(file.number()) != 0 ||
      ::rename(draft.c_str(), (directory / name).c_str()) != 0) {
    return tl::unexpected(system_error(draft, "write"));
  }
  if (auto synced = sync_directory(directory); !synced) return tl::unexpected(synced.error());
  return file;
}

Error no_mark(const std::filesystem::path &path) {
  return {.code = ErrorCode::corrupt,
          .concerns = path.string(),
          .cause = "this is no durable mark, or it is damaged",
          .remedy =
              "restore it with the database it belongs to; or open with --accept-loss, which gives up the check for "
              "lost rows once"};
}

} // namespace

DurableMark::DurableMark(std::filesystem::path directory, std::string_view name, Descriptor file, MarkContent content)
    : directory_(std::move(directory)), name_(name), file_(std::move(file)), content_(std::move(content)) {}

DurableMark::DurableMark(DurableMark &&other) noexcept
    : directory_(std::move(other.directory_)), name_(other.name_), file_(std::move(other.file_)),
      content_(std::move(other.content_)), lagging_(std::move(other.lagging_)), digester_(std::move(other.digester_)) {}

Result<DurableMark> DurableMark::create(const std::filesystem::path &directory, std::string_view name,
                                        MarkContent content) {
  Digester digester;
  auto file = make_file(directory, name, encode(content, digester));
  if (!file) return tl::unexpected(file.error());
  return DurableMark(directory, name, std::move(*file), std::move(content));
}

Result<DurableMark> DurableMark::open(const std::filesystem::path &directory, std::string_view name, bool read_only) {
  const auto path = directory / name;
  Descriptor file(::open(path.c_str(), (read_only ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) return tl::unexpected(system_error(path, "open"));
  std::string bytes(mark_bytes + 1, '\0');
  const ssize_t size = ::pread(file.number(), bytes.data(), bytes.size(), 0);
  if (size < 0) return tl::unexpected(system_error(path, "read"));
  bytes.resize(static_cast<std::size_t>(size));
  Digester digester;
  auto content = decode(bytes, digester);
  if (!content) content = decode_older(bytes);
  if (!content) return tl::unexpected(no_mark(path));
  return DurableMark(directory, name, std::move(file), std::move(*content));
}

MarkContent DurableMark::content() const {
  const std::scoped_lock lock(mutex_);
  return content_;
}

std::uint64_t DurableMark::sequence() const {
  const std::scoped_lock lock(mutex_);
  return content_.sequence;
}

void DurableMark::advance(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (sequence <= content_.sequence) return;
  if (!write_at(file_, encode_sequence(sequence, digester_), sequence_at)) return;
  content_.sequence = sequence;
  if (!lagging_.empty()) raise_complete_logs();
}

// Not by `replace`: this runs between two commits, which would wait for its syncs.
void DurableMark::begin_log(std::uint64_t number, std::uint64_t first) {
  const std::scoped_lock lock(mutex_);
  if (number <= content_.newest.number) return;
  auto &complete = content_.complete;
  std::size_t slot = complete.size();
  if (slot < logs_max) {
    complete.emplace_back();
  } else { // the oldest gives way
    const auto oldest =
        std::min_element(complete.begin(), complete.end(),
                         [](const LogSpan &left, const LogSpan &right) { return left.number < right.number; });
    slot = static_cast<std::size_t>(oldest - complete.begin());
    std::erase_if(lagging_, [&](const Lagging &log) { return log.slot == slot; });
  }
  complete[slot] = {
      .number = content_.newest.number, .first = content_.newest.first, .last = content_.newest.first - 1};
  lagging_.push_back({.slot = slot, .end = first - 1});
  content_.newest = {.number = number, .first = first};
  raise_complete_logs();
  write_state();
}

void DurableMark::raise_complete_logs() {
  std::erase_if(lagging_, [&](const Lagging &log) {
    LogSpan &span = content_.complete[log.slot];
    const std::uint64_t last = std::min(content_.sequence, log.end);
    if (last >= span.first && last > span.last) {
      span.last = last;
      write_log(log.slot);
    }
    return content_.sequence >= log.end;
  });
}

void DurableMark::write_log(std::size_t slot) {
  write_at(file_, encode_log(content_.complete[slot], digester_), logs_at + slot * log_bytes);
}

bool DurableMark::write_state() {
  return write_at(file_, encode_state(content_, digester_), state_at);
}

Result<void> DurableMark::replace(MarkContent content) {
  const std::scoped_lock lock(mutex_);
  auto file = make_file(directory_, name_, encode(content, digester_));
  if (!file) return tl::unexpected(file.error());
  file_ = std::move(*file);
  content_ = std::move(content);
  lagging_.clear();
  return {};
}

Result<void> DurableMark::adopt(const StoreIdentity &identity) {
  const std::scoped_lock lock(mutex_);
  if (content_.identity == identity) return {};
  content_.identity = identity;
  if (!write_state() || ::fdatasync(file_.number()) != 0)
    return tl::unexpected(system_error(directory_ / name_, "write"));
  return {};
}

void DurableMark::sync() {
  ::fdatasync(file_.number());
}

} // namespace onced::rocks
