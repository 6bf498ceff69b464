// What strangers wrote reaches a terminal as text only: ids, details, results and errors, from the wire and from the
// disk, on stdout and on stderr.
#include <algorithm>

#include <doctest/doctest.h>

#include "admin/queries.hpp"
#include "support/impostor.hpp"
#include "support/raw_peer.hpp"
#include "wire/messages.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

// A title for the terminal, CSI as one character of C1, DEL, and two that turn the direction of writing.
const std::string hostile = "a\x1b]0;owned\x07\xc2\x9b"
                            "31m\x7f\xe2\x80\xae"
                            "b\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8";
// How `hostile` is shown.
const std::string shown = R"(a\u001b]0;owned\u0007\u009b31m\u007f\u202eb\u2066\u061c\u2028)";

// Anything but printable ASCII, and line ends where lines are printed.
bool is_plain(const std::string &text) {
  return std::all_of(text.begin(), text.end(), [](char one) { return (one >= ' ' && one <= '~') || one == '\n'; });
}

Bytes text_value(const std::string &text) {
  return Bytes(1, static_cast<char>(0xd9)) + Bytes(1, static_cast<char>(text.size())) + text;
}

} // namespace

TEST_CASE("a hostile worker's result and detail are printed escaped") {
  const WorkerProcess absent;
  Impostor impostor(absent);
  Process sender({.arguments = absent.send(), .input = jobs_as_json("job", 2)});
  impostor.greet_next();
  BootId boot{};
  wire::RepliesEncoder replies(boot, Durability::fsync);
  const wire::Batch &batch = impostor.next_batch();
  REQUIRE(batch.entries.size() == 2);
  const Bytes result = text_value(hostile);
  replies.add({.sequence = batch.entries[0].sequence,
               .tag = batch.entries[0].tag,
               .outcome = Outcome::stored,
               .result = result,
               .detail = {}});
  replies.add({.sequence = batch.entries[1].sequence,
               .tag = batch.entries[1].tag,
               .outcome = Outcome::failed,
               .result = {},
               .detail = hostile});
  for (const Bytes &frame : replies.take())
    impostor.say(frame);
  const Finished sent = finish(sender);
  CHECK(sent.exit == 1);
  CHECK(is_plain(sent.output));
  CHECK(is_plain(sent.errors));
  CHECK(contains(sent.output, R"("result":")" + shown + '"'));
  CHECK(contains(sent.output, R"("detail":")" + shown + '"'));
  for (const Line &line : sent.lines())
    CHECK((line["result"] == hostile || line["detail"] == hostile)); // as JSON it is the same text
}

TEST_CASE("an id that a stranger sent is printed escaped by every command that lists it") {
  WorkerProcess worker;
  worker.start();
  RawPeer peer(worker);
  peer.greet();
  CHECK(outcomes_of(peer.deliver({job_bytes(hostile, {1}), job_bytes(hostile, {2})})) == "stored conflict");
  const std::string data = worker.data().string();
  const std::string letter = dead_letters(worker.data()).front()["id"];
  for (const Arguments &command : std::vector<Arguments>{{"get", hostile},
                                                         {"dead-letters", "list"},
                                                         {"dead-letters", "show", letter},
                                                         {"dead-letters", "redrive", letter, "--dry-run"}}) {
    const Finished told = run_command(command + Arguments{"--data", data});
    CAPTURE(told.output);
    CHECK(told.exit == 0);
    CHECK(is_plain(told.output));
    CHECK(contains(told.output, shown));
    CHECK(told.line()["operation_id"] == hostile);
  }
}

TEST_CASE("an error that a hostile worker answers with is printed escaped") {
  FakeWorker worker;
  Process query({.arguments = {"count", "--replies", worker.replies_endpoint()}});
  worker.answer_next(wire::encode_answer(
      admin::answer_error({.code = ErrorCode::corrupt, .concerns = hostile, .cause = hostile, .remedy = "none"})));
  const Finished asked = finish(query);
  CHECK(asked.exit != 0);
  CHECK(is_plain(asked.errors));
  CHECK(contains(asked.errors, shown));
}

TEST_CASE("arguments that are wrong are printed escaped") {
  for (const Arguments &wrong : std::vector<Arguments>{{hostile}, {"count", hostile}, {"send", "--" + hostile}}) {
    const Finished refused = run_command(wrong);
    CHECK(refused.exit == 64);
    CHECK(is_plain(refused.errors));
  }
}
