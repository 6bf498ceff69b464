#include "store/verifier.hpp"

#include <algorithm>

#include <rocksdb/metadata.h>

#include "job/relayed_job.hpp"
#include "onced/limits.hpp"
#include "rocksdb/slices.hpp"

namespace onced::store {
namespace {

// Where a row lies in `operations`.
Key key_of(std::string_view effect_key, std::string_view type, std::string_view operation_id) {
  return effect_key.empty() ? key_of_operation(type, operation_id) : key_of_effect(effect_key);
}

} // namespace

Verifier::Verifier(const Database &database) : database_(database), snapshot_(database.db()), reading_(scan_options()) {
  reading_.snapshot = snapshot_.snapshot();
  reading_.verify_checksums = true;
}

Result<Verification> Verifier::verify() {
  if (auto read = verify_tables(); !read) return tl::unexpected(read.error());
  for (const auto &[family, verify_row] : {std::pair{database_.operations(), &Verifier::verify_operation},
                                           {database_.queue(), &Verifier::verify_queued},
                                           {database_.relay(), &Verifier::verify_relayed},
                                           {database_.dead_letters(), &Verifier::verify_dead_letter},
                                           {database_.meta(), &Verifier::verify_meta}}) {
    if (family == nullptr) continue; // it is of an older format
    if (auto read = verify_rows(family, verify_row); !read) return tl::unexpected(read.error());
  }
  verify_sums();
  return std::move(found_);
}

Result<void> Verifier::verify_tables() {
  std::vector<rocksdb::LiveFileMetaData> tables;
  database_.db()->GetLiveFilesMetaData(&tables);
  found_.tables = tables.size();
  for (const rocksdb::LiveFileMetaData &table : tables)
    found_.table_bytes += table.size;
  const auto status = database_.db()->VerifyChecksum(rocksdb::ReadOptions());
  if (status.IsCorruption()) {
    tell("tables", {}, status.ToString());
  } else if (!status.ok()) {
    return tl::unexpected(status_error(status, database_.path()));
  }
  return {};
}

Result<void> Verifier::verify_rows(rocksdb::ColumnFamilyHandle *family,
                                   void (Verifier::*verify_row)(BytesView, BytesView)) {
  const std::unique_ptr<rocksdb::Iterator> rows(database_.db()->NewIterator(reading_, family));
  for (rows->SeekToFirst(); rows->Valid(); rows->Next())
    (this->*verify_row)(rows->key().ToStringView(), rows->value().ToStringView());
  if (rows->status().IsCorruption()) {
    tell(family->GetName(), {}, "its rows can be read only so far: " + rows->status().ToString());
  } else if (!rows->status().ok()) {
    return tl::unexpected(status_error(rows->status(), database_.path()));
  }
  return {};
}

void Verifier::verify_operation(BytesView key, BytesView value) {
  ++found_.operations;
  const auto row = decoder_.operation(value);
  if (!row) {
    ++scanned_.results; // the counters count it
    return tell("operations", key, "the row is damaged");
  }
  if (key_of(row->effect_key, row->type, row->operation_id).bytes != key) {
    tell("operations", key, "the row lies under another key than that of its ids");
  }
  const Digest digest = row->digest; // the row does not outlive the next one that is read
  if (row->phase == Phase::pending) return verify_pending(key, digest);
  if (row->phase == Phase::failed) return verify_failed(key, digest);
  ++scanned_.results;
  const auto canonical = parser_.canonical(row->result);
  if (!canonical || *canonical != row->result) tell("operations", key, "its result has no canonical form");
}

void Verifier::verify_pending(BytesView key, const Digest &digest) {
  const auto value = get(database_.queue(), key);
  if (!value) return tell("operations", key, "it is pending, and there is no row of the queue for it");
  const auto row = decoder_.queued(*value);
  if (row && digest_of(key, *row) != digest) {
    tell("operations", key, "it is pending, and the job in the queue has another digest");
  }
}

void Verifier::verify_failed(BytesView key, const Digest &digest) {
  const DeadLetterId id = dead_letter_id(Key{Bytes(key)}, digest, Outcome::failed, digester_);
  if (!get(database_.dead_letters(), id.view())) tell("operations", key, "it has failed, and there is no dead letter");
}

void Verifier::verify_queued(BytesView key, BytesView value) {
  ++found_.queued;
  ++scanned_.queued;
  const auto row = decoder_.queued(value);
  if (!row) return tell("queue", key, "the row is damaged");
  scanned_.queued_bytes += row->bytes.size();
  if (!digest_of(key, *row)) tell("queue", key, "its bytes are no job, or not that of its ids and its key");
  const auto operation_value = get(database_.operations(), key);
  const auto operation = operation_value ? decoder_.operation(*operation_value) : std::nullopt;
  if (!operation || operation->phase != Phase::pending) tell("queue", key, "the row of its key is not pending");
}

void Verifier::verify_relayed(BytesView key, BytesView value) {
  ++found_.relayed;
  ++scanned_.relayed;
  const auto row = decoder_.relayed(value);
  if (!row) return tell("relay", key, "the row is damaged");
  scanned_.relayed_bytes += row->job.size();
  const auto parts = relay_key_of(key);
  if (!parts) return tell("relay", key, "the row lies under a key that is none");
  Job job;
  if (!parser_.parse(row->job, job) ||
      job.operation_id != relayed_operation_id(parts->parent, parts->index, digester_)) {
    tell("relay", key, "its bytes are no job, or not that of its key");
  }
  const auto parent_value = get(database_.operations(), parts->parent);
  const auto parent = parent_value ? decoder_.operation(*parent_value) : std::nullopt;
  if (!parent || parent->phase != Phase::committed) tell("relay", key, "the job whose result it is is not committed");
}

void Verifier::verify_dead_letter(BytesView key, BytesView value) {
  ++found_.dead_letters;
  ++scanned_.dead_letters;
  const auto id = DeadLetterId::from(key);
  const auto letter = id ? decoder_.dead_letter(*id, value) : std::nullopt;
  if (!letter) return tell("dead_letters", key, "the row is damaged");
  scanned_.dead_letter_bytes += letter->bytes.size();
  if (letter->offered_digest) return verify_letter_of_job(*letter);
  if (dead_letter_id(letter->bytes, digester_) != letter->id) {
    tell("dead_letters", key, "the row lies under another id than that of its bytes");
  }
}

void Verifier::verify_letter_of_job(const DeadLetter &letter) {
  const BytesView id = letter.id.view();
  Job job;
  if (const auto parsed = parser_.parse(letter.bytes, job); !parsed) {
    return tell("dead_letters", id, "its bytes are no job, though it has a digest");
  }
  const Key key = key_of(letter.effect_key, letter.type, letter.operation_id);
  if (digester_.intent(job.type, job.payload) != *letter.offered_digest ||
      key != key_of(job.effect_key, job.type, job.operation_id)) {
    tell("dead_letters", id, "its digest or its ids are not those of its bytes");
  }
  if (!letter.relay_key.empty()) return verify_letter_of_message(letter, job);
  if (dead_letter_id(key, *letter.offered_digest, letter.reason, digester_) != letter.id) {
    tell("dead_letters", id, "the row lies under another id than that of its key, digest and reason");
  }
  // A row that was not committed then may have been freed since.
  if (!letter.stored_digest || letter.stored_phase != Phase::committed) return;
  const auto value = get(database_.operations(), key.bytes);
  const auto row = value ? decoder_.operation(*value) : std::nullopt;
  if (!row || row->digest != *letter.stored_digest) {
    tell("dead_letters", id, "the row that it was in conflict with is not there, or is another");
  }
}

void Verifier::verify_letter_of_message(const DeadLetter &letter, const Job &job) {
  if (relay_letter_id(letter.relay_key, digester_) != letter.id) {
    tell("dead_letters", letter.id.view(), "the row lies under another id than that of its message");
  }
  const auto parts = relay_key_of(letter.relay_key);
  if (!parts || job.operation_id != relayed_operation_id(parts->parent, parts->index, digester_)) {
    tell("dead_letters", letter.id.view(), "its bytes are not the job of its message");
  }
}

void Verifier::verify_meta(BytesView key, BytesView value) {
  if (key.starts_with(audit_prefix)) return verify_audit(key, value);
  bool readable = false;
  if (key.starts_with(lane_counters_prefix)) {
    const auto lane = decoder_.counters(value);
    readable = lane.has_value();
    counted_.results += readable ? lane->results : 0;
    counted_.dead_letters += readable ? lane->dead_letters : 0;
    count(readable ? lane->queue : FlowCounters{}, readable ? lane->relay : FlowCounters{});
  } else if (key == change_counters_name) {
    const auto read = decoder_.change_counters(value);
    readable = read.has_value();
    const ChangeCounters changes = read.value_or(ChangeCounters{});
    counts_bytes_ = true;
    counted_.results += changes.results;
    counted_.dead_letters -= changes.dead_letters_removed;
    counted_.dead_letter_bytes += changes.dead_letter_bytes_found - changes.dead_letter_bytes_removed;
    count(changes.queue, changes.relay);
  } else if (key == identity_name) {
    readable = StoreIdentity::from(value).has_value();
  } else if (key.starts_with(crashes_prefix)) {
    readable = decoder_.crash_count(value).has_value();
  } else if (key.starts_with(lane_bytes_prefix) || key == format_name || key == boots_name) {
    const auto number = decoder_.number(value);
    readable = number.has_value();
    if (key.starts_with(lane_bytes_prefix)) {
      counts_bytes_ = true;
      counted_.dead_letter_bytes += number.value_or(0);
    }
  }
  if (!readable) tell("meta", key, "the row is damaged, or of a name that is not known");
}

void Verifier::verify_audit(BytesView key, BytesView value) {
  ++found_.audit_rows;
  const auto number = audit_number(key);
  if (!number || !decoder_.audit(value)) return tell("meta", key, "the row of the audit is damaged");
  // The oldest rows go; those that are left have no gap.
  if (last_audit_ != 0 && *number != last_audit_ + 1)
    tell("meta", key, "rows of the audit before this one are missing");
  last_audit_ = *number;
}

void Verifier::count(const FlowCounters &queue, const FlowCounters &relay) {
  counted_.queued += queue.added - queue.removed;
  counted_.queued_bytes += queue.bytes_added - queue.bytes_removed;
  counted_.relayed += relay.added - relay.removed;
  counted_.relayed_bytes += relay.bytes_added - relay.bytes_removed;
}

void Verifier::verify_sums() {
  const auto hold = [&](std::string_view what, std::uint64_t counted, std::uint64_t scanned) {
    ++found_.counters;
    if (counted == scanned) return;
    tell("meta", {},
         "the counters say " + std::to_string(counted) + " " + std::string(what) + ", and there are " +
             std::to_string(scanned));
  };
  hold("results", counted_.results, scanned_.results);
  hold("dead letters", counted_.dead_letters, scanned_.dead_letters);
  if (counts_bytes_) hold("bytes of jobs in dead letters", counted_.dead_letter_bytes, scanned_.dead_letter_bytes);
  hold("queued jobs", counted_.queued, scanned_.queued);
  hold("bytes of queued jobs", counted_.queued_bytes, scanned_.queued_bytes);
  hold("messages to be sent on", counted_.relayed, scanned_.relayed);
  hold("bytes of messages to be sent on", counted_.relayed_bytes, scanned_.relayed_bytes);
}

std::optional<std::string> Verifier::get(rocksdb::ColumnFamilyHandle *family, BytesView key) {
  std::string value;
  if (family == nullptr || !database_.db()->Get(reading_, family, slice_of(key), &value).ok()) return std::nullopt;
  return value;
}

std::optional<Digest> Verifier::digest_of(BytesView key, const QueueRow &row) {
  Job job;
  if (!parser_.parse(row.bytes, job)) return std::nullopt;
  const bool same = job.type == row.type && key_of(job.effect_key, job.type, job.operation_id).bytes == key &&
                    key_of(row.effect_key, row.type, row.operation_id).bytes == key;
  if (!same) return std::nullopt;
  return digester_.intent(job.type, job.payload);
}

void Verifier::tell(std::string where, BytesView key, std::string what) {
  if (++found_.problems > limits::problems_told_max) return;
  found_.first_problems.push_back({.where = std::move(where), .key = Bytes(key), .what = std::move(what)});
}

} // namespace onced::store
