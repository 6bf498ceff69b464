#include <limits>

#include "onced/limits.hpp"
#include "onced/version.hpp"
#include "wire/messages.hpp"
#include "wire/sequence_visitor.hpp"

namespace onced::wire {
namespace {

using messagepack::TokenReader;

// A greeting with some more versions and limits than there are today, or an answer.
constexpr std::size_t tokens_max = 256;

// [1, "replies", boot, durability, [[sequence, tag, outcome, result or nil, detail or nil], ...]]
class RepliesGrammar {
public:
  explicit RepliesGrammar(Replies &replies) : replies_(replies) { replies_.replies.clear(); }

  [[nodiscard]] bool complete() const { return next_ == Next::reply && replies_.replies.size() == count_; }

  bool array(std::uint32_t size) {
    switch (next_) {
    case Next::message:
      return size == 5 && go_on(Next::version);
    case Next::replies:
      count_ = size;
      return go_on(Next::reply);
    case Next::reply:
      return size == 5 && go_on(Next::sequence);
    default:
      return false;
    }
  }

  bool positive(std::uint64_t value) {
    switch (next_) {
    case Next::version:
      return value == wire_version && go_on(Next::kind);
    case Next::sequence:
      reply_.sequence = Sequence{value};
      return go_on(Next::tag);
    case Next::outcome:
      return take(outcome_of_code(value), reply_.outcome) && go_on(Next::result);
    default:
      return false;
    }
  }

  bool binary(BytesView bytes) {
    switch (next_) {
    case Next::boot:
      return take(BootId::from(bytes), replies_.boot) && go_on(Next::durability);
    case Next::tag:
      return take(Tag::from(bytes), reply_.tag) && go_on(Next::outcome);
    case Next::result:
      reply_.result = bytes;
      return go_on(Next::detail);
    default:
      return false;
    }
  }

  bool string(BytesView text) {
    switch (next_) {
    case Next::kind:
      return text == "replies" && go_on(Next::boot);
    case Next::durability:
      return take(durability_of(text), replies_.durability) && go_on(Next::replies);
    case Next::detail:
      return finish_reply(text);
    default:
      return false;
    }
  }

  bool nil() {
    if (next_ == Next::detail) return finish_reply({});
    reply_.result = {};
    return next_ == Next::result && go_on(Next::detail);
  }

private:
  enum class Next : std::uint8_t {
    message,
    version,
    kind,
    boot,
    durability,
    replies,
    reply,
    sequence,
    tag,
    outcome,
    result,
    detail
  };

  bool go_on(Next next) {
    next_ = next;
    return true;
  }
  bool finish_reply(BytesView detail) {
    reply_.detail = detail;
    replies_.replies.push_back(reply_);
    return go_on(Next::reply);
  }

  Replies &replies_;
  Reply reply_;
  Next next_ = Next::message;
  std::uint32_t count_ = 0;
};

// Reads an opaque id of a fixed size.
BootId read_boot(TokenReader &reader) {
  const auto boot = BootId::from(reader.binary());
  reader.require(boot.has_value());
  return boot.value_or(BootId{});
}

Durability read_durability(TokenReader &reader) {
  const auto durability = durability_of(reader.string());
  reader.require(durability.has_value());
  return durability.value_or(Durability::fsync);
}

std::vector<std::uint64_t> read_versions(TokenReader &reader) {
  std::vector<std::uint64_t> versions;
  for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left)
    versions.push_back(reader.positive());
  return versions;
}

// A map of names and numbers; unknown names are for later versions.
void read_limits(TokenReader &reader, Greeting &greeting) {
  for (std::uint64_t left = reader.map(); left > 0 && reader.ok(); --left) {
    const BytesView name = reader.string();
    if (name == "message_bytes_max") {
      greeting.message_bytes_max = reader.positive();
    } else if (name == "deliveries_per_message_max") {
      greeting.deliveries_per_message_max = reader.positive();
    } else if (name == "horizon_us") {
      const std::uint64_t horizon_us = reader.positive();
      reader.require(horizon_us <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
      greeting.horizon = WallTime{std::chrono::microseconds{static_cast<std::int64_t>(horizon_us)}};
    } else {
      reader.skip();
    }
  }
}

} // namespace

WorkerFraming WorkerMessageDecoder::decode(BytesView frame, WorkerMessage &message) {
  RepliesGrammar replies(message.replies);
  if (follow(frame, replies) && replies.complete()) return WorkerFraming::replies;

  if (!messagepack::tokenize(frame, tokens_, tokens_max)) return WorkerFraming::malformed;
  TokenReader reader(tokens_);
  const std::uint64_t elements = reader.array();
  const std::uint64_t version = reader.positive();
  const BytesView kind = reader.string();
  if (kind == "unsupported") { // the one message whose form is the same in every version
    message.versions = read_versions(reader);
    return reader.at_end() && elements == 3 ? WorkerFraming::unsupported : WorkerFraming::malformed;
  }
  reader.require(version == wire_version);

  auto framing = WorkerFraming::malformed;
  if (kind == "greeting" && reader.require(elements == 6)) {
    framing = WorkerFraming::greeting;
    message.greeting = {};
    message.greeting.boot = read_boot(reader);
    message.greeting.durability = read_durability(reader);
    message.versions = read_versions(reader);
    read_limits(reader, message.greeting);
  } else if (kind == "answer" && reader.require(elements == 3)) {
    framing = WorkerFraming::answer;
    message.answer = reader.binary();
  }
  return reader.at_end() ? framing : WorkerFraming::malformed;
}

} // namespace onced::wire
