#include "store/verdict.hpp"

#include "onced/version.hpp"

namespace onced::store {
namespace {

constexpr std::string_view damaged_detail =
    "the stored row of this key is damaged; restore the data directory from a copy";
constexpr std::string_view conflict_detail = "another payload or type was committed under this key";

Verdict buried(Outcome reason, std::string detail) {
  Verdict verdict;
  verdict.settlement = {.outcome = reason, .result = {}, .detail = std::move(detail)};
  verdict.bury = true;
  return verdict;
}

} // namespace

void KeyRow::read(const engine::Found &found, RecordDecoder &decoder) {
  state = State::absent;
  if (found.state == engine::Found::State::absent) return;
  const auto record = found.state == engine::Found::State::present ? decoder.operation(found.value) : std::nullopt;
  state = record ? State::present : State::damaged;
  if (!record) return;
  phase = record->phase;
  digest = record->digest;
  result.assign(record->result);
}

Settlement busy(std::string_view detail, Branch branch) {
  return {.outcome = Outcome::busy, .result = {}, .detail = std::string(detail), .branch = branch};
}

Verdict verdict_of_defect(std::string_view defect) {
  return buried(Outcome::invalid, std::string(defect));
}

Verdict verdict_of_row(const KeyRow &row, const Key &key, const Digest &offered, Digester &digester) {
  Verdict verdict;
  Settlement &settlement = verdict.settlement;
  if (row.state == KeyRow::State::damaged) {
    settlement.outcome = Outcome::busy;
    settlement.detail = damaged_detail;
    return verdict;
  }
  if (row.digest != offered) {
    verdict = buried(Outcome::conflict, std::string(conflict_detail));
    verdict.stored_digest = row.digest;
    verdict.stored_phase = row.phase;
    return verdict;
  }
  switch (row.phase) {
  case Phase::committed:
    settlement.outcome = Outcome::duplicate;
    settlement.result = row.result;
    break;
  case Phase::pending:
    settlement.outcome = Outcome::accepted;
    break;
  case Phase::failed:
    settlement.outcome = Outcome::failed;
    settlement.detail = "dead letter " + to_hex(dead_letter_id(key, row.digest, Outcome::failed, digester).view());
    break;
  }
  return verdict;
}

Verdict verdict_of_handler(const Job &job, const Handlers &handlers, JobParser &parser) {
  if (handlers.queued(job.type) != nullptr) {
    Verdict verdict;
    verdict.settlement.outcome = Outcome::accepted;
    return verdict;
  }
  HandlerResult result = handlers.run(job, parser);
  if (auto *invalid = std::get_if<Invalid>(&result)) return buried(Outcome::invalid, std::move(invalid->detail));
  if (auto *failed = std::get_if<Failed>(&result)) return buried(Outcome::failed, std::move(failed->detail));
  Verdict verdict;
  verdict.settlement.outcome = Outcome::stored;
  auto &done = std::get<Done>(result);
  verdict.settlement.result = std::move(done.result);
  verdict.messages = std::move(done.messages);
  return verdict;
}

Verdict verdict_of_crashes(std::uint64_t crashes) {
  Verdict verdict = buried(Outcome::failed,
                           "the handler has ended the worker " + std::to_string(crashes) + " times, and was not run");
  verdict.suspicion = Suspicion::upheld;
  return verdict;
}

DeadLetterId dead_letter_id(const Key *key, const Digest &digest, BytesView bytes, Outcome reason, Digester &digester) {
  return key != nullptr ? dead_letter_id(*key, digest, reason, digester) : dead_letter_id(bytes, digester);
}

OperationRecord operation_record(Phase phase, const Job &job, const Digest &digest, BytesView result,
                                 WallTime issued_at, WallTime now, Durability durability) {
  return {.phase = phase,
          .digest = digest,
          .result = result,
          .operation_id = job.operation_id,
          .type = job.type,
          .effect_key = job.effect_key,
          .issued_at = issued_at,
          .committed_at = now,
          .worker_build = worker_build(),
          .durability = durability};
}

} // namespace onced::store
