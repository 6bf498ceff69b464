// The model of the campaign and what it knows of formats: every harm that it is there to find is found when it is
// planted, and nothing is found where there is none. It does not show that the campaign drives the program into such a
// harm.
#include <doctest/doctest.h>
#include <iterator>

#include <limits>

#include "crash/kills.hpp"
#include "crash/model.hpp"

using namespace onced::crash;

namespace {

const Job six{.operation_id = "demo-1", .numbers = {1, 2, 3}};
const Job nine{.operation_id = "demo-1", .numbers = {9}};
const Job failing{.operation_id = "big", .numbers = {std::numeric_limits<std::int64_t>::max(), 1}};

// A model, and a database that an honest worker has written.
struct Scene {
  Model model;
  Scan disk;

  void store(const Job &job) {
    const Bytes result = messagepack_of(*sum_of(job));
    disk.rows[key_of(job)] = {.digest = digest_of(job),
                              .result = result,
                              .operation_id = job.operation_id,
                              .type = job.type,
                              .effect_key = job.effect_key,
                              .value = digest_of(job) + result};
    disk.results_counted = std::ssize(disk.rows);
  }
  void bury(const Job &job, Reason reason, const Bytes &stored_digest = {}) {
    bury(letter_id_of(job, reason), {.reason = static_cast<unsigned>(reason),
                                     .bytes = messagepack_of(job),
                                     .operation_id = job.operation_id,
                                     .deliveries = 1,
                                     .stored_digest = stored_digest,
                                     .offered_digest = digest_of(job)});
  }
  void bury(const Bytes &bytes) {
    bury(letter_id_of(bytes),
         {.reason = 3, .bytes = bytes, .operation_id = {}, .deliveries = 1, .stored_digest = {}, .offered_digest = {}});
  }
  void bury(const Bytes &id, const Letter &letter) {
    disk.letters[id] = letter;
    disk.letters_counted = std::ssize(disk.letters);
  }
  void exhume(const Bytes &id) {
    disk.letters.erase(id);
    disk.letters_counted = std::ssize(disk.letters);
  }

  // `six` is stored and told, `nine` is a conflict, `failing` has failed.
  void settle_all() {
    model.offered(0, six, 1);
    model.offered(0, failing, 1);
    model.offered(1, nine, 1);
    store(six);
    bury(nine, Reason::conflict, digest_of(six));
    bury(failing, Reason::failed);
    model.told(0, {"demo-1", "stored", "6"});
    model.told(0, {"big", "failed", "absent"});
    model.told(1, {"demo-1", "conflict", "absent"});
    CHECK(model.sender_ended(0, true, {}).empty());
    CHECK(model.sender_ended(1, true, {}).empty());
  }

  // The harms that are found now, each once.
  std::string harms() {
    model.compare(disk);
    model.at_rest();
    std::set<std::string> names;
    for (const Finding &finding : model.take_findings())
      names.emplace(name_of(finding.harm));
    std::string text;
    for (const std::string &name : names)
      text.append(text.empty() ? "" : ", ").append(name);
    return text.empty() ? "none" : text;
  }
};

} // namespace

TEST_CASE("keys and digests and ids of dead letters are those of the worked example in the documents") {
  CHECK(hex_of(key_of(six)) == "010373756d0664656d6f2d31");
  CHECK(hex_of(digest_of(six)) == "b2f97885761ac287fdf358923c6f3c3398630f2f3ffa7ecaa71ac072d54838de");
  CHECK(hex_of(letter_id_of(nine, Reason::conflict)) == "828f1e30c9536581236bf6109acef2c7");
  CHECK(hex_of(key_of("sum", "demo-1", "invoice-7")) == "0209696e766f6963652d37");
}

TEST_CASE("an honest worker is found to do no harm") {
  Scene scene;
  CHECK(scene.harms() == "none");
  scene.settle_all();
  CHECK(scene.harms() == "none");
  CHECK(scene.harms() == "none");
}

TEST_CASE("what was not acknowledged may be there or not") {
  Scene scene;
  scene.model.offered(0, six, 1);
  scene.model.offered(1, failing, 1);
  CHECK(scene.harms() == "none");
  scene.store(six);
  scene.bury(failing, Reason::failed);
  CHECK(scene.harms() == "none");
}

TEST_CASE("an acknowledged row that is missing is a loss") {
  Scene scene;
  scene.settle_all();
  scene.disk.rows.clear();
  scene.disk.results_counted = 0;
  scene.exhume(letter_id_of(nine, Reason::conflict));
  CHECK(scene.harms() == "loss");
}

TEST_CASE("a row that was seen once and is missing later is a loss though nobody was told") {
  Scene scene;
  scene.model.offered(0, six, 1);
  scene.store(six);
  CHECK(scene.harms() == "none");
  scene.disk = {};
  CHECK(scene.harms() == "loss");
}

TEST_CASE("a dead letter that was told and is missing is a loss") {
  Scene scene;
  scene.settle_all();
  scene.exhume(letter_id_of(failing, Reason::failed));
  CHECK(scene.harms() == "loss");
}

TEST_CASE("a job that its sender has neither told nor kept is a loss") {
  Scene scene;
  scene.model.offered(0, six, 2);
  CHECK(scene.model.sender_ended(0, false, {"demo-1", "demo-1"}).empty());
  CHECK(scene.harms() == "none");
  CHECK(scene.model.sender_ended(0, false, {"demo-1"}).empty());
  CHECK(scene.harms() == "loss");
}

TEST_CASE("a sender that ends with a job in its outbox has lost it") {
  Scene scene;
  scene.model.offered(0, six, 1);
  CHECK(scene.model.sender_ended(0, true, {"demo-1"}).empty());
  CHECK(scene.harms() == "loss");
}

TEST_CASE("the input of a killed sender is taken as a whole or given back") {
  Scene scene;
  scene.model.offered(0, six, 1);
  scene.model.offered(0, failing, 1);
  CHECK(scene.model.sender_ended(0, false, {}).size() == 2);
  CHECK(!scene.model.holds(0, "demo-1"));
  CHECK(scene.harms() == "none");
  scene.model.offered(0, six, 1);
  scene.model.offered(0, failing, 1);
  CHECK(scene.model.sender_ended(0, false, {"big"}).empty());
  CHECK(scene.harms() == "loss");
}

TEST_CASE("a second stored acknowledgement is a double effect") {
  Scene scene;
  scene.settle_all();
  scene.model.offered(1, six, 1);
  scene.model.told(1, {"demo-1", "stored", "6"});
  CHECK(scene.harms() == "double effect");
}

TEST_CASE("a stored acknowledgement of what was there before is a double effect though it is the first") {
  Scene scene;
  scene.model.offered(0, six, 1);
  scene.store(six);
  CHECK(scene.harms() == "none");
  scene.model.told(0, {"demo-1", "stored", "6"});
  CHECK(scene.harms() == "double effect");
}

TEST_CASE("a row that changes is a double effect") {
  Scene scene;
  scene.settle_all();
  CHECK(scene.harms() == "none");
  scene.disk.rows.begin()->second.value += "x";
  CHECK(scene.harms() == "double effect");
}

TEST_CASE("a row with another result than its job has is a false acknowledgement") {
  Scene scene;
  scene.settle_all();
  scene.disk.rows.begin()->second.result = messagepack_of(7);
  scene.disk.rows.begin()->second.value = "changed";
  CHECK(scene.harms() == "false acknowledgement");
}

TEST_CASE("a duplicate with the result of another intent is a false acknowledgement") {
  Scene scene;
  scene.settle_all();
  scene.model.offered(0, six, 1);
  scene.model.told(0, {"demo-1", "duplicate", "9"});
  CHECK(scene.harms() == "false acknowledgement");
}

TEST_CASE("success for the second intent or conflict for the first is a false acknowledgement") {
  for (const char *outcome : {"stored", "duplicate"}) {
    CAPTURE(outcome);
    Scene scene;
    scene.model.offered(0, six, 1);
    scene.model.offered(1, nine, 1);
    scene.store(six);
    scene.model.told(1, {"demo-1", outcome, "9"});
    CHECK(scene.harms() == "false acknowledgement");
  }
  Scene scene;
  scene.settle_all();
  scene.model.offered(0, six, 1);
  scene.model.told(0, {"demo-1", "conflict", "absent"});
  CHECK(scene.harms() == "false acknowledgement");
}

TEST_CASE("an outcome that fits no promise is a false acknowledgement") {
  for (const char *outcome : {"unsettled", "busy", "invalid", "absent"}) {
    CAPTURE(outcome);
    Scene scene;
    scene.model.offered(0, six, 1);
    scene.model.told(0, {"demo-1", outcome, "absent"});
    CHECK(scene.harms() == "false acknowledgement");
  }
  Scene scene;
  scene.model.told(0, {"never sent", "stored", "6"});
  scene.model.offered(0, failing, 1);
  scene.model.told(0, {"big", "stored", "0"});
  CHECK(scene.harms() == "false acknowledgement");
}

TEST_CASE("a row or dead letter of what was never sent is a stray") {
  Scene scene;
  scene.store(six);
  CHECK(scene.harms() == "stray");
  Scene letters;
  letters.bury(failing, Reason::failed);
  CHECK(letters.harms() == "stray");
  Scene refused;
  refused.model.offered(0, failing, 1);
  refused.bury(failing, Reason::invalid);
  CHECK(refused.harms() == "stray");
}

TEST_CASE("a conflict that names another row than the one there is a stray") {
  Scene scene;
  scene.settle_all();
  scene.disk.letters.at(letter_id_of(nine, Reason::conflict)).stored_digest = digest_of(nine);
  CHECK(scene.harms() == "stray");
}

TEST_CASE("counters that do not count what is there are a stray") {
  Scene scene;
  scene.settle_all();
  ++scene.disk.results_counted;
  CHECK(scene.harms() == "stray");
}

TEST_CASE("a purged dead letter that comes back by itself is a stray and one that is delivered again is none") {
  Scene scene;
  scene.settle_all();
  const Bytes id = letter_id_of(failing, Reason::failed);
  scene.model.change_asked(id, true);
  scene.model.change_told(id, "purged", true, false);
  scene.exhume(id);
  CHECK(scene.harms() == "none");
  scene.bury(failing, Reason::failed);
  CHECK(scene.harms() == "stray");
  scene.model.offered(0, failing, 1);
  CHECK(scene.harms() == "none");
}

TEST_CASE("a redriven job is a dead letter or a result and never both or neither") {
  const Bytes id = letter_id_of(messagepack_of(six));
  Scene done;
  done.model.parked(six);
  done.bury(messagepack_of(six));
  CHECK(done.harms() == "none");
  CHECK(done.model.changeable() == std::vector<Bytes>{id});
  done.model.change_asked(id, false);
  CHECK(done.harms() == "none"); // nobody was told, and nothing was done
  done.model.change_asked(id, false);
  done.exhume(id);
  done.store(six);
  CHECK(done.harms() == "none"); // nobody was told, and it was done
  CHECK(done.model.changeable().empty());

  for (const bool both : {true, false}) {
    CAPTURE(both);
    Scene scene;
    scene.model.parked(six);
    scene.model.change_asked(id, false);
    if (both) {
      scene.bury(messagepack_of(six));
      scene.store(six);
    }
    CHECK(scene.harms().find(both ? "double effect" : "loss") != std::string::npos);
  }
}

TEST_CASE("a redrive that is told and not done is a loss") {
  Scene scene;
  const Bytes id = letter_id_of(messagepack_of(six));
  scene.model.parked(six);
  scene.bury(messagepack_of(six));
  scene.model.change_asked(id, false);
  scene.model.change_told(id, "stored", true, false);
  CHECK(scene.harms() == "loss, stray");
}

TEST_CASE("bytes that are no job are a dead letter once they are told as invalid") {
  Scene scene;
  scene.model.poison_offered("no job");
  scene.model.poison_told("no job", "invalid");
  CHECK(scene.harms() == "loss");
  scene.bury("no job");
  CHECK(scene.harms() == "none");
  scene.model.poison_told("no job", "stored");
  CHECK(scene.harms() == "false acknowledgement");
}

TEST_CASE("the points are read from the help and every kill is dealt before one is dealt again") {
  const auto points = points_in(
      "--kill-at NAME:N  the Nth arrival at one of worker.received, worker.after-commit, worker.after-reopen.");
  CHECK(points == std::vector<std::string>{"worker.after-commit", "worker.received"});
  CHECK_THROWS(static_cast<void>(points_in("--data DIR")));
  Deck deck({"a", "b", "c"}, 1);
  CHECK(std::set<std::string>{deck.deal(), deck.deal(), deck.deal()}.size() == 3);
  deck.put_back("b");
  CHECK(deck.deal() == "b");
}
