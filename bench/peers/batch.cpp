#include "batch.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace onced::bench::peers {

void Offer::hold(BytesView row_digest, BytesView row_result) {
  const auto read = Digest::from(row_digest);
  if (!read) throw std::runtime_error("a row of the peer has no digest");
  held = true;
  held_digest = *read;
  held_result.assign(row_result);
}

void Tally::add(const Tally &other) {
  stored += other.stored;
  duplicates += other.duplicates;
  conflicts += other.conflicts;
  wrong += other.wrong;
}

void Batch::clear() {
  count_ = 0;
  sorted_.clear();
  offers_.clear();
}

void Batch::add(BytesView job) {
  if (count_ == parsed_.size()) parsed_.emplace_back();
  Offer &offer = parsed_[count_++];
  if (!parser_.parse(job, offer.job)) throw std::runtime_error("a delivery is no job");
  assign_key(offer.job, offer.key);
  offer.digest = digester_.intent(offer.job.type, offer.job.payload);
  offer.handled = false;
  offer.held = false;
  sorted_.push_back(&offer);
}

void Batch::close() {
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [](const Offer *left, const Offer *right) { return left->key.bytes < right->key.bytes; });
  for (Offer *offer : sorted_) {
    if (offers_.empty() || offers_.back()->key.bytes != offer->key.bytes) offers_.push_back(offer);
  }
}

std::vector<Offer *> Batch::open_offers() const {
  std::vector<Offer *> open;
  std::copy_if(offers_.begin(), offers_.end(), std::back_inserter(open),
               [](const Offer *offer) { return !offer->held; });
  return open;
}

void Batch::run_handlers(std::span<Offer *const> offers) {
  for (Offer *offer : offers) {
    HandlerResult result = handlers_.run(offer->job, parser_);
    auto *done = std::get_if<Done>(&result);
    if (done == nullptr) throw std::runtime_error("a handler refused a delivery");
    offer->result = std::move(done->result);
    offer->handled = true;
  }
}

Tally Batch::answers() const {
  Tally tally;
  const Offer *head = nullptr; // the offer of this delivery's key
  for (const Offer *delivery : sorted_) {
    const bool first = head == nullptr || head->key.bytes != delivery->key.bytes;
    if (first) head = delivery;
    const Digest &committed = head->held ? head->held_digest : head->digest;
    if (first && !head->held) {
      ++tally.stored;
    } else if (committed != delivery->digest) {
      ++tally.conflicts;
    } else {
      ++tally.duplicates;
      if (delivery->handled && head->held && head->held_result != delivery->result) ++tally.wrong;
    }
  }
  return tally;
}

} // namespace onced::bench::peers
