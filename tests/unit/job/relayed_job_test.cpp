// What a message of a result may be, and the job that it becomes. Not here: how it is stored and sent on.
#include <doctest/doctest.h>

#include <set>

#include "job/relayed_job.hpp"
#include "onced/limits.hpp"
#include "unit/job/support.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

const Bytes parent = key_of_operation("sum", "demo-1").bytes;

// A map of these many entries, `{"0": "0", "1": "1", ...}`.
Bytes entries_map(std::size_t entries) {
  Bytes out;
  messagepack::Writer writer(out);
  writer.map(entries);
  for (std::size_t at = 0; at < entries; ++at)
    writer.string(std::to_string(at)).string(std::to_string(at));
  return out;
}

Bytes with(std::string_view name, std::string_view value) {
  Bytes out;
  messagepack::Writer(out).map(1).string(name).string(value);
  return out;
}

std::string defect(std::vector<RelayMessage> messages) {
  JobParser parser;
  return defect_of(messages, parser).value_or("none");
}

Job job_of(const Bytes &message, std::string_view traceparent = {}) {
  JobParser parser;
  Digester digester;
  Job job;
  REQUIRE(parser.parse(relayed_job(message, parent, 3, traceparent, digester, parser), job).has_value());
  return job;
}

} // namespace

TEST_CASE("a message becomes a job with an operation id of its parent and index and all its own fields") {
  for (const std::size_t entries : {0U, 1U, 15U, 16U, 5000U}) {
    const Bytes message = entries_map(entries);
    CHECK(defect({{.to = "next", .job = message}}) == "none");
    const Job job = job_of(message);
    CHECK(job.operation_id.size() == 64);
    JobParser parser;
    CHECK(job.payload == parser.canonical(message));
    CHECK(job.traceparent.empty());
  }
  CHECK(job_of(with("effect_key", "invoice-7")).effect_key == "invoice-7");
  CHECK(job_of(with("type", "mail")).type == "mail");
}

TEST_CASE("the operation id is that of the storage document and differs with each key and index") {
  Digester digester;
  CHECK(relayed_operation_id(parent, 0, digester) ==
        to_hex(digester.plain("onced relay 1\n" + parent + Bytes(2, 0)).view()));
  std::set<std::string> ids;
  for (const Bytes &key : {parent, key_of_operation("sum", "demo-2").bytes, key_of_effect("demo-1").bytes}) {
    for (std::size_t index = 0; index < 300; ++index)
      ids.insert(relayed_operation_id(key, index, digester));
  }
  CHECK(ids.size() == 900);
  CHECK(relayed_operation_id(parent, 7, digester) == relayed_operation_id(parent, 7, digester));
}

TEST_CASE("a message without a trace context has that of its parent") {
  CHECK(job_of(entries_map(1), "00-parent").traceparent == "00-parent");
  CHECK(job_of(with("traceparent", "00-own"), "00-parent").traceparent == "00-own");
  CHECK(job_of(with("traceparent", ""), "00-parent").traceparent.empty());
  CHECK(job_of(entries_map(1), std::string(limits::traceparent_bytes_max, 't')).traceparent.size() ==
        limits::traceparent_bytes_max);
}

TEST_CASE("a message that makes no job is told with its number") {
  const RelayMessage good{.to = "next", .job = entries_map(1)};
  const auto second = [&](Bytes job) { return defect({good, {.to = "next", .job = std::move(job)}}); };
  const std::string start = "message 1 of the result cannot be sent on: it makes no job with an operation id of ours: ";
  CHECK(second(with("operation_id", "mine")) == start + "duplicate_name");
  CHECK(second("") == start + "malformed");
  CHECK(second("\xC0") == start + "malformed");
  CHECK(second(hex("90")) == start + "malformed");
  CHECK(second(hex("81a16101") + "x") == start + "trailing_bytes");
  CHECK(second(hex("81a161")) == start + "malformed");
  CHECK(second(hex("810101")) == start + "name_not_a_string");
  CHECK(second(hex("81a161cb7ff8000000000000")) == start + "not_finite");
  CHECK(second(with("type", "")) == start + "bad_type");
  CHECK(second(with("effect_key", std::string(256, 'e'))) == start + "bad_effect_key");
  // Heads that claim more than there is.
  for (const char *head : {"de", "deff", "deffff", "df", "df000000", "dfffffffff", "8f"})
    CHECK(second(hex(head)) == start + "malformed");
}

TEST_CASE("a destination is a name of 1 to 64 bytes of UTF-8") {
  const auto to = [](std::string name) { return defect({{.to = std::move(name), .job = entries_map(1)}}); };
  CHECK(to("n") == "none");
  CHECK(to(std::string(limits::relay_name_bytes_max, 'n')) == "none");
  const std::string refused =
      "message 0 of the result cannot be sent on: its destination is not 1 to 64 bytes of UTF-8";
  CHECK(to("") == refused);
  CHECK(to(std::string(limits::relay_name_bytes_max + 1, 'n')) == refused);
  CHECK(to("\xFF") == refused);
}

TEST_CASE("messages at their limits are kept and one more or one byte more is not") {
  const RelayMessage small{.to = "next", .job = entries_map(0)};
  CHECK(defect(std::vector<RelayMessage>(limits::relay_messages_max, small)) == "none");
  CHECK(defect(std::vector<RelayMessage>(limits::relay_messages_max + 1, small)) ==
        "the result has 17 messages, more than 16");
  const auto of_size = [](std::size_t size) {
    return RelayMessage{.to = "next", .job = with("p", std::string(size - 6, 'x'))};
  };
  REQUIRE(of_size(limits::relay_message_bytes_max).job.size() == limits::relay_message_bytes_max);
  CHECK(defect({of_size(limits::relay_message_bytes_max)}) == "none");
  CHECK(defect({of_size(limits::relay_message_bytes_max), small}) ==
        "the result has messages of 65537 bytes, more than 65536");
}

TEST_CASE("a handler's messages are kept as they are and those that cannot be sent on fail the job") {
  const auto run = [](RelayMessage message) {
    Handlers handlers;
    const auto handler = [&](const HandlerCall &) -> HandlerResult {
      return Done{.result = hex("01"), .messages = {message}};
    };
    REQUIRE(handlers.add_inline("test", handler));
    JobParser parser;
    return handlers.run({.operation_id = "a", .type = "test", .effect_key = {}, .traceparent = {}, .payload = "\x80"},
                        parser);
  };
  const HandlerResult done = run({.to = "next", .job = entries_map(2)});
  REQUIRE(std::holds_alternative<Done>(done));
  REQUIRE(std::get<Done>(done).messages.size() == 1);
  CHECK(std::get<Done>(done).messages[0].job == entries_map(2));
  CHECK(std::get<Done>(done).messages[0].to == "next");
  const HandlerResult failed = run({.to = "next", .job = "no map"});
  REQUIRE(std::holds_alternative<Failed>(failed));
  CHECK(std::get<Failed>(failed).detail.starts_with("message 0 of the result cannot be sent on"));
}
