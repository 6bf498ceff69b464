// From arrivals to deliveries: every framing, and what a reply would need. The codecs have tests of their own
// (tests/unit/wire), as has the parser of jobs (tests/unit/job).
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "onced/digest.hpp"
#include "support/store_harness.hpp"
#include "wire/messages.hpp"
#include "worker/intake.hpp"

namespace onced::testing {
namespace {

using worker::Arrival;
using worker::Intake;

const WallTime issued_at{std::chrono::microseconds{1'764'500'000'000'000}};

SenderId sender_id(std::uint8_t fill) {
  SenderId id;
  id.bytes.fill(fill);
  return id;
}

Arrival arrival(BytesView bytes, bool multipart = false) {
  Arrival made;
  made.frame.rebuild(bytes.data(), bytes.size());
  made.multipart = multipart;
  return made;
}

// A batch whose sequences count from `first`.
Arrival batch(const SenderId &sender, const std::vector<Bytes> &jobs, std::uint64_t first = 1) {
  Digester digester;
  std::vector<wire::BatchEntry> entries;
  for (const Bytes &job : jobs) {
    entries.push_back({.sequence = Sequence{first + entries.size()},
                       .tag = digester.tag(job),
                       .attempt = 1,
                       .issued_at = issued_at,
                       .job = job});
  }
  Bytes message;
  wire::encode_batch(sender, entries, message);
  return arrival(message);
}

TEST_CASE("a batch becomes a delivery for each job with what its reply needs") {
  const std::vector<Bytes> jobs{job_bytes("a", {1}), "not-json", job_bytes({"b", {2}, "other", "invoice-7"})};
  const Arrival message = batch(sender_id(3), jobs);
  Intake intake;
  intake.add(message);
  const auto deliveries = intake.deliveries();
  REQUIRE(deliveries.size() == 3);
  REQUIRE(intake.reply_to().size() == 3);
  Digester digester;
  for (std::size_t at = 0; at < 3; ++at) {
    CHECK(deliveries[at].bytes == jobs[at]);
    CHECK(deliveries[at].sender == sender_id(3));
    CHECK(deliveries[at].sequence == Sequence{at + 1});
    CHECK(deliveries[at].issued_at == issued_at);
    REQUIRE(intake.reply_to()[at]);
    CHECK(intake.reply_to()[at]->sender == sender_id(3));
    CHECK(intake.reply_to()[at]->tag == digester.tag(jobs[at]));
  }
  REQUIRE(deliveries[0].job != nullptr);
  CHECK(deliveries[0].job->operation_id == "a");
  CHECK(*deliveries[0].key == key_of_operation("sum", "a"));
  CHECK(deliveries[0].digest == digester.intent("sum", deliveries[0].job->payload));
  CHECK(deliveries[1].job == nullptr);
  CHECK(deliveries[1].key == nullptr);
  CHECK(deliveries[1].defect == "not_a_map");
  REQUIRE(deliveries[2].job != nullptr);
  CHECK(deliveries[2].job->type == "other");
  CHECK(*deliveries[2].key == key_of_effect("invoice-7"));
  CHECK(intake.unsupported().empty());
}

TEST_CASE("a bare job becomes a delivery that wants no reply") {
  const Bytes job = job_bytes("a", {1});
  const Arrival message = arrival(job);
  Intake intake;
  intake.add(message);
  REQUIRE(intake.deliveries().size() == 1);
  const Delivery &delivery = intake.deliveries()[0];
  CHECK(delivery.bytes == job);
  CHECK(delivery.sender == SenderId{});
  CHECK(delivery.sequence == Sequence{0});
  CHECK(delivery.issued_at == WallTime{});
  REQUIRE(delivery.job != nullptr);
  CHECK(*delivery.key == key_of_operation("sum", "a"));
  CHECK_FALSE(intake.reply_to()[0]);
}

TEST_CASE("a bare map that is no job is a delivery with the defect of the job") {
  const Arrival no_id = arrival("\x80");
  const Arrival bomb = arrival("\xDF\xFF\xFF\xFF\xFF");
  Intake intake;
  intake.add(no_id);
  intake.add(bomb);
  REQUIRE(intake.deliveries().size() == 2);
  CHECK(intake.deliveries()[0].defect == "no_operation_id");
  CHECK(intake.deliveries()[1].defect == "malformed");
}

TEST_CASE("a message that is none of ours is one delivery with its bytes and no reply") {
  const std::vector<std::string> bad{"not-json", "", "\x93\x01\x02\x03", "\xDD\xFF\xFF\xFF\xFF"};
  for (const std::string &bytes : bad) {
    const Arrival message = arrival(bytes);
    Intake intake;
    intake.add(message);
    REQUIRE(intake.deliveries().size() == 1);
    CHECK(intake.deliveries()[0].bytes == bytes);
    CHECK(intake.deliveries()[0].defect == "message_malformed");
    CHECK(intake.deliveries()[0].job == nullptr);
    CHECK(intake.deliveries()[0].sequence == Sequence{0});
    CHECK_FALSE(intake.reply_to()[0]);
  }
}

TEST_CASE("a multipart message is refused although its first part is a good batch") {
  const Arrival good = batch(sender_id(1), {job_bytes("a", {1})});
  const Arrival message = arrival(good.frame.to_string_view(), true);
  Intake intake;
  intake.add(message);
  REQUIRE(intake.deliveries().size() == 1);
  CHECK(intake.deliveries()[0].defect == "message_multipart");
  CHECK(intake.deliveries()[0].bytes == good.frame.to_string_view());
  CHECK_FALSE(intake.reply_to()[0]);
}

TEST_CASE("a batch of another version adds its sender and no delivery") {
  Bytes bytes;
  messagepack::Writer(bytes).array(3).positive(2).binary(sender_id(9).view()).nil();
  const Arrival later = arrival(bytes);
  const Arrival good = batch(sender_id(1), {job_bytes("a", {1})});
  Intake intake;
  intake.add(later);
  intake.add(good);
  REQUIRE(intake.unsupported().size() == 1);
  CHECK(intake.unsupported()[0] == sender_id(9));
  REQUIRE(intake.deliveries().size() == 1);
  CHECK(intake.deliveries()[0].sender == sender_id(1));
}

TEST_CASE("what the store recalls is not parsed and keeps what its reply needs") {
  StoreHarness harness;
  harness.open();
  const Bytes known = job_bytes("known", {1, 2});
  const Settlement stored = harness.commit_one(known);
  const Arrival message =
      batch(sender_id(3), {job_bytes("new", {1}), known, job_bytes("known", {9}), known, "no job"}, 10);
  const Arrival bare = arrival(known);
  Intake intake;
  intake.add(message, harness.store.get());
  intake.add(bare, harness.store.get());
  CHECK(intake.size() == 6);
  REQUIRE(intake.deliveries().size() == 3);
  CHECK(intake.deliveries()[0].sequence == Sequence{10});
  CHECK(intake.deliveries()[1].sequence == Sequence{12});
  CHECK(intake.deliveries()[2].sequence == Sequence{14});
  REQUIRE(intake.reply_to().size() == 3);
  REQUIRE(intake.recalled().size() == 3);
  CHECK(intake.recalled()[0].sequence == Sequence{11});
  CHECK(intake.recalled()[1].sequence == Sequence{13});
  CHECK_FALSE(intake.recalled()[2].reply_to);
  Digester digester;
  for (const Intake::Recalled &recalled : intake.recalled().first(2)) {
    CHECK(recalled.result == stored.result);
    REQUIRE(recalled.reply_to);
    CHECK(recalled.reply_to->sender == sender_id(3));
    CHECK(recalled.reply_to->tag == digester.tag(known));
  }
  intake.clear();
  CHECK(intake.size() == 0);
  intake.add(message);
  CHECK(intake.recalled().empty());
  CHECK(intake.deliveries().size() == 5);
}

// A batch of one job with the tag of other bytes, between two with their own.
Arrival batch_with_tag_of(const Bytes &other, const std::vector<Bytes> &jobs) {
  Digester digester;
  std::vector<wire::BatchEntry> entries;
  for (const Bytes &job : jobs) {
    entries.push_back({.sequence = Sequence{entries.size() + 1},
                       .tag = digester.tag(entries.size() == 1 ? other : job),
                       .attempt = 2,
                       .issued_at = issued_at,
                       .job = job});
  }
  Bytes message;
  wire::encode_batch(sender_id(3), entries, message);
  return arrival(message);
}

TEST_CASE("a delivery with the tag of other bytes is told apart and its neighbours are not") {
  StoreHarness harness;
  harness.open();
  const Bytes guessed = job_bytes("guessed", {1});
  for (const bool recalled : {false, true}) {
    CAPTURE(recalled);
    const std::vector<Bytes> jobs{job_bytes("a", {1}), job_bytes("guessed", {999}), "no job"};
    const Arrival message = batch_with_tag_of(guessed, jobs);
    Intake intake;
    intake.add(message, harness.store.get());
    CHECK(intake.size() == 3);
    CHECK(intake.resent() == 3);
    CHECK(intake.recalled().size() == (recalled ? 1 : 0));
    REQUIRE(intake.mismatched().size() == 1);
    CHECK(intake.mismatched()[0].sequence == Sequence{2});
    CHECK(intake.mismatched()[0].reply_to.sender == sender_id(3));
    CHECK(intake.mismatched()[0].reply_to.tag == Digester().tag(guessed));
    for (const Delivery &delivery : intake.deliveries()) {
      CHECK(delivery.tag == Digester().tag(delivery.bytes));
      CHECK(delivery.sequence != Sequence{2});
    }
    intake.clear();
    CHECK(intake.size() == 0);
    CHECK(intake.mismatched().empty());
    static_cast<void>(harness.commit(jobs)); // so that the first two are recalled by their bytes
  }
}

TEST_CASE("deliveries of many messages keep their order and what they borrow") {
  constexpr std::size_t messages = 200;
  std::vector<Arrival> arrivals;
  for (std::size_t at = 0; at < messages; ++at) {
    arrivals.push_back(
        batch(sender_id(static_cast<std::uint8_t>(at)),
              {job_bytes("first-" + std::to_string(at), {1}), "bad", job_bytes("last-" + std::to_string(at), {2})}));
  }
  Intake intake;
  for (const Arrival &message : arrivals)
    intake.add(message);
  const auto deliveries = intake.deliveries();
  REQUIRE(deliveries.size() == 3 * messages);
  for (std::size_t at = 0; at < messages; ++at) {
    REQUIRE(deliveries[3 * at].job != nullptr);
    CHECK(deliveries[3 * at].job->operation_id == "first-" + std::to_string(at));
    CHECK(*deliveries[3 * at].key == key_of_operation("sum", "first-" + std::to_string(at)));
    CHECK(deliveries[3 * at + 1].job == nullptr);
    REQUIRE(deliveries[3 * at + 2].job != nullptr);
    CHECK(deliveries[3 * at + 2].job->operation_id == "last-" + std::to_string(at));
    CHECK(deliveries[3 * at].sender == sender_id(static_cast<std::uint8_t>(at)));
  }
}

TEST_CASE("after clear nothing of the batch before is left") {
  Intake intake;
  {
    const Arrival with_key = arrival(job_bytes({"a", {1}, "other", "invoice-7"}));
    Bytes later;
    messagepack::Writer(later).array(2).positive(3).binary(sender_id(9).view());
    const Arrival unsupported = arrival(later);
    intake.add(with_key);
    intake.add(unsupported);
    intake.clear();
  }
  CHECK(intake.deliveries().empty());
  CHECK(intake.reply_to().empty());
  CHECK(intake.unsupported().empty());
  const Arrival plain = arrival(job_bytes("b", {1}));
  intake.add(plain);
  REQUIRE(intake.deliveries().size() == 1);
  REQUIRE(intake.deliveries()[0].job != nullptr);
  CHECK(intake.deliveries()[0].job->type == "sum");
  CHECK(intake.deliveries()[0].job->effect_key.empty());
  CHECK(*intake.deliveries()[0].key == key_of_operation("sum", "b"));
}

} // namespace
} // namespace onced::testing
