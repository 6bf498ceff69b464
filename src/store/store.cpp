#include "onced/store.hpp"

#include <algorithm>
#include <mutex>

#include "base/draw_id.hpp"
#include "onced/version.hpp"
#include "rocksdb/database.hpp"
#include "rocksdb/slices.hpp"
#include "store/allowance.hpp"
#include "store/commit_lane.hpp"
#include "store/dead_letter_changes.hpp"
#include "store/job_queue.hpp"
#include "store/lane_pool.hpp"
#include "store/mend_queue.hpp"
#include "store/recount.hpp"
#include "store/relay_queue.hpp"
#include "store/row_room.hpp"
#include "store/rows/records.hpp"
#include "store/standing.hpp"
#include "store/suspects/suspects.hpp"
#include "store/verifier.hpp"

namespace onced {

using rocks::Database;
using rocks::scan_options;
using rocks::slice_of;
using rocks::status_error;
using rocks::StoreIdentity;
using rocks::synced_write;
using store::CommitLane;
using store::DeadLetterChanges;
using store::LaneCounters;
using store::RecordDecoder;

namespace {

Error damaged_row(const Database &database, std::string_view family, BytesView key) {
  return {.code = ErrorCode::corrupt,
          .concerns = database.path(),
          .cause = "a row of " + std::string(family) + " is damaged, key " + to_hex(key),
          .remedy = "restore the data directory from a copy"};
}

} // namespace

class Store::Impl {
public:
  Impl(const StoreOptions &options, Clock &clock, std::unique_ptr<Database> database)
      : options_(options), clock_(clock), database_(std::move(database)), standing_(*database_, options.read_only),
        letter_room_({.rows = options.dead_letters_max, .bytes = options.dead_letter_bytes_max}),
        letter_allowance_(options.dead_letter_bytes_a_second, clock),
        queue_room_({.rows = options.queue_jobs_max, .bytes = options.queue_bytes_max}),
        relay_room_({.rows = options.relay_jobs_max, .bytes = options.relay_bytes_max}),
        cache_(options.read_only ? 0 : options.committed_cache_bytes), lanes_(seats_),
        queue_(context(), standing_, seats_), relay_(context(), standing_, seats_) {}
  ~Impl();

  Result<void> begin_boot(Random &random);

  Result<std::vector<Settlement>> commit(std::span<const Delivery> batch, const Handlers &handlers);
  void recall(std::span<const BytesView> jobs, std::span<Recollection> recollections) {
    cache_.recall(jobs, recollections);
  }
  Result<std::optional<OperationRow>> get(const Key &key) const;
  Result<Counts> count() const;
  Result<DeadLetterPage> find_dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after,
                                           const DeadLetterFilter &filter, std::size_t scanned_max) const;
  Result<std::optional<DeadLetter>> dead_letter(const DeadLetterId &id) const;
  Result<Redriven> redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who);
  Result<void> purge(const DeadLetterId &id, const Operator &who);
  Result<void> resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who);
  store::JobQueue &queue() { return queue_; }
  store::RelayQueue &relay() { return relay_; }
  Result<std::vector<AuditRow>> audit(std::size_t rows, std::uint64_t after) const;
  Result<Verification> verify() const { return store::Verifier(*database_).verify(); }

  [[nodiscard]] bool reads_durable() const {
    const bool synced = !options_.read_only && options_.durability == Durability::fsync;
    return synced || database_->mark_covers_all();
  }
  [[nodiscard]] HandlerCrashes handler_crashes() const { return suspects_.crashes(); }
  [[nodiscard]] BootId boot() const { return boot_; }
  [[nodiscard]] Durability durability() const { return options_.durability; }

private:
  Result<std::optional<std::uint64_t>> read_number(std::string_view name) const;
  Result<void> check_format() const;
  Result<void> read_counters();
  template <class Visit> Result<void> for_each_lane(std::string_view prefix, Visit &&visit);
  Result<store::ChangeCounters> read_change_counters();
  void take_room(store::RowRoom &room, store::FlowCounters LaneCounters::*flow, const store::FlowCounters &changes);
  Result<void> count_anew(rocksdb::WriteBatch &batch);
  Result<store::ChangeCounters> begin_counters(rocksdb::WriteBatch &batch);
  Result<std::uint64_t> uncounted_letter_bytes() const;
  Result<store::AuditRange> read_audit_range() const;
  Result<std::uint64_t> boots_so_far() const;
  store::CommitContext context();
  void tell_queued(std::span<const Delivery> batch, std::span<const Settlement> settled);

  StoreOptions options_;
  Clock &clock_;
  std::unique_ptr<Database> database_;
  BootId boot_;
  bool begun_ = false; // for writing
  store::Standing standing_;
  store::RowRoom letter_room_;
  store::Allowance letter_allowance_;
  store::RowRoom queue_room_;
  store::RowRoom relay_room_;
  store::CommittedCache cache_;
  store::Suspects suspects_;

  std::mutex changes_mutex_; // guards the next
  std::unique_ptr<DeadLetterChanges> changes_;

  std::vector<LaneCounters> counters_; // as the opening found them
  store::LaneSeats seats_;
  store::LanePool<CommitLane> lanes_;
  store::JobQueue queue_;
  store::RelayQueue relay_;
};

Store::Impl::~Impl() {
  if (options_.read_only || standing_.given_up()) return;
  // What was left in the page cache is put on stable storage when the store is closed in order.
  if (begun_) database_->mark_all_durable();
}

Result<std::optional<std::uint64_t>> Store::Impl::read_number(std::string_view name) const {
  std::string value;
  const auto status = database_->db()->Get(rocksdb::ReadOptions(), database_->meta(), slice_of(name), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return tl::unexpected(status_error(status, database_->path()));
  const auto number = RecordDecoder().number(value);
  if (!number) return tl::unexpected(damaged_row(*database_, "meta", name));
  return number;
}

Result<void> Store::Impl::check_format() const {
  const auto format = read_number(store::format_name);
  if (!format) return tl::unexpected(format.error());
  const bool is_new = !format->has_value() && database_->db()->GetLatestSequenceNumber() == 0;
  if (is_new && (options_.read_only || !options_.create)) {
    return tl::unexpected(Error{.code = ErrorCode::not_found,
                                .concerns = database_->path(),
                                .cause = "the database was made, but never begun",
                                .remedy = "start a worker on it first"});
  }
  if (is_new) return {};
  // The row may be among what was lost; records carry the format too.
  if (!format->has_value() && options_.accept_loss) return {};
  if (!format->has_value()) return tl::unexpected(damaged_row(*database_, "meta", store::format_name));
  if (**format > disk_format) {
    return tl::unexpected(Error{.code = ErrorCode::newer_format,
                                .concerns = database_->path(),
                                .cause = "the database has format " + std::to_string(**format) +
                                         ", and this program knows formats up to " + std::to_string(disk_format),
                                .remedy = "use the program that wrote it, or a newer one"});
  }
  return {};
}

// Calls `visit` with the number of each lane that has a row of this prefix, and the row's value; it returns false where
// the value is damaged.
template <class Visit> Result<void> Store::Impl::for_each_lane(std::string_view prefix, Visit &&visit) {
  const std::unique_ptr<rocksdb::Iterator> rows(
      database_->db()->NewIterator(rocksdb::ReadOptions(), database_->meta()));
  for (rows->Seek(slice_of(prefix)); rows->Valid() && rows->key().starts_with(slice_of(prefix)); rows->Next()) {
    const std::string number(rows->key().ToStringView().substr(prefix.size()));
    if (number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != std::string::npos) {
      return tl::unexpected(damaged_row(*database_, "meta", rows->key().ToStringView()));
    }
    const auto lane = static_cast<std::size_t>(std::stoul(number));
    if (counters_.size() <= lane) counters_.resize(lane + 1);
    if (!visit(counters_[lane], rows->value().ToStringView())) {
      return tl::unexpected(damaged_row(*database_, "meta", rows->key().ToStringView()));
    }
  }
  if (!rows->status().ok()) return tl::unexpected(status_error(rows->status(), database_->path()));
  return {};
}

Result<void> Store::Impl::read_counters() {
  RecordDecoder decoder;
  auto read = for_each_lane(store::lane_counters_prefix, [&](LaneCounters &lane, BytesView value) {
    const auto counters = decoder.counters(value);
    if (counters) lane = *counters;
    return counters.has_value();
  });
  if (!read) return read;
  read = for_each_lane(store::lane_bytes_prefix, [&](LaneCounters &lane, BytesView value) {
    const auto bytes = decoder.number(value);
    if (bytes) lane.dead_letter_bytes = *bytes;
    return bytes.has_value();
  });
  if (!read) return read;
  for (const LaneCounters &lane : counters_)
    letter_room_.add({.rows = lane.dead_letters, .bytes = lane.dead_letter_bytes});
  return {};
}

Result<store::ChangeCounters> Store::Impl::read_change_counters() {
  std::string value;
  const auto status =
      database_->db()->Get(rocksdb::ReadOptions(), database_->meta(), slice_of(store::change_counters_name), &value);
  std::optional<store::ChangeCounters> counters;
  if (status.ok()) {
    counters = RecordDecoder().change_counters(value);
    if (!counters) return tl::unexpected(damaged_row(*database_, "meta", store::change_counters_name));
  } else if (!status.IsNotFound()) {
    return tl::unexpected(status_error(status, database_->path()));
  } else {
    const auto bytes = uncounted_letter_bytes();
    if (!bytes) return tl::unexpected(bytes.error());
    counters = store::ChangeCounters{.dead_letter_bytes_found = *bytes};
  }
  letter_room_.add({.rows = 0, .bytes = counters->dead_letter_bytes_found});
  letter_room_.release({.rows = counters->dead_letters_removed, .bytes = counters->dead_letter_bytes_removed});
  return *counters;
}

// A database with dead letters of which no lane has counted a byte was last written before bytes were counted: they are
// counted once, by scanning, and from here on as they change.
Result<std::uint64_t> Store::Impl::uncounted_letter_bytes() const {
  for (const LaneCounters &lane : counters_) {
    if (lane.dead_letter_bytes != 0) return 0;
  }
  const auto letters = store::count_letters_by_scan(*database_);
  if (!letters) return tl::unexpected(letters.error());
  return letters->bytes;
}

Result<store::AuditRange> Store::Impl::read_audit_range() const {
  store::AuditRange range;
  const std::unique_ptr<rocksdb::Iterator> rows(
      database_->db()->NewIterator(rocksdb::ReadOptions(), database_->meta()));
  rows->Seek(slice_of(store::audit_prefix));
  if (rows->Valid()) range.first = store::audit_number(rows->key().ToStringView()).value_or(1);
  rows->SeekForPrev(store::audit_name(UINT64_MAX));
  if (rows->Valid()) range.last = store::audit_number(rows->key().ToStringView()).value_or(0);
  if (!rows->status().ok()) return tl::unexpected(status_error(rows->status(), database_->path()));
  return range;
}

// Where rows were lost, so were counters, and not by as much: they are made anew from the rows there are.
Result<void> Store::Impl::count_anew(rocksdb::WriteBatch &batch) {
  const auto counted = store::count_by_scan(*database_);
  if (!counted) return tl::unexpected(counted.error());
  counters_ = {*counted};
  letter_room_.add({.rows = counted->dead_letters, .bytes = counted->dead_letter_bytes});
  take_room(queue_room_, &LaneCounters::queue, {});
  take_room(relay_room_, &LaneCounters::relay, {});
  rocksdb::Status status;
  const std::unique_ptr<rocksdb::Iterator> rows(database_->db()->NewIterator(scan_options(), database_->meta()));
  for (rows->SeekToFirst(); status.ok() && rows->Valid(); rows->Next()) {
    const BytesView name = rows->key().ToStringView();
    const bool counts = name.starts_with(store::lane_counters_prefix) || name.starts_with(store::lane_bytes_prefix) ||
                        name == store::change_counters_name;
    if (counts) status = batch.Delete(database_->meta(), rows->key());
  }
  if (status.ok()) status = rows->status();
  Bytes value;
  store::encode_counters(*counted, value);
  if (status.ok()) status = batch.Put(database_->meta(), slice_of(store::lane_counters_name(0)), value);
  store::encode_number(counted->dead_letter_bytes, value);
  if (status.ok()) status = batch.Put(database_->meta(), slice_of(store::lane_bytes_name(0)), value);
  if (!status.ok()) return tl::unexpected(status_error(status, database_->path()));
  return {};
}

// One lane takes out what another has put in.
void Store::Impl::take_room(store::RowRoom &room, store::FlowCounters LaneCounters::*flow,
                            const store::FlowCounters &changes) {
  store::RowAmount there{.rows = changes.added - changes.removed, .bytes = changes.bytes_added - changes.bytes_removed};
  for (const LaneCounters &lane : counters_) {
    there.rows += (lane.*flow).added - (lane.*flow).removed;
    there.bytes += (lane.*flow).bytes_added - (lane.*flow).bytes_removed;
  }
  room.add(there);
}

// The counters as they are, or made anew; what is to be written of them goes into the batch.
Result<store::ChangeCounters> Store::Impl::begin_counters(rocksdb::WriteBatch &batch) {
  if (options_.accept_loss) {
    if (auto mended = store::mend_queue(*database_, clock_.wall()); !mended) return tl::unexpected(mended.error());
    if (auto counted = count_anew(batch); !counted) return tl::unexpected(counted.error());
    return store::ChangeCounters{};
  }
  if (auto read = read_counters(); !read) return tl::unexpected(read.error());
  auto changes = read_change_counters();
  if (!changes) return changes;
  take_room(queue_room_, &LaneCounters::queue, changes->queue);
  take_room(relay_room_, &LaneCounters::relay, changes->relay);
  if (changes->dead_letter_bytes_found == 0) return changes;
  Bytes value;
  store::encode_change_counters(*changes, value);
  const auto status = batch.Put(database_->meta(), slice_of(store::change_counters_name), value);
  if (!status.ok()) return tl::unexpected(status_error(status, database_->path()));
  return changes;
}

// Where rows were lost the count of boots may be too; it stays above those of all leases that are known.
Result<std::uint64_t> Store::Impl::boots_so_far() const {
  const auto boots = read_number(rocks::boots_name);
  if (!boots) return tl::unexpected(boots.error());
  if (!options_.accept_loss) return boots->value_or(0);
  const auto leased = store::greatest_boot_by_scan(*database_);
  if (!leased) return tl::unexpected(leased.error());
  return std::max({boots->value_or(0), *leased, database_->marked_boot()});
}

Result<void> Store::Impl::begin_boot(Random &random) {
  if (auto checked = check_format(); !checked) return checked;
  if (options_.read_only) return {};
  const auto boots = boots_so_far();
  if (!boots) return tl::unexpected(boots.error());
  if (auto marked = database_->begin_boot(*boots + 1); !marked) return marked; // from here on it is written to
  rocksdb::WriteBatch batch;
  const auto changes = begin_counters(batch);
  if (!changes) return tl::unexpected(changes.error());
  const auto audit = read_audit_range();
  if (!audit) return tl::unexpected(audit.error());
  if (auto begun = suspects_.begin(*database_, options_.directory, batch); !begun) return begun;
  const std::uint64_t count = *boots + 1;
  const std::uint64_t chance = random.next();
  for (std::size_t at = 0; at < 8; ++at) {
    boot_.bytes[at] = static_cast<std::uint8_t>(count >> (8 * (7 - at)));
    boot_.bytes[8 + at] = static_cast<std::uint8_t>(chance >> (8 * at));
  }
  Bytes format;
  Bytes number;
  store::encode_number(disk_format, format);
  store::encode_number(count, number);
  auto status = batch.Put(database_->meta(), slice_of(store::format_name), format);
  if (status.ok()) status = batch.Put(database_->meta(), slice_of(rocks::boots_name), number);
  const StoreIdentity identity = database_->claims().identity.value_or(draw_id<StoreIdentity>(random));
  if (status.ok()) status = batch.Put(database_->meta(), slice_of(rocks::identity_name), slice_of(identity.view()));
  if (status.ok()) status = database_->transactions()->Write(synced_write(), &batch);
  if (!status.ok()) return tl::unexpected(status_error(status, database_->path()));
  if (auto marked = database_->boot_begun(identity); !marked) return marked;
  begun_ = true;
  suspects_.counted();
  seats_.begin(counters_);
  changes_ = std::make_unique<DeadLetterChanges>(context(), *changes, *audit);
  return {};
}

store::CommitContext Store::Impl::context() {
  return {.database = *database_,
          .options = options_,
          .clock = clock_,
          .letter_room = letter_room_,
          .letter_allowance = letter_allowance_,
          .queue_room = queue_room_,
          .relay_room = relay_room_,
          .cache = cache_,
          .suspects = suspects_};
}

Result<std::vector<Settlement>> Store::Impl::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  if (auto checked = standing_.check_writable(); !checked) return tl::unexpected(checked.error());
  auto lane = lanes_.take(context());
  auto settled = lane->commit(batch, handlers);
  // Also where all were duplicates, and nothing was written: they rest on what is in the same place.
  if (const auto placed = database_->check_place(); settled && !placed) settled = tl::unexpected(placed.error());
  if (!settled) standing_.give_up(settled.error());
  lanes_.give_back(std::move(lane));
  if (settled && options_.observer != nullptr) tell_queued(batch, *settled);
  return settled;
}

// Of the jobs that this batch has taken into custody.
void Store::Impl::tell_queued(std::span<const Delivery> batch, std::span<const Settlement> settled) {
  for (std::size_t at = 0; at < batch.size(); ++at) {
    if (settled[at].outcome != Outcome::accepted || settled[at].branch != Branch::absent) continue;
    options_.observer->queued(batch[at].key->bytes, batch[at].job->type, clock_.wall());
  }
}

Result<std::optional<OperationRow>> Store::Impl::get(const Key &key) const {
  std::string value;
  const auto status =
      database_->db()->Get(rocksdb::ReadOptions(), database_->operations(), slice_of(key.bytes), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return tl::unexpected(status_error(status, database_->path()));
  RecordDecoder decoder;
  const auto record = decoder.operation(value);
  if (!record) return tl::unexpected(damaged_row(*database_, "operations", key.bytes));
  return store::to_row(*record);
}

Result<Counts> Store::Impl::count() const {
  Counts counts;
  RecordDecoder decoder;
  const std::unique_ptr<rocksdb::Iterator> rows(database_->db()->NewIterator(scan_options(), database_->operations()));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    const auto record = decoder.operation(rows->value().ToStringView());
    if (!record) return tl::unexpected(damaged_row(*database_, "operations", rows->key().ToStringView()));
    if (record->phase == Phase::committed) ++counts.results;
  }
  if (!rows->status().ok()) return tl::unexpected(status_error(rows->status(), database_->path()));
  for (const auto &[family, count] : {std::pair{database_->dead_letters(), &counts.dead_letters},
                                      {database_->queue(), &counts.pending},
                                      {database_->relay(), &counts.relayed}}) {
    if (family == nullptr) continue; // it is of an older format
    const std::unique_ptr<rocksdb::Iterator> others(database_->db()->NewIterator(scan_options(), family));
    for (others->SeekToFirst(); others->Valid(); others->Next())
      ++*count;
    if (!others->status().ok()) return tl::unexpected(status_error(others->status(), database_->path()));
  }
  return counts;
}

Result<DeadLetterPage> Store::Impl::find_dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after,
                                                      const DeadLetterFilter &filter, std::size_t scanned_max) const {
  DeadLetterPage page;
  RecordDecoder decoder;
  const std::unique_ptr<rocksdb::Iterator> iterator(
      database_->db()->NewIterator(scan_options(), database_->dead_letters()));
  std::optional<DeadLetterId> last = after;
  std::size_t scanned = 0;
  std::size_t scanned_bytes = 0;
  for (iterator->Seek(slice_of(after ? after->view() : BytesView{})); iterator->Valid(); iterator->Next()) {
    const auto id = DeadLetterId::from(iterator->key().ToStringView());
    if (id && after && *id == *after) continue;
    if (page.letters.size() == rows || scanned == scanned_max ||
        scanned_bytes >= limits::dead_letters_scanned_bytes_max) {
      page.next = last; // there is at least this one more
      break;
    }
    auto letter = id ? decoder.dead_letter(*id, iterator->value().ToStringView()) : std::nullopt;
    if (!letter) return tl::unexpected(damaged_row(*database_, "dead_letters", iterator->key().ToStringView()));
    ++scanned;
    scanned_bytes += iterator->value().size();
    last = letter->id;
    const bool wanted =
        (!filter.reason || letter->reason == *filter.reason) && (filter.type.empty() || letter->type == filter.type);
    if (wanted) page.letters.push_back(std::move(*letter));
  }
  if (!iterator->status().ok()) return tl::unexpected(status_error(iterator->status(), database_->path()));
  return page;
}

Result<std::optional<DeadLetter>> Store::Impl::dead_letter(const DeadLetterId &id) const {
  std::string value;
  const auto status =
      database_->db()->Get(rocksdb::ReadOptions(), database_->dead_letters(), slice_of(id.view()), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return tl::unexpected(status_error(status, database_->path()));
  auto letter = RecordDecoder().dead_letter(id, value);
  if (!letter) return tl::unexpected(damaged_row(*database_, "dead_letters", id.view()));
  return letter;
}

Result<Redriven> Store::Impl::redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who) {
  const std::scoped_lock lock(changes_mutex_);
  if (auto checked = standing_.check_writable(); !checked) return tl::unexpected(checked.error());
  auto redriven = changes_->redrive(id, handlers, who);
  if (!redriven && redriven.error().code == ErrorCode::store_unavailable) standing_.give_up(redriven.error());
  return redriven;
}

Result<void> Store::Impl::purge(const DeadLetterId &id, const Operator &who) {
  const std::scoped_lock lock(changes_mutex_);
  if (auto checked = standing_.check_writable(); !checked) return checked;
  auto purged = changes_->purge(id, who);
  if (!purged && purged.error().code == ErrorCode::store_unavailable) standing_.give_up(purged.error());
  return purged;
}

Result<void> Store::Impl::resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who) {
  const std::scoped_lock lock(changes_mutex_);
  if (auto checked = standing_.check_writable(); !checked) return checked;
  auto resolved = changes_->resolve(key, applied_result, who);
  if (!resolved && resolved.error().code == ErrorCode::store_unavailable) standing_.give_up(resolved.error());
  return resolved;
}

Result<std::vector<AuditRow>> Store::Impl::audit(std::size_t rows, std::uint64_t after) const {
  std::vector<AuditRow> changes;
  RecordDecoder decoder;
  const std::unique_ptr<rocksdb::Iterator> iterator(database_->db()->NewIterator(scan_options(), database_->meta()));
  if (after == UINT64_MAX) return changes;
  for (iterator->Seek(store::audit_name(after + 1)); iterator->Valid() && changes.size() < rows; iterator->Next()) {
    if (!iterator->key().starts_with(slice_of(store::audit_prefix))) break;
    const auto number = store::audit_number(iterator->key().ToStringView());
    auto row = number ? decoder.audit(iterator->value().ToStringView()) : std::nullopt;
    if (!row) return tl::unexpected(damaged_row(*database_, "meta", iterator->key().ToStringView()));
    row->number = *number;
    changes.push_back(std::move(*row));
  }
  if (!iterator->status().ok()) return tl::unexpected(status_error(iterator->status(), database_->path()));
  return changes;
}

Result<std::unique_ptr<Store>> Store::open(const StoreOptions &options, Clock &clock, Random &random) {
  auto database = Database::open(options);
  if (!database) return tl::unexpected(database.error());
  auto impl = std::make_unique<Impl>(options, clock, std::move(*database));
  if (auto begun = impl->begin_boot(random); !begun) return tl::unexpected(begun.error());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<std::vector<Settlement>> Store::commit(std::span<const Delivery> batch, const Handlers &handlers) {
  return impl_->commit(batch, handlers);
}
bool Store::reads_durable() const {
  return impl_->reads_durable();
}
void Store::recall(std::span<const BytesView> jobs, std::span<Recollection> recollections) const {
  impl_->recall(jobs, recollections);
}
Result<std::optional<OperationRow>> Store::get(const Key &key) const {
  return impl_->get(key);
}
Result<Counts> Store::count() const {
  return impl_->count();
}
Result<std::vector<DeadLetter>> Store::dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after) const {
  auto page = impl_->find_dead_letters(rows, after, {}, rows);
  if (!page) return tl::unexpected(page.error());
  return std::move(page->letters);
}
Result<std::optional<DeadLetter>> Store::dead_letter(const DeadLetterId &id) const {
  return impl_->dead_letter(id);
}
Result<DeadLetterPage> Store::find_dead_letters(std::size_t rows, const std::optional<DeadLetterId> &after,
                                                const DeadLetterFilter &filter) const {
  return impl_->find_dead_letters(rows, after, filter, limits::dead_letters_scanned_max);
}
Result<Redriven> Store::redrive(const DeadLetterId &id, const Handlers &handlers, const Operator &who) {
  return impl_->redrive(id, handlers, who);
}
Result<void> Store::purge(const DeadLetterId &id, const Operator &who) {
  return impl_->purge(id, who);
}
Result<void> Store::resolve(const Key &key, const std::optional<Bytes> &applied_result, const Operator &who) {
  return impl_->resolve(key, applied_result, who);
}
store::JobQueue &Store::queue() {
  return impl_->queue();
}
const store::JobQueue &Store::queue() const {
  return impl_->queue();
}
store::RelayQueue &Store::relay() {
  return impl_->relay();
}
const store::RelayQueue &Store::relay() const {
  return impl_->relay();
}
Result<std::vector<AuditRow>> Store::audit(std::size_t rows, std::uint64_t after) const {
  return impl_->audit(rows, after);
}
Result<Verification> Store::verify() const {
  return impl_->verify();
}
HandlerCrashes Store::handler_crashes() const {
  return impl_->handler_crashes();
}
BootId Store::boot() const {
  return impl_->boot();
}
Durability Store::durability() const {
  return impl_->durability();
}

} // namespace onced
