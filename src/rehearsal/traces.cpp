#include "rehearsal/traces.hpp"

#include <filesystem>
#include <fstream>
#include <utility>

#include "onced/job.hpp"
#include "onced/store.hpp"

namespace onced::rehearsal {
namespace {

std::vector<Told> stream_in(const std::filesystem::path &path) {
  std::vector<Told> stream;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json event = parse_json(line);
    if (!event.is_object() || !event.contains("event") || !event.contains("at_us")) continue;
    Told told;
    told.name = text_in(event, "event");
    told.at = event["at_us"];
    told.fields = std::move(event);
    told.line = line;
    stream.push_back(std::move(told));
  }
  return stream;
}

Micros committed_at(Store &store, const std::string &line, Job &job, Result<void> &result) {
  std::string bytes;
  nlohmann::json::to_msgpack(nlohmann::json::parse(line), bytes);
  JobParser parser;
  if (!parser.parse(bytes, job)) return 0;
  Key key;
  assign_key(job, key);
  const auto row = store.get(key);
  if (!row) result = tl::unexpected(row.error());
  const bool committed = row && *row && (*row)->phase == Phase::committed;
  return committed ? micros_of((*row)->committed_at) : 0;
}

// Of each job that was sent, when its row was committed.
Result<std::map<std::string, Micros>> read_commits(Stage &stage) {
  auto lock = DirectoryLock::take(stage.data(), DirectoryLock::Mode::shared);
  if (!lock) return tl::unexpected(lock.error());
  SystemRandom random;
  StoreOptions options;
  options.directory = stage.data();
  options.read_only = true;
  const auto store = Store::open(options, stage.setting().patience.clock(), random);
  if (!store) return tl::unexpected(store.error());
  std::map<std::string, Micros> commits;
  Job job;
  Result<void> result;
  for (const std::string &line : stage.jobs()) {
    const Micros at = committed_at(**store, line, job, result);
    if (!result) return tl::unexpected(result.error());
    if (at != 0) commits[std::string(job.operation_id)] = at;
  }
  return commits;
}

} // namespace

Result<Traces> read_traces(Stage &stage) {
  Traces traces;
  traces.worker_tells = !stage.setting().is_foreign();
  traces.worker = stream_in(stage.worker_events());
  for (const std::filesystem::path &stream : stage.sender_events())
    traces.senders.push_back(stream_in(stream));
  for (const Kill &kill : stage.kills()) {
    traces.kills.push_back({.began = micros_of(kill.child->started_at()),
                            .ended = micros_of(kill.child->ended_at()),
                            .is_worker = kill.child->role() == "worker",
                            .point = kill.point});
  }
  traces.marks = stage.marks();
  traces.redriven = stage.redriven();
  traces.effects = effects_in(stage.effects_file(), stage.jobs(), stage.setting().plan.seeds.type);
  if (!traces.worker_tells) return traces;
  auto commits = read_commits(stage);
  if (!commits) return tl::unexpected(commits.error());
  traces.commits = std::move(*commits);
  return traces;
}

} // namespace onced::rehearsal
