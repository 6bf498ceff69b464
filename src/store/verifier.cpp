#include "store/verifier.hpp"

#include <algorithm>

#include "job/relayed_job.hpp"
#include "onced/limits.hpp"
#include "store/rows/older_sums.hpp"

namespace onced::store {
namespace {

using engine::Counter;
using engine::Family;

// Where a row lies in `operations`.
Key key_of(std::string_view effect_key, std::string_view type, std::string_view operation_id) {
  return effect_key.empty() ? key_of_operation(type, operation_id) : key_of_effect(effect_key);
}

} // namespace

Result<Verification> Verifier::verify() {
  if (auto read = verify_tables(); !read) return tl::unexpected(read.error());
  for (const auto &[family, verify_row] : {std::pair{Family::operations, &Verifier::verify_operation},
                                           {Family::queue, &Verifier::verify_queued},
                                           {Family::relay, &Verifier::verify_relayed},
                                           {Family::dead_letters, &Verifier::verify_dead_letter},
                                           {Family::meta, &Verifier::verify_meta}}) {
    if (auto read = verify_rows(family, verify_row); !read) return tl::unexpected(read.error());
  }
  if (auto read = verify_sums(); !read) return tl::unexpected(read.error());
  return std::move(found_);
}

Result<void> Verifier::verify_tables() {
  const auto report = engine_.verify_files();
  if (!report) return tl::unexpected(report.error());
  found_.tables = report->files;
  found_.table_bytes = report->bytes;
  if (!report->damage.empty()) tell("tables", {}, report->damage);
  return {};
}

Result<void> Verifier::verify_rows(Family family, void (Verifier::*verify_row)(BytesView, BytesView)) {
  auto read = view_->scan({.family = family}, [&](BytesView key, BytesView value) {
    (this->*verify_row)(key, value);
    return true;
  });
  if (read || read.error().code != ErrorCode::corrupt) return read;
  tell(std::string(name_of(family)), {}, "its rows can be read only so far: " + read.error().cause);
  return {};
}

void Verifier::verify_operation(BytesView key, BytesView value) {
  ++found_.operations;
  const auto row = decoder_.operation(value);
  if (!row) {
    scan(Counter::results); // the counters count it
    return tell("operations", key, "the row is damaged");
  }
  if (key_of(row->effect_key, row->type, row->operation_id).bytes != key) {
    tell("operations", key, "the row lies under another key than that of its ids");
  }
  const Digest digest = row->digest; // the row does not outlive the next one that is read
  if (row->phase == Phase::pending) return verify_pending(key, digest);
  if (row->phase == Phase::failed) return verify_failed(key, digest);
  scan(Counter::results);
  const auto canonical = parser_.canonical(row->result);
  if (!canonical || *canonical != row->result) tell("operations", key, "its result has no canonical form");
}

void Verifier::verify_pending(BytesView key, const Digest &digest) {
  const auto value = get(Family::queue, key);
  if (!value) return tell("operations", key, "it is pending, and there is no row of the queue for it");
  const auto row = decoder_.queued(*value);
  if (row && digest_of(key, *row) != digest) {
    tell("operations", key, "it is pending, and the job in the queue has another digest");
  }
}

void Verifier::verify_failed(BytesView key, const Digest &digest) {
  const DeadLetterId id = dead_letter_id(Key{Bytes(key)}, digest, Outcome::failed, digester_);
  if (!get(Family::dead_letters, id.view())) tell("operations", key, "it has failed, and there is no dead letter");
}

void Verifier::verify_queued(BytesView key, BytesView value) {
  ++found_.queued;
  scan(Counter::queued);
  const auto row = decoder_.queued(value);
  if (!row) return tell("queue", key, "the row is damaged");
  scan(Counter::queued_bytes, row->bytes.size());
  if (!digest_of(key, *row)) tell("queue", key, "its bytes are no job, or not that of its ids and its key");
  const auto operation_value = get(Family::operations, key);
  const auto operation = operation_value ? decoder_.operation(*operation_value) : std::nullopt;
  if (!operation || operation->phase != Phase::pending) tell("queue", key, "the row of its key is not pending");
}

void Verifier::verify_relayed(BytesView key, BytesView value) {
  ++found_.relayed;
  scan(Counter::relayed);
  const auto row = decoder_.relayed(value);
  if (!row) return tell("relay", key, "the row is damaged");
  scan(Counter::relayed_bytes, row->job.size());
  const auto parts = relay_key_of(key);
  if (!parts) return tell("relay", key, "the row lies under a key that is none");
  Job job;
  if (!parser_.parse(row->job, job) ||
      job.operation_id != relayed_operation_id(parts->parent, parts->index, digester_)) {
    tell("relay", key, "its bytes are no job, or not that of its key");
  }
  const auto parent_value = get(Family::operations, parts->parent);
  const auto parent = parent_value ? decoder_.operation(*parent_value) : std::nullopt;
  if (!parent || parent->phase != Phase::committed) tell("relay", key, "the job whose result it is is not committed");
}

void Verifier::verify_dead_letter(BytesView key, BytesView value) {
  ++found_.dead_letters;
  scan(Counter::dead_letters);
  const auto id = DeadLetterId::from(key);
  const auto letter = id ? decoder_.dead_letter(*id, value) : std::nullopt;
  if (!letter) return tell("dead_letters", key, "the row is damaged");
  scan(Counter::dead_letter_bytes, letter->bytes.size());
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
  const auto value = get(Family::operations, key.bytes);
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
  if (is_older_sum(key)) {
    const auto row = decode_older_sum(key, value);
    readable = row.has_value();
    if (row) counted_ += *row;
  } else if (key.starts_with(crashes_prefix)) {
    readable = decoder_.crash_count(value).has_value();
  } else {
    readable = engine_.is_own_row(key, value);
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

Result<void> Verifier::verify_sums() {
  const auto kept = view_->counters();
  if (!kept && kept.error().code == ErrorCode::corrupt) return {}; // its row was told of
  if (!kept) return tl::unexpected(kept.error());
  counted_ += *kept;
  for (const auto &[what, counter] : {std::pair{"results", Counter::results},
                                      {"dead letters", Counter::dead_letters},
                                      {"bytes of jobs in dead letters", Counter::dead_letter_bytes},
                                      {"queued jobs", Counter::queued},
                                      {"bytes of queued jobs", Counter::queued_bytes},
                                      {"messages to be sent on", Counter::relayed},
                                      {"bytes of messages to be sent on", Counter::relayed_bytes}}) {
    ++found_.counters;
    if (counted_[counter] == scanned_[counter]) continue;
    tell("meta", {},
         "the counters say " + std::to_string(counted_[counter]) + " " + what + ", and there are " +
             std::to_string(scanned_[counter]));
  }
  return {};
}

std::optional<Bytes> Verifier::get(Family family, BytesView key) {
  auto value = view_->get(family, key);
  return value ? std::move(*value) : std::nullopt;
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
