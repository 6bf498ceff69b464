// Any bytes as a message to a worker, as what a peer says and as what a worker says. Verifies that what is read lies
// inside the bytes and is the same once encoded and read again, that not one byte may follow a message, and that a
// decoder that has read other messages reads as a new one does. Not: the jobs inside (target `job`), sockets.
#include "fuzz.hpp"
#include "onced/limits.hpp"
#include "wire/messages.hpp"

namespace onced::fuzz {
namespace {

using wire::Framing;
using wire::PeerFraming;
using wire::WorkerFraming;

// Read by decoders that live as long as the process, as a worker's and a sender's do.
class Envelope {
public:
  void read_batch(BytesView message);
  void read_worker_message(BytesView frame);

private:
  wire::Batch batch_;
  wire::WorkerMessageDecoder worker_decoder_;
  wire::WorkerMessage message_;
};

Framing framing_of(BytesView message) {
  wire::Batch batch;
  return wire::decode_batch(message, batch);
}

void check_batch(BytesView message, const wire::Batch &batch) {
  require(batch.entries.size() <= limits::deliveries_per_message_max, "a batch holds at most the limit of deliveries");
  for (const wire::BatchEntry &entry : batch.entries) {
    require(lies_inside(entry.job, message), "a job lies inside its message");
    require(entry.issued_at >= WallTime{}, "no job is issued before 1970");
  }
  Bytes again;
  wire::encode_batch(batch.sender, batch.entries, again);
  require(is_same_value(message, again), "a batch encoded again is the same");
  require(framing_of(again) == Framing::batch, "an encoded batch is a batch");
  require(framing_of(Bytes(message) + '\0') == Framing::malformed, "nothing may follow a batch");
}

void Envelope::read_batch(BytesView message) {
  const Framing framing = wire::decode_batch(message, batch_);
  require(framing == framing_of(message), "what was read before changes no framing of a batch");
  const unsigned head = message.empty() ? 0U : static_cast<std::uint8_t>(message.front());
  const bool is_map = (head >= 0x80 && head <= 0x8F) || head == 0xDE || head == 0xDF;
  require((framing == Framing::bare_job) == is_map, "a map is a bare job and nothing else is one");
  if (framing == Framing::batch) check_batch(message, batch_);
}

PeerFraming peer_framing_of(BytesView frame) {
  wire::PeerMessage message;
  return wire::decode_peer_message(frame, message);
}

void read_peer_message(BytesView frame) {
  wire::PeerMessage message;
  if (wire::decode_peer_message(frame, message) != PeerFraming::known) return;
  require(frame.size() <= limits::query_bytes_max, "what a peer says is short");
  const Bytes again =
      message.request ? wire::encode_query(message.sender, *message.request) : wire::encode_hello(message.sender);
  require(is_same_value(frame, again), "what a peer says is the same once encoded again");
  require(peer_framing_of(again) == PeerFraming::known, "an encoded hello or query is one");
  require(peer_framing_of(Bytes(frame) + '\0') == PeerFraming::malformed, "nothing may follow what a peer says");
}

WorkerFraming worker_framing_of(BytesView frame, wire::WorkerMessage &message) {
  return wire::WorkerMessageDecoder().decode(frame, message);
}

void check_replies(BytesView frame, const wire::Replies &replies) {
  wire::RepliesEncoder encoder(replies.boot, replies.durability);
  for (const wire::Reply &reply : replies.replies) {
    require(lies_inside(reply.result, frame) && lies_inside(reply.detail, frame), "a reply lies inside its frame");
    encoder.add(reply);
  }
  const std::vector<Bytes> frames = encoder.take();
  require(frames.size() == (replies.replies.empty() ? 0U : 1U), "replies that came in one frame fit one");
  if (!frames.empty()) require(is_same_value(frame, frames.front()), "replies encoded again are the same");
}

void check_greeting(const wire::Greeting &greeting) {
  wire::WorkerMessage again;
  const Bytes ours = wire::encode_greeting(greeting.boot, greeting.durability);
  require(worker_framing_of(ours, again) == WorkerFraming::greeting, "an encoded greeting is one");
  require(again.greeting.boot == greeting.boot && again.greeting.durability == greeting.durability,
          "a greeting encoded again is the same");
}

void Envelope::read_worker_message(BytesView frame) {
  const WorkerFraming framing = worker_decoder_.decode(frame, message_);
  wire::WorkerMessage fresh;
  require(framing == worker_framing_of(frame, fresh), "what was read before changes no framing of a worker's message");
  if (framing == WorkerFraming::malformed) return;
  require(worker_framing_of(Bytes(frame) + '\0', fresh) == WorkerFraming::malformed,
          "nothing may follow what a worker says");
  if (framing == WorkerFraming::greeting) check_greeting(message_.greeting);
  if (framing == WorkerFraming::replies) check_replies(frame, message_.replies);
  if (framing != WorkerFraming::answer) return;
  require(lies_inside(message_.answer, frame), "an answer lies inside its frame");
  require(is_same_value(frame, wire::encode_answer(message_.answer)), "an answer encoded again is the same");
}

} // namespace
} // namespace onced::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace onced::fuzz;
  static Envelope envelope;
  const onced::BytesView bytes = view_of(data, size);
  envelope.read_batch(bytes);
  read_peer_message(bytes);
  envelope.read_worker_message(bytes);
  return 0;
}
