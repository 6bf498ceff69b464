#include "wire/messages.hpp"

#include <algorithm>
#include <array>
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

// [version, sender_id, request]
constexpr std::size_t peer_tokens_max = 4;

// By WorkerState.
constexpr std::array<std::string_view, 5> worker_states{"ok", "opening", "full", "unavailable", "draining"};
constexpr std::string_view state_name = "state";
// A notice, with some more that a later release may say in it.
constexpr std::size_t notice_tokens_max = 64;

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

Writer begin_worker_message(Bytes &out, std::size_t elements, std::string_view kind) {
  Writer writer(out);
  writer.array(elements).positive(wire_version).string(kind);
  return writer;
}

} // namespace

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

std::string_view name_of(WorkerState state) {
  return worker_states[static_cast<std::size_t>(state)];
}

std::optional<WorkerState> worker_state_of(std::string_view name) {
  const auto *const found = std::find(worker_states.begin(), worker_states.end(), name);
  if (found == worker_states.end()) return std::nullopt;
  return static_cast<WorkerState>(found - worker_states.begin());
}

Bytes encode_notice(WorkerState state) {
  Bytes answer;
  Writer(answer).map(1).string(state_name).string(name_of(state));
  return encode_answer(answer);
}

std::optional<WorkerState> state_in(BytesView answer) {
  std::vector<Token> tokens;
  if (!messagepack::tokenize(answer, tokens, notice_tokens_max)) return std::nullopt;
  TokenReader reader(tokens);
  std::optional<WorkerState> state;
  for (std::uint64_t left = reader.map(); left > 0 && reader.ok(); --left) {
    if (reader.string() == state_name) {
      state = worker_state_of(reader.string());
    } else {
      reader.skip();
    }
  }
  return reader.at_end() ? state : std::nullopt;
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
