#include "worker/intake.hpp"

namespace onced::worker {
namespace {

// Why a whole message is no message of ours (docs/protocol.md). Names beside those of JobDefect.
constexpr std::string_view message_malformed = "message_malformed";
constexpr std::string_view message_multipart = "message_multipart";

} // namespace

void Intake::add(const Arrival &arrival, const Store *store) {
  const BytesView message = arrival.frame.to_string_view();
  if (arrival.multipart) return add_no_job(message, message_multipart);
  switch (decoder_.decode(message, batch_)) {
  case wire::Framing::batch:
    return add_batch(store);
  case wire::Framing::bare_job:
    return recall(message, Sequence{0}, std::nullopt, store) ? void() : add_job(message, {}, std::nullopt);
  case wire::Framing::unsupported:
    return unsupported_.push_back(batch_.sender);
  case wire::Framing::malformed:
    return add_no_job(message, message_malformed);
  }
}

void Intake::clear() {
  parsed_count_ = 0;
  deliveries_.clear();
  reply_to_.clear();
  recalled_count_ = 0;
  unsupported_.clear();
  resent_ = 0;
}

void Intake::add_batch(const Store *store) {
  for (const wire::BatchEntry &entry : batch_.entries) {
    if (entry.attempt > 1) ++resent_;
    const ReplyTo reply_to{.sender = batch_.sender, .tag = entry.tag};
    if (recall(entry.job, entry.sequence, reply_to, store)) continue;
    Delivery delivery;
    delivery.sender = batch_.sender;
    delivery.sequence = entry.sequence;
    delivery.issued_at = entry.issued_at;
    add_job(entry.job, delivery, reply_to);
  }
}

bool Intake::recall(BytesView bytes, Sequence sequence, const std::optional<ReplyTo> &reply_to, const Store *store) {
  if (store == nullptr) return false;
  if (recalled_count_ == recalled_.size()) recalled_.emplace_back();
  Recalled &recalled = recalled_[recalled_count_];
  if (!store->recall(bytes, recalled.result)) return false;
  recalled.sequence = sequence;
  recalled.reply_to = reply_to;
  ++recalled_count_;
  return true;
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
