#include "rehearsal/scenarios.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace onced::rehearsal {
namespace {

// One job after the other, so that which of them a kill meets is no chance.
const Words one_by_one{"--window", "1"};

void play_sequential(Stage &stage) {
  stage.start_worker();
  stage.send(stage.seeds(), one_by_one);
}

void play_duplicate_publish(Stage &stage) {
  stage.start_worker();
  for (unsigned copy = 0; copy < stage.scenario().copies; ++copy)
    stage.send(stage.seeds());
}

// The senders wait for a worker; its greeting lets both go. Its threads hold their batches before the commit, so that
// both have copies of the same jobs in hand.
void play_duplicates_at_once(Stage &stage) {
  const Words copies{"--copies", std::to_string(stage.scenario().copies)};
  Child &first = stage.start_sender(stage.seeds(), copies);
  Child &second = stage.start_sender(stage.seeds(), copies);
  stage.start_worker({"--delay-commit", "50ms"});
  stage.finish(first);
  stage.finish(second);
}

// No reply passes until the worker has committed every job, and seen every job again after its timeout.
void play_lost_acknowledgement(Stage &stage) {
  stage.start_worker({"--drop-replies", "1"});
  Child &sender = stage.start_sender(stage.seeds());
  stage.await_settled(stage.seeds().size(), true);
  stage.stop_worker();
  stage.start_worker();
  stage.finish(sender);
}

void play_kill(Stage &stage, const std::string &point) {
  stage.start_worker_to_be_killed(point);
  Child &sender = stage.start_sender(stage.seeds(), one_by_one);
  stage.await_kill();
  stage.start_worker();
  stage.finish(sender);
}

void play_kill_before_commit(Stage &stage) {
  play_kill(stage, "worker.before-commit");
}

void play_kill_after_commit(Stage &stage) {
  play_kill(stage, "worker.after-commit");
}

Words outbox_of(const Stage &stage, const Words &more = {}) {
  Words words{"--outbox", stage.data().parent_path() / "outbox"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void play_kill_sender_after_outbox(Stage &stage) {
  stage.start_worker();
  Child &sender = stage.start_sender(stage.seeds(), outbox_of(stage, {"--kill-at", "sender.after-outbox:1"}));
  stage.await_kill(sender, "sender.after-outbox");
  stage.finish(stage.resume_sender(outbox_of(stage)));
}

// Whether a message that was sent has left a killed process is chance; so it is killed once the worker has it.
void play_kill_sender_after_send(Stage &stage) {
  stage.start_worker({"--drop-replies", "1"});
  Child &sender = stage.start_sender(stage.seeds(), outbox_of(stage));
  stage.await_settled(stage.seeds().size(), false);
  stage.kill(sender, "sender.after-send");
  stage.stop_worker();
  stage.start_worker();
  stage.finish(stage.resume_sender(outbox_of(stage)));
}

// The senders wait for a worker; its greeting lets both go.
void play_race(Stage &stage) {
  Child &first = stage.start_sender(stage.seeds());
  Child &second = stage.start_sender(stage.seeds());
  stage.start_worker();
  stage.finish(first);
  stage.finish(second);
}

// The same id with another payload: a list in it has one more number or, where it has no list, it has one more field.
std::string changed(const std::string &line) {
  Json job = Json::parse(line);
  const auto list = std::find_if(job.begin(), job.end(), [](const Json &field) { return field.is_array(); });
  if (list != job.end()) {
    list->push_back(1);
  } else {
    job["changed_intent"] = true;
  }
  return job.dump();
}

void play_changed_intent(Stage &stage) {
  std::vector<std::string> others;
  std::transform(stage.seeds().begin(), stage.seeds().end(), std::back_inserter(others), changed);
  stage.start_worker();
  stage.send(stage.seeds(), one_by_one);
  stage.send(others, one_by_one);
  stage.send(stage.seeds(), one_by_one); // the first intent is still there, with its result
}

// All of them wait for the worker, which so finds the bad among the good.
void play_poison(Stage &stage) {
  std::vector<Child *> senders{&stage.start_raw_sender("not-json")};
  senders.push_back(&stage.start_sender(stage.seeds()));
  senders.push_back(&stage.start_raw_sender("\xdf\xff\xff\xff\xff")); // a map of 4 G entries that are not there
  stage.start_worker();
  for (Child *sender : senders)
    stage.finish(*sender);
}

// The cause is the transport: a job that came in two frames is refused, and good once it comes in one.
void play_redrive(Stage &stage) {
  stage.start_worker();
  stage.send_in_parts(stage.seeds().front());
  stage.redrive(stage.seeds().front());
  stage.send(stage.seeds(), one_by_one);
}

constexpr std::string_view needs_dropped_replies = "someone else's worker cannot be told to drop its replies";

constexpr std::array<Scenario, 13> all{{
    {.name = "sequential",
     .title = "each seed job once",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_sequential},
    {.name = "duplicate publish",
     .title = "the same jobs again within a minute",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_duplicate_publish},
    {.name = "duplicates at once",
     .title = "copies of each job from two senders at the same moment",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_duplicates_at_once},
    {.name = "lost acknowledgement",
     .title = "committed, the reply dropped; redelivered after the timeout",
     .kill_point = "",
     .foreign_obstacle = needs_dropped_replies,
     .guard = "",
     .play = play_lost_acknowledgement},
    {.name = "kill before commit",
     .title = "the worker killed before its first commit; restarted",
     .kill_point = "worker.before-commit",
     .foreign_obstacle = "someone else's worker marks no step before its commit",
     .guard = "",
     .play = play_kill_before_commit},
    {.name = "kill after commit",
     .title = "the worker killed after its first commit, before the reply; restarted",
     .kill_point = "worker.after-commit",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_kill_after_commit},
    {.name = "kill the sender after the outbox write",
     .title = "the sender killed before its first send; resumed",
     .kill_point = "sender.after-outbox",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_kill_sender_after_outbox},
    {.name = "kill the sender after send",
     .title = "the sender killed after its jobs have arrived, before any reply; resumed",
     .kill_point = "sender.after-send",
     .foreign_obstacle = needs_dropped_replies,
     .guard = "",
     .play = play_kill_sender_after_send},
    {.name = "changed intent",
     .title = "the same ids with other payloads, then the first again",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_changed_intent},
    {.name = "poison",
     .title = "bytes that are no job, among good ones",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "",
     .play = play_poison},
    {.name = "redrive",
     .title = "a dead letter, redriven after its cause is fixed; then every job with the same ids",
     .kill_point = "",
     .foreign_obstacle = "someone else's worker has no dead letters that onced could redrive",
     .guard = "",
     .play = play_redrive},
    {.name = "unguarded memory under a kill",
     .title = "the control: seen ids in memory; killed after an effect, restarted",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "memory",
     .play = play_kill_after_commit},
    {.name = "unguarded check then insert under a race",
     .title = "the control: it looks, then inserts; the same jobs from two senders",
     .kill_point = "",
     .foreign_obstacle = "",
     .guard = "check-then-insert",
     .play = play_race},
}};

} // namespace

std::span<const Scenario> scenarios() {
  return all;
}

const Scenario *find_scenario(std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Scenario &one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  std::transform(all.begin(), all.end(), std::back_inserter(names),
                 [](const Scenario &one) { return std::string(one.name); });
  return names;
}

} // namespace onced::rehearsal
