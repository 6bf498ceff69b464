#include "rehearsal/scenarios.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include "onced/limits.hpp"
#include "rehearsal/effects.hpp"

namespace onced::rehearsal {
namespace {

// One job after the other, so that which of them a kill meets is no chance.
const Words one_by_one{"--window", "1"};

std::size_t half_of(std::size_t jobs) {
  return (jobs + 1) / 2;
}

void play_sequential(Stage &stage) {
  stage.start_worker();
  stage.send(stage.seeds(), one_by_one);
}

void play_duplicate_publish(Stage &stage) {
  stage.start_worker();
  for (unsigned copy = 0; copy < stage.scenario().copies; ++copy)
    stage.send(stage.seeds());
}

// The senders wait for a worker, whose greeting lets both go. Its threads look up and then wait before they lock, so
// that both have found the keys absent.
void play_duplicates_at_once(Stage &stage) {
  const Words copies{"--copies", std::to_string(stage.scenario().copies)};
  Child &first = stage.start_sender(stage.seeds(), copies);
  Child &second = stage.start_sender(stage.seeds(), copies);
  stage.start_worker({"--delay-commit", "500ms"});
  stage.finish(first);
  stage.finish(second);
  if (!stage.setting().is_foreign() && !stage.has_found_key_under_lock()) {
    throw StageFailure("the copies did not meet: no transaction has found its key present");
  }
}

// The sender throws the first reply to each job away, and asks again after the timeout. One thread of the worker
// answers in the order of its commits.
void play_lost_acknowledgement(Stage &stage) {
  const auto timeout = std::to_string(stage.setting().visibility_timeout().count()) + "ms";
  stage.start_worker({"--workers", "1"});
  stage.send(stage.seeds(), {"--lose-first-replies", "--acknowledgement-timeout", timeout});
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

Words outbox_of(const Stage &stage) {
  return {"--outbox", stage.directory() / "outbox"};
}

void play_kill_sender_after_outbox(Stage &stage) {
  stage.start_worker();
  Child &sender = stage.start_sender(stage.seeds(), outbox_of(stage) + Words{"--kill-at", "sender.after-outbox:1"});
  stage.await_kill(sender, "sender.after-outbox");
  stage.finish(stage.resume_sender(outbox_of(stage)));
}

// Whether a message that was sent has left a killed process is chance; so it is killed once it has been answered, of
// which it has heard nothing.
void play_kill_sender_after_send(Stage &stage) {
  stage.start_worker();
  Child &sender = stage.start_sender(stage.seeds(), outbox_of(stage) + Words{"--lose-first-replies"});
  stage.await_sender_events("reply.lost", stage.seeds().size());
  stage.kill(sender, "sender.unheard");
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

// Each seed under many ids of its own.
std::vector<std::string> multiplied(const Stage &stage) {
  std::vector<std::string> jobs;
  for (unsigned copy = 1; copy <= stage.scenario().copies; ++copy) {
    for (const std::string &line : stage.seeds()) {
      Json job = Json::parse(line);
      for (const char *name : {"operation_id", "effect_key"}) {
        if (job.contains(name) && job[name].is_string())
          job[name] = job[name].get<std::string>() + "#" + std::to_string(copy);
      }
      jobs.push_back(job.dump());
    }
  }
  return jobs;
}

// The worker sets no log of its usual size aside, as there is no room for it, so that the disk is full at once.
void play_store_unavailable(Stage &stage) {
  const std::vector<std::string> jobs = multiplied(stage);
  const SmallDisk &disk = stage.use_small_disk();
  stage.start_worker({"--memory", "1GiB"});
  disk.fill();
  Child &sender = stage.start_sender(jobs);
  stage.await_worker_events("store.unavailable");
  disk.free();
  stage.finish(sender);
}

void play_burst(Stage &stage) {
  stage.start_worker({"--delay-commit", "20ms"});
  stage.send(multiplied(stage), {"--window", std::to_string(burst_window_jobs)});
}

// The worker dies half-way, after a commit and before its reply; then the power fails, before anything else has written
// what the kernel holds.
void play_power_loss(Stage &stage) {
  CuttableDisk &disk = stage.use_cuttable_disk();
  stage.start_worker_to_be_killed("worker.after-commit", half_of(stage.seeds().size()));
  Child &sender = stage.start_sender(stage.seeds(), one_by_one);
  stage.await_kill();
  stage.cut_power(disk);
  stage.start_worker();
  stage.finish(sender);
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

// --- Effects outside the store ----------------------------------------------------------------------------------

// Whether the worker tells a sender the final outcome of its accepted job, or is asked for it again, is chance.
const Words asking_again{"--ask-again", "1s"};
const Words not_idempotent{"--not-idempotent", "--lose-response", "1"};

HandlerSetting external(const std::string &policy) {
  return {.keys = {{"external", true}, {"policy", policy}, {"owner", "rehearsal"}, {"backoff", "100ms"}}};
}

HandlerSetting external_with_query(const Stage &stage) {
  HandlerSetting handler = external("query");
  handler.keys.emplace_back("reconcile", stage.setting().plan.handler.reconcile);
  return handler;
}

void play_handled(Stage &stage, const Words &provider, const HandlerSetting &handler) {
  stage.start_provider(provider);
  stage.use_handler(handler);
  stage.start_worker();
  stage.send(stage.seeds(), asking_again);
}

void play_response_lost(Stage &stage) {
  play_handled(stage, {"--lose-response", "1"}, external("retry"));
}

void play_not_idempotent_retry(Stage &stage) {
  play_handled(stage, not_idempotent, external("retry"));
}

void play_not_idempotent_query(Stage &stage) {
  play_handled(stage, not_idempotent, external_with_query(stage));
}

void play_not_idempotent_hold(Stage &stage) {
  stage.start_provider(not_idempotent);
  stage.use_handler(external("hold"));
  stage.start_worker();
  Child &sender = stage.start_sender(stage.seeds(), asking_again);
  stage.await_effects(stage.seeds().size());
  stage.resolve_held(stage.seeds().size());
  stage.finish(sender);
}

// The provider has had the effect and does not answer: it will not have when the worker is killed.
void play_kill_during_call(Stage &stage) {
  stage.start_provider({"--late", "600000", "--late-calls", "1"});
  stage.use_handler(external("retry"));
  stage.start_worker();
  Child &sender = stage.start_sender(stage.seeds(), asking_again);
  stage.await_effects(1);
  stage.kill_worker("handler.calling");
  stage.stop_provider();
  stage.start_provider();
  stage.start_worker();
  stage.finish(sender);
}

// The first worker's handler sends the payload of its order on as a job of the seeds' type. The worker is killed
// between the commit of the first and its relay.
void play_chain(Stage &stage) {
  const std::string type = stage.setting().plan.seeds.type;
  stage.start_provider();
  stage.start_next_worker(external("retry"));
  const std::string send_on =
      R"(read -r order; printf '{"result":true,"messages":[{"to":"next","job":{"type":"%s",%s}]}' ')" + type +
      R"(' "${order#?}")";
  stage.use_handler({.type = std::string(order_type),
                     .command = {"/bin/sh", "-c", send_on},
                     .keys = {{"messages", true}, {"backoff", "100ms"}}});
  std::vector<std::string> orders;
  std::transform(stage.seeds().begin(), stage.seeds().end(), std::back_inserter(orders), order_of);
  stage.start_worker_to_be_killed("queue.after-settle");
  Child &sender = stage.start_sender(orders, asking_again);
  stage.await_kill();
  stage.start_worker();
  stage.finish(sender);
  stage.await_next_results(orders.size());
}

// The first run of each job goes on for longer than its lease, which nobody extends, and then ends well. The second
// begins when it has ended, and has a lease's length to end in. A lease of a second is more than a loaded machine
// needs.
void play_stale_owner(Stage &stage) {
  stage.use_handler({.command = {"/bin/sh", "-c", "[ $ONCED_ATTEMPT != 1 ] || sleep 2.5; echo $ONCED_ATTEMPT"},
                     .keys = {{"visibility-timeout", "1500ms"}, {"backoff", "100ms"}, {"concurrency", 6}}});
  stage.start_worker({"--cut-heartbeats"});
  stage.send(stage.seeds(), asking_again);
  for (const Json &told : stage.told()) {
    if (told.value("result", Json()) != 2) throw StageFailure("a result is not that of the second run");
  }
}

// A job of the type that onced-crashing handles: it ends its worker so many times, each noted in the file.
std::string crashing(const std::string &seed, const std::string &suffix, const std::filesystem::path &file,
                     unsigned times) {
  const Json job = Json::parse(seed);
  return Json{{"operation_id", text_in(job, "operation_id") + suffix},
              {"type", "crash"},
              {"file", file.string()},
              {"times", times}}
      .dump();
}

std::size_t lines_in(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);)
    ++lines;
  return lines;
}

// The poison stands among the others, and is never done.
void play_poison_that_kills(Stage &stage) {
  constexpr unsigned runs_max = limits::max_receive_count;
  const std::filesystem::path runs = stage.directory() / "poison.runs";
  std::vector<std::string> jobs;
  for (const std::string &seed : stage.seeds()) {
    jobs.push_back(crashing(seed, "", stage.directory() / "good.runs", 0));
    if (jobs.size() == half_of(stage.seeds().size())) jobs.push_back(crashing(seed, "#1", runs, 1000));
  }
  Child &sender = stage.start_sender(jobs);
  stage.supervise_crashing_worker(sender, runs_max + 2); // the last finds it used up; one more where a stop is slow
  stage.finish(sender);
  if (lines_in(runs) != runs_max) throw StageFailure("the poison was not run " + std::to_string(runs_max) + " times");
}

constexpr std::string_view no_handlers = "someone else's worker has no handlers of onced's";

std::size_t at_the_first(std::size_t) {
  return 1;
}
std::uint64_t told_each_copy(std::uint64_t jobs, std::uint64_t copies) {
  return jobs * copies;
}
std::uint64_t as_many_as_copies(std::uint64_t copies) {
  return copies;
}

constexpr auto all = std::to_array<Scenario>({
    {.name = "sequential", .title = "each seed job once", .play = play_sequential},
    {.name = "duplicate publish",
     .title = "the same jobs again within a minute",
     .play = play_duplicate_publish,
     .told = told_each_copy},
    {.name = "duplicates at once",
     .title = "copies of each job from two senders at the same moment",
     .play = play_duplicates_at_once,
     .told = [](std::uint64_t jobs, std::uint64_t copies) { return 2 * jobs * copies; }},
    {.name = "lost acknowledgement",
     .title = "committed, the reply lost; redelivered after the timeout",
     .play = play_lost_acknowledgement},
    {.name = "kill before commit",
     .title = "the worker killed before its first commit; restarted",
     .play = play_kill_before_commit,
     .kill_point = "worker.before-commit",
     .foreign_obstacle = "someone else's worker marks no step before its commit",
     .killed_at = at_the_first},
    {.name = "kill after commit",
     .title = "the worker killed after its first commit, before the reply; restarted",
     .play = play_kill_after_commit,
     .kill_point = "worker.after-commit",
     .killed_at = at_the_first},
    {.name = "kill the sender after the outbox write",
     .title = "the sender killed before its first send; resumed",
     .play = play_kill_sender_after_outbox,
     .kill_point = "sender.after-outbox",
     .told = nullptr}, // what the first write of the outbox held
    {.name = "kill the sender after send",
     .title = "the sender killed once every job was answered, having heard none of the answers; resumed",
     .play = play_kill_sender_after_send,
     .kill_point = "sender.unheard"},
    {.name = "changed intent",
     .title = "the same ids with other payloads, then the first again",
     .play = play_changed_intent,
     .told = [](std::uint64_t jobs, std::uint64_t) { return 3 * jobs; }},
    {.name = "poison",
     .title = "bytes that are no job, among good ones",
     .play = play_poison,
     .told = [](std::uint64_t jobs, std::uint64_t) { return jobs + 2; }},
    {.name = "store unavailable",
     .title = "no space on the worker's disk for a while, with jobs on their way",
     .play = play_store_unavailable,
     .foreign_obstacle = "someone else's worker cannot say when its store is unavailable",
     .may_be_told_either = true, // what became of a write that failed is found out by the next delivery
     .needs_mounts = true,
     .told = told_each_copy,
     .ids = as_many_as_copies},
    {.name = "burst",
     .title = "more jobs at once than the worker, slowed, can finish",
     .play = play_burst,
     .foreign_obstacle = "someone else's worker does not say which jobs it has in hand",
     .has_backlog = true,
     .told = told_each_copy,
     .ids = as_many_as_copies},
    {.name = "power loss",
     .title = "the worker killed after a commit, and what was not synced lost; restarted on what is left",
     .play = play_power_loss,
     .kill_point = "worker.after-commit",
     .needs_mounts = true,
     .killed_at = half_of},
    {.name = "redrive",
     .title = "a dead letter, redriven after its cause is fixed; then every job with the same ids",
     .play = play_redrive,
     .foreign_obstacle = "someone else's worker has no dead letters that onced could redrive"},
    {.name = "response lost after the effect",
     .title = "the provider has the effect and its response is lost; called again with the same key",
     .play = play_response_lost,
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true,
     .has_provider = true},
    {.name = "kill during the external call",
     .title = "the worker killed once the provider has had the effect, which it has not answered; restarted",
     .play = play_kill_during_call,
     .kill_point = "handler.calling",
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true,
     .has_provider = true},
    {.name = "not idempotent, retry",
     .title = "the response lost, and the provider has the effect at each call: the policy calls again",
     .play = play_not_idempotent_retry,
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true,
     .has_provider = true,
     .risk = "the policy retry trusts a provider to be idempotent, and this one is not"},
    {.name = "not idempotent, query",
     .title = "the same provider: the policy asks it before it calls again",
     .play = play_not_idempotent_query,
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true,
     .has_provider = true},
    {.name = "not idempotent, hold",
     .title = "the same provider: the jobs are held until a person has asked it",
     .play = play_not_idempotent_hold,
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true,
     .has_provider = true},
    {.name = "stale owner finishing late",
     .title = "a run longer than its lease, which nobody extends; then a second run",
     .play = play_stale_owner,
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true},
    {.name = "chain of two workers",
     .title = "a worker that sends its results on, killed between a commit and its relay; restarted",
     .play = play_chain,
     .kill_point = "queue.after-settle",
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .needs_handler = true,
     .has_provider = true,
     .makes_types = true},
    {.name = "poison that kills",
     .title = "a job among good ones whose handler ends its worker each time; started again each time",
     .play = play_poison_that_kills,
     .foreign_obstacle = no_handlers,
     .may_be_told_either = true,
     .makes_types = true,
     .told = [](std::uint64_t jobs, std::uint64_t) { return jobs + 1; }},
    {.name = "unguarded memory under a kill",
     .title = "the control: seen ids in memory; killed after an effect, restarted",
     .play = play_kill_after_commit,
     .kill_point = "worker.after-effect",
     .guard = "memory"},
    {.name = "unguarded check then insert under a race",
     .title = "the control: it looks, then inserts; the same jobs from two senders",
     .play = play_race,
     .guard = "check-then-insert"},
});

} // namespace

std::string told_as(const Scenario &scenario, const std::string &outcome) {
  const bool is_success = outcome == "stored" || outcome == "duplicate";
  return scenario.may_be_told_either && is_success ? "settled" : outcome;
}

std::uint64_t jobs_of(const Scenario &scenario, const Seeds &seeds, unsigned copies) {
  if (!scenario.guard.empty())
    return std::set<std::string>(seeds.operation_ids.begin(), seeds.operation_ids.end()).size();
  std::set<std::string> keys;
  for (const std::string &line : seeds.lines) {
    if (const auto key = key_of(line)) keys.emplace(key->bytes);
  }
  return keys.size() * scenario.ids(copies);
}

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
