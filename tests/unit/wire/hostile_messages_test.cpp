// Bytes that no honest peer sends: cut short, extended, random, or claiming more than is there. Nothing may crash, take
// memory by claim, or be taken for a message. The decoders' memory itself is not measured here.
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "onced/random.hpp"
#include "support/seeds.hpp"
#include "support/store_harness.hpp"
#include "unit/wire/samples.hpp"
#include "wire/messages.hpp"

namespace onced::testing {
namespace {

using wire::Framing;
using wire::PeerFraming;
using wire::WorkerFraming;

// Decoders that live through all the bytes, as a worker's and a sender's do.
struct Decoders {
  wire::Batch batch;
  wire::WorkerMessageDecoder worker_decoder;
  wire::WorkerMessage worker_message;
  wire::PeerMessage peer_message;

  Framing batch_framing(BytesView bytes) { return wire::decode_batch(bytes, batch); }
  PeerFraming peer_framing(BytesView bytes) { return wire::decode_peer_message(bytes, peer_message); }
  WorkerFraming worker_framing(BytesView bytes) { return worker_decoder.decode(bytes, worker_message); }
};

TEST_CASE("a batch cut short at any byte is malformed") {
  Decoders decoders;
  const Bytes message = sample_batch();
  for (std::size_t size = 0; size < message.size(); ++size) {
    CAPTURE(size);
    const Bytes cut(message, 0, size); // of its own memory, so that a sanitizer sees a read beyond it
    CHECK(decoders.batch_framing(cut) == Framing::malformed);
  }
}

TEST_CASE("what a peer says cut short at any byte is malformed") {
  Decoders decoders;
  for (const auto &sample : sample_peer_messages()) {
    const std::string &name = sample.first;
    const Bytes &message = sample.second;
    for (std::size_t size = 0; size < message.size(); ++size) {
      CAPTURE(name);
      CAPTURE(size);
      CHECK(decoders.peer_framing(Bytes(message, 0, size)) == PeerFraming::malformed);
    }
  }
}

TEST_CASE("what a worker says cut short at any byte is malformed") {
  Decoders decoders;
  for (const auto &sample : sample_worker_messages()) {
    const std::string &name = sample.first;
    const Bytes &message = sample.second;
    for (std::size_t size = 0; size < message.size(); ++size) {
      CAPTURE(name);
      CAPTURE(size);
      CHECK(decoders.worker_framing(Bytes(message, 0, size)) == WorkerFraming::malformed);
    }
  }
}

TEST_CASE("trailing bytes make any message malformed") {
  Decoders decoders;
  for (const Bytes &tail : {Bytes(1, '\0'), Bytes("\xC0"), sample_batch()}) {
    CHECK(decoders.batch_framing(sample_batch() + tail) == Framing::malformed);
    for (const auto &[name, message] : sample_peer_messages())
      CHECK(decoders.peer_framing(message + tail) == PeerFraming::malformed);
    for (const auto &[name, message] : sample_worker_messages())
      CHECK(decoders.worker_framing(message + tail) == WorkerFraming::malformed);
  }
}

TEST_CASE("a few bytes that claim four billion elements are malformed at once") {
  const Bytes head = sample_batch().substr(0, 20); // [1, sender_id,
  const std::vector<Bytes> bombs{"\xDD\xFF\xFF\xFF\xFF",        "\xC6\xFF\xFF\xFF\xFF",
                                 "\xDB\xFF\xFF\xFF\xFF",        "\xC9\xFF\xFF\xFF\xFF\x01",
                                 head + "\xDD\xFF\xFF\xFF\xFF", head + "\x91\x95\x01\xC6\xFF\xFF\xFF\xFF"};
  Decoders decoders;
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < 1000; ++round) {
    for (const Bytes &bomb : bombs) {
      REQUIRE(decoders.batch_framing(bomb) == Framing::malformed);
      REQUIRE(decoders.peer_framing(bomb) == PeerFraming::malformed);
      REQUIRE(decoders.worker_framing(bomb) == WorkerFraming::malformed);
    }
  }
  // A millisecond each would already mean that the claim is believed; this takes microseconds.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(6));
}

TEST_CASE("a message of a million tiny values stops at the limit of tokens") {
  Bytes message = sample_batch().substr(0, 20);
  messagepack::Writer(message).array(1'000'000);
  message.append(1'000'000, '\xC0');
  Decoders decoders;
  CHECK(decoders.batch_framing(message) == Framing::malformed);
  CHECK(decoders.peer_framing(message) == PeerFraming::malformed);
}

TEST_CASE("arrays nested without end are malformed") {
  Decoders decoders;
  const Bytes nested(1'000'000, '\x91');
  CHECK(decoders.batch_framing(nested) == Framing::malformed);
  CHECK(decoders.peer_framing(nested) == PeerFraming::malformed);
  CHECK(decoders.worker_framing(nested) == WorkerFraming::malformed);
  Bytes in_limits; // a limit that holds a value nested beyond what is read
  messagepack::Writer writer(in_limits);
  writer.array(6).positive(1).string("greeting").binary(sample_boot().view()).string("fsync").array(0).map(1);
  writer.string("later");
  CHECK(decoders.worker_framing(in_limits + Bytes(limits::nesting_max, '\x91') + '\xC0') == WorkerFraming::malformed);
}

// Random bytes, of which half begin like the message that is expected.
Bytes random_message(Random &random, BytesView like) {
  Bytes bytes;
  const std::uint64_t shape = random.next();
  if (shape % 2 == 0) bytes = like.substr(0, (shape >> 8U) % like.size());
  for (std::uint64_t left = (shape >> 40U) % 64; left > 0; --left)
    bytes += static_cast<char>(random.next());
  return bytes;
}

TEST_CASE("random bytes are never taken for a message of version 1 unless they are one") {
  const Seed seed = seed_or(0x5EED'0001);
  CAPTURE(seed);
  SeededRandom random(seed.number);
  Decoders decoders;
  for (int round = 0; round < 100'000; ++round) {
    CAPTURE(round);
    const Bytes batch = random_message(random, sample_batch());
    if (decoders.batch_framing(batch) == Framing::batch) {
      Bytes again;
      wire::encode_batch(decoders.batch.sender, decoders.batch.entries, again);
      CHECK(again.size() <= batch.size()); // ours is the shortest form
    }
    static_cast<void>(decoders.peer_framing(random_message(random, wire::encode_hello(sample_sender()))));
    static_cast<void>(decoders.worker_framing(random_message(random, sample_replies())));
  }
}

TEST_CASE("a batch with any one bit flipped is read within its bounds or refused") {
  Decoders decoders;
  const Bytes good = sample_batch();
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Bytes flipped = good;
    flipped[bit / 8] = static_cast<char>(static_cast<unsigned char>(flipped[bit / 8]) ^ (1U << bit % 8));
    CAPTURE(bit);
    if (decoders.batch_framing(flipped) != Framing::batch) continue;
    CHECK(decoders.batch.entries.size() == 2);
    for (const wire::BatchEntry &entry : decoders.batch.entries) {
      CHECK(entry.job.data() >= flipped.data());
      CHECK(entry.job.data() + entry.job.size() <= flipped.data() + flipped.size());
    }
  }
}

} // namespace
} // namespace onced::testing
