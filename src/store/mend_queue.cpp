#include "store/mend_queue.hpp"

#include <optional>

#include "rocksdb/slices.hpp"
#include "store/locked_job.hpp"

namespace onced::store {
namespace {

// Writes that go out as they become many.
class Mending {
public:
  Mending(const Database &database, WallTime now) : database_(database), now_(now) {}

  [[nodiscard]] rocksdb::Status mend_queued_jobs();
  [[nodiscard]] rocksdb::Status mend_keys();
  [[nodiscard]] rocksdb::Status mend_messages();
  [[nodiscard]] rocksdb::Status write();

private:
  [[nodiscard]] rocksdb::Status mend_queued_job(BytesView key, const QueueRow &row);
  [[nodiscard]] rocksdb::Status mend_key(BytesView key, Phase phase, const Digest &digest);
  [[nodiscard]] rocksdb::Status get(rocksdb::ColumnFamilyHandle *family, BytesView key, std::optional<Bytes> &value);
  template <class Mend> [[nodiscard]] rocksdb::Status for_each(rocksdb::ColumnFamilyHandle *family, Mend &&mend);

  const Database &database_;
  WallTime now_;
  rocksdb::WriteBatch batch_;
  RecordDecoder decoder_;
  JobParser parser_;
  Digester digester_;
};

template <class Mend> rocksdb::Status Mending::for_each(rocksdb::ColumnFamilyHandle *family, Mend &&mend) {
  constexpr std::size_t batch_bytes_max = 1024UL * 1024;
  const std::unique_ptr<rocksdb::Iterator> rows(database_.db()->NewIterator(scan_options(), family));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    auto status = mend(view_of(rows->key()), view_of(rows->value()));
    if (status.ok() && batch_.GetDataSize() > batch_bytes_max) status = write();
    if (!status.ok()) return status;
  }
  const auto status = rows->status();
  return status.ok() ? write() : status;
}

rocksdb::Status Mending::mend_queued_jobs() {
  return for_each(database_.queue(), [&](BytesView key, BytesView value) {
    const auto row = decoder_.queued(value);
    return row ? mend_queued_job(key, *row) : rocksdb::Status();
  });
}

rocksdb::Status Mending::mend_queued_job(BytesView key, const QueueRow &row) {
  std::optional<Bytes> found;
  if (auto status = get(database_.operations(), key, found); !status.ok()) return status;
  if (found) {
    const auto operation = decoder_.operation(*found);
    if (!operation || operation->phase == Phase::pending) return {};
    return batch_.Delete(database_.queue(), slice_of(key));
  }
  Job job;
  if (!parser_.parse(row.bytes, job)) return {};
  const Digest digest = digester_.intent(job.type, job.payload);
  Bytes value;
  encode_operation(operation_record(Phase::pending, row, digest, {}, now_), value);
  return batch_.Put(database_.operations(), slice_of(key), value);
}

rocksdb::Status Mending::mend_keys() {
  return for_each(database_.operations(), [&](BytesView key, BytesView value) {
    const auto operation = decoder_.operation(value);
    if (!operation || operation->phase == Phase::committed) return rocksdb::Status();
    const Digest digest = operation->digest;
    return mend_key(key, operation->phase, digest);
  });
}

rocksdb::Status Mending::mend_key(BytesView key, Phase phase, const Digest &digest) {
  std::optional<Bytes> found;
  rocksdb::Status status;
  if (phase == Phase::pending) {
    status = get(database_.queue(), key, found);
  } else {
    const DeadLetterId id = dead_letter_id(Key{Bytes(key)}, digest, Outcome::failed, digester_);
    status = get(database_.dead_letters(), id.view(), found);
  }
  if (!status.ok() || found) return status;
  return batch_.Delete(database_.operations(), slice_of(key));
}

// A message whose parent was lost is lost with it, as they were written: done once more, the parent sends it on anew.
rocksdb::Status Mending::mend_messages() {
  return for_each(database_.relay(), [&](BytesView key, BytesView) {
    std::optional<Bytes> found;
    const auto parts = relay_key_of(key);
    auto status = parts ? get(database_.operations(), parts->parent, found) : rocksdb::Status();
    if (!status.ok() || !parts) return status;
    const auto parent = found ? decoder_.operation(*found) : std::nullopt;
    const bool lost = !found || (parent && parent->phase != Phase::committed);
    return lost ? batch_.Delete(database_.relay(), slice_of(key)) : rocksdb::Status();
  });
}

rocksdb::Status Mending::get(rocksdb::ColumnFamilyHandle *family, BytesView key, std::optional<Bytes> &value) {
  Bytes found;
  auto status = database_.db()->Get(rocksdb::ReadOptions(), family, slice_of(key), &found);
  if (status.ok()) value = std::move(found);
  return status.IsNotFound() ? rocksdb::Status() : status;
}

rocksdb::Status Mending::write() {
  if (batch_.Count() == 0) return {};
  auto status = database_.transactions()->Write(synced_write(), &batch_);
  batch_.Clear();
  return status;
}

} // namespace

Result<void> mend_queue(const Database &database, WallTime now) {
  Mending mending(database, now);
  auto status = mending.mend_queued_jobs();
  if (status.ok()) status = mending.mend_keys();
  if (status.ok()) status = mending.mend_messages();
  if (!status.ok()) return tl::unexpected(status_error(status, database.path()));
  return {};
}

} // namespace onced::store
