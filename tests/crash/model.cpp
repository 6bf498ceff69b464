#include "crash/model.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace onced::crash {

std::string_view name_of(Harm harm) {
  switch (harm) {
  case Harm::loss:
    return "loss";
  case Harm::double_effect:
    return "double effect";
  case Harm::false_acknowledgement:
    return "false acknowledgement";
  case Harm::stray:
    break;
  }
  return "stray";
}

// --- What senders are given, and say --------------------------------------------------------------------------------

void Model::remember_intent(const Job &job) {
  Intent &intent = effects_[key_of(job)].intents[digest_of(job)];
  intent.job = job;
  intent.operation_ids.insert(job.operation_id);
  if (known_ids_.insert(job.operation_id).second) known_.push_back(job);
}

Model::ExpectedLetter &Model::expect_letter(const Job &job, Reason reason) {
  ExpectedLetter &letter = letters_[letter_id_of(job, reason)];
  letter.reason = reason;
  letter.key = key_of(job);
  letter.digest = digest_of(job);
  return letter;
}

void Model::offered(SenderNumber sender, const Job &job, std::size_t copies) {
  remember_intent(job);
  desks_[sender][job.operation_id] = {.job = job, .copies = copies, .told = 0, .fresh = true};
  const auto allow = [](ExpectedLetter &letter) {
    if (letter.state == LetterState::gone) letter.state = LetterState::possible;
  };
  if (const auto reason = refusal_of(job)) return allow(expect_letter(job, *reason));
  const Effect &effect = effects_.at(key_of(job));
  if (effect.intents.size() == 1) return;
  // Of two intents, any may be the second. One that was settled before stays as it is.
  for (const auto &[digest, intent] : effect.intents)
    expect_letter(intent.job, Reason::conflict);
  allow(expect_letter(job, Reason::conflict));
}

bool Model::holds(SenderNumber sender, const std::string &operation_id) const {
  const auto desk = desks_.find(sender);
  return desk != desks_.end() && desk->second.contains(operation_id);
}

std::size_t Model::held(SenderNumber sender) const {
  const auto desk = desks_.find(sender);
  return desk == desks_.end() ? 0 : desk->second.size();
}

void Model::told(SenderNumber sender, const Told &line) {
  ++outcomes_[line.outcome];
  const auto held = desks_[sender].find(line.operation_id);
  if (held == desks_[sender].end()) {
    return blame(Harm::false_acknowledgement, "an outcome of a job that was not sent: " + line.operation_id);
  }
  ++held->second.told;
  const Job &job = held->second.job;
  if (line.outcome == "stored" || line.outcome == "duplicate") return told_success(job, line);
  told_refusal(job, line);
}

void Model::told_success(const Job &job, const Told &line) {
  const std::string what = job.operation_id + " is told as " + line.outcome;
  if (refusal_of(job)) return blame(Harm::false_acknowledgement, what + ", which no result may be for");
  if (line.result != std::to_string(*sum_of(job))) blame(Harm::false_acknowledgement, what + " with " + line.result);
  Effect &effect = effects_.at(key_of(job));
  if (line.outcome == "stored") {
    if (effect.stored_told) blame(Harm::double_effect, what + " a second time");
    if (effect.was_there_at_rest) blame(Harm::double_effect, what + " though it was there before");
    effect.stored_told = true;
  }
  committed(job, what);
}

// A job that became the effect of its key, as somebody says.
void Model::committed(const Job &job, const std::string &how) {
  Effect &effect = effects_.at(key_of(job));
  const Bytes digest = digest_of(job);
  effect.must_be_there = true;
  if (effect.winner && *effect.winner != digest) return blame(Harm::false_acknowledgement, how + ", the second intent");
  if (effect.losers.contains(digest)) return blame(Harm::false_acknowledgement, how + ", which was a conflict before");
  effect.winner = digest;
}

void Model::told_refusal(const Job &job, const Told &line) {
  const std::string what = job.operation_id + " is told as " + line.outcome;
  const auto reason = refusal_of(job);
  if (reason && line.outcome == name_of(*reason)) return letter_told(job, *reason);
  Effect &effect = effects_.at(key_of(job));
  if (reason || line.outcome != "conflict") return blame(Harm::false_acknowledgement, what);
  const Bytes digest = digest_of(job);
  if (effect.intents.size() < 2) return blame(Harm::false_acknowledgement, what + ", the only intent");
  if (effect.winner == digest) return blame(Harm::false_acknowledgement, what + ", the first intent");
  effect.losers.insert(digest);
  effect.must_be_there = true;
  letter_told(job, Reason::conflict);
}

void Model::letter_told(const Job &job, Reason reason) {
  expect_letter(job, reason).state = LetterState::kept;
}

std::vector<Job> Model::sender_ended(SenderNumber sender, bool finished, const std::vector<std::string> &left) {
  Desk &desk = desks_[sender];
  std::map<std::string, std::size_t> copies_left;
  for (const std::string &operation_id : left)
    ++copies_left[operation_id];
  for (const auto &[operation_id, copies] : copies_left) {
    if (!desk.contains(operation_id)) blame(Harm::stray, "an outbox holds " + operation_id + ", which is not its own");
  }
  // One read takes the whole input, and one write keeps it: all or nothing.
  const bool input_taken = std::any_of(desk.begin(), desk.end(), [&](const auto &entry) {
    return entry.second.fresh && (entry.second.told > 0 || copies_left.contains(entry.first));
  });
  std::vector<Job> not_taken;
  Desk kept;
  for (auto &[operation_id, held] : desk) {
    const auto count = copies_left.find(operation_id);
    const std::size_t copies = count == copies_left.end() ? 0 : count->second;
    account(operation_id, held, copies, finished, input_taken);
    if (held.fresh && !input_taken && !finished) not_taken.push_back(held.job);
    if (copies > 0) kept[operation_id] = {.job = held.job, .copies = copies};
  }
  desk = std::move(kept);
  return not_taken;
}

void Model::account(const std::string &operation_id, const Held &held, std::size_t left, bool finished,
                    bool input_taken) {
  if (left > held.copies) blame(Harm::stray, "an outbox holds more of " + operation_id + " than it was given");
  if (finished && left > 0) blame(Harm::loss, "a sender has ended and not settled " + operation_id);
  const bool was_taken = !held.fresh || input_taken || finished;
  if (was_taken && held.told + left < held.copies) {
    blame(Harm::loss, "a sender has neither told nor kept " + operation_id);
  }
}

// --- Bytes that are no job ------------------------------------------------------------------------------------------

void Model::poison_offered(const Bytes &bytes) {
  letters_[letter_id_of(bytes)].bytes = bytes;
}

void Model::poison_told(const Bytes &bytes, const std::string &outcome) {
  ++outcomes_[outcome];
  if (outcome != "invalid") return blame(Harm::false_acknowledgement, "bytes that are no job are told as " + outcome);
  letters_[letter_id_of(bytes)].state = LetterState::kept;
}

// --- Dead letters and their changes ---------------------------------------------------------------------------------

void Model::parked(const Job &job) {
  Effect &effect = effects_[key_of(job)];
  effect.intents[digest_of(job)] = {.job = job, .operation_ids = {job.operation_id}};
  ExpectedLetter &letter = letters_[letter_id_of(messagepack_of(job))];
  letter.bytes = messagepack_of(job);
  letter.parked = job;
  letter.state = LetterState::kept;
}

std::set<Bytes> Model::letters_held() const {
  std::set<Bytes> ids;
  for (const auto &[sender, desk] : desks_) {
    for (const auto &[operation_id, held] : desk)
      ids.insert(letter_id_of(held.job, refusal_of(held.job).value_or(Reason::conflict)));
  }
  return ids;
}

std::vector<Bytes> Model::changeable() const {
  const auto held = letters_held();
  std::vector<Bytes> ids;
  for (const auto &[id, letter] : letters_) {
    if (letter.state != LetterState::kept || held.contains(id)) continue;
    ids.insert(letter.parked ? ids.begin() : ids.end(), id);
  }
  return ids;
}

void Model::change_asked(const Bytes &id, bool is_purge) {
  ExpectedLetter &letter = letters_.at(id);
  letter.being_purged = is_purge;
  if (is_purge || letter.parked) letter.state = LetterState::possible;
}

void Model::change_told(const Bytes &id, const std::string &outcome, bool removed, bool asked_twice) {
  ExpectedLetter &letter = letters_.at(id);
  const std::string what = "the change of dead letter " + hex_of(id) + " is told as " + outcome;
  if (outcome == "not_found" && !asked_twice) return blame(Harm::loss, what);
  const bool done = removed || outcome == "not_found";
  if (!letter.being_purged && !letter.parked) {
    if (done || outcome != name_of(letter.reason)) blame(Harm::false_acknowledgement, what);
    return;
  }
  if (!done) return blame(Harm::false_acknowledgement, what);
  letter.state = LetterState::gone;
  if (letter.being_purged) {
    if (outcome != "purged" && outcome != "not_found") blame(Harm::false_acknowledgement, what);
    if (letter.parked) effects_.erase(key_of(*letter.parked));
    letter.parked.reset();
  } else {
    if (outcome != "stored" && outcome != "not_found") blame(Harm::false_acknowledgement, what);
    committed(*letter.parked, what);
    effects_.at(key_of(*letter.parked)).stored_told = true;
  }
}

// --- What is on disk ------------------------------------------------------------------------------------------------

void Model::compare(const Scan &found) {
  for (const auto &[key, row] : found.rows)
    compare_row(key, row);
  letters_there_.clear();
  for (const auto &[id, letter] : found.letters) {
    letters_there_.insert(id);
    compare_letter(id, letter, found);
  }
  for (auto &[id, letter] : letters_) {
    if (letter.parked && !letter.being_purged) compare_parked(id, letter, found);
  }
  find_missing(found);
  if (found.results_counted != std::ssize(found.rows) || found.letters_counted != std::ssize(found.letters)) {
    blame(Harm::stray, "the counters say " + std::to_string(found.results_counted) + " results and " +
                           std::to_string(found.letters_counted) + " dead letters; there are " +
                           std::to_string(found.rows.size()) + " and " + std::to_string(found.letters.size()));
  }
  rows_seen_ = found.rows.size();
}

void Model::compare_row(const Bytes &key, const Row &row) {
  const std::string what = "the row of " + row.operation_id;
  const auto known = effects_.find(key);
  if (known == effects_.end()) return blame(Harm::stray, what + " has a key that was never sent");
  Effect &effect = known->second;
  const auto intent = effect.intents.find(row.digest);
  if (intent == effect.intents.end()) return blame(Harm::stray, what + " has a digest that was never sent");
  const Job &job = intent->second.job;
  if (refusal_of(job)) return blame(Harm::stray, what + " is of a job that must be refused");
  if (row.result != messagepack_of(*sum_of(job))) {
    blame(Harm::false_acknowledgement, what + " has another result: " + hex_of(row.result));
  }
  if (!intent->second.operation_ids.contains(row.operation_id) ||
      key_of(row.type, row.operation_id, row.effect_key) != key) {
    blame(Harm::stray, what + " has the names of another job");
  }
  if (!effect.value.empty() && effect.value != row.value) blame(Harm::double_effect, what + " has changed");
  effect.value = row.value;
  committed(job, what);
}

void Model::compare_letter(const Bytes &id, const Letter &letter, const Scan &found) {
  const std::string what = "dead letter " + hex_of(id);
  const auto known = letters_.find(id);
  if (known == letters_.end()) return blame(Harm::stray, what + " is of nothing that was sent");
  const ExpectedLetter &expected = known->second;
  if (expected.state == LetterState::gone) return blame(Harm::stray, what + " was removed, or its job was good");
  const bool is_job = !expected.key.empty();
  if (letter.reason != static_cast<unsigned>(expected.reason) || letter.operation_id.empty() == is_job ||
      letter.offered_digest != expected.digest || letter.deliveries == 0 ||
      (!is_job && letter.bytes != expected.bytes)) {
    return blame(Harm::stray, what + " holds something else than it should");
  }
  if (expected.reason != Reason::conflict) return;
  const auto row = found.rows.find(expected.key);
  if (row == found.rows.end() || row->second.digest != letter.stored_digest ||
      letter.stored_digest == expected.digest) {
    blame(Harm::stray, what + " is a conflict with a row that is not there");
  }
}

// Of a dead letter and the result that a redrive makes of it there is exactly one.
void Model::compare_parked(const Bytes &id, ExpectedLetter &expected, const Scan &found) {
  const bool has_letter = found.letters.contains(id);
  const bool has_row = found.rows.contains(key_of(*expected.parked));
  if (has_letter && has_row) blame(Harm::double_effect, expected.parked->operation_id + " is stored and dead");
  if (!has_letter && !has_row) blame(Harm::loss, expected.parked->operation_id + " was lost by its redrive");
  if (!has_row) return;
  if (expected.state == LetterState::kept) blame(Harm::stray, expected.parked->operation_id + " stored itself");
  expected.state = LetterState::gone;
  remember_intent(*expected.parked);
  expected.parked.reset();
}

void Model::find_missing(const Scan &found) {
  for (const auto &[key, effect] : effects_) {
    if (!effect.must_be_there || found.rows.contains(key)) continue;
    blame(Harm::loss, "no row of " + *effect.intents.begin()->second.operation_ids.begin() + ", which is stored");
  }
  for (const auto &[id, letter] : letters_) {
    if (letter.state != LetterState::kept || found.letters.contains(id)) continue;
    blame(Harm::loss, "no dead letter " + hex_of(id) + ", which is kept as " + std::string(name_of(letter.reason)));
  }
}

void Model::at_rest() {
  for (auto &[key, effect] : effects_)
    effect.was_there_at_rest = !effect.value.empty();
  const auto held = letters_held();
  for (auto &[id, letter] : letters_) {
    const bool is_there = letters_there_.contains(id);
    if (letter.state != LetterState::possible) continue;
    if (is_there) {
      letter.state = LetterState::kept;
      letter.being_purged = false;
    } else if (!held.contains(id)) {
      letter.state = LetterState::gone;
      if (letter.parked) effects_.erase(key_of(*letter.parked)); // purged, and nobody was told
      letter.parked.reset();
    }
  }
}

std::vector<Finding> Model::take_findings() {
  return std::exchange(findings_, {});
}

std::size_t Model::acknowledged_keys() const {
  return static_cast<std::size_t>(
      std::count_if(effects_.begin(), effects_.end(), [](const auto &entry) { return entry.second.must_be_there; }));
}

} // namespace onced::crash
