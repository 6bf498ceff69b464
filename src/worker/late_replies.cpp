#include "worker/late_replies.hpp"

#include <algorithm>

#include "onced/limits.hpp"
#include "store/records.hpp"
#include "wire/messages.hpp"

namespace onced::worker {
namespace {

std::string detail_of(const queue::JobEnd &end) {
  if (end.outcome != Outcome::failed) return {};
  Digester digester;
  const Digest digest = digester.intent(end.job.type, end.job.payload);
  // The words of a later delivery's reply (store/verdict.cpp).
  return "dead letter " + to_hex(store::dead_letter_id(Key{Bytes(end.key)}, digest, Outcome::failed, digester).view());
}

} // namespace

void LateReplies::expect(BytesView key, Sequence sequence, const ReplyTo &to) {
  const std::scoped_lock lock(mutex_);
  auto job = jobs_.find(key);
  if (job == jobs_.end()) {
    if (jobs_.size() >= limits::late_replies_jobs_max) forget_oldest();
    job = jobs_.emplace(key, Job{.number = ++last_number_, .waiters = {}}).first;
    by_number_.emplace_hint(by_number_.end(), last_number_, job);
  }
  auto &waiters = job->second.waiters;
  const auto same = std::find_if(waiters.begin(), waiters.end(), [&](const Waiter &waiter) {
    return waiter.sequence == sequence && waiter.to.sender == to.sender;
  });
  if (same != waiters.end()) {
    same->to = to;
  } else if (waiters.size() < limits::late_replies_a_job_max) {
    waiters.push_back({sequence, to});
  }
}

void LateReplies::forget(BytesView key, Sequence sequence, const ReplyTo &to) {
  const std::scoped_lock lock(mutex_);
  const auto job = jobs_.find(key);
  if (job == jobs_.end()) return;
  auto &waiters = job->second.waiters;
  waiters.erase(std::remove_if(
                    waiters.begin(), waiters.end(),
                    [&](const Waiter &waiter) { return waiter.sequence == sequence && waiter.to.sender == to.sender; }),
                waiters.end());
  if (!waiters.empty()) return;
  by_number_.erase(job->second.number);
  jobs_.erase(job);
}

std::vector<OutgoingFrame> LateReplies::answer(const queue::JobEnd &end, const BootId &boot, Durability durability) {
  std::vector<Waiter> waiters;
  {
    const std::scoped_lock lock(mutex_);
    const auto job = jobs_.find(end.key);
    if (job == jobs_.end()) return {};
    waiters = std::move(job->second.waiters);
    by_number_.erase(job->second.number);
    jobs_.erase(job);
  }
  const std::string detail = detail_of(end);
  std::vector<OutgoingFrame> frames;
  Outcome outcome = end.outcome;
  for (const Waiter &waiter : waiters) {
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
