#include "rehearsal/traces.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "onced/digest.hpp"
#include "onced/ids.hpp"
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

// The committed row of a job; nothing: it has none.
Result<std::optional<OperationRow>> committed_row(Store &store, const std::string &line, Job &job) {
  std::string bytes;
  nlohmann::json::to_msgpack(nlohmann::json::parse(line), bytes);
  JobParser parser;
  if (!parser.parse(bytes, job)) return std::nullopt;
  Key key;
  assign_key(job, key);
  auto row = store.get(key);
  if (row && *row && (*row)->phase != Phase::committed) return std::nullopt;
  return row;
}

// What of a row shows that it was committed, and when.
std::string shown_row(const OperationRow &row) {
  return Json{{"row",
               {{"operation_id", row.operation_id},
                {"phase", name_of(row.phase)},
                {"digest", to_hex(row.digest.view())},
                {"committed_at", iso_time(row.committed_at)},
                {"worker_build", row.worker_build}}}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Of each job that was sent, its row and when it was committed.
Result<void> read_commits(Stage &stage, Traces &traces) {
  auto lock = DirectoryLock::take(stage.data(), DirectoryLock::Mode::shared);
  if (!lock) return tl::unexpected(lock.error());
  SystemRandom random;
  StoreOptions options;
  options.directory = stage.data();
  options.read_only = true;
  const auto store = Store::open(options, stage.setting().patience.clock(), random);
  if (!store) return tl::unexpected(store.error());
  Job job;
  for (const std::string &line : stage.jobs()) {
    const auto row = committed_row(**store, line, job);
    if (!row) return tl::unexpected(row.error());
    if (!*row) continue;
    const std::string id(job.operation_id);
    traces.commits[id] = micros_of((*row)->committed_at);
    traces.rows[id] = shown_row(**row);
  }
  return {};
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
  if (auto read = read_commits(stage, traces); !read) return tl::unexpected(read.error());
  return traces;
}

} // namespace onced::rehearsal
