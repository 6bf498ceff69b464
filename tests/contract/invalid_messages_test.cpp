// Whole messages that are no messages of ours: kept as dead letters without a reply, and the worker goes on.
#include <doctest/doctest.h>

#include <fstream>

#include "contract/hostile_bytes.hpp"
#include "support/raw_peer.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// One worker thread takes messages in the order in which they came, so that a reply to the job sent last shows that
// none was sent before it.
const Arguments in_order{"--workers", "1"};

// That the next good job of this peer is stored and that its reply is the next that comes.
void check_next_is_stored(RawPeer &peer, const std::string &id) {
  CHECK(outcomes_of(peer.deliver({job_bytes(id, {1})})) == "stored");
}

// A batch envelope with these entries, which need not be any.
Bytes envelope(std::size_t entries, const Bytes &bytes) {
  Bytes out;
  messagepack::Writer(out).array(3).positive(1).binary(sender_id(0x11).view()).array(entries).raw(bytes);
  return out;
}

// The resident memory of a process, in KiB.
std::size_t memory_kib(const Process &process) {
  std::ifstream status("/proc/" + std::to_string(process.id()) + "/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:" && status >> word) return std::stoul(word);
  }
  return 0;
}

} // namespace

TEST_CASE("whole messages that are no messages become dead letters and get no reply") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  std::uint64_t messages = 0;
  std::map<std::string, std::string> sent;
  for (const HostileBytes &hostile : hostile_bytes()) {
    CAPTURE(hostile.name);
    peer.send(hostile.bytes);
    check_next_is_stored(peer, "after-" + std::to_string(++messages));
    CHECK(worker.rows() == Rows{messages, messages});
    sent[to_hex(hostile.bytes)] = "invalid";
  }
  std::map<std::string, std::string> kept;
  for (const Line &letter : dead_letters(worker.data()))
    kept[letter["bytes"]] = letter["reason"];
  CHECK(kept == sent);
}

TEST_CASE("a bare job is committed without a reply") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  peer.send(job_bytes("bare", {1, 2, 3}));
  check_next_is_stored(peer, "next");
  CHECK(worker.rows() == Rows{2, 0});
  CHECK(run_command({"get", "bare", "--data", worker.data().string()}).line()["result"] == "6");
}

TEST_CASE("envelopes that are not of the grammar become dead letters and get no reply") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  Bytes short_tag;
  messagepack::Writer(short_tag).array(5).positive(1).binary("1234567").positive(1).positive(1).binary("x");
  Bytes text_job;
  messagepack::Writer(text_job).array(5).positive(1).binary("12345678").positive(1).positive(1).string("x");
  Bytes four_fields;
  messagepack::Writer(four_fields).array(4).positive(1).binary("12345678").positive(1).binary("x");
  const Bytes four_billion = envelope(0, "").substr(0, envelope(0, "").size() - 1) + Bytes("\xDD\xFF\xFF\xFF\xFF", 5);
  std::uint64_t messages = 0;
  for (const Bytes &message : {envelope(1, short_tag), envelope(1, text_job), envelope(1, four_fields), envelope(2, ""),
                               envelope(0, "x"), four_billion, envelope(1, short_tag + short_tag)}) {
    CAPTURE(to_hex(message));
    peer.send(message);
    check_next_is_stored(peer, "after-" + std::to_string(++messages));
    CHECK(worker.rows() == Rows{messages, messages});
  }
}

TEST_CASE("a message of more deliveries than the limit is one dead letter") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  const auto greeting = peer.greet();
  CHECK(greeting.deliveries_per_message_max == limits::deliveries_per_message_max);
  CHECK(greeting.message_bytes_max == limits::message_bytes_max);
  std::vector<Bytes> jobs;
  for (std::size_t job = 0; job < limits::deliveries_per_message_max; ++job)
    jobs.push_back(job_bytes(std::to_string(job), {1}));
  CHECK(peer.deliver(jobs).size() == limits::deliveries_per_message_max);
  jobs.push_back(job_bytes("one more", {1}));
  peer.send_batch(jobs);
  check_next_is_stored(peer, "after");
  CHECK(worker.rows() == Rows{limits::deliveries_per_message_max + 1, 1});
}

TEST_CASE("a multipart message is one dead letter even where its parts are jobs") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  const Bytes first = job_bytes("part-1", {1});
  peer.send_parts({first, job_bytes("part-2", {2}), "rest"});
  check_next_is_stored(peer, "after");
  CHECK(worker.rows() == Rows{1, 1});
  const auto letters = dead_letters(worker.data());
  REQUIRE(letters.size() == 1);
  CHECK(letters.front()["reason"] == "invalid");
  CHECK(letters.front()["detail"] == "message_multipart");
  CHECK(letters.front()["bytes"] == to_hex(first));
}

TEST_CASE("endless parts that never end leave nothing behind") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  {
    BareConnection endless(worker.jobs());
    const Bytes part(200, 'p');
    for (int parts = 0; parts < 20'000; ++parts)
      endless.send_frame(part, true);
    check_next_is_stored(peer, "beside");
  }
  check_next_is_stored(peer, "after");
  CHECK(worker.rows() == Rows{2, 0});
}

TEST_CASE("many parts that do end are one dead letter") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  BareConnection many(worker.jobs());
  for (int parts = 0; parts < 20'000; ++parts)
    many.send_frame("part", true);
  many.send_frame("the last", false);
  CHECK(eventually([&] { return worker.rows().dead_letters == 1; }));
  check_next_is_stored(peer, "after");
}

TEST_CASE("a message over a MiB closes its own connection and no other") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  for (const std::uint64_t bytes : {limits::message_bytes_max + 1, std::size_t{1} << 40U, SIZE_MAX}) {
    BareConnection hostile(worker.jobs());
    hostile.announce(bytes);
    CHECK(hostile.is_closed_by_peer());
  }
  check_next_is_stored(peer, "after");
  CHECK(worker.rows() == Rows{1, 0});

  peer.send(Bytes(limits::message_bytes_max, '\xC1')); // the largest that may be
  check_next_is_stored(peer, "after the largest");
  CHECK(worker.rows() == Rows{2, 1});
}

TEST_CASE("headers that claim four billion elements cost no memory") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  check_next_is_stored(peer, "before");
  const std::size_t before = memory_kib(worker.process());
  for (int time = 0; time < 200; ++time) {
    for (const char *head : {"\xDD\xFF\xFF\xFF\xFF", "\xDF\xFF\xFF\xFF\xFF", "\xC6\xFF\xFF\xFF\xFF"})
      peer.send(Bytes(head, 5));
  }
  check_next_is_stored(peer, "after");
  CHECK(memory_kib(worker.process()) < before + 64UL * 1024);
  CHECK(worker.rows() == Rows{2, 3});
}

TEST_CASE("the raw message option writes a whole message and exits with 0") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  peer.greet();
  const Finished sent = run_command(worker.send({"--raw-message"}), "not-json");
  CHECK(sent.exit == 0);
  CHECK(sent.output.empty());
  CHECK(eventually([&] { return worker.rows() == Rows{0, 1}; }));
  CHECK(run_command(worker.send({"--raw-message"}), job_bytes("bare", {4})).exit == 0);
  CHECK(eventually([&] { return worker.rows() == Rows{1, 1}; }));
  check_next_is_stored(peer, "after");
}

TEST_CASE("what is no message on the replies socket is passed over") {
  WorkerProcess worker;
  worker.start(in_order);
  RawPeer peer(worker);
  for (const HostileBytes &hostile : hostile_bytes())
    peer.say(hostile.bytes);
  peer.greet(); // the first answer that comes
  check_next_is_stored(peer, "after");
  CHECK(worker.rows() == Rows{1, 0});
}
