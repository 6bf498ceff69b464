#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/messagepack.hpp"
#include "onced/bytes.hpp"
#include "onced/clock.hpp"
#include "onced/ids.hpp"
#include "onced/outcome.hpp"
#include "onced/store.hpp"

// The messages of docs/protocol.md as values: encoding and decoding, no sockets.
namespace onced::wire {

// --- To the jobs socket -------------------------------------------------------------------------------------------

// One job in a batch.
struct BatchEntry {
  Sequence sequence{0};
  Tag tag;
  std::uint32_t attempt = 0;
  WallTime issued_at{};
  BytesView job; // opaque to the framing
};

struct Batch {
  SenderId sender;
  std::vector<BatchEntry> entries;
};

enum class Framing : std::uint8_t {
  batch,       // `Batch` is filled
  bare_job,    // a map: the message is one job, and no reply is wanted
  unsupported, // a batch of another version; `Batch::sender` is filled
  malformed,   // anything else
};

// Why a whole message is no message of ours (docs/protocol.md, Defects). Names beside those of JobDefect.
inline constexpr std::string_view message_malformed = "message_malformed";
inline constexpr std::string_view message_multipart = "message_multipart";

// `batch` keeps its memory from message to message. Views in it point into `message`.
[[nodiscard]] Framing decode_batch(BytesView message, Batch &batch);

// How many deliveries a message will turn out to have at most, from its first bytes alone.
[[nodiscard]] std::size_t announced_deliveries(BytesView message);

// Appends a batch to `out`.
void encode_batch(const SenderId &sender, std::span<const BatchEntry> entries, Bytes &out);

// --- To the replies socket ----------------------------------------------------------------------------------------

// What a peer says there: the hello of a sender, or a query.
struct PeerMessage {
  SenderId sender;
  std::optional<BytesView> request; // a query; none: a hello
};

enum class PeerFraming : std::uint8_t { known, unsupported, malformed };

[[nodiscard]] PeerFraming decode_peer_message(BytesView frame, PeerMessage &message);

[[nodiscard]] Bytes encode_hello(const SenderId &sender);
[[nodiscard]] Bytes encode_query(const SenderId &sender, BytesView request);

// --- From the replies socket --------------------------------------------------------------------------------------

struct Greeting {
  BootId boot;
  Durability durability = Durability::fsync;
  std::uint64_t message_bytes_max = 0;
  std::uint64_t deliveries_per_message_max = 0;
  std::optional<WallTime> horizon; // nothing: the worker keeps every key
};

// How a worker is, as it tells whoever says hello: by a greeting where it is `ok`, else by a notice, at which a sender
// waits. The names never change.
enum class WorkerState : std::uint8_t {
  ok,
  opening,     // its store is being opened
  full,        // its store has found no room on the disk, and is opened again with backoff
  unavailable, // its store has failed otherwise, and is opened again with backoff
  draining,    // it reads no more jobs, and ends
};
[[nodiscard]] std::string_view name_of(WorkerState state);
[[nodiscard]] std::optional<WorkerState> worker_state_of(std::string_view name);

struct Reply {
  Sequence sequence{0};
  Tag tag;
  Outcome outcome = Outcome::busy;
  BytesView result; // canonical MessagePack; empty: none
  BytesView detail; // empty: none
};

struct Replies {
  BootId boot;
  Durability durability = Durability::fsync;
  std::vector<Reply> replies;
};

enum class WorkerFraming : std::uint8_t { greeting, replies, unsupported, answer, malformed };

// One message of a worker; only the member that the framing names is filled. Views point into the frame.
struct WorkerMessage {
  Greeting greeting;
  Replies replies;
  std::vector<std::uint64_t> versions; // that the worker speaks; greeting and unsupported
  BytesView answer;
};

class WorkerMessageDecoder {
public:
  [[nodiscard]] WorkerFraming decode(BytesView frame, WorkerMessage &message);

private:
  std::vector<messagepack::Token> tokens_;
};

[[nodiscard]] Bytes encode_greeting(const BootId &boot, Durability durability);
[[nodiscard]] Bytes encode_unsupported();
[[nodiscard]] Bytes encode_answer(BytesView answer);
// A notice is an answer, since every sender of this version passes over answers.
[[nodiscard]] Bytes encode_notice(WorkerState state);
// What a notice says; nothing where the answer is another, or names a state that is not known here.
[[nodiscard]] std::optional<WorkerState> state_in(BytesView answer);

// Replies to one sender, in as many frames as the size of a message asks for.
class RepliesEncoder {
public:
  RepliesEncoder(const BootId &boot, Durability durability) : boot_(boot), durability_(durability) {}

  void add(const Reply &reply);
  // The frames of what was added; empty again afterwards.
  [[nodiscard]] std::vector<Bytes> take();

private:
  void finish_frame();

  BootId boot_;
  Durability durability_;
  Bytes entries_;
  std::size_t count_ = 0;
  std::vector<Bytes> frames_;
};

} // namespace onced::wire
