#include "reopening.hpp"

#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "child.hpp"
#include "rocksdb/log_files.hpp"
#include "rocksdb/tuning.hpp"

namespace onced::bench::scale {
namespace {

// A table is never changed in place, so one more name for it is a copy.
void copy_data(const std::filesystem::path &from, const std::filesystem::path &to) {
  std::filesystem::create_directory(to);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(from)) {
    const auto target = to / entry.path().lexically_relative(from);
    if (entry.is_directory()) {
      std::filesystem::create_directory(target);
    } else if (entry.path().extension() == ".sst") {
      std::filesystem::create_hard_link(entry.path(), target);
    } else {
      std::filesystem::copy_file(entry.path(), target);
    }
  }
}

// So that no opening pays for the copying.
void sync_file_system(const std::filesystem::path &directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::syncfs(descriptor) == 0;
  ::close(descriptor);
  if (!synced) throw std::runtime_error("cannot sync " + directory.string());
}

// Returns the first job that was not committed.
std::uint64_t fill_and_kill(const Setting &setting, const std::filesystem::path &data, std::uint64_t first) {
  Child child(setting, {.name = fill_memtable_task, .data = data, .first = first});
  const auto end = child.answer()["end"].get<std::uint64_t>();
  child.kill();
  return end;
}

// The newest log is the memtable's; what is in older ones is in tables too, and is passed over.
Row logs_of(const std::filesystem::path &data) {
  std::uint64_t bytes = 0;
  std::uint64_t newest_bytes = 0;
  for (const rocks::LogFile &log : rocks::log_files(data / "db")) {
    bytes += log.bytes;
    newest_bytes = log.bytes;
  }
  return {{"log_bytes", bytes}, {"log_bytes_replayed", newest_bytes}};
}

std::size_t memtable_bytes(const Setting &setting) {
  const auto families =
      rocks::store_database.families(rocks::block_cache(worker_options(setting, {}).block_cache_bytes));
  for (const auto &family : families) {
    if (family.name == "operations") return family.options.write_buffer_size;
  }
  throw std::runtime_error("there is no family for operations");
}

// Opens a copy and removes it. Returns the milliseconds.
double open_copy(const Setting &setting, const ChildTask &task) {
  const Row answer = Child(setting, task).answer();
  std::filesystem::remove_all(task.data);
  const auto recovered = answer["recovered"].get<std::uint64_t>();
  const bool rows_exact = !task.count_rows || answer["rows"] == task.end;
  if (recovered != task.end - task.first || !rows_exact) {
    throw std::runtime_error(fmt::format("of {} jobs committed before the kill {} are there; there are {} rows of {}",
                                         task.end - task.first, recovered,
                                         task.count_rows ? answer["rows"].dump() : "uncounted", task.end));
  }
  return answer["open_ms"].get<double>();
}

} // namespace

void measure_reopening(const Setting &setting, const ClosedStore &store, const std::filesystem::path &scratch,
                       unsigned repeats, const std::function<void(unsigned repeat, const Row &)> &on_figures) {
  const auto killed = scratch / "killed";
  copy_data(store.data, killed);
  const std::uint64_t end = fill_and_kill(setting, killed, store.keys);
  ChildTask by_onced{
      .name = open_store_task, .data = scratch / "onced", .first = store.keys, .end = end, .count_rows = true};
  const ChildTask bare{.name = open_bare_task, .data = scratch / "bare", .first = store.keys, .end = end};
  for (unsigned repeat = 1; repeat <= repeats; ++repeat) {
    copy_data(killed, by_onced.data);
    copy_data(killed, bare.data);
    sync_file_system(scratch);
    // Each is the first of a pair as often as the other.
    const bool bare_first = repeat % 2 == 0;
    double bare_ms = bare_first ? open_copy(setting, bare) : 0;
    const double store_ms = open_copy(setting, by_onced);
    if (!bare_first) bare_ms = open_copy(setting, bare);
    by_onced.count_rows = false; // once is enough: it reads everything
    Row figures{{"store_open_ms", store_ms},
                {"bare_open_ms", bare_ms},
                {"store_to_bare_ratio", store_ms / bare_ms},
                {"rows_recovered", end - store.keys},
                {"memtable_bytes", memtable_bytes(setting)}};
    figures.update(logs_of(killed));
    on_figures(repeat, figures);
  }
}

} // namespace onced::bench::scale
