// The codecs of every message, both ways. Hostile bytes are in hostile_messages_test.cpp.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "onced/limits.hpp"
#include "support/store_harness.hpp"
#include "unit/wire/samples.hpp"
#include "wire/messages.hpp"

namespace onced::testing {
namespace {

using messagepack::Writer;
using wire::Framing;
using wire::PeerFraming;
using wire::WorkerFraming;

Framing framing_of(BytesView message) {
  wire::Batch batch;
  return wire::decode_batch(message, batch);
}

PeerFraming peer_framing_of(BytesView frame) {
  wire::PeerMessage message;
  return wire::decode_peer_message(frame, message);
}

TEST_CASE("a batch is read as it was written") {
  const auto entries = sample_entries();
  const Bytes message = sample_batch();
  wire::Batch batch;
  REQUIRE(wire::decode_batch(message, batch) == Framing::batch);
  CHECK(batch.sender == sample_sender());
  REQUIRE(batch.entries.size() == entries.size());
  for (std::size_t at = 0; at < entries.size(); ++at) {
    CHECK(batch.entries[at].sequence == entries[at].sequence);
    CHECK(batch.entries[at].tag == entries[at].tag);
    CHECK(batch.entries[at].attempt == entries[at].attempt);
    CHECK(batch.entries[at].issued_at == entries[at].issued_at);
    CHECK(batch.entries[at].job == entries[at].job);
  }
}

TEST_CASE("the largest numbers of a batch are read exactly") {
  wire::BatchEntry entry;
  entry.sequence = Sequence{UINT64_MAX};
  entry.attempt = UINT32_MAX;
  entry.issued_at = WallTime{std::chrono::microseconds{INT64_MAX}};
  Bytes message;
  wire::encode_batch(sample_sender(), {&entry, 1}, message);
  wire::Batch batch;
  REQUIRE(wire::decode_batch(message, batch) == Framing::batch);
  CHECK(batch.entries[0].sequence == Sequence{UINT64_MAX});
  CHECK(batch.entries[0].attempt == UINT32_MAX);
  CHECK(batch.entries[0].issued_at == entry.issued_at);
}

TEST_CASE("a batch of one and the envelope around the largest job fit a message") {
  const Bytes job(limits::job_bytes_max, 'x');
  wire::BatchEntry entry;
  entry.sequence = Sequence{UINT64_MAX};
  entry.attempt = UINT32_MAX;
  entry.issued_at = WallTime{std::chrono::microseconds{INT64_MAX}};
  entry.job = job;
  Bytes message;
  wire::encode_batch(sample_sender(), {&entry, 1}, message);
  CHECK(message.size() <= limits::message_bytes_max);
  CHECK(framing_of(message) == Framing::batch);
}

TEST_CASE("a batch of no jobs is a batch") {
  Bytes message;
  wire::encode_batch(sample_sender(), {}, message);
  CHECK(framing_of(message) == Framing::batch);
}

TEST_CASE("the deliveries of a message are told from its first bytes and never told too few") {
  for (const std::size_t deliveries :
       {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16}, limits::deliveries_per_message_max}) {
    wire::BatchEntry entry;
    entry.job = "j";
    Bytes message;
    wire::encode_batch(sample_sender(), std::vector<wire::BatchEntry>(deliveries, entry), message);
    CHECK(wire::announced_deliveries(message) == deliveries);
    // The same in a wider form, which hides the number.
    const Bytes wide = Bytes("\xDC\x00\x03", 3) + message.substr(1);
    CHECK(wire::announced_deliveries(wide) >= deliveries);
    CHECK(wire::announced_deliveries(wide) <= limits::deliveries_per_message_max);
  }
  CHECK(wire::announced_deliveries("") == 1);
  CHECK(wire::announced_deliveries("\x80") == 1);
  CHECK(wire::announced_deliveries("\x93") == 1);
  CHECK(wire::announced_deliveries("no message of ours") == 1);
}

TEST_CASE("a batch holds the limit of deliveries and not one more") {
  for (const std::size_t count : {limits::deliveries_per_message_max, limits::deliveries_per_message_max + 1}) {
    Bytes message;
    wire::encode_batch(sample_sender(), std::vector<wire::BatchEntry>(count), message);
    CHECK(framing_of(message) == (count == limits::deliveries_per_message_max ? Framing::batch : Framing::malformed));
  }
}

TEST_CASE("whatever begins as a map is a bare job") {
  CHECK(framing_of(sample_jobs()[0]) == Framing::bare_job);
  CHECK(framing_of("\x80") == Framing::bare_job);
  CHECK(framing_of(BytesView("\xDE\x00\x01", 3)) == Framing::bare_job);
  CHECK(framing_of("\xDF\xFF\xFF\xFF\xFF") == Framing::bare_job);
}

TEST_CASE("a job in a batch may be any bytes at all") {
  const std::vector<Bytes> jobs{"", "not-json", "\xDD\xFF\xFF\xFF\xFF", Bytes(3, '\0')};
  for (const Bytes &job : jobs) {
    wire::BatchEntry entry;
    entry.job = job;
    Bytes message;
    wire::encode_batch(sample_sender(), {&entry, 1}, message);
    wire::Batch batch;
    REQUIRE(wire::decode_batch(message, batch) == Framing::batch);
    CHECK(batch.entries.at(0).job == job);
  }
}

// A batch of one entry of five values, each written by `field`, which is told its index.
template <class Field> Bytes entry_with(Field field) {
  Bytes message;
  Writer writer(message);
  writer.array(3).positive(1).binary(sample_sender().view()).array(1).array(5);
  for (int index = 0; index < 5; ++index) {
    if (field(index, writer)) continue;
    if (index == 1) {
      writer.binary(Tag{}.view());
    } else if (index == 4) {
      writer.binary("job");
    } else {
      writer.positive(1);
    }
  }
  return message;
}

TEST_CASE("an entry with a field of another kind or size makes the batch malformed") {
  REQUIRE(framing_of(entry_with([](int, Writer &) { return false; })) == Framing::batch);
  for (int wrong = 0; wrong < 5; ++wrong) {
    CAPTURE(wrong);
    CHECK(framing_of(entry_with([&](int index, Writer &writer) {
            if (index != wrong) return false;
            writer.string("12345678");
            return true;
          })) == Framing::malformed);
    CHECK(framing_of(entry_with([&](int index, Writer &writer) {
            if (index != wrong) return false;
            index == 1 ? writer.binary("1234567") : writer.integer(-1);
            return true;
          })) == Framing::malformed);
  }
}

TEST_CASE("an attempt beyond 32 bits and an issue time beyond 63 bits make the batch malformed") {
  const auto with = [](int place, std::uint64_t value) {
    return framing_of(entry_with([&](int index, Writer &writer) {
      if (index == place) writer.positive(value);
      return index == place;
    }));
  };
  CHECK(with(2, UINT32_MAX) == Framing::batch);
  CHECK(with(2, std::uint64_t{UINT32_MAX} + 1) == Framing::malformed);
  CHECK(with(3, INT64_MAX) == Framing::batch);
  CHECK(with(3, std::uint64_t{INT64_MAX} + 1) == Framing::malformed);
}

TEST_CASE("a batch with a sender id of another size is malformed") {
  for (const std::size_t size : {0U, 15U, 17U}) {
    Bytes message;
    Writer(message).array(3).positive(1).binary(Bytes(size, 's')).array(0);
    CHECK(framing_of(message) == Framing::malformed);
  }
}

TEST_CASE("a batch of another version is unsupported whatever follows the sender id") {
  Bytes head;
  Writer(head).array(3).positive(2).binary(sample_sender().view());
  const std::vector<Bytes> tails{"",         "\xC1",        Bytes(1, '\x07'), Bytes(40, '\x91'), "\xDD\xFF\xFF\xFF\xFF",
                                 "trailing", sample_batch()};
  for (const Bytes &tail : tails) {
    CAPTURE(to_hex(tail));
    wire::Batch batch;
    CHECK(wire::decode_batch(head + tail, batch) == Framing::unsupported);
    CHECK(batch.sender == sample_sender());
    wire::PeerMessage peer;
    CHECK(wire::decode_peer_message(head + tail, peer) == PeerFraming::unsupported);
    CHECK(peer.sender == sample_sender());
  }
}

TEST_CASE("a batch of another version without a sender id is malformed") {
  Bytes no_id;
  Writer(no_id).array(2).positive(2).string("a sender's name");
  CHECK(framing_of(no_id) == Framing::malformed);
  Bytes short_id;
  Writer(short_id).array(2).positive(2).binary("123");
  CHECK(framing_of(short_id) == Framing::malformed);
  Bytes alone;
  Writer(alone).array(1).positive(2);
  CHECK(framing_of(alone) == Framing::malformed);
}

TEST_CASE("a decoder forgets the entries of the message before") {
  wire::Batch batch;
  const Bytes first = sample_batch();
  REQUIRE(wire::decode_batch(first, batch) == Framing::batch);
  Bytes second;
  wire::encode_batch(SenderId{}, {}, second);
  REQUIRE(wire::decode_batch(second, batch) == Framing::batch);
  CHECK(batch.entries.empty());
  CHECK(batch.sender == SenderId{});
}

TEST_CASE("a hello and a query are read as they were written") {
  wire::PeerMessage message;
  const Bytes query = wire::encode_query(sample_sender(), "request");
  REQUIRE(wire::decode_peer_message(query, message) == PeerFraming::known);
  CHECK(message.sender == sample_sender());
  REQUIRE(message.request);
  CHECK(*message.request == "request");

  const Bytes hello = wire::encode_hello(sample_sender());
  REQUIRE(wire::decode_peer_message(hello, message) == PeerFraming::known);
  CHECK(message.sender == sample_sender());
  CHECK_FALSE(message.request);
}

TEST_CASE("a peer that says anything else is malformed") {
  Bytes text_request;
  Writer(text_request).array(3).positive(1).binary(sample_sender().view()).string("count");
  Bytes four;
  Writer(four).array(4).positive(1).binary(sample_sender().view()).binary("").nil();
  const std::vector<Bytes> messages{"", "hello", sample_request(), text_request, four, sample_batch()};
  for (const Bytes &message : messages)
    CHECK(peer_framing_of(message) == PeerFraming::malformed);
}

TEST_CASE("a query over the limit of a peer is malformed") {
  const std::size_t overhead = wire::encode_query(sample_sender(), Bytes(300, 'q')).size() - 300;
  CHECK(peer_framing_of(wire::encode_query(sample_sender(), Bytes(limits::query_bytes_max - overhead, 'q'))) ==
        PeerFraming::known);
  CHECK(peer_framing_of(wire::encode_query(sample_sender(), Bytes(limits::query_bytes_max - overhead + 1, 'q'))) ==
        PeerFraming::malformed);
}

TEST_CASE("a greeting is read as it was written") {
  for (const Durability durability : {Durability::fsync, Durability::page_cache}) {
    const Bytes frame = wire::encode_greeting(sample_boot(), durability);
    wire::WorkerMessageDecoder decoder;
    wire::WorkerMessage message;
    REQUIRE(decoder.decode(frame, message) == WorkerFraming::greeting);
    CHECK(message.greeting.boot == sample_boot());
    CHECK(message.greeting.durability == durability);
    CHECK(message.versions == std::vector<std::uint64_t>{1});
    CHECK(message.greeting.message_bytes_max == limits::message_bytes_max);
    CHECK(message.greeting.deliveries_per_message_max == limits::deliveries_per_message_max);
  }
}

TEST_CASE("a greeting may hold limits of a later release whatever their values are") {
  Bytes frame;
  Writer writer(frame);
  writer.array(6).positive(1).string("greeting").binary(sample_boot().view()).string("fsync").array(2).positive(1);
  writer.positive(7).map(2).string("later").map(1).string("a").array(2).nil().nil();
  writer.string("message_bytes_max").positive(5);
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  REQUIRE(decoder.decode(frame, message) == WorkerFraming::greeting);
  CHECK(message.versions == std::vector<std::uint64_t>{1, 7});
  CHECK(message.greeting.message_bytes_max == 5);
  CHECK(message.greeting.deliveries_per_message_max == 0);
}

TEST_CASE("a greeting names the horizon of a worker that has one") {
  const auto horizon_of = [](std::uint64_t horizon_us) {
    Bytes frame;
    Writer writer(frame);
    writer.array(6).positive(1).string("greeting").binary(sample_boot().view()).string("fsync").array(1).positive(1);
    writer.map(1).string("horizon_us").positive(horizon_us);
    wire::WorkerMessageDecoder decoder;
    wire::WorkerMessage message;
    const bool is_greeting = decoder.decode(frame, message) == WorkerFraming::greeting;
    return is_greeting ? message.greeting.horizon : std::nullopt;
  };
  CHECK(horizon_of(7) == WallTime{std::chrono::microseconds{7}});
  CHECK_FALSE(horizon_of(1ULL << 63U).has_value()); // no time: the greeting is malformed
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  REQUIRE(decoder.decode(wire::encode_greeting(sample_boot(), Durability::fsync), message) == WorkerFraming::greeting);
  CHECK_FALSE(message.greeting.horizon.has_value());
}

TEST_CASE("a notice is an answer that names a state and every other answer names none") {
  using wire::WorkerState;
  for (const WorkerState state :
       {WorkerState::ok, WorkerState::opening, WorkerState::full, WorkerState::unavailable, WorkerState::draining}) {
    const Bytes frame = wire::encode_notice(state);
    wire::WorkerMessageDecoder decoder;
    wire::WorkerMessage message;
    REQUIRE(decoder.decode(frame, message) == WorkerFraming::answer);
    CHECK(wire::state_in(message.answer) == state);
  }
  const auto pair = [](const auto &write) {
    Bytes out;
    Writer writer(out);
    write(writer);
    return out;
  };
  CHECK(wire::state_in(pair([](Writer &writer) {
          writer.map(2).string("later").array(1).nil().string("state").string("full");
        })) == WorkerState::full);
  CHECK_FALSE(wire::state_in(pair([](Writer &writer) { writer.map(1).string("state").string("asleep"); })));
  CHECK_FALSE(wire::state_in(pair([](Writer &writer) { writer.map(1).string("state").positive(1); })));
  CHECK_FALSE(wire::state_in(pair([](Writer &writer) { writer.map(1).string("results").positive(1); })));
  for (const std::string bytes : {"", "\x80", "\x90", "\x81", "\xDF\xFF\xFF\xFF\xFF", "not-json"})
    CHECK_FALSE(wire::state_in(bytes));
}

TEST_CASE("replies are read as they were written for every outcome") {
  Digester digester;
  wire::RepliesEncoder encoder(sample_boot(), Durability::page_cache);
  for (const OutcomeTraits &traits : outcome_table) {
    const std::string_view name = traits.name;
    encoder.add({.sequence = Sequence{static_cast<std::uint64_t>(traits.outcome) + 1},
                 .tag = digester.tag(name),
                 .outcome = traits.outcome,
                 .result = traits.success ? name : BytesView{},
                 .detail = traits.success ? BytesView{} : name});
  }
  const auto frames = encoder.take();
  REQUIRE(frames.size() == 1);
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  REQUIRE(decoder.decode(frames[0], message) == WorkerFraming::replies);
  CHECK(message.replies.boot == sample_boot());
  CHECK(message.replies.durability == Durability::page_cache);
  REQUIRE(message.replies.replies.size() == outcome_table.size());
  for (std::size_t at = 0; at < outcome_table.size(); ++at) {
    const wire::Reply &reply = message.replies.replies[at];
    const OutcomeTraits &traits = outcome_table[at];
    CHECK(reply.sequence == Sequence{at + 1});
    CHECK(reply.tag == digester.tag(traits.name));
    CHECK(reply.outcome == traits.outcome);
    CHECK(reply.result == (traits.success ? traits.name : ""));
    CHECK(reply.detail == (traits.success ? "" : traits.name));
  }
}

// A frame of replies with one reply of this outcome.
Bytes replies_with_outcome(std::uint64_t code, std::string_view durability) {
  Bytes frame;
  Writer writer(frame);
  writer.array(5).positive(1).string("replies").binary(sample_boot().view()).string(durability).array(1);
  writer.array(5).positive(1).binary(Tag{}.view()).positive(code).nil().nil();
  return frame;
}

TEST_CASE("an outcome or a durability mode that is not known makes replies malformed") {
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  CHECK(decoder.decode(replies_with_outcome(7, "fsync"), message) == WorkerFraming::replies);
  CHECK(decoder.decode(replies_with_outcome(8, "fsync"), message) == WorkerFraming::malformed);
  CHECK(decoder.decode(replies_with_outcome(256, "fsync"), message) == WorkerFraming::malformed);
  CHECK(decoder.decode(replies_with_outcome(0, "paper"), message) == WorkerFraming::malformed);
}

TEST_CASE("an answer is read as it was written") {
  const Bytes frame = wire::encode_answer(Bytes(limits::answer_bytes_max / 2, 'a'));
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  REQUIRE(decoder.decode(frame, message) == WorkerFraming::answer);
  CHECK(message.answer == Bytes(limits::answer_bytes_max / 2, 'a'));
}

TEST_CASE("unsupported is understood in whatever version it comes") {
  for (const std::uint64_t version : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9}}) {
    Bytes frame;
    Writer(frame).array(3).positive(version).string("unsupported").array(2).positive(8).positive(9);
    wire::WorkerMessageDecoder decoder;
    wire::WorkerMessage message;
    REQUIRE(decoder.decode(frame, message) == WorkerFraming::unsupported);
    CHECK(message.versions == std::vector<std::uint64_t>{8, 9});
  }
}

TEST_CASE("any other message of another version or kind is malformed to a sender") {
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  Bytes later = wire::encode_greeting(sample_boot(), Durability::fsync);
  later[1] = 2;
  CHECK(decoder.decode(later, message) == WorkerFraming::malformed);
  Bytes unknown;
  Writer(unknown).array(3).positive(1).string("farewell").nil();
  CHECK(decoder.decode(unknown, message) == WorkerFraming::malformed);
  Bytes longer;
  Writer(longer).array(4).positive(1).string("answer").binary("").nil();
  CHECK(decoder.decode(longer, message) == WorkerFraming::malformed);
}

TEST_CASE("an encoder of replies is empty again after take") {
  wire::RepliesEncoder encoder(sample_boot(), Durability::fsync);
  CHECK(encoder.take().empty());
  encoder.add({});
  CHECK(encoder.take().size() == 1);
  CHECK(encoder.take().empty());
}

TEST_CASE("replies are split into small frames and none is lost") {
  const Bytes result(limits::result_bytes_max, 'r');
  const Bytes detail(limits::detail_bytes_max, 'd');
  constexpr std::size_t count = 100;
  wire::RepliesEncoder encoder(sample_boot(), Durability::page_cache);
  for (std::size_t at = 0; at < count; ++at) {
    encoder.add({.sequence = Sequence{UINT64_MAX - at},
                 .tag = Tag{},
                 .outcome = Outcome::stored,
                 .result = result,
                 .detail = detail});
  }
  const auto frames = encoder.take();
  CHECK(frames.size() == count); // each by itself
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  std::size_t seen = 0;
  for (const Bytes &frame : frames) {
    CHECK(frame.size() <= limits::message_bytes_max);
    REQUIRE(decoder.decode(frame, message) == WorkerFraming::replies);
    for (const wire::Reply &reply : message.replies.replies) {
      CHECK(reply.sequence == Sequence{UINT64_MAX - seen++});
      CHECK(reply.result == result);
    }
  }
  CHECK(seen == count);
}

TEST_CASE("a full frame of the smallest replies is read") {
  constexpr std::size_t count = 2'000; // 15 bytes each: more than fit one frame
  wire::RepliesEncoder encoder(sample_boot(), Durability::fsync);
  for (std::size_t at = 0; at < count; ++at)
    encoder.add({.sequence = Sequence{1}, .tag = Tag{}, .outcome = Outcome::busy, .result = {}, .detail = {}});
  const auto frames = encoder.take();
  REQUIRE(frames.size() == 2);
  wire::WorkerMessageDecoder decoder;
  wire::WorkerMessage message;
  std::size_t seen = 0;
  for (const Bytes &frame : frames) {
    CHECK(frame.size() <= limits::reply_frame_bytes_target);
    REQUIRE(decoder.decode(frame, message) == WorkerFraming::replies);
    seen += message.replies.replies.size();
  }
  CHECK(seen == count);
}

} // namespace
} // namespace onced::testing
