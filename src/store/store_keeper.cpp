#include "store/store_keeper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/directory_kind.hpp"
#include "onced/version.hpp"

namespace onced::store {
namespace {

// The first try comes soon, as the cause is often gone with the close; later ones leave the disk alone.
constexpr std::chrono::milliseconds first_wait{100};
constexpr std::chrono::milliseconds longest_wait{5'000};

// How long a reader waits while the store is being closed or opened.
constexpr std::chrono::seconds patience_of_readers{1};

// There is no room on the disk, the quota is used up, or files may not grow.
bool says_full(const Error &error) {
  constexpr std::array<int, 3> reasons{ENOSPC, EDQUOT, EFBIG};
  return std::any_of(reasons.begin(), reasons.end(), [&](int reason) {
    return error.cause.find(std::generic_category().message(reason)) != std::string::npos;
  });
}

Event failure_event(std::string_view name, const Error &error) {
  return {.level = EventLevel::error,
          .name = name,
          .fields = {{"code", std::string(name_of(error.code))},
                     {"concerns", error.concerns},
                     {"cause", error.cause},
                     {"remedy", error.remedy}}};
}

Error replaced(const std::filesystem::path &path) {
  return {.code = ErrorCode::loss_suspected,
          .concerns = path.string(),
          .cause = "another database was put in the place of the one that this process had open",
          .remedy = "put its own back; or start again, to go on with this one"};
}

// Whether waiting can mend it. What is not there may be moved or mounted back.
bool may_mend(const Error &error) {
  return error.code == ErrorCode::store_unavailable || error.code == ErrorCode::not_found;
}

} // namespace

StoreKeeper::StoreKeeper(const StoreOptions &options, Clock &clock, Random &random, EventLog &log,
                         std::function<void()> on_change, std::function<void(Error)> on_give_up)
    : options_(options), clock_(clock), random_(random), log_(log), on_change_(std::move(on_change)),
      on_give_up_(std::move(on_give_up)), backoff_(first_wait, longest_wait) {}

Result<void> StoreKeeper::open() {
  const auto path = options_.directory / "db";
  if (options_.lock != nullptr) { // first: a directory that was moved away may come back
    if (auto checked = options_.lock->check(); !checked) return checked;
  }
  if (const auto found = inode_at(path); folder_ && found && found != folder_) return tl::unexpected(replaced(path));
  auto store = Store::open(options_, clock_, random_);
  if (!store) return tl::unexpected(store.error());
  {
    const std::scoped_lock lock(mutex_);
    store_ = std::move(*store);
    state_.available = true;
    state_.boot = store_->boot();
    ++state_.openings;
    state_.opening = false;
    state_.full = false;
    state_.cause.reset();
  }
  options_.accept_loss = false; // it was meant for this opening
  options_.create = false;      // from now on there is one, or it is lost
  folder_ = inode_at(path);
  tell_upgrade();
  tell_crashes();
  changed_.notify_all();
  on_change_();
  return {};
}

void StoreKeeper::tell_upgrade() {
  const auto store = try_lease();
  const auto upgrade = store ? store->upgrade() : std::nullopt;
  if (!upgrade) return;
  log_.write({.level = EventLevel::info,
              .name = "store.upgraded",
              .fields = {{"format", upgrade->to}, {"identity", upgrade->identity}}});
}

// Of the end of the process before: at most limits::running_slots jobs.
void StoreKeeper::tell_crashes() {
  const auto store = try_lease();
  if (!store) return;
  const HandlerCrashes told = store->handler_crashes();
  if (told.blind) log_.write(failure_event("crashes.unseen", *told.blind));
  for (const Suspect &suspect : told.suspects) {
    if (!suspect.just_now) continue;
    log_.write({.level = EventLevel::warning,
                .name = "handler.suspected",
                .fields = {{"key", to_hex(suspect.key)}, {"crashes", suspect.crashes}}});
  }
}

StoreKeeper::Lease StoreKeeper::lease() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || state_.available; });
  if (!state_.available) return {};
  ++leases_;
  return Lease(this);
}

StoreKeeper::Lease StoreKeeper::try_lease() {
  const std::scoped_lock lock(mutex_);
  if (!state_.available) return {};
  ++leases_;
  return Lease(this);
}

Error StoreKeeper::why_unavailable() const {
  return state().cause.value_or(Error{.code = ErrorCode::store_unavailable,
                                      .concerns = "the store",
                                      .cause = "it is closed",
                                      .remedy = "ask again later"});
}

Result<void> StoreKeeper::read(const std::function<void(const Store &)> &use) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience_of_readers,
                    [&] { return stopping_ || state_.available || (store_ == nullptr && !changes_files_); });
  if (state_.available) {
    ++leases_;
    const Lease lease(this);
    lock.unlock();
    use(*lease);
    return {};
  }
  if (stopping_ || store_ != nullptr || changes_files_) {
    lock.unlock();
    return tl::unexpected(why_unavailable());
  }
  ++readers_;
  StoreOptions options = options_;
  lock.unlock();
  options.read_only = true;
  options.kill_switch = nullptr;
  options.counters = nullptr;
  options.observer = nullptr;
  auto store = Store::open(options, clock_, random_);
  if (store) use(**store);
  Result<void> result;
  if (!store) result = tl::unexpected(store.error());
  if (store) store->reset(); // before the files may change
  lock.lock();
  --readers_;
  lock.unlock();
  changed_.notify_all();
  return result;
}

void StoreKeeper::give_back() {
  {
    const std::scoped_lock lock(mutex_);
    --leases_;
  }
  changed_.notify_all();
}

void StoreKeeper::report(const Error &error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!state_.available) return; // somebody else noticed first
    state_.available = false;
    state_.cause = error;
    state_.full = says_full(error);
    state_.since = clock_.wall();
  }
  log_.write(failure_event("store.unavailable", error));
  changed_.notify_all();
  on_change_();
}

StoreKeeper::State StoreKeeper::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

void StoreKeeper::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (!state_.available && leases_ == 0); });
    if (stopping_) return;
    auto failed = std::move(store_);
    changes_files_ = true;
    lock.unlock();
    failed.reset(); // closes it, outside the lock: it may take a while
    lock.lock();
    changes_files_ = false;
    lock.unlock();
    const bool opened = reopen();
    lock.lock();
    if (!opened) return;
  }
}

// Tries until the store is open again. False: stopped, or given up.
bool StoreKeeper::reopen() {
  for (unsigned attempt = 1; wait_before(attempt); ++attempt) {
    arrive(KillPoint::worker_before_reopen);
    tell_opening(attempt == 1);
    const auto opened = open_again();
    if (opened) {
      arrive(KillPoint::worker_after_reopen);
      log_.write({.level = EventLevel::info,
                  .name = "store.reopened",
                  .fields = {{"boot", to_hex(state().boot.view())}, {"attempts", std::uint64_t{attempt}}}});
      return true;
    }
    log_.write(failure_event("store.reopening_failed", opened.error()));
    if (!may_mend(opened.error())) {
      on_give_up_(opened.error());
      stop(); // nobody need wait any longer
      return false;
    }
    {
      const std::scoped_lock lock(mutex_);
      state_.opening = false;
      state_.cause = opened.error();
      state_.full = says_full(opened.error());
    }
    on_change_();
  }
  return false;
}

// Of later tries it is known better what they come from.
void StoreKeeper::tell_opening(bool opening) {
  {
    const std::scoped_lock lock(mutex_);
    state_.opening = opening;
  }
  on_change_();
}

// Nobody reads the files meanwhile.
Result<void> StoreKeeper::open_again() {
  {
    std::unique_lock lock(mutex_);
    changes_files_ = true;
    changed_.wait(lock, [&] { return readers_ == 0; });
  }
  auto opened = open();
  {
    const std::scoped_lock lock(mutex_);
    changes_files_ = false;
  }
  changed_.notify_all();
  return opened;
}

void StoreKeeper::arrive(KillPoint point) {
  if (options_.kill_switch != nullptr) options_.kill_switch->arrive(point);
}

bool StoreKeeper::wait_before(unsigned attempt) {
  const auto wait = backoff_.after(attempt, random_);
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, wait, [&] { return stopping_; });
}

void StoreKeeper::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void StoreKeeper::close() {
  const std::scoped_lock lock(mutex_);
  state_.available = false;
  store_.reset();
}

} // namespace onced::store
