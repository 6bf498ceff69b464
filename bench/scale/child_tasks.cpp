#include "child_tasks.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <unistd.h>

#include "fill.hpp"
#include "jobs.hpp"
#include "own_process.hpp"
#include "plain_database.hpp"
#include "rocksdb/log_files.hpp"
#include "rocksdb/slices.hpp"
#include "store/rows/records.hpp"

namespace onced::bench::scale {
namespace {

constexpr std::size_t jobs_a_batch = 1024;

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

class BareDatabase : public PlainDatabase {
public:
  using PlainDatabase::PlainDatabase;

  [[nodiscard]] bool holds(const Key &key, BytesView result) const {
    std::string value;
    const auto status = db().Get(rocksdb::ReadOptions(), operations(), rocks::slice_of(key.bytes), &value);
    if (status.IsNotFound()) return false;
    check(status);
    store::RecordDecoder decoder;
    const auto record = decoder.operation(value);
    return record && record->phase == Phase::committed && record->result == result;
  }

  [[nodiscard]] std::optional<std::uint64_t> figure(const std::string &name) const {
    std::string value;
    if (!db().GetProperty(operations(), "rocksdb." + name, &value)) return std::nullopt;
    return std::stoull(value);
  }
};

template <class Opened> std::uint64_t count_recovered(Opened &opened, std::uint64_t seed, const ChildTask &task) {
  std::uint64_t recovered = 0;
  for (std::uint64_t number = task.first; number < task.end; ++number)
    recovered += opened.holds(key_of_job(seed, number), result_of_job(number)) ? 1U : 0U;
  return recovered;
}

void commit_new_jobs(Subject &subject, Batch &batch, std::uint64_t first) {
  batch.clear();
  for (std::uint64_t number = first; number < first + jobs_a_batch; ++number)
    batch.add(number);
  batch.check(subject.commit(batch.deliveries()), Outcome::stored);
}

std::uint64_t newest_log(const std::filesystem::path &data) {
  const auto logs = rocks::log_files(data / "db");
  if (logs.empty()) throw std::runtime_error("there is no log in " + data.string());
  return logs.back().number;
}

// How many of the jobs fit a memtable: as many as a new store takes until it begins the next, with a log of its own.
std::uint64_t jobs_a_memtable(const Setting &setting, const ChildTask &task) {
  auto data = task.data;
  data += ".trial";
  Subject subject(setting, data, Durability::page_cache);
  Batch batch(setting.seed);
  const std::uint64_t log = newest_log(data);
  std::uint64_t next = task.first;
  for (; newest_log(data) == log; next += jobs_a_batch)
    commit_new_jobs(subject, batch, next);
  return next - task.first;
}

[[noreturn]] void fill_memtable(const Setting &setting, const ChildTask &task,
                                const std::function<void(const Row &)> &answer) {
  const std::uint64_t end = task.first + jobs_a_memtable(setting, task) * 95 / 100;
  Subject subject(setting, task.data, Durability::fsync);
  Batch batch(setting.seed);
  std::uint64_t next = task.first;
  for (; next + jobs_a_batch <= end; next += jobs_a_batch)
    commit_new_jobs(subject, batch, next);
  answer({{"end", next}});
  while (true)
    ::pause(); // the store must not be closed in order
}

Row fill_store(const Setting &setting, const ChildTask &task) {
  Subject subject(setting, task.data, Durability::page_cache);
  fill(subject, setting.seed, task.first, task.end);
  return {{"resident_max_bytes", own_usage().resident_max_bytes}};
}

Row open_store(const Setting &setting, const ChildTask &task) {
  const Subject subject(setting, task.data, Durability::fsync);
  Row answer{{"open_ms", milliseconds(subject.opening())}, {"recovered", count_recovered(subject, setting.seed, task)}};
  if (task.count_rows) answer["rows"] = subject.count();
  return answer;
}

Row open_bare(const Setting &setting, const ChildTask &task) {
  const BareDatabase database(worker_options(setting, task.data));
  return {{"open_ms", milliseconds(database.opening())}, {"recovered", count_recovered(database, setting.seed, task)}};
}

Row look(const Setting &setting, const ChildTask &task) {
  StoreOptions options = worker_options(setting, task.data);
  options.read_only = true;
  const BareDatabase database(options);
  const auto pending = database.figure("estimate-pending-compaction-bytes");
  if (!pending) throw std::runtime_error("rocksdb does not tell its pending compaction");
  Row files = Row::array();
  for (int level = 0; const auto count = database.figure("num-files-at-level" + std::to_string(level)); ++level)
    files.push_back(*count);
  return {{"pending_compaction_bytes", *pending}, {"files_by_level", files}};
}

} // namespace

void run_task(const Setting &setting, const ChildTask &task, const std::function<void(const Row &)> &answer) {
  if (task.name == fill_task) return answer(fill_store(setting, task));
  if (task.name == fill_memtable_task) fill_memtable(setting, task, answer);
  if (task.name == open_store_task) return answer(open_store(setting, task));
  if (task.name == open_bare_task) return answer(open_bare(setting, task));
  if (task.name == look_task) return answer(look(setting, task));
  throw std::runtime_error("no task is called " + task.name);
}

} // namespace onced::bench::scale
