#include "ledger.hpp"

#include <algorithm>

#include "rules.hpp"

namespace simulation {

using onced::FencingToken;
using onced::Outcome;

void Ledger::claim(const Job &job, std::size_t owner) {
  Row &row = rows_[job.key];
  must(row.phase == Phase::absent, rules::one_effect);
  row = {.phase = Phase::pending, .intent = job.intent, .owner = owner};
}

std::uint64_t Ledger::commit(const Job &job, std::size_t owner) {
  Row &row = rows_[job.key];
  must(row.phase == Phase::absent, rules::one_effect);
  row = {.phase = Phase::committed, .intent = job.intent, .owner = owner, .result = ++executions_};
  return row.result;
}

void Ledger::receive(std::size_t key, const FencingToken &token) {
  Row &row = rows_[key];
  must(row.phase == Phase::pending, rules::ends_once);
  must(token > row.token, rules::tokens);
  row.leased = true;
  row.token = token;
  ++row.receives;
}

void Ledger::give_back(std::size_t key, const FencingToken &token) {
  Row &row = leased_row(key, token);
  row.leased = false;
  --row.receives;
}

void Ledger::settle(std::size_t key, const FencingToken &token, Ending ending) {
  Row &row = leased_row(key, token);
  row.leased = false;
  switch (ending) {
  case Ending::done:
    row.phase = Phase::committed;
    row.result = ++executions_;
    return;
  case Ending::refused:
  case Ending::exhausted:
  case Ending::expired:
    row.phase = Phase::failed;
    return bury(row.owner);
  case Ending::try_again:
    return;
  }
}

Ledger::Row &Ledger::leased_row(std::size_t key, const FencingToken &token) {
  Row &row = rows_[key];
  must(row.phase == Phase::pending, rules::ends_once);
  must(row.is_leased_under(token), rules::old_token);
  return row;
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
