#include "support/memory_engine.hpp"

#include <algorithm>
#include <deque>

#include "base/draw_id.hpp"
#include "onced/ids.hpp"
#include "onced/version.hpp"

namespace onced::testing {

using engine::Claim;
using engine::Counter;
using engine::Counters;
using engine::Failure;
using engine::Family;
using engine::Found;
using engine::Patience;
using engine::Step;
using engine::Sync;

namespace {

Error failed(std::string cause, ErrorCode code = ErrorCode::store_unavailable) {
  return {.code = code, .concerns = "memory", .cause = std::move(cause), .remedy = "open the store again"};
}

tl::unexpected<Failure> failure(Failure::Kind kind, std::string cause) {
  return tl::unexpected(Failure{.kind = kind, .error = failed(std::move(cause))});
}

} // namespace

// --- The disk -------------------------------------------------------------------------------------------------------

std::shared_ptr<MemoryDisk> MemoryDisk::make(Options options) {
  return std::shared_ptr<MemoryDisk>(new MemoryDisk(options)); // its constructor is private
}

void MemoryDisk::crash(CrashOf of) {
  const std::scoped_lock lock(mutex_);
  crash_locked(of);
}

void MemoryDisk::fail_next(EngineCall call, EngineFault fault) {
  const std::scoped_lock lock(mutex_);
  script_.emplace_back(call, fault);
}

void MemoryDisk::set_faults(EngineFaults faults) {
  const std::scoped_lock lock(mutex_);
  faults_ = std::move(faults);
}

void MemoryDisk::hold_commits() {
  const std::scoped_lock lock(mutex_);
  holds_commits_ = true;
}

void MemoryDisk::release_commits() {
  const std::scoped_lock lock(mutex_);
  holds_commits_ = false;
  changed_.notify_all();
}

std::size_t MemoryDisk::held_commits() const {
  const std::scoped_lock lock(mutex_);
  return held_commits_;
}

std::size_t MemoryDisk::waiting_units() const {
  const std::scoped_lock lock(mutex_);
  return waiting_units_;
}

void MemoryDisk::damage(Family family, BytesView key) {
  const std::scoped_lock lock(mutex_);
  set({family, Bytes(key)}, Row{.value = {}, .damaged = true});
}

EngineFault MemoryDisk::draw(EngineCall call) {
  const auto told =
      std::find_if(script_.begin(), script_.end(), [&](const auto &entry) { return entry.first == call; });
  if (told == script_.end()) return faults_ ? faults_(call) : EngineFault::none;
  const EngineFault fault = told->second;
  script_.erase(told);
  return fault;
}

MemoryDisk::Rows &MemoryDisk::rows_to_change() {
  if (rows_->views > 0) {
    rows_ = std::make_shared<Rows>(*rows_);
    rows_->views = 0;
  }
  return *rows_;
}

const MemoryDisk::Row *MemoryDisk::find(Family family, BytesView key) const {
  const auto &rows = rows_->families.at(static_cast<std::size_t>(family));
  const auto found = rows.find(key);
  return found == rows.end() ? nullptr : &found->second;
}

void MemoryDisk::set(const Key &key, std::optional<Row> row) {
  auto &rows = rows_to_change().families.at(static_cast<std::size_t>(key.first));
  if (row) {
    rows.insert_or_assign(key.second, std::move(*row));
  } else {
    rows.erase(key.second);
  }
}

void MemoryDisk::apply(const std::vector<Write> &writes, const Counters &added, bool stable) {
  for (const Write &write : writes) {
    if (!stable) {
      const Row *const before = find(write.key.first, write.key.second);
      unstable_.push_back({write.key, before == nullptr ? std::nullopt : std::optional<Row>(*before)});
    }
    set(write.key, write.value ? std::optional<Row>(Row{.value = *write.value, .damaged = false}) : std::nullopt);
  }
  if (added == Counters{}) return;
  rows_to_change().counters += added;
  if (!stable) unstable_counters_ += added;
}

void MemoryDisk::make_stable() {
  unstable_.clear();
  unstable_counters_ = {};
}

void MemoryDisk::crash_locked(CrashOf of) {
  ++crashes_;
  locks_.clear();
  if (of == CrashOf::machine) {
    for (auto undo = unstable_.rbegin(); undo != unstable_.rend(); ++undo)
      set(undo->key, std::move(undo->before));
    if (unstable_counters_ != Counters{}) rows_to_change().counters -= unstable_counters_;
    make_stable();
  }
  changed_.notify_all();
}

// --- A session ------------------------------------------------------------------------------------------------------

class MemorySession final : public engine::Session {
public:
  MemorySession(std::shared_ptr<MemoryDisk> disk, std::uint64_t crashes) : disk_(std::move(disk)), crashes_(crashes) {}
  ~MemorySession() override { MemorySession::abandon(); }
  MemorySession(const MemorySession &) = delete;
  MemorySession &operator=(const MemorySession &) = delete;

  [[nodiscard]] Result<void> read(Family family, std::span<const BytesView> keys, std::vector<Found> &found) override;
  void begin(Sync sync) override {
    abandon();
    sync_ = sync;
  }
  [[nodiscard]] Step lock(Family family, std::span<const BytesView> keys, Patience if_held,
                          std::vector<Found> &found) override;
  [[nodiscard]] Step claim(Family family, std::span<const Claim> claims, Patience if_held,
                           std::vector<Found> &found) override;
  [[nodiscard]] Step put(Family family, BytesView key, BytesView value) override {
    return change(EngineCall::put, family, key, Bytes(value));
  }
  [[nodiscard]] Step erase(Family family, BytesView key) override {
    return change(EngineCall::erase, family, key, std::nullopt);
  }
  void add(Counter counter, std::int64_t amount) override { added_[counter] += amount; }
  [[nodiscard]] Step commit() override;
  void abandon() override {
    const std::scoped_lock lock(disk_->mutex_);
    end_unit();
  }
  [[nodiscard]] Result<void> confirm() override;

private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Taken : std::uint8_t { taken, had_before, held };

  // --- With the disk locked ---
  [[nodiscard]] bool is_dead() const { return crashes_ != disk_->crashes_; }
  [[nodiscard]] Step begin_step(EngineCall call);
  [[nodiscard]] tl::expected<Taken, Failure> take(Lock &lock, const MemoryDisk::Key &key, Patience if_held);
  void let_go(const MemoryDisk::Key &key);
  [[nodiscard]] Found look(Family family, BytesView key);
  [[nodiscard]] Step change(EngineCall call, Family family, BytesView key, std::optional<Bytes> value);
  [[nodiscard]] Step write(Lock &lock, EngineFault fault);
  void end_unit();

  const std::shared_ptr<MemoryDisk> disk_;
  const std::uint64_t crashes_;
  Sync sync_ = Sync::stable;
  std::vector<MemoryDisk::Key> locked_;
  std::vector<MemoryDisk::Write> writes_;
  Counters added_;
  std::deque<Bytes> values_; // that were found last; their addresses last
};

Result<void> MemorySession::read(Family family, std::span<const BytesView> keys, std::vector<Found> &found) {
  const std::scoped_lock lock(disk_->mutex_);
  if (auto begun = begin_step(EngineCall::read); !begun) return tl::unexpected(begun.error().error);
  values_.clear();
  found.clear();
  for (const BytesView key : keys)
    found.push_back(look(family, key));
  return {};
}

Step MemorySession::begin_step(EngineCall call) {
  if (is_dead()) return failure(Failure::Kind::unavailable, "the engine is dead");
  const EngineFault fault = disk_->draw(call);
  if (fault == EngineFault::none) return {};
  if (fault == EngineFault::retry) return failure(Failure::Kind::retry, "injected: a lost race");
  if (fault == EngineFault::crash) disk_->crash_locked(CrashOf::machine);
  return failure(Failure::Kind::unavailable, "injected: a failed call");
}

tl::expected<MemorySession::Taken, Failure> MemorySession::take(Lock &lock, const MemoryDisk::Key &key,
                                                                Patience if_held) {
  const auto is_free = [&] {
    const auto holder = disk_->locks_.find(key);
    return is_dead() || holder == disk_->locks_.end() || holder->second == this;
  };
  if (!is_free()) {
    if (if_held == Patience::none) return Taken::held;
    ++disk_->waiting_units_;
    const bool was_freed = disk_->changed_.wait_for(lock, disk_->options_.lock_patience, is_free);
    --disk_->waiting_units_;
    if (!was_freed) return failure(Failure::Kind::retry, "another unit holds the row for too long");
  }
  if (is_dead()) return failure(Failure::Kind::unavailable, "the engine is dead");
  if (!disk_->locks_.emplace(key, this).second) return Taken::had_before;
  locked_.push_back(key);
  return Taken::taken;
}

void MemorySession::let_go(const MemoryDisk::Key &key) {
  disk_->locks_.erase(key);
  std::erase(locked_, key);
  disk_->changed_.notify_all();
}

Found MemorySession::look(Family family, BytesView key) {
  const MemoryDisk::Row *const row = disk_->find(family, key);
  if (row == nullptr) return {};
  if (row->damaged) return {.state = Found::State::damaged, .value = {}};
  return {.state = Found::State::present, .value = values_.emplace_back(row->value)};
}

// As weak as the interface allows: an absent row stays unlocked.
Step MemorySession::lock(Family family, std::span<const BytesView> keys, Patience if_held, std::vector<Found> &found) {
  Lock lock(disk_->mutex_);
  if (auto begun = begin_step(EngineCall::lock); !begun) return begun;
  values_.clear();
  found.clear();
  for (const BytesView view : keys) {
    const MemoryDisk::Key key{family, Bytes(view)};
    const auto taken = take(lock, key, if_held);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken == Taken::held) {
      found.push_back({.state = Found::State::held, .value = {}});
      continue;
    }
    found.push_back(look(family, view));
    if (*taken == Taken::taken && found.back().state == Found::State::absent) let_go(key);
  }
  return {};
}

// As weak as the interface allows: a row that is there stays unlocked.
Step MemorySession::claim(Family family, std::span<const Claim> claims, Patience if_held, std::vector<Found> &found) {
  Lock lock(disk_->mutex_);
  if (auto begun = begin_step(EngineCall::claim); !begun) return begun;
  values_.clear();
  found.clear();
  for (const Claim &claim : claims) {
    const MemoryDisk::Key key{family, Bytes(claim.key)};
    const auto taken = take(lock, key, if_held);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken == Taken::held) {
      found.push_back({.state = Found::State::held, .value = {}});
      continue;
    }
    found.push_back(look(family, claim.key));
    if (found.back().state == Found::State::absent) {
      writes_.push_back({key, Bytes(claim.value)});
    } else if (*taken == Taken::taken) {
      let_go(key);
    }
  }
  return {};
}

Step MemorySession::change(EngineCall call, Family family, BytesView key, std::optional<Bytes> value) {
  Lock lock(disk_->mutex_);
  if (auto begun = begin_step(call); !begun) return begun;
  MemoryDisk::Key of{family, Bytes(key)};
  if (const auto taken = take(lock, of, Patience::wait); !taken) return tl::unexpected(taken.error());
  writes_.push_back({std::move(of), std::move(value)});
  return {};
}

Step MemorySession::commit() {
  Lock lock(disk_->mutex_);
  Step ended = failure(Failure::Kind::unavailable, "the engine is dead");
  if (!is_dead()) {
    const EngineFault fault = disk_->draw(EngineCall::commit);
    if (fault == EngineFault::retry) {
      ended = failure(Failure::Kind::retry, "injected: a lost race");
    } else if (fault == EngineFault::unavailable) {
      ended = failure(Failure::Kind::unavailable, "injected: a commit that was not sent");
    } else {
      ended = write(lock, fault);
    }
  }
  end_unit();
  return ended;
}

Step MemorySession::write(Lock &lock, EngineFault fault) {
  const auto unknown = [](const char *cause) { return failure(Failure::Kind::unknown, cause); };
  if (fault == EngineFault::crash) disk_->crash_locked(CrashOf::machine);
  if (is_dead() || fault == EngineFault::unknown_lost) return unknown("injected: a commit that was not written");
  const MemoryMode mode = disk_->options_.mode;
  const bool is_early = mode == MemoryMode::visible || fault == EngineFault::unknown_visible;
  if (is_early) disk_->apply(writes_, added_, false);
  if (disk_->holds_commits_) {
    ++disk_->held_commits_;
    disk_->changed_.wait(lock, [&] { return is_dead() || !disk_->holds_commits_; });
    --disk_->held_commits_;
    if (is_dead()) return unknown("injected: a crash while the commit was held");
  }
  if (fault == EngineFault::unknown_visible) return unknown("injected: a commit that is visible and not stable");
  const bool is_stable = mode != MemoryMode::lying && sync_ == Sync::stable;
  if (!is_early) disk_->apply(writes_, added_, is_stable);
  if (is_stable) disk_->make_stable(); // with all that was written before
  if (fault == EngineFault::crash_written) {
    disk_->make_stable();
    disk_->crash_locked(CrashOf::machine);
    return unknown("injected: a crash after the commit");
  }
  if (fault == EngineFault::unknown_written) return unknown("injected: a commit that was written");
  return {};
}

void MemorySession::end_unit() {
  if (!is_dead()) {
    for (const MemoryDisk::Key &key : locked_)
      disk_->locks_.erase(key);
    if (!locked_.empty()) disk_->changed_.notify_all();
  }
  locked_.clear();
  writes_.clear();
  added_ = {};
}

Result<void> MemorySession::confirm() {
  const std::scoped_lock lock(disk_->mutex_);
  if (auto begun = begin_step(EngineCall::confirm); !begun) return tl::unexpected(begun.error().error);
  disk_->make_stable();
  return {};
}

// --- A view ---------------------------------------------------------------------------------------------------------

class MemoryView final : public engine::View {
public:
  explicit MemoryView(std::shared_ptr<MemoryDisk> disk) : disk_(std::move(disk)) {
    const std::scoped_lock lock(disk_->mutex_);
    rows_ = disk_->rows_;
    ++rows_->views;
  }
  ~MemoryView() override {
    const std::scoped_lock lock(disk_->mutex_);
    --rows_->views;
  }
  MemoryView(const MemoryView &) = delete;
  MemoryView &operator=(const MemoryView &) = delete;

  [[nodiscard]] Result<std::optional<Bytes>> get(Family family, BytesView key) const override {
    const auto &rows = rows_->families.at(static_cast<std::size_t>(family));
    const auto row = rows.find(key);
    if (row == rows.end()) return std::optional<Bytes>();
    if (row->second.damaged) return tl::unexpected(damaged(family, key));
    return std::optional<Bytes>(row->second.value);
  }

  [[nodiscard]] Result<void> scan(const engine::Range &range, const engine::Visit &visit) const override {
    const auto &rows = rows_->families.at(static_cast<std::size_t>(range.family));
    const auto begin = rows.lower_bound(range.backwards ? range.prefix : std::max(range.from, range.prefix));
    auto end = begin;
    while (end != rows.end() && end->first.starts_with(range.prefix))
      ++end;
    return range.backwards
               ? visit_each(range.family, std::make_reverse_iterator(end), std::make_reverse_iterator(begin), visit)
               : visit_each(range.family, begin, end, visit);
  }

  [[nodiscard]] Result<Counters> counters() const override { return rows_->counters; }

private:
  static Error damaged(Family family, BytesView key) {
    return failed("a row of " + std::string(name_of(family)) + " is damaged, key " + to_hex(key), ErrorCode::corrupt);
  }

  template <class Iterator>
  static Result<void> visit_each(Family family, Iterator row, Iterator end, const engine::Visit &visit) {
    for (; row != end; ++row) {
      if (row->second.damaged) return tl::unexpected(damaged(family, row->first));
      if (!visit(row->first, row->second.value)) break;
    }
    return {};
  }

  const std::shared_ptr<MemoryDisk> disk_;
  std::shared_ptr<MemoryDisk::Rows> rows_;
};

// --- An engine ------------------------------------------------------------------------------------------------------

class MemoryEngine final : public engine::Engine {
public:
  explicit MemoryEngine(std::shared_ptr<MemoryDisk> disk) : disk_(std::move(disk)) {
    const std::scoped_lock lock(disk_->mutex_);
    crashes_ = disk_->crashes_;
    format_found_ = disk_->format_;
  }

  [[nodiscard]] std::unique_ptr<engine::Session> session() override {
    return std::make_unique<MemorySession>(disk_, crashes_);
  }
  [[nodiscard]] std::unique_ptr<engine::View> view() const override { return std::make_unique<MemoryView>(disk_); }

  [[nodiscard]] Result<std::uint64_t> begin_boot(std::uint64_t at_least, Random &random) override {
    const std::scoped_lock lock(disk_->mutex_);
    const EngineFault fault = is_dead() ? EngineFault::unavailable : disk_->draw(EngineCall::boot);
    if (fault != EngineFault::none) {
      if (fault == EngineFault::crash) disk_->crash_locked(CrashOf::machine);
      return tl::unexpected(failed("injected: a boot that failed"));
    }
    disk_->boots_ = std::max(disk_->boots_ + 1, at_least);
    disk_->format_ = disk_format;
    if (disk_->identity_.empty()) disk_->identity_ = to_hex(draw_id<Identity>(random).view());
    disk_->make_stable();
    return disk_->boots_;
  }

  [[nodiscard]] Result<void> health() const override {
    const std::scoped_lock lock(disk_->mutex_);
    if (is_dead()) return tl::unexpected(failed("the engine is dead"));
    return {};
  }
  [[nodiscard]] bool is_all_stable() const override {
    const std::scoped_lock lock(disk_->mutex_);
    return disk_->unstable_.empty();
  }
  [[nodiscard]] std::string place() const override { return "memory"; }
  [[nodiscard]] std::string identity() const override {
    const std::scoped_lock lock(disk_->mutex_);
    return disk_->identity_;
  }
  [[nodiscard]] std::optional<std::uint64_t> format_found() const override { return format_found_; }
  [[nodiscard]] bool is_own_row(BytesView, BytesView) const override { return false; } // it keeps none
  [[nodiscard]] Result<engine::FilesReport> verify_files() const override { return engine::FilesReport{}; }

private:
  using Identity = OpaqueId<struct MemoryIdentityName, 16>;

  [[nodiscard]] bool is_dead() const { return crashes_ != disk_->crashes_; }

  const std::shared_ptr<MemoryDisk> disk_;
  std::uint64_t crashes_ = 0;
  std::optional<std::uint64_t> format_found_;
};

std::unique_ptr<engine::Engine> MemoryDisk::open() {
  return std::make_unique<MemoryEngine>(shared_from_this());
}

} // namespace onced::testing
