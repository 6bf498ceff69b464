#include "wire/messages.hpp"

#include <limits>
#include <utility>

#include "onced/limits.hpp"
#include "onced/version.hpp"

namespace onced::wire {
namespace {

using messagepack::Kind;
using messagepack::Token;
using messagepack::TokenReader;
using messagepack::Writer;

// A batch is 3 tokens and the list's head, then 6 for each entry.
constexpr std::size_t batch_tokens_max = 4 + 6 * limits::deliveries_per_message_max;
// A worker's message holds no more replies than fit a message at 15 bytes each, the least that a reply has.
constexpr std::size_t worker_tokens_max = 16 + 6 * (limits::message_bytes_max / 15);
// [version, sender_id, request]
constexpr std::size_t peer_tokens_max = 4;

// What every version's messages to a worker begin with: [version, sender_id. Read also where the rest makes no sense.
bool begins_like_another_version(const std::vector<Token> &tokens, SenderId &sender) {
  if (tokens.size() < 3 || tokens[0].kind != Kind::array || tokens[0].number < 2) return false;
  if (tokens[1].kind != Kind::positive || tokens[1].number == wire_version) return false;
  if (tokens[2].kind != Kind::binary) return false;
  const auto id = SenderId::from(tokens[2].bytes);
  if (id) sender = *id;
  return id.has_value();
}

// Reads an opaque id of a fixed size.
template <class Id> Id read_id(TokenReader &reader) {
  const auto id = Id::from(reader.binary());
  reader.require(id.has_value());
  return id.value_or(Id{});
}

bool is_map_head(char byte) {
  const auto head = static_cast<unsigned char>(byte);
  return (head & 0xF0U) == 0x80U || head == 0xDEU || head == 0xDFU;
}

BatchEntry read_entry(TokenReader &reader) {
  BatchEntry entry;
  reader.array(5);
  entry.sequence = Sequence{reader.positive()};
  entry.tag = read_id<Tag>(reader);
  const std::uint64_t attempt = reader.positive();
  reader.require(attempt <= std::numeric_limits<std::uint32_t>::max());
  entry.attempt = static_cast<std::uint32_t>(attempt);
  const std::uint64_t issued_at_us = reader.positive();
  reader.require(issued_at_us <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  entry.issued_at = WallTime{std::chrono::microseconds{static_cast<std::int64_t>(issued_at_us)}};
  entry.job = reader.binary();
  return entry;
}

Durability read_durability(TokenReader &reader) {
  const auto durability = durability_of(reader.string());
  reader.require(durability.has_value());
  return durability.value_or(Durability::fsync);
}

Reply read_reply(TokenReader &reader) {
  Reply reply;
  reader.array(5);
  reply.sequence = Sequence{reader.positive()};
  reply.tag = read_id<Tag>(reader);
  const auto outcome = outcome_of_code(reader.positive());
  reader.require(outcome.has_value());
  reply.outcome = outcome.value_or(Outcome::busy);
  reply.result = reader.binary_or_nil().value_or(BytesView{});
  reply.detail = reader.string_or_nil().value_or(BytesView{});
  return reply;
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
    } else {
      reader.skip();
    }
  }
}

Writer begin_worker_message(Bytes &out, std::size_t elements, std::string_view kind) {
  Writer writer(out);
  writer.array(elements).positive(wire_version).string(kind);
  return writer;
}

} // namespace

Framing BatchDecoder::decode(BytesView message, Batch &batch) {
  if (!message.empty() && is_map_head(message.front())) return Framing::bare_job;
  batch.entries.clear();
  const bool whole = messagepack::tokenize(message, tokens_, batch_tokens_max);
  if (begins_like_another_version(tokens_, batch.sender)) return Framing::unsupported;
  if (!whole) return Framing::malformed;

  TokenReader reader(tokens_);
  reader.array(3);
  reader.require(reader.positive() == wire_version);
  batch.sender = read_id<SenderId>(reader);
  const std::uint64_t entries = reader.array();
  if (!reader.require(entries <= limits::deliveries_per_message_max)) return Framing::malformed;
  for (std::uint64_t left = entries; left > 0 && reader.ok(); --left)
    batch.entries.push_back(read_entry(reader));
  return reader.at_end() ? Framing::batch : Framing::malformed;
}

void encode_batch(const SenderId &sender, std::span<const BatchEntry> entries, Bytes &out) {
  Writer writer(out);
  writer.array(3).positive(wire_version).binary(sender.view()).array(entries.size());
  for (const BatchEntry &entry : entries) {
    writer.array(5)
        .positive(number_of(entry.sequence))
        .binary(entry.tag.view())
        .positive(entry.attempt)
        .positive(static_cast<std::uint64_t>(entry.issued_at.time_since_epoch().count()))
        .binary(entry.job);
  }
}

PeerFraming decode_peer_message(BytesView frame, PeerMessage &message) {
  std::vector<Token> tokens;
  const bool whole = messagepack::tokenize(frame, tokens, peer_tokens_max);
  if (begins_like_another_version(tokens, message.sender)) return PeerFraming::unsupported;
  if (!whole || frame.size() > limits::query_bytes_max) return PeerFraming::malformed;

  TokenReader reader(tokens);
  const std::uint64_t elements = reader.array();
  reader.require(elements == 2 || elements == 3);
  reader.require(reader.positive() == wire_version);
  message.sender = read_id<SenderId>(reader);
  message.request = elements == 3 ? std::optional(reader.binary()) : std::nullopt;
  return reader.at_end() ? PeerFraming::known : PeerFraming::malformed;
}

Bytes encode_hello(const SenderId &sender) {
  Bytes out;
  Writer(out).array(2).positive(wire_version).binary(sender.view());
  return out;
}

Bytes encode_query(const SenderId &sender, BytesView request) {
  Bytes out;
  Writer(out).array(3).positive(wire_version).binary(sender.view()).binary(request);
  return out;
}

WorkerFraming WorkerMessageDecoder::decode(BytesView frame, WorkerMessage &message) {
  if (!messagepack::tokenize(frame, tokens_, worker_tokens_max)) return WorkerFraming::malformed;
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
    message.greeting.boot = read_id<BootId>(reader);
    message.greeting.durability = read_durability(reader);
    message.versions = read_versions(reader);
    read_limits(reader, message.greeting);
  } else if (kind == "replies" && reader.require(elements == 5)) {
    framing = WorkerFraming::replies;
    message.replies.replies.clear();
    message.replies.boot = read_id<BootId>(reader);
    message.replies.durability = read_durability(reader);
    for (std::uint64_t left = reader.array(); left > 0 && reader.ok(); --left) {
      message.replies.replies.push_back(read_reply(reader));
    }
  } else if (kind == "answer" && reader.require(elements == 3)) {
    framing = WorkerFraming::answer;
    message.answer = reader.binary();
  }
  return reader.at_end() ? framing : WorkerFraming::malformed;
}

Bytes encode_greeting(const BootId &boot, Durability durability) {
  Bytes out;
  begin_worker_message(out, 6, "greeting")
      .binary(boot.view())
      .string(name_of(durability))
      .array(1)
      .positive(wire_version)
      .map(2)
      .string("message_bytes_max")
      .positive(limits::message_bytes_max)
      .string("deliveries_per_message_max")
      .positive(limits::deliveries_per_message_max);
  return out;
}

Bytes encode_unsupported() {
  Bytes out;
  begin_worker_message(out, 3, "unsupported").array(1).positive(wire_version);
  return out;
}

Bytes encode_answer(BytesView answer) {
  Bytes out;
  begin_worker_message(out, 3, "answer").binary(answer);
  return out;
}

void RepliesEncoder::add(const Reply &reply) {
  constexpr std::size_t reply_overhead_max = 64;
  const std::size_t bytes = reply.result.size() + reply.detail.size() + reply_overhead_max;
  if (count_ > 0 && entries_.size() + bytes + limits::envelope_bytes_max > limits::reply_frame_bytes_target)
    finish_frame();
  Writer writer(entries_);
  writer.array(5).positive(number_of(reply.sequence)).binary(reply.tag.view());
  writer.positive(static_cast<std::uint64_t>(reply.outcome));
  reply.result.empty() ? writer.nil() : writer.binary(reply.result);
  reply.detail.empty() ? writer.nil() : writer.string(reply.detail);
  ++count_;
}

std::vector<Bytes> RepliesEncoder::take() {
  if (count_ > 0) finish_frame();
  return std::exchange(frames_, {});
}

void RepliesEncoder::finish_frame() {
  Bytes frame;
  frame.reserve(entries_.size() + limits::envelope_bytes_max);
  begin_worker_message(frame, 5, "replies")
      .binary(boot_.view())
      .string(name_of(durability_))
      .array(count_)
      .raw(entries_);
  frames_.push_back(std::move(frame));
  entries_.clear();
  count_ = 0;
}

} // namespace onced::wire
