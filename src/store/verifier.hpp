#pragma once

#include <rocksdb/snapshot.h>

#include "onced/job.hpp"
#include "onced/verification.hpp"
#include "rocksdb/database.hpp"
#include "store/rows/records.hpp"

namespace onced::store {

// Reads everything in a database and holds it against what it must be. Changes nothing, and may run beside commits: it
// looks at one moment. One thread.
class Verifier {
public:
  explicit Verifier(const Database &database);

  // Errors: `store_unavailable`, where reading itself fails. Damage is a problem that is told, and no error.
  [[nodiscard]] Result<Verification> verify();

private:
  // What the counters must say.
  struct Sums {
    std::uint64_t results = 0;
    std::uint64_t dead_letters = 0;
    std::uint64_t dead_letter_bytes = 0;
    std::uint64_t queued = 0;
    std::uint64_t queued_bytes = 0;
    std::uint64_t relayed = 0;
    std::uint64_t relayed_bytes = 0;
  };

  [[nodiscard]] Result<void> verify_tables();
  [[nodiscard]] Result<void> verify_rows(rocksdb::ColumnFamilyHandle *family,
                                         void (Verifier::*verify_row)(BytesView key, BytesView value));
  void verify_operation(BytesView key, BytesView value);
  void verify_pending(BytesView key, const Digest &digest);
  void verify_failed(BytesView key, const Digest &digest);
  void verify_queued(BytesView key, BytesView value);
  void verify_relayed(BytesView key, BytesView value);
  void verify_dead_letter(BytesView key, BytesView value);
  void verify_letter_of_job(const DeadLetter &letter);
  void verify_letter_of_message(const DeadLetter &letter, const Job &job);
  void verify_meta(BytesView key, BytesView value);
  void verify_audit(BytesView key, BytesView value);
  void count(const FlowCounters &queue, const FlowCounters &relay);
  void verify_sums();
  // The row's value; nothing where there is none, or where it cannot be read.
  [[nodiscard]] std::optional<std::string> get(rocksdb::ColumnFamilyHandle *family, BytesView key);
  // The digest of a queue row's job; nothing where its bytes are none, or its ids are not those of its bytes and key.
  [[nodiscard]] std::optional<Digest> digest_of(BytesView key, const QueueRow &row);
  void tell(std::string where, BytesView key, std::string what);

  const Database &database_;
  rocksdb::ManagedSnapshot snapshot_;
  rocksdb::ReadOptions reading_;
  RecordDecoder decoder_;
  JobParser parser_;
  Digester digester_;
  Verification found_;
  Sums scanned_;
  Sums counted_;
  bool counts_bytes_ = false;    // else it was last written before bytes were counted
  std::uint64_t last_audit_ = 0; // 0: none yet
};

} // namespace onced::store
