#include "output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/utf8.hpp"

namespace onced::tools {
namespace {

// One write of this size costs little a line; more gains nothing.
constexpr std::size_t waiting_bytes_max = 64 * 1024;

struct Span {
  char32_t first;
  char32_t last;
};

// Characters that say something to a terminal instead of to its reader.
constexpr std::array<Span, 6> hidden{
    {{0x00, 0x1F}, {0x7F, 0x9F}, {0x061C, 0x061C}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}}};

bool is_hidden(char32_t character) {
  return std::any_of(hidden.begin(), hidden.end(),
                     [=](Span span) { return character >= span.first && character <= span.last; });
}

// Whether a hidden character may begin so: they are of one byte, or begin with one of three.
bool may_begin_hidden(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value < 0x20 || value == 0x7F || value == 0xC2 || value == 0xD8 || value == 0xE2;
}

// The character of one to three bytes at the beginning of well-formed UTF-8.
char32_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<char32_t>(static_cast<unsigned char>(text[at])); };
  if (byte(0) < 0x80) return byte(0);
  if (byte(0) < 0xE0) return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
}

} // namespace

std::string visible(std::string_view text) {
  if (!utf8::valid(text)) return visible(utf8::repaired(text, 3 * text.size())); // a byte becomes three at most
  std::string shown;
  for (;;) {
    const auto next = std::find_if(text.begin(), text.end(), may_begin_hidden);
    const auto plain = static_cast<std::size_t>(next - text.begin());
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return shown;
    const char32_t character = character_at(text);
    const std::size_t bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : 3;
    if (is_hidden(character)) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
}

void Output::line(const Json &object) {
  std::string text = visible(dump(object));
  text += '\n';
  this->text(text);
}

void Output::text(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  append(text);
}

void Output::append(std::string_view text) {
  if (failure_ != 0) return;
  waiting_ += text;
  if (waiting_.size() >= waiting_bytes_max) write_all();
}

// In pieces that a pipe with room takes without blocking.
void Output::write_all() {
  std::size_t written = 0;
  while (failure_ == 0 && written < waiting_.size()) {
    if (!wait_for_room()) {
      failure_ = ETIMEDOUT;
      break;
    }
    const std::size_t bytes = std::min<std::size_t>(waiting_.size() - written, PIPE_BUF);
    const ssize_t count = ::write(descriptor_, waiting_.data() + written, bytes);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
    } else if (errno != EINTR && errno != EAGAIN) { // someone may have made the descriptor non-blocking
      failure_ = errno;
    }
  }
  waiting_.clear();
}

// False: it takes nothing, and the command is to end.
bool Output::wait_for_room() const {
  std::array<pollfd, 2> ready{{{descriptor_, POLLOUT, 0}, {stop_, POLLIN, 0}}};
  while (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
  }
  if (ready[0].revents != 0) return true; // be it an error, which the write tells
  return ::poll(ready.data(), 1, static_cast<int>(output_patience.count())) != 0;
}

Result<void> Output::flush() {
  const std::scoped_lock lock(mutex_);
  write_all();
  if (failure_ == 0) return {};
  return tl::unexpected(Error{ErrorCode::store_unavailable, "standard output",
                              std::generic_category().message(failure_),
                              "what was printed is incomplete; run it again with an output that takes it"});
}

ExitCode finish(Output &output, ExitCode code) {
  const auto flushed = output.flush();
  return flushed ? code : report(flushed.error());
}

bool Output::failed() const {
  const std::scoped_lock lock(mutex_);
  return failure_ != 0;
}

} // namespace onced::tools
