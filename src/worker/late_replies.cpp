#include "worker/late_replies.hpp"

#include <algorithm>

#include "onced/limits.hpp"
#include "store/rows/records.hpp"
#include "wire/messages.hpp"

namespace onced::worker {
namespace {

// The words of a later delivery's reply (store/verdict.cpp).
std::string detail_of(const runner::JobEnd &end, const Digest &digest, Digester &digester) {
  if (end.outcome == Outcome::accepted) return std::string(end.detail);
  if (end.outcome != Outcome::failed) return {};
  return "dead letter " + to_hex(store::dead_letter_id(Key{Bytes(end.key)}, digest, Outcome::failed, digester).view());
}

} // namespace

void LateReplies::expect(const Delivery &delivery, const ReplyTo &to) {
  const BytesView key = delivery.key->bytes;
  const std::scoped_lock lock(mutex_);
  auto job = jobs_.find(key);
  if (job == jobs_.end()) {
    if (jobs_.size() >= limits::late_replies_jobs_max) forget_oldest();
    job = jobs_.emplace(key, Job{.number = ++last_number_, .waiters = {}}).first;
    by_number_.emplace_hint(by_number_.end(), last_number_, job);
  }
  auto &waiters = job->second.waiters;
  const auto same =
      std::find_if(waiters.begin(), waiters.end(), [&](const Waiter &waiter) { return waiter.is(delivery, to); });
  if (same != waiters.end()) {
    same->to = to;
  } else if (waiters.size() < limits::late_replies_a_job_max) {
    waiters.push_back({delivery.sequence, to, delivery.digest});
  }
}

void LateReplies::forget(const Delivery &delivery, const ReplyTo &to) {
  const std::scoped_lock lock(mutex_);
  const auto job = jobs_.find(delivery.key->bytes);
  if (job == jobs_.end()) return;
  auto &waiters = job->second.waiters;
  waiters.erase(
      std::remove_if(waiters.begin(), waiters.end(), [&](const Waiter &waiter) { return waiter.is(delivery, to); }),
      waiters.end());
  if (!waiters.empty()) return;
  by_number_.erase(job->second.number);
  jobs_.erase(job);
}

std::vector<OutgoingFrame> LateReplies::answer(const runner::JobEnd &end, const BootId &boot, Durability durability) {
  std::vector<Waiter> waiters;
  {
    const std::scoped_lock lock(mutex_);
    const auto job = jobs_.find(end.key);
    if (job == jobs_.end()) return {};
    waiters = job->second.waiters;
    if (traits_of(end.outcome).final) {
      by_number_.erase(job->second.number);
      jobs_.erase(job);
    }
  }
  Digester digester;
  const Digest digest = digester.intent(end.job.type, end.job.payload);
  const std::string detail = detail_of(end, digest, digester);
  std::vector<OutgoingFrame> frames;
  Outcome outcome = end.outcome;
  for (const Waiter &waiter : waiters) {
    if (waiter.digest != digest) continue; // it is told of its conflict
    wire::RepliesEncoder encoder(boot, durability);
    encoder.add({.sequence = waiter.sequence,
                 .tag = waiter.to.tag,
                 .outcome = outcome,
                 .result = end.result,
                 .detail = detail});
    for (Bytes &frame : encoder.take())
      frames.push_back({waiter.to.sender, std::move(frame)});
    if (outcome == Outcome::stored) outcome = Outcome::duplicate;
  }
  return frames;
}

void LateReplies::forget_oldest() {
  const auto oldest = by_number_.begin();
  jobs_.erase(oldest->second);
  by_number_.erase(oldest);
}

} // namespace onced::worker
