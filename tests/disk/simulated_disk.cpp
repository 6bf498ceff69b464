#include "disk/simulated_disk.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "onced/digest.hpp"
#include "support/scene.hpp"

namespace fs = std::filesystem;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace onced::testing {
namespace {

// The disk of this process, for syncs that are plain system calls, and reach no object.
std::atomic<SimulatedDisk *> &disk_of_this_process() {
  static std::atomic<SimulatedDisk *> disk{nullptr};
  return disk;
}

int sync_of_this_process(int descriptor) {
  SimulatedDisk *disk = disk_of_this_process();
  return disk == nullptr ? 0 : disk->sync_descriptor(descriptor);
}

bool is_below(const fs::path &path, const fs::path &root) {
  return path == root || path.native().starts_with(root.native() + "/");
}

std::set<std::string> names_in(const fs::path &directory) {
  std::set<std::string> names;
  for (const auto &entry : fs::directory_iterator(directory))
    names.insert(entry.path().filename());
  return names;
}

} // namespace

std::string_view name_of(StepKind kind) {
  constexpr std::array<std::string_view, 9> names{"none",   "create", "append",         "sync",          "truncate",
                                                  "rename", "remove", "make directory", "sync directory"};
  return names.at(static_cast<std::size_t>(kind));
}

// --- RocksDB's way to the disk --------------------------------------------------------------------------------------

class SimulatedFile final : public rocksdb::FSWritableFileOwnerWrapper {
public:
  SimulatedFile(std::unique_ptr<rocksdb::FSWritableFile> target, std::shared_ptr<SimulatedDisk::File> file,
                SimulatedDisk &disk)
      : FSWritableFileOwnerWrapper(std::move(target)), file_(std::move(file)), disk_(disk) {}

  IOStatus Append(const Slice &data, const IOOptions &options, IODebugContext *context) override {
    return disk_.append(*file_, data,
                        [&](const Slice &part) { return FSWritableFileOwnerWrapper::Append(part, options, context); });
  }
  IOStatus Append(const Slice &data, const IOOptions &options, const rocksdb::DataVerificationInfo &,
                  IODebugContext *context) override {
    return Append(data, options, context);
  }
  // Only direct I/O writes so.
  IOStatus PositionedAppend(const Slice &, std::uint64_t, const IOOptions &, IODebugContext *) override {
    return IOStatus::NotSupported("not simulated");
  }
  IOStatus PositionedAppend(const Slice &, std::uint64_t, const IOOptions &, const rocksdb::DataVerificationInfo &,
                            IODebugContext *) override {
    return IOStatus::NotSupported("not simulated");
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions &options, IODebugContext *context) override {
    return disk_.truncate(*file_, size, [&] { return FSWritableFileOwnerWrapper::Truncate(size, options, context); });
  }
  IOStatus Sync(const IOOptions &, IODebugContext *) override { return disk_.sync(*file_); }
  IOStatus Fsync(const IOOptions &, IODebugContext *) override { return disk_.sync(*file_); }
  // Room in advance is only faster, and on a file system in memory it is slower.
  void PrepareWrite(std::size_t, std::size_t, const IOOptions &, IODebugContext *) override {}
  IOStatus Allocate(std::uint64_t, std::uint64_t, const IOOptions &, IODebugContext *) override { return {}; }
  // Starts writing out, and promises nothing.
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions &, IODebugContext *) override { return {}; }

private:
  std::shared_ptr<SimulatedDisk::File> file_;
  SimulatedDisk &disk_;
};

class SimulatedDirectory final : public rocksdb::FSDirectoryWrapper {
public:
  SimulatedDirectory(std::unique_ptr<rocksdb::FSDirectory> target, fs::path path, SimulatedDisk &disk)
      : FSDirectoryWrapper(std::move(target)), path_(std::move(path)), disk_(disk) {}

  IOStatus Fsync(const IOOptions &, IODebugContext *) override {
    const std::scoped_lock lock(disk_.mutex_);
    return disk_.sync_directory(path_);
  }
  IOStatus FsyncWithDirOptions(const IOOptions &options, IODebugContext *context,
                               const rocksdb::DirFsyncOptions &) override {
    return Fsync(options, context);
  }

private:
  fs::path path_;
  SimulatedDisk &disk_;
};

class SimulatedFileSystem final : public rocksdb::FileSystemWrapper {
public:
  explicit SimulatedFileSystem(SimulatedDisk &disk) : FileSystemWrapper(rocksdb::FileSystem::Default()), disk_(disk) {}

  [[nodiscard]] const char *Name() const override { return "onced::testing::SimulatedFileSystem"; }

  IOStatus NewWritableFile(const std::string &name, const rocksdb::FileOptions &options,
                           std::unique_ptr<rocksdb::FSWritableFile> *result, IODebugContext *context) override {
    std::shared_ptr<SimulatedDisk::File> file;
    auto status =
        disk_.create(name, file, [&] { return FileSystemWrapper::NewWritableFile(name, options, result, context); });
    if (status.ok()) *result = std::make_unique<SimulatedFile>(std::move(*result), file, disk_);
    return status;
  }
  // The store and the outbox do not ask for these four; if that changes, a run says so.
  IOStatus ReopenWritableFile(const std::string &, const rocksdb::FileOptions &,
                              std::unique_ptr<rocksdb::FSWritableFile> *, IODebugContext *) override {
    return IOStatus::NotSupported("not simulated");
  }
  IOStatus ReuseWritableFile(const std::string &, const std::string &, const rocksdb::FileOptions &,
                             std::unique_ptr<rocksdb::FSWritableFile> *, IODebugContext *) override {
    return IOStatus::NotSupported("not simulated");
  }
  IOStatus NewRandomRWFile(const std::string &, const rocksdb::FileOptions &,
                           std::unique_ptr<rocksdb::FSRandomRWFile> *, IODebugContext *) override {
    return IOStatus::NotSupported("not simulated");
  }
  IOStatus LinkFile(const std::string &, const std::string &, const IOOptions &, IODebugContext *) override {
    return IOStatus::NotSupported("not simulated");
  }
  IOStatus NewDirectory(const std::string &name, const IOOptions &options,
                        std::unique_ptr<rocksdb::FSDirectory> *result, IODebugContext *context) override {
    auto status = FileSystemWrapper::NewDirectory(name, options, result, context);
    if (status.ok()) *result = std::make_unique<SimulatedDirectory>(std::move(*result), name, disk_);
    return status;
  }
  IOStatus RenameFile(const std::string &from, const std::string &to, const IOOptions &options,
                      IODebugContext *context) override {
    return disk_.rename(from, to, [&] { return FileSystemWrapper::RenameFile(from, to, options, context); });
  }
  IOStatus DeleteFile(const std::string &name, const IOOptions &options, IODebugContext *context) override {
    return disk_.remove(name, [&] { return FileSystemWrapper::DeleteFile(name, options, context); });
  }
  IOStatus CreateDir(const std::string &name, const IOOptions &options, IODebugContext *context) override {
    return disk_.make_directory(name, [&] { return FileSystemWrapper::CreateDir(name, options, context); });
  }
  IOStatus CreateDirIfMissing(const std::string &name, const IOOptions &options, IODebugContext *context) override {
    return disk_.make_directory(name, [&] { return FileSystemWrapper::CreateDirIfMissing(name, options, context); });
  }

private:
  SimulatedDisk &disk_;
};

// Counts what RocksDB has in hand in the background.
class CountedEnvironment final : public rocksdb::EnvWrapper {
public:
  CountedEnvironment(std::unique_ptr<rocksdb::Env> target, std::shared_ptr<rocksdb::FileSystem> files,
                     SimulatedDisk &disk)
      : EnvWrapper(std::move(target)), disk_(disk) {
    file_system_ = std::move(files); // else calls would come through the older interface of Env
  }

  [[nodiscard]] const char *Name() const override { return "onced::testing::CountedEnvironment"; }

  void Schedule(void (*function)(void *), void *argument, Priority priority, void *tag,
                void (*undone)(void *)) override {
    {
      const std::scoped_lock lock(disk_.work_mutex_);
      ++disk_.work_;
    }
    auto work = std::make_unique<Work>(Work{function, undone, argument, disk_});
    EnvWrapper::Schedule(&run, work.release(), priority, tag, &drop);
  }

private:
  struct Work {
    void (*function)(void *);
    void (*undone)(void *);
    void *argument;
    SimulatedDisk &disk;
  };

  static void finish(void *argument, bool ran) {
    const std::unique_ptr<Work> work(static_cast<Work *>(argument));
    if (ran) work->function(work->argument);
    if (!ran && work->undone != nullptr) work->undone(work->argument);
    const std::scoped_lock lock(work->disk.work_mutex_);
    if (--work->disk.work_ == 0) work->disk.work_done_.notify_all();
  }
  static void run(void *argument) { finish(argument, true); }
  static void drop(void *argument) { finish(argument, false); }

  SimulatedDisk &disk_;
};

// --- The disk -------------------------------------------------------------------------------------------------------

SimulatedDisk::SimulatedDisk(fs::path root, fs::path graveyard, const DiskPlan &plan, DiskDiary &diary)
    : root_(std::move(root)), graveyard_(std::move(graveyard)), plan_(plan), diary_(diary),
      chance_(plan.seed * 1'000'003 + plan.step) {
  disk_of_this_process() = this;
  // What is there already is durable.
  for (const fs::path &directory : {root_, root_ / "data"}) {
    if (fs::exists(directory)) durable_names_[directory] = names_in(directory);
  }
}

SimulatedDisk::~SimulatedDisk() {
  disk_of_this_process() = nullptr;
}

std::shared_ptr<StorageEnvironment> SimulatedDisk::environment() {
  auto files = std::make_shared<SimulatedFileSystem>(*this);
  return std::make_shared<StorageEnvironment>(
      std::make_unique<CountedEnvironment>(rocksdb::NewCompositeEnv(files), files, *this));
}

bool SimulatedDisk::is_struck() {
  const std::scoped_lock lock(mutex_);
  return diary_.struck;
}

void SimulatedDisk::await_quiet() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::unique_lock lock(work_mutex_);
  while (work_ > 0 && !is_struck()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("RocksDB's background does not come to rest");
    }
    work_done_.wait_for(lock, std::chrono::milliseconds(10));
  }
}

void SimulatedDisk::heal() {
  const std::scoped_lock lock(mutex_);
  healed_ = true;
}

bool SimulatedDisk::strikes(StepKind kind) const {
  if (plan_.trouble == Trouble::none || healed_ || diary_.steps < plan_.step) return false;
  if (diary_.steps == plan_.step) return true;
  const bool takes_room = kind == StepKind::append || kind == StepKind::create;
  return plan_.lasting && (plan_.trouble != Trouble::disk_full || takes_room);
}

SimulatedDisk::Effect SimulatedDisk::begin(StepKind kind, const fs::path &path) {
  ++diary_.steps;
  if (diary_.steps < DiskDiary::steps_max) diary_.kinds.at(diary_.steps) = kind;
  if (!strikes(kind)) return Effect::proceed;
  if (!diary_.struck) {
    const std::string text = std::string(name_of(kind)) + " of " + path.lexically_relative(root_).string();
    text.copy(diary_.struck_at.data(), diary_.struck_at.size() - 1);
    diary_.struck = true;
  }
  const bool ends = plan_.trouble == Trouble::death || plan_.trouble == Trouble::power_cut;
  if (kind == StepKind::append && (ends || plan_.trouble == Trouble::short_write)) return Effect::tear;
  if (ends) end();
  return Effect::fail;
}

IOStatus SimulatedDisk::error() const {
  if (plan_.trouble == Trouble::io_error) return IOStatus::IOError("injected: Input/output error");
  return IOStatus::NoSpace("injected: No space left on device");
}

void SimulatedDisk::end() {
  plan_.trouble == Trouble::power_cut ? cut_power() : note_unsynced();
  kill_this_process(); // with mutex_ held: nothing reaches the disk any more
}

void SimulatedDisk::note_unsynced() {
  std::size_t at = 0;
  for (const auto &[path, file] : files_) {
    if (file->written == file->synced) continue;
    auto &unsynced = diary_.unsynced.at(at++);
    path.lexically_relative(root_).native().copy(unsynced.name.data(), unsynced.name.size() - 1);
    unsynced.synced = file->synced;
  }
}

void SimulatedDisk::remember(const DiskDiary &before) {
  const std::scoped_lock lock(mutex_);
  for (const auto &unsynced : before.unsynced) {
    const fs::path path = root_ / unsynced.name.data();
    if (unsynced.name[0] == '\0' || !fs::exists(path)) continue;
    files_[path] =
        std::make_shared<File>(File{.path = path, .written = fs::file_size(path), .synced = unsynced.synced});
  }
}

void SimulatedDisk::cut() {
  mutex_.lock(); // for good
  cut_power();
  kill_this_process();
}

// --- Files ----------------------------------------------------------------------------------------------------------

IOStatus SimulatedDisk::append(File &file, const Slice &data, const Write &write) {
  const std::scoped_lock lock(mutex_);
  const Effect effect = begin(StepKind::append, file.path);
  if (effect == Effect::fail) return error();
  const std::size_t bytes = effect == Effect::tear ? part_of(data.size()) : data.size();
  IOStatus status;
  if (bytes > 0) status = write(Slice(data.data(), bytes));
  if (status.ok()) file.written += bytes;
  if (effect == Effect::proceed) return status;
  if (plan_.trouble != Trouble::short_write) end();
  return error();
}

IOStatus SimulatedDisk::sync(File &file) {
  const std::scoped_lock lock(mutex_);
  if (begin(StepKind::sync, file.path) == Effect::proceed) {
    file.synced = file.written;
    return {};
  }
  // A kernel forgets that it could not write these pages: they may read as if all were well, and be gone.
  if (chance_.next() % 2 == 0) lose_bytes(file);
  return error();
}

IOStatus SimulatedDisk::truncate(File &file, std::uint64_t size, const Act &act) {
  const std::scoped_lock lock(mutex_);
  if (begin(StepKind::truncate, file.path) != Effect::proceed) return error();
  file.written = size;
  file.synced = std::min(file.synced, size);
  return act();
}

// --- Names ----------------------------------------------------------------------------------------------------------

// Keeps a file that loses its name, under another one.
fs::path SimulatedDisk::bury(const fs::path &path) {
  fs::path buried;
  do { // a process before may have buried some
    buried = graveyard_ / std::to_string(++buried_);
  } while (fs::exists(buried));
  fs::create_hard_link(path, buried);
  if (const auto file = files_.extract(path)) {
    file.mapped()->path = buried;
    files_[buried] = file.mapped();
  }
  return buried;
}

IOStatus SimulatedDisk::create(const fs::path &path, std::shared_ptr<File> &file, const Act &act) {
  const std::scoped_lock lock(mutex_);
  if (begin(StepKind::create, path) != Effect::proceed) return error();
  fs::path buried;
  if (fs::exists(path)) {
    buried = bury(path);
    fs::remove(path); // or the new one would truncate it
  }
  auto status = act();
  if (!status.ok()) return status;
  file = std::make_shared<File>(File{.path = path});
  files_[path] = file;
  changes_[path.parent_path()].push_back({.path = path, .from = {}, .buried = buried});
  return status;
}

IOStatus SimulatedDisk::rename(const fs::path &from, const fs::path &to, const Act &act) {
  const std::scoped_lock lock(mutex_);
  if (begin(StepKind::rename, from) != Effect::proceed) return error();
  const fs::path buried = fs::exists(to) ? bury(to) : fs::path();
  auto status = act();
  if (!status.ok()) return status;
  if (const auto file = files_.extract(from)) {
    file.mapped()->path = to;
    files_[to] = file.mapped();
  }
  changes_[to.parent_path()].push_back({.path = to, .from = from, .buried = buried});
  return status;
}

IOStatus SimulatedDisk::remove(const fs::path &path, const Act &act) {
  const std::scoped_lock lock(mutex_);
  if (begin(StepKind::remove, path) != Effect::proceed) return error();
  if (!fs::exists(path)) return act();
  const fs::path buried = bury(path);
  changes_[path.parent_path()].push_back({.path = path, .from = {}, .buried = buried});
  return act();
}

IOStatus SimulatedDisk::make_directory(const fs::path &path, const Act &act) {
  const std::scoped_lock lock(mutex_);
  if (fs::exists(path)) return act();
  if (begin(StepKind::make_directory, path) != Effect::proceed) return error();
  return act();
}

IOStatus SimulatedDisk::sync_directory(const fs::path &path) {
  if (begin(StepKind::sync_directory, path) != Effect::proceed) return error();
  settle_names(path);
  return {};
}

void SimulatedDisk::settle_names(const fs::path &directory) {
  for (const NameChange &change : changes_[directory]) {
    if (change.buried.empty()) continue;
    fs::remove(change.buried);
    files_.erase(change.buried);
  }
  changes_.erase(directory);
  durable_names_[directory] = names_in(directory);
}

int SimulatedDisk::sync_descriptor(int descriptor) {
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
  if (!is_below(path, root_)) return 0;
  const std::scoped_lock lock(mutex_);
  const bool is_directory = fs::is_directory(path);
  const bool done = is_directory ? sync_directory(path).ok() : begin(StepKind::sync, path) == Effect::proceed;
  if (!done) errno = EIO;
  return done ? 0 : -1;
}

// --- A power cut ----------------------------------------------------------------------------------------------------

// Nothing, all, or a part.
std::uint64_t SimulatedDisk::part_of(std::uint64_t whole) {
  switch (chance_.next() % 4) {
  case 0:
    return 0;
  case 1:
    return whole;
  default:
    return chance_.next() % (whole + 1);
  }
}

void SimulatedDisk::lose_bytes(const File &file) {
  if (file.written <= file.synced) return;
  const std::uint64_t kept = part_of(file.written - file.synced);
  std::error_code removed;
  fs::resize_file(file.path, file.synced + kept, removed);
  if (removed || !plan_.garbage || kept == 0) return;
  const std::uint64_t spoilt = part_of(kept);
  const bool zeros = chance_.next() % 2 == 0;
  std::fstream content(file.path, std::ios::binary | std::ios::in | std::ios::out);
  content.seekp(static_cast<std::streamoff>(file.synced + kept - spoilt));
  for (std::uint64_t at = 0; at < spoilt; ++at)
    content.put(zeros ? '\0' : static_cast<char>(chance_.next()));
}

// Directories are journaled: of the changes to their names the later ones are lost.
void SimulatedDisk::lose_changes(std::vector<NameChange> &changes) {
  const std::uint64_t kept = part_of(changes.size());
  for (; changes.size() > kept; changes.pop_back()) {
    const NameChange &change = changes.back();
    if (!change.from.empty()) {
      fs::rename(change.path, change.from);
    } else {
      fs::remove(change.path);
    }
    if (!change.buried.empty()) fs::rename(change.buried, change.path);
  }
}

// Of the directories in which our own code makes names, only which names are durable is known.
void SimulatedDisk::lose_names(const fs::path &directory) {
  if (!fs::exists(directory) || chance_.next() % 2 == 0) return;
  const auto &durable = durable_names_[directory];
  for (const std::string &name : names_in(directory)) {
    if (!durable.contains(name)) fs::remove_all(directory / name);
  }
}

// Its last synced row is written without a sync of its own (docs/storage.md: the row and a check, at 2,048).
void SimulatedDisk::let_mark_lag(const fs::path &path) {
  constexpr std::streamoff row_at = 2048;
  std::uint64_t row = 0;
  std::fstream mark(path, std::ios::binary | std::ios::in | std::ios::out);
  mark.seekg(row_at);
  std::array<char, sizeof row> bytes{}; // little-endian, as this machine's
  if (!mark.read(bytes.data(), bytes.size())) return;
  std::memcpy(&row, bytes.data(), bytes.size());
  row = part_of(row);
  std::memcpy(bytes.data(), &row, bytes.size());
  mark.seekp(row_at);
  mark.write(bytes.data(), bytes.size());
  const Tag check = Digester().tag({bytes.data(), bytes.size()});
  mark.write(check.view().data(), Tag::size);
}

void SimulatedDisk::cut_power() {
  for (const auto &[path, file] : files_)
    lose_bytes(*file);
  for (auto &[directory, changes] : changes_)
    lose_changes(changes);
  for (const fs::path &mark : {root_ / "data" / "durable.mark", root_ / "data" / "outbox.mark"})
    let_mark_lag(mark);
  lose_names(root_ / "data");
  lose_names(root_);
}

} // namespace onced::testing

// In place of the C library's: no sync of this program reaches the real disk.
extern "C" int fsync(int descriptor) {
  return onced::testing::sync_of_this_process(descriptor);
}
extern "C" int fdatasync(int descriptor) {
  return onced::testing::sync_of_this_process(descriptor);
}
