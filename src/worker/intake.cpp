#include "worker/intake.hpp"

namespace onced::worker {

void Intake::add(const Arrival &arrival, const Store *store) {
  const BytesView message = arrival.frame.to_string_view();
  if (arrival.multipart) return add_no_job(message, wire::message_multipart);
  switch (wire::decode_batch(message, batch_)) {
  case wire::Framing::batch:
    return add_batch(store);
  case wire::Framing::bare_job:
    return add_bare_job(message, store);
  case wire::Framing::unsupported:
    return unsupported_.push_back(batch_.sender);
  case wire::Framing::malformed:
    return add_no_job(message, wire::message_malformed);
  }
}

void Intake::clear() {
  parsed_count_ = 0;
  deliveries_.clear();
  reply_to_.clear();
  recalled_count_ = 0;
  mismatched_.clear();
  unsupported_.clear();
  resent_ = 0;
}

void Intake::add_batch(const Store *store) {
  jobs_.clear();
  for (const wire::BatchEntry &entry : batch_.entries)
    jobs_.push_back(entry.job);
  recall(store);
  for (std::size_t at = 0; at < batch_.entries.size(); ++at)
    add_entry(batch_.entries[at], recollections_[at]);
}

void Intake::add_entry(const wire::BatchEntry &entry, Recollection &recollection) {
  if (entry.attempt > 1) ++resent_;
  const ReplyTo reply_to{.sender = batch_.sender, .tag = entry.tag, .attempt = entry.attempt};
  // Bytes that are recalled bring their tag with them; that of others is computed, once for each delivery.
  const Tag tag = recollection.committed ? recollection.tag : digester_.tag(entry.job);
  if (tag != entry.tag) return mismatched_.push_back({.sequence = entry.sequence, .reply_to = reply_to});
  if (recollection.committed) return add_recalled(recollection.result, entry.sequence, reply_to);
  Delivery delivery;
  delivery.sender = batch_.sender;
  delivery.sequence = entry.sequence;
  delivery.issued_at = entry.issued_at;
  delivery.tag = tag;
  add_job(entry.job, delivery, reply_to);
}

void Intake::add_bare_job(BytesView bytes, const Store *store) {
  jobs_.assign(1, bytes);
  recall(store);
  if (recollections_[0].committed) return add_recalled(recollections_[0].result, Sequence{0}, std::nullopt);
  Delivery delivery;
  delivery.tag = digester_.tag(bytes);
  add_job(bytes, delivery, std::nullopt);
}

void Intake::recall(const Store *store) {
  if (recollections_.size() < jobs_.size()) recollections_.resize(jobs_.size());
  if (store != nullptr) return store->recall(jobs_, std::span(recollections_).first(jobs_.size()));
  for (Recollection &recollection : recollections_)
    recollection.committed = false;
}

// Takes the result, and leaves another's memory for the next one.
void Intake::add_recalled(Bytes &result, Sequence sequence, const std::optional<ReplyTo> &reply_to) {
  if (recalled_count_ == recalled_.size()) recalled_.emplace_back();
  Recalled &recalled = recalled_[recalled_count_++];
  recalled.sequence = sequence;
  recalled.reply_to = reply_to;
  recalled.result.swap(result);
}

void Intake::add_job(BytesView bytes, Delivery delivery, std::optional<ReplyTo> reply_to) {
  if (parsed_count_ == parsed_.size()) parsed_.emplace_back();
  Parsed &parsed = parsed_[parsed_count_];
  delivery.bytes = bytes;
  if (const auto result = parser_.parse(bytes, parsed.job); !result) {
    delivery.defect = name_of(result.error());
  } else {
    ++parsed_count_;
    assign_key(parsed.job, parsed.key);
    delivery.job = &parsed.job;
    delivery.key = &parsed.key;
    delivery.digest = digester_.intent(parsed.job.type, parsed.job.payload);
  }
  deliveries_.push_back(delivery);
  reply_to_.push_back(reply_to);
}

void Intake::add_no_job(BytesView bytes, std::string_view defect) {
  Delivery delivery;
  delivery.bytes = bytes;
  delivery.defect = defect;
  deliveries_.push_back(delivery);
  reply_to_.push_back(std::nullopt);
}

} // namespace onced::worker
