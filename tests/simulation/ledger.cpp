#include "ledger.hpp"

#include <algorithm>
#include <utility>

#include "rules.hpp"

namespace simulation {

using onced::Outcome;

void Ledger::observe(std::size_t key, Row now, const Cause &cause) {
  if (now == rows_[key]) return;
  check_change(rows_[key], now, cause);
  rows_[key] = std::move(now);
}

void Ledger::check_change(const Row &before, const Row &now, const Cause &cause) {
  must(cause.kind != Cause::Kind::batch || before.phase == Phase::absent, rules::one_effect);
  must(now.phase >= before.phase, rules::committed); // nothing that was stable goes
  if (before.phase == Phase::absent)
    return must(now.phase != Phase::failed && !now.leased && now.receives == 0, rules::ends_once);
  must(before.intent == now.intent && before.owner == now.owner, rules::first_intent);
  must(before.phase == Phase::pending, rules::ends_once);
  const bool ends_lease = cause.kind == Cause::Kind::settle || cause.kind == Cause::Kind::give_back;
  must(!ends_lease || before.is_leased_under(cause.token), rules::old_token);
  if (now.phase == Phase::pending) return check_pending(before, now);
  const bool may_be_exhausted = cause.kind == Cause::Kind::opening && now.phase == Phase::failed;
  must(before.leased || cause.kind == Cause::Kind::exhaust || may_be_exhausted, rules::old_token);
}

void Ledger::check_pending(const Row &before, const Row &now) {
  must(now.token >= before.token, rules::committed);
  if (now.token > before.token) return must(now.leased && now.receives == before.receives + 1, rules::receives);
  must(before.leased && !now.leased, rules::old_token);
  must(now.receives == before.receives || now.receives + 1 == before.receives, rules::receives);
}

bool Ledger::any_pending() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row &row) { return row.phase == Phase::pending; });
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
    if (is_queued(job.kind)) return must(same_intent && row.phase == Phase::failed, rules::committed);
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
