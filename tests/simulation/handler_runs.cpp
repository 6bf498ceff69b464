#include "handler_runs.hpp"

#include <algorithm>

#include "rules.hpp"

namespace simulation {

using onced::FencingToken;

void HandlerRuns::on_taken(const FencingToken &token) {
  must(token > newest_, rules::tokens);
  newest_ = token;
}

void HandlerRuns::on_started(std::size_t key, Run run, Time now) {
  OfKey &of_key = keys_[key];
  std::erase_if(of_key.running, [&](const Run &former) { return former.ends <= now; });
  for (const Run &former : of_key.running)
    must(!former.is_command && former.lease_until <= now, rules::alone);
  must(++of_key.runs <= options_.max_receive_count, rules::receives);
  must(leases_of_type(run.is_command, now) < options_.concurrency, rules::concurrency);
  run.lease_until = now + options_.visibility_timeout;
  of_key.seen_token = run.token;
  of_key.running.push_back(run);
}

void HandlerRuns::on_heartbeat(std::size_t key, const FencingToken &token, Time now) {
  for (Run &run : keys_[key].running)
    if (run.token == token) run.lease_until = now + options_.visibility_timeout;
}

void HandlerRuns::on_expired(std::size_t key, const FencingToken &token, Time now) const {
  const auto &running = keys_[key].running;
  must(std::any_of(running.begin(), running.end(),
                   [&](const Run &run) { return run.token == token && run.lease_until <= now; }),
       rules::lease_kept);
}

void HandlerRuns::on_ended(std::size_t key, const FencingToken &token, bool has_lease, Time now) {
  std::erase_if(keys_[key].running, [&](const Run &run) {
    if (run.token != token) return false;
    must(has_lease ? run.lease_until >= now : run.lease_until <= now, rules::lease_kept);
    return true;
  });
}

std::size_t HandlerRuns::on_crash(const Ledger &ledger, std::uint64_t orphan_percent, Chance &chance, Time now) {
  std::size_t orphans = 0;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    OfKey &of_key = keys_[key];
    const Ledger::Row &row = ledger.row(key);
    if (row.is_leased_under(row.token) && row.token != of_key.seen_token) {
      ++of_key.lost;
      of_key.seen_token = row.token;
    }
    std::erase_if(of_key.running, [&](const Run &run) {
      return run.ends <= now || !run.is_command || !chance.happens(orphan_percent);
    });
    for (Run &orphan : of_key.running)
      orphan.lease_until = now;
    orphans += of_key.running.size();
  }
  return orphans;
}

void HandlerRuns::on_given_up(std::size_t key) const {
  must(keys_[key].runs + keys_[key].lost >= options_.max_receive_count, rules::given_up);
}

bool HandlerRuns::is_running(std::size_t key, Time now) const {
  const auto &running = keys_[key].running;
  return std::any_of(running.begin(), running.end(), [&](const Run &run) { return run.ends > now; });
}

// Those that are being written no longer count.
std::size_t HandlerRuns::leases_of_type(bool is_command, Time now) const {
  std::size_t leases = 0;
  for (const OfKey &of_key : keys_)
    for (const Run &run : of_key.running)
      if (run.is_command == is_command && run.ends > now && run.lease_until > now) ++leases;
  return leases;
}

} // namespace simulation
