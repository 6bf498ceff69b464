#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"

namespace onced::bench::peers {

// What the client knows of one key of a batch, and what the peer says of it.
struct Offer {
  Job job;
  Key key;
  Digest digest;
  Bytes result; // of the handler; set by Batch::run_handlers
  bool handled = false;

  // Set by the peer: a row was there before this offer, with this in it.
  bool held = false;
  Digest held_digest;
  Bytes held_result;

  // Takes a row's digest and result. Throws std::runtime_error where the bytes are no digest.
  void hold(BytesView row_digest, BytesView row_result);
};

// How deliveries were answered.
struct Tally {
  std::size_t stored = 0;
  std::size_t duplicates = 0;
  std::size_t conflicts = 0;
  std::size_t wrong = 0; // duplicates whose stored result is not what the handler gives

  void add(const Tally &other);
  bool operator==(const Tally &) const = default;
};

// Deliveries that a client settles at once. They are parsed, keyed, digested and worked by onced's own library, so that
// what differs between peers is the store. A key that comes twice is offered once. Keeps its memory. One thread.
class Batch {
public:
  void clear();
  // Throws std::runtime_error where the bytes are no job.
  void add(BytesView job);
  // Nothing more is added. Sorts the offers by key, so that no two transactions wait for each other in a circle.
  void close();

  // One a key, in ascending order of keys. Valid until `clear`.
  [[nodiscard]] std::span<Offer *const> offers() const { return offers_; }
  // Those that no row is known for.
  [[nodiscard]] std::vector<Offer *> open_offers() const;
  // Throws std::runtime_error where a handler refuses.
  void run_handlers(std::span<Offer *const> offers);

  // The answers, once the peer has spoken of every offer.
  [[nodiscard]] Tally answers() const;

private:
  std::deque<Offer> parsed_; // one a delivery, in order of arrival; the first `count_` are in use
  std::size_t count_ = 0;
  std::vector<Offer *> sorted_; // all deliveries; of one key, the first to arrive comes first
  std::vector<Offer *> offers_;
  JobParser parser_;
  Digester digester_;
  Handlers handlers_ = built_in_handlers();
};

} // namespace onced::bench::peers
