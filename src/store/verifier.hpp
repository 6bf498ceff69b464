#pragma once

#include "engine/engine.hpp"
#include "onced/job.hpp"
#include "onced/verification.hpp"
#include "store/rows/records.hpp"

namespace onced::store {

// Reads everything in a store and holds it against what it must be. Changes nothing, and may run beside commits: it
// looks at one moment. One thread.
class Verifier {
public:
  explicit Verifier(const engine::Engine &engine) : engine_(engine), view_(engine.view()) {}

  // Errors: `store_unavailable`, where reading itself fails. Damage is a problem that is told, and no error.
  [[nodiscard]] Result<Verification> verify();

private:
  [[nodiscard]] Result<void> verify_tables();
  [[nodiscard]] Result<void> verify_rows(engine::Family family,
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
  [[nodiscard]] Result<void> verify_sums();
  void scan(engine::Counter counter, std::size_t amount = 1) { scanned_[counter] += static_cast<std::int64_t>(amount); }
  // The row's value; nothing where there is none, or where it cannot be read.
  [[nodiscard]] std::optional<Bytes> get(engine::Family family, BytesView key);
  // The digest of a queue row's job; nothing where its bytes are none, or its ids are not those of its bytes and key.
  [[nodiscard]] std::optional<Digest> digest_of(BytesView key, const QueueRow &row);
  void tell(std::string where, BytesView key, std::string what);

  const engine::Engine &engine_;
  std::unique_ptr<engine::View> view_;
  RecordDecoder decoder_;
  JobParser parser_;
  Digester digester_;
  Verification found_;
  engine::Counters scanned_;     // what the sums must say
  engine::Counters counted_;     // what those of an older format say
  std::uint64_t last_audit_ = 0; // 0: none yet
};

} // namespace onced::store
