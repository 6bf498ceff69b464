// The bytes on disk. The worked example in docs/storage.md is held to these very bytes.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "onced/version.hpp"
#include "rocksdb/sum_rows.hpp"
#include "store/rows/older_sums.hpp"
#include "store/rows/records.hpp"
#include "support/store_harness.hpp"

using namespace onced;
using namespace onced::store;
using engine::Counter;
using namespace onced::testing;

namespace {

// Every character of the text that is hexadecimal, in order, after dropping what follows "#" in each line: how the
// document writes annotated bytes.
std::string hex_of_listing(const std::string &listing) {
  std::string hex;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    for (const char character : line.substr(0, line.find('#'))) {
      if (std::isxdigit(static_cast<unsigned char>(character)) != 0) hex += character;
    }
  }
  return hex;
}

// The code block that follows `<!-- example: NAME -->` in docs/storage.md.
std::string example(const std::string &name) {
  std::ifstream file(ONCED_TESTS_DIR "/../docs/storage.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const auto at = document.find("<!-- example: " + name + " -->");
  REQUIRE_MESSAGE(at != std::string::npos, name);
  const auto begin = document.find('\n', document.find("```", at)) + 1;
  return hex_of_listing(document.substr(begin, document.find("```", begin) - begin));
}

OperationRecord example_record(const Delivery &delivery) {
  return {.phase = Phase::committed,
          .digest = delivery.digest,
          .result = "\x06", // the integer 6
          .operation_id = delivery.job->operation_id,
          .type = delivery.job->type,
          .effect_key = delivery.job->effect_key,
          .issued_at = WallTime{std::chrono::microseconds{1'764'500'000'000'000}},
          .committed_at = WallTime{std::chrono::microseconds{1'764'500'000'250'000}},
          .worker_build = "0.1.0+8d3f1c20ab47",
          .durability = Durability::fsync};
}

DeadLetter example_letter(const Delivery &offered, const Delivery &stored) {
  DeadLetter letter;
  Digester digester;
  letter.id = dead_letter_id(*offered.key, offered.digest, Outcome::conflict, digester);
  letter.reason = Outcome::conflict;
  letter.detail = "another payload or type was committed under this key";
  letter.bytes = offered.bytes;
  letter.operation_id = offered.job->operation_id;
  letter.type = offered.job->type;
  letter.sender.bytes.fill(0x5E);
  letter.sequence = Sequence{2};
  letter.issued_at = WallTime{std::chrono::microseconds{1'764'500'001'000'000}};
  letter.deliveries = 3;
  letter.first_at = WallTime{std::chrono::microseconds{1'764'500'001'250'000}};
  letter.last_at = WallTime{std::chrono::microseconds{1'764'500'009'250'000}};
  letter.stored_digest = stored.digest;
  letter.offered_digest = offered.digest;
  return letter;
}

// {"operation_id": "demo-5", "type": "resize", "width": 640}
Bytes resize_job() {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(3).string("operation_id").string("demo-5").string("type").string("resize");
  writer.string("width").positive(640);
  return out;
}

QueueRow example_queue_row() {
  QueueRow row;
  row.state = QueueState::leased;
  row.bytes = resize_job();
  row.operation_id = "demo-5";
  row.type = "resize";
  row.sender.bytes.fill(0x5E);
  row.sequence = Sequence{3};
  row.issued_at = WallTime{std::chrono::microseconds{1'764'500'002'000'000}};
  row.accepted_at = WallTime{std::chrono::microseconds{1'764'500'002'250'000}};
  row.changed_at = WallTime{std::chrono::microseconds{1'764'500'005'250'000}};
  row.receives = 2;
  row.receives_total = 2;
  row.token = {.boot = 3, .count = 17};
  row.errors = {"exit 75"};
  return row;
}

// Of the job demo-1, whose result sends it on.
RelayEntry example_relay_entry() {
  Digester digester;
  JobParser parser;
  Bytes message;
  messagepack::Writer(message).map(2).string("type").string("mail").string("to").string("kim");
  const Bytes parent = key_of_operation("sum", "demo-1").bytes;
  return relay_entries({{.to = "mailer", .job = message}}, parent, {},
                       WallTime{std::chrono::microseconds{1'764'500'000'250'000}}, digester, parser)
      .at(0);
}

} // namespace

TEST_CASE("the worked example of the storage document is what is written") {
  const Batch batch({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9})});
  CHECK(to_hex(batch.view()[0].key->bytes) == example("operations key"));
  Bytes value;
  encode_operation(example_record(batch.view()[0]), value);
  CHECK(to_hex(value) == example("operations value"));

  const DeadLetter letter = example_letter(batch.view()[1], batch.view()[0]);
  CHECK(to_hex(letter.id.view()) == example("dead_letters key"));
  encode_dead_letter(letter, value);
  CHECK(to_hex(value) == example("dead_letters value"));

  CHECK(to_hex(key_of_operation("resize", "demo-5").bytes) == example("queue key"));
  encode_queued(example_queue_row(), value);
  CHECK(to_hex(value) == example("queue value"));

  const RelayEntry relayed = example_relay_entry();
  CHECK(to_hex(relayed.key) == example("relay key"));
  encode_relayed(relayed.row, value);
  CHECK(to_hex(value) == example("relay value"));

  engine::Counters sums;
  for (const auto rows : {Counter::results, Counter::dead_letters, Counter::queued, Counter::relayed})
    sums[rows] = 1;
  sums[Counter::dead_letter_bytes] = static_cast<std::int64_t>(letter.bytes.size());
  sums[Counter::queued_bytes] = static_cast<std::int64_t>(resize_job().size());
  sums[Counter::relayed_bytes] = static_cast<std::int64_t>(relayed.row.job.size());
  rocks::encode_sums(sums, value);
  CHECK(to_hex(value) == example("sums value"));
  CHECK(to_hex(key_of_effect("invoice-7").bytes) == example("effect key"));
}

TEST_CASE("an operation row survives writing and reading") {
  const Batch batch({job_bytes({.operation_id = "demo-1", .numbers = {1}, .effect_key = "invoice-7"})});
  OperationRecord record = example_record(batch.view()[0]);
  record.phase = Phase::pending;
  record.durability = Durability::page_cache;
  Bytes value;
  encode_operation(record, value);
  RecordDecoder decoder;
  const auto read = decoder.operation(value);
  REQUIRE(read);
  const OperationRow row = to_row(*read);
  CHECK(row.phase == Phase::pending);
  CHECK(row.digest == record.digest);
  CHECK(row.result == integer_result(6));
  CHECK(row.operation_id == "demo-1");
  CHECK(row.type == "sum");
  CHECK(row.effect_key == "invoice-7");
  CHECK(row.issued_at == record.issued_at);
  CHECK(row.committed_at == record.committed_at);
  CHECK(row.worker_build == "0.1.0+8d3f1c20ab47");
  CHECK(row.durability == Durability::page_cache);
}

TEST_CASE("a dead letter survives writing and reading") {
  const Batch batch({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9})});
  const DeadLetter letter = example_letter(batch.view()[1], batch.view()[0]);
  Bytes value;
  encode_dead_letter(letter, value);
  RecordDecoder decoder;
  const auto read = decoder.dead_letter(letter.id, value);
  REQUIRE(read);
  CHECK(read->id == letter.id);
  CHECK(read->reason == letter.reason);
  CHECK(read->detail == letter.detail);
  CHECK(read->bytes == letter.bytes);
  CHECK(read->operation_id == letter.operation_id);
  CHECK(read->type == letter.type);
  CHECK(read->effect_key.empty());
  CHECK(read->sender == letter.sender);
  CHECK(read->sequence == letter.sequence);
  CHECK(read->issued_at == letter.issued_at);
  CHECK(read->deliveries == 3);
  CHECK(read->receives == 0);
  CHECK(read->redrives == 0);
  CHECK(read->first_at == letter.first_at);
  CHECK(read->last_at == letter.last_at);
  CHECK(read->stored_digest == letter.stored_digest);
  CHECK(read->offered_digest == letter.offered_digest);
}

TEST_CASE("what a dead letter knows of a queued job or a message survives writing and reading") {
  const Batch batch({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9})});
  DeadLetter letter = example_letter(batch.view()[1], batch.view()[0]);
  letter.stored_phase = Phase::pending;
  letter.errors = {"", "first", std::string(limits::queue_error_bytes_max, 'e')};
  letter.effect_unknown = true;
  letter.relay_key = example_relay_entry().key;
  Bytes value;
  encode_dead_letter(letter, value);
  const auto read = RecordDecoder().dead_letter(letter.id, value);
  REQUIRE(read);
  CHECK(read->relay_key == letter.relay_key);
  CHECK(read->stored_phase == Phase::pending);
  CHECK(read->errors == letter.errors);
  CHECK(read->effect_unknown);
}

TEST_CASE("a row of the queue survives writing and reading in every state") {
  for (const QueueState state : {QueueState::waiting, QueueState::leased, QueueState::calling, QueueState::held}) {
    QueueRow row = example_queue_row();
    row.state = state;
    row.effect_unknown = true;
    row.effect_key = "invoice-7";
    row.owner = "treasury";
    row.redrives = 300;
    row.receives_total = UINT64_MAX;
    row.errors = {"1", "2", "3", "4", "5"};
    Bytes value;
    encode_queued(row, value);
    const auto read = RecordDecoder().queued(value);
    REQUIRE(read);
    CHECK(read->state == state);
    CHECK(read->effect_unknown);
    CHECK(read->bytes == resize_job());
    CHECK(read->operation_id == "demo-5");
    CHECK(read->type == "resize");
    CHECK(read->effect_key == "invoice-7");
    CHECK(read->sender == row.sender);
    CHECK(read->sequence == row.sequence);
    CHECK(read->issued_at == row.issued_at);
    CHECK(read->accepted_at == row.accepted_at);
    CHECK(read->changed_at == row.changed_at);
    CHECK(read->receives == 2);
    CHECK(read->receives_total == UINT64_MAX);
    CHECK(read->redrives == 300);
    CHECK(read->token == row.token);
    CHECK(read->owner == "treasury");
    CHECK(read->errors == row.errors);
    for (std::size_t size = 0; size < value.size(); ++size)
      CHECK(!RecordDecoder().queued(BytesView(value).substr(0, size)));
    CHECK(!RecordDecoder().queued(value + '\0'));
  }
}

TEST_CASE("a row of the relay survives writing and reading and its key says what it is of") {
  RelayEntry entry = example_relay_entry();
  entry.row.redrives = 300;
  Bytes value;
  encode_relayed(entry.row, value);
  const auto read = RecordDecoder().relayed(value);
  REQUIRE(read);
  CHECK(read->job == entry.row.job);
  CHECK(read->created_at == entry.row.created_at);
  CHECK(read->redrives == 300);
  for (std::size_t size = 0; size < value.size(); ++size)
    CHECK(!RecordDecoder().relayed(BytesView(value).substr(0, size)));
  CHECK(!RecordDecoder().relayed(value + '\0'));
  Bytes old_format = value;
  old_format[1] = 1;
  CHECK(!RecordDecoder().relayed(old_format));

  const std::string longest(limits::relay_name_bytes_max, 'n');
  const Bytes parent = key_of_effect("e").bytes;
  for (const std::size_t index : {0U, 1U, 255U, 256U, 65'535U}) {
    const Bytes key = relay_key(longest, parent, index);
    const auto parts = relay_key_of(key);
    REQUIRE(parts);
    CHECK(parts->to == longest);
    CHECK(parts->parent == parent);
    CHECK(parts->index == index);
  }
  for (const Bytes &none : {Bytes(), Bytes("\0abc", 4), relay_key(longest + "n", parent, 0), Bytes("\x01n\0\0", 4)})
    CHECK(!relay_key_of(none));
}

TEST_CASE("a state of the queue out of range and more errors than are kept make no record") {
  Bytes good;
  encode_queued(example_queue_row(), good);
  RecordDecoder decoder;
  REQUIRE(decoder.queued(good));
  Bytes bad_state = good;
  bad_state[4] = 4; // behind the head of the array, of 3 bytes, and the format
  CHECK(!decoder.queued(bad_state));
  Bytes old_format = good;
  old_format[3] = 1;
  CHECK(!decoder.queued(old_format));
  QueueRow row = example_queue_row();
  row.errors.assign(limits::queue_errors_kept_max + 1, "x");
  Bytes too_many;
  encode_queued(row, too_many);
  CHECK(!decoder.queued(too_many));
}

TEST_CASE("sums survive writing and reading") {
  engine::Counters sums;
  std::int64_t next = -3;
  for (std::int64_t &sum : sums.all())
    sum = next++;
  sums[Counter::relayed_bytes] = std::numeric_limits<std::int64_t>::min();
  sums[Counter::queued_bytes] = std::numeric_limits<std::int64_t>::max();
  Bytes value;
  rocks::encode_sums(sums, value);
  CHECK(rocks::decode_sums(value) == sums);
  for (std::size_t size = 0; size < value.size(); ++size)
    CHECK(!rocks::decode_sums(BytesView(value).substr(0, size)));
  CHECK(!rocks::decode_sums(value + '\0'));
  CHECK(rocks::sums_number(rocks::sums_name(17)) == 17U);
  for (const std::string name : {"sums/", "sums/x", "sums/1x", "sums/-1", "sums/1234567", "counters/0"})
    CHECK(!rocks::sums_number(name));
}

TEST_CASE("the sums of formats 2 and 3 are read as they were") {
  const auto lane = decode_older_sum("counters/0", "\x9B\x02\x05\x02\x03\x01\x0A\x04\x01\x01\x07\x07");
  REQUIRE(lane);
  CHECK((*lane)[Counter::results] == 5);
  CHECK((*lane)[Counter::dead_letters] == 2);
  CHECK((*lane)[Counter::queued] == 2);
  CHECK((*lane)[Counter::queued_bytes] == 6);
  CHECK((*lane)[Counter::relayed] == 0);
  CHECK((*decode_older_sum("letter-bytes/3", "\x11"))[Counter::dead_letter_bytes] == 17);
  const auto changes = decode_older_sum("changes", "\x9D\x02\x01\x02\x09\x04\x01\x02\x03\x04\x05\x02\x03\x01");
  REQUIRE(changes);
  CHECK((*changes)[Counter::results] == 1);
  CHECK((*changes)[Counter::dead_letters] == -2);
  CHECK((*changes)[Counter::dead_letter_bytes] == 5);
  CHECK((*changes)[Counter::queued] == -1);
  CHECK((*changes)[Counter::relayed_bytes] == 2);
  CHECK(!decode_older_sum("counters/0", "\x93\x01\x05\x02")); // of format 1
  CHECK(!decode_older_sum("changes", "\x9B\x02\x05\x02\x03\x01\x0A\x04\x01\x01\x07\x07"));
  CHECK(is_older_sum("changes"));
  CHECK(!is_older_sum("sums/0"));
}

TEST_CASE("rows of the audit survive writing and reading") {
  Bytes value;
  RecordDecoder decoder;
  AuditRow row;
  row.action = "resolve";
  row.outcome = "stored";
  row.by = row.why = "kim";
  row.key = "key";
  encode_audit(row, value);
  CHECK(decoder.audit(value)->key == "key");
}

TEST_CASE("no record is read from bytes that were cut or continued or are of another format") {
  const Batch batch({job_bytes("demo-1", {1, 2, 3}), job_bytes("demo-1", {9})});
  const DeadLetter letter = example_letter(batch.view()[1], batch.view()[0]);
  Bytes operation;
  Bytes buried;
  encode_operation(example_record(batch.view()[0]), operation);
  encode_dead_letter(letter, buried);
  RecordDecoder decoder;
  for (std::size_t size = 0; size < operation.size(); ++size)
    CHECK(!decoder.operation(BytesView(operation).substr(0, size)));
  for (std::size_t size = 0; size < buried.size(); ++size)
    CHECK(!decoder.dead_letter(letter.id, BytesView(buried).substr(0, size)));
  CHECK(!decoder.operation(operation + '\0'));
  CHECK(!decoder.operation(buried));
  CHECK(!decoder.dead_letter(letter.id, operation));

  operation[1] = static_cast<char>(disk_format + 1); // the format is the array's first element
  CHECK(!decoder.operation(operation));
}

TEST_CASE("a phase or durability or digest out of range makes no record") {
  const Batch batch({job_bytes("demo-1", {1, 2, 3})});
  Bytes good;
  encode_operation(example_record(batch.view()[0]), good);
  RecordDecoder decoder;
  REQUIRE(decoder.operation(good));
  Bytes bad_phase = good;
  bad_phase[2] = 3;
  CHECK(!decoder.operation(bad_phase));
  Bytes bad_durability = good;
  bad_durability.back() = 2;
  CHECK(!decoder.operation(bad_durability));
  Bytes no_digest = good;
  no_digest.replace(3, 34, "\xC0"); // nil in place of the binary of 32 bytes
  CHECK(!decoder.operation(no_digest));
}

TEST_CASE("dead letter ids tell keys and digests and reasons apart") {
  const Batch batch({job_bytes("a", {1}), job_bytes("a", {2}), job_bytes("b", {1})});
  const auto &jobs = batch.view();
  Digester digester;
  const auto id = dead_letter_id(*jobs[0].key, jobs[0].digest, Outcome::conflict, digester);
  CHECK(id == dead_letter_id(*jobs[0].key, jobs[0].digest, Outcome::conflict, digester));
  CHECK(id != dead_letter_id(*jobs[0].key, jobs[0].digest, Outcome::failed, digester));
  const auto other_digest = dead_letter_id(*jobs[1].key, jobs[1].digest, Outcome::conflict, digester);
  CHECK(id != other_digest);
  CHECK(id.view().substr(0, 8) == other_digest.view().substr(0, 8)); // the letters of one key lie together
  CHECK(id.view().substr(0, 8) !=
        dead_letter_id(*jobs[2].key, jobs[2].digest, Outcome::conflict, digester).view().substr(0, 8));
  CHECK(dead_letter_id("x", digester) != dead_letter_id("y", digester));
  CHECK(dead_letter_id("x", digester).view() == digester.plain("x").view().substr(0, 16));
}

TEST_CASE("the names of durability and phase read back") {
  for (const Durability durability : {Durability::fsync, Durability::page_cache})
    CHECK(durability_of(name_of(durability)) == durability);
  CHECK(name_of(Durability::fsync) == "fsync");
  CHECK(name_of(Durability::page_cache) == "page-cache");
  CHECK(!durability_of("sometimes"));
  CHECK(name_of(Phase::committed) == "committed");
  CHECK(name_of(Phase::pending) == "pending");
  CHECK(name_of(Phase::failed) == "failed");
  CHECK(name_of(QueueState::waiting) == "waiting");
  CHECK(name_of(QueueState::leased) == "leased");
  CHECK(name_of(QueueState::calling) == "calling");
  CHECK(name_of(QueueState::held) == "held");
}
