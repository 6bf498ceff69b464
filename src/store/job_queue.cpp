#include "store/job_queue.hpp"

#include "rocksdb/slices.hpp"
#include "store/queue_lane.hpp"

namespace onced::store {

JobQueue::JobQueue(const CommitContext &context, Standing &standing, LaneSeats &seats)
    : context_(context), standing_(standing), lanes_(seats) {}
JobQueue::~JobQueue() = default;

// --- Reading --------------------------------------------------------------------------------------------------------

Result<QueuePage> JobQueue::queued(BytesView after, std::size_t rows) const {
  return page(after, rows, {}, SIZE_MAX);
}

Result<QueuePage> JobQueue::find_queued(BytesView after, std::size_t rows, const QueueFilter &filter) const {
  return page(after, rows, filter, limits::queue_scanned_max);
}

Result<QueuePage> JobQueue::page(BytesView after, std::size_t rows, const QueueFilter &filter,
                                 std::size_t scanned_max) const {
  QueuePage page;
  if (context_.database.queue() == nullptr) return page;
  RecordDecoder decoder;
  const std::unique_ptr<rocksdb::Iterator> iterator(
      context_.database.db()->NewIterator(scan_options(), context_.database.queue()));
  Bytes last(after);
  std::size_t scanned = 0;
  for (iterator->Seek(slice_of(after)); iterator->Valid(); iterator->Next()) {
    const BytesView key = view_of(iterator->key());
    if (key == after) continue;
    if (page.entries.size() == rows || scanned == scanned_max) {
      page.next = std::move(last); // there is at least this one more
      break;
    }
    last = Bytes(key);
    ++scanned;
    auto row = decoder.queued(view_of(iterator->value()));
    if (!row) ++page.damaged;
    if (!row || (filter.held_only && row->state != QueueState::held)) continue;
    if (!filter.type.empty() && row->type != filter.type) continue;
    row->bytes = Bytes();
    page.entries.push_back({.key = Bytes(key), .row = std::move(*row)});
  }
  if (!iterator->status().ok()) return tl::unexpected(status_error(iterator->status(), context_.database.path()));
  return page;
}

Result<std::optional<QueueRow>> JobQueue::find(BytesView key) const {
  if (context_.database.queue() == nullptr) return std::nullopt;
  std::string value;
  const auto status =
      context_.database.db()->Get(rocksdb::ReadOptions(), context_.database.queue(), slice_of(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return tl::unexpected(status_error(status, context_.database.path()));
  auto row = RecordDecoder().queued(value);
  if (row) return row;
  return tl::unexpected(Error{.code = ErrorCode::corrupt,
                              .concerns = context_.database.path(),
                              .cause = "a row of queue is damaged, key " + to_hex(key),
                              .remedy = "restore the data directory from a copy"});
}

// --- Changing -------------------------------------------------------------------------------------------------------

template <class Work> auto JobQueue::with_lane(Work &&work) -> decltype(work(std::declval<QueueLane &>())) {
  if (auto checked = standing_.check_writable(); !checked) return tl::unexpected(checked.error());
  auto lane = lanes_.take(context_);
  auto done = work(*lane);
  if (!done && done.error().code == ErrorCode::store_unavailable) standing_.give_up(done.error());
  lanes_.give_back(std::move(lane));
  return done;
}

Result<Received> JobQueue::begin_receive(BytesView key, const FencingToken &token, const QueuedType &type) {
  return with_lane([&](QueueLane &lane) { return lane.begin_receive(key, token, type); });
}

Result<QueueSettled> JobQueue::give_back(BytesView key, const FencingToken &token) {
  return with_lane([&](QueueLane &lane) { return lane.give_back(key, token); });
}

Result<QueueSettled> JobQueue::settle(BytesView key, const FencingToken &token, const QueueEnding &ending) {
  return with_lane([&](QueueLane &lane) { return lane.settle(key, token, ending); });
}

Result<QueueSettled> JobQueue::exhaust(BytesView key, std::string_view error) {
  return with_lane([&](QueueLane &lane) { return lane.exhaust(key, error); });
}

} // namespace onced::store
