#include <algorithm>
#include <limits>
#include <string_view>

#include "onced/limits.hpp"
#include "onced/version.hpp"
#include "wire/messages.hpp"
#include "wire/sequence_visitor.hpp"

namespace onced::wire {
namespace {

bool is_map_head(char byte) {
  const auto head = static_cast<unsigned char>(byte);
  return (head & 0xF0U) == 0x80U || head == 0xDEU || head == 0xDFU;
}

// [1, sender_id, [[sequence, tag, attempt, issued_at_us, job], ...]], and what another version's begins with.
class BatchGrammar {
public:
  explicit BatchGrammar(Batch &batch) : batch_(batch) {}

  [[nodiscard]] bool complete() const { return next_ == Next::entry && batch_.entries.size() == entries_; }
  // It is of another version, and the sender is known; the rest is not looked at.
  [[nodiscard]] bool unsupported() const { return unsupported_; }

  bool array(std::uint32_t size) {
    switch (next_) {
    case Next::batch:
      elements_ = size;
      return size >= 2 && go_on(Next::version);
    case Next::entries:
      entries_ = size;
      return size <= limits::deliveries_per_message_max && go_on(Next::entry);
    case Next::entry:
      return size == 5 && go_on(Next::sequence);
    default:
      return false;
    }
  }

  bool positive(std::uint64_t value) {
    switch (next_) {
    case Next::version:
      other_version_ = value != wire_version;
      return (other_version_ || elements_ == 3) && go_on(Next::sender);
    case Next::sequence:
      entry_.sequence = Sequence{value};
      return go_on(Next::tag);
    case Next::attempt:
      entry_.attempt = static_cast<std::uint32_t>(value);
      return value <= std::numeric_limits<std::uint32_t>::max() && go_on(Next::issued_at);
    case Next::issued_at:
      entry_.issued_at = WallTime{std::chrono::microseconds{static_cast<std::int64_t>(value)}};
      return value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) && go_on(Next::job);
    default:
      return false;
    }
  }

  bool binary(BytesView bytes) {
    switch (next_) {
    case Next::sender:
      if (!take(SenderId::from(bytes), batch_.sender)) return false;
      unsupported_ = other_version_;
      return !unsupported_ && go_on(Next::entries);
    case Next::tag:
      return take(Tag::from(bytes), entry_.tag) && go_on(Next::attempt);
    case Next::job:
      entry_.job = bytes;
      batch_.entries.push_back(entry_);
      return go_on(Next::entry);
    default:
      return false;
    }
  }

  static bool string(BytesView) { return false; }
  static bool nil() { return false; }

private:
  enum class Next : std::uint8_t { batch, version, sender, entries, entry, sequence, tag, attempt, issued_at, job };

  bool go_on(Next next) {
    next_ = next;
    return true;
  }

  Batch &batch_;
  BatchEntry entry_;
  Next next_ = Next::batch;
  std::uint32_t elements_ = 0;
  std::uint32_t entries_ = 0;
  bool other_version_ = false;
  bool unsupported_ = false;
};

} // namespace

Framing decode_batch(BytesView message, Batch &batch) {
  if (!message.empty() && is_map_head(message.front())) return Framing::bare_job;
  batch.entries.clear();
  BatchGrammar grammar(batch);
  const bool followed = follow(message, grammar);
  if (grammar.unsupported()) return Framing::unsupported;
  return followed && grammar.complete() ? Framing::batch : Framing::malformed;
}

std::size_t announced_deliveries(BytesView message) {
  const auto at = [&](std::size_t index) {
    return static_cast<std::size_t>(static_cast<unsigned char>(message[index]));
  };
  const bool is_array = !message.empty() && ((at(0) & 0xF0U) == 0x90U || at(0) == 0xDCU || at(0) == 0xDDU);
  if (!is_array) return 1;
  constexpr std::string_view beginning("\x93\x01\xC4\x10", 4); // [1, a sender id of 16 bytes, then the entries
  constexpr std::size_t head = beginning.size() + 16;
  if (message.starts_with(beginning) && message.size() > head) {
    if ((at(head) & 0xF0U) == 0x90U) return at(head) & 0x0FU;
    if (at(head) == 0xDCU && message.size() >= head + 3)
      return std::min(at(head + 1) << 8U | at(head + 2), limits::deliveries_per_message_max);
  }
  constexpr std::size_t delivery_bytes_min = 16;
  return std::min(message.size() / delivery_bytes_min + 1, limits::deliveries_per_message_max);
}

} // namespace onced::wire
