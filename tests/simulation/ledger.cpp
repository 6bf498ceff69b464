#include "ledger.hpp"

#include "rules.hpp"

namespace simulation {

using onced::Outcome;

void Ledger::claim(const Job &job, std::size_t owner) {
  Row &row = rows_[job.key];
  must(row.phase == Phase::absent, rules::first_intent);
  row = {Phase::pending, job.intent, owner, 0};
}

std::uint64_t Ledger::commit(const Job &job, std::size_t owner) {
  Row &row = rows_[job.key];
  must(row.phase != Phase::committed, rules::one_effect);
  must(row.phase == Phase::absent || (row.phase == Phase::pending && row.owner == owner), rules::first_intent);
  row = {Phase::committed, job.intent, owner, ++executions_};
  return row.result;
}

void Ledger::fail(const Job &job, std::size_t owner) {
  Row &row = rows_[job.key];
  must(row.phase == Phase::pending && row.owner == owner, rules::first_intent);
  row.phase = Phase::failed;
  bury(owner);
}

void Ledger::judge(const Job &job, std::size_t index, Outcome outcome, std::uint64_t result) const {
  const Row &row = rows_[job.key];
  const bool same_intent = row.phase != Phase::absent && row.intent == job.intent;
  switch (outcome) {
  case Outcome::stored:
  case Outcome::duplicate:
    return judge_success(job, index, outcome == Outcome::stored, result);
  case Outcome::conflict:
    must(job.kind != JobKind::garbage, rules::true_outcome);
    must(row.phase != Phase::absent && letters_[index], rules::committed);
    return must(!same_intent, rules::true_outcome);
  case Outcome::invalid:
    must(job.kind == JobKind::garbage, rules::true_outcome);
    return must(letters_[index], rules::committed);
  case Outcome::failed:
    if (job.kind == JobKind::queued_refused) return must(same_intent && row.phase == Phase::failed, rules::committed);
    must(job.kind == JobKind::refused, rules::true_outcome);
    return must(letters_[index], rules::committed);
  case Outcome::expired:
  case Outcome::accepted:
  case Outcome::busy:
    break;
  }
  must(false, rules::true_outcome);
}

void Ledger::judge_success(const Job &job, std::size_t index, bool stored, std::uint64_t result) const {
  const Row &row = rows_[job.key];
  must(job.kind == JobKind::pure || job.kind == JobKind::queued, rules::true_outcome);
  must(row.phase == Phase::committed, rules::committed);
  must(row.intent == job.intent, rules::first_intent);
  must(row.result == result, rules::true_result);
  must(!stored || row.owner == index, rules::one_effect);
}

} // namespace simulation
