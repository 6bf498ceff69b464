#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "onced/digest.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"
#include "wire/messages.hpp"
#include "worker/handover.hpp"

namespace onced::worker {

// Where the outcome of a delivery goes.
struct ReplyTo {
  SenderId sender;
  Tag tag;
  std::uint32_t attempt = 0;
};

// The detail of a delivery whose tag is not that of its bytes.
inline constexpr std::string_view tag_mismatch = "tag_mismatch";

// Turns arrivals into deliveries: splits messages, checks tags, and has the store recall jobs or parses them and
// computes keys and digests. Keeps its memory from batch to batch. One thread.
class Intake {
public:
  // A duplicate that the store has recalled.
  struct Recalled {
    Sequence sequence{0};
    std::optional<ReplyTo> reply_to;
    Bytes result;
  };

  // A delivery whose tag is not that of its bytes. A reply echoes the tag, and a final one would settle whichever job
  // of the sender has it: so this one is answered `busy`, and nothing is done for it.
  struct Mismatched {
    Sequence sequence{0};
    ReplyTo reply_to;
  };

  // Adds the deliveries of one message. Views into `arrival` are kept until `clear`. Null: nothing is recalled.
  void add(const Arrival &arrival, const Store *store = nullptr);

  // What was added, all three kinds together.
  [[nodiscard]] std::size_t size() const { return deliveries_.size() + recalled_count_ + mismatched_.size(); }
  // What is to be committed. Valid until the next `add` or `clear`.
  [[nodiscard]] std::span<const Delivery> deliveries() const { return deliveries_; }
  // What was committed before. Valid as long.
  [[nodiscard]] std::span<const Recalled> recalled() const { return std::span(recalled_).first(recalled_count_); }
  // What has the tag of other bytes. Valid as long.
  [[nodiscard]] std::span<const Mismatched> mismatched() const { return mismatched_; }
  // By delivery that is to be committed; nothing where no reply is wanted.
  [[nodiscard]] std::span<const std::optional<ReplyTo>> reply_to() const { return reply_to_; }
  // Senders whose message had a version that is not spoken here; nothing of it was added.
  [[nodiscard]] std::span<const SenderId> unsupported() const { return unsupported_; }

  // Of the deliveries, those that their sender had sent before.
  [[nodiscard]] std::size_t resent() const { return resent_; }

  void clear();

private:
  // A job of the batch with what is derived from it; the store borrows these.
  struct Parsed {
    Job job;
    Key key;
  };

  void add_batch(const Store *store);
  void add_entry(const wire::BatchEntry &entry, Recollection &recollection);
  void add_bare_job(BytesView bytes, const Store *store);
  void recall(const Store *store);
  void add_recalled(Bytes &result, Sequence sequence, const std::optional<ReplyTo> &reply_to);
  // `delivery` says what is known beside what is in the bytes.
  void add_job(BytesView bytes, Delivery delivery, std::optional<ReplyTo> reply_to);
  void add_no_job(BytesView bytes, std::string_view defect);

  wire::Batch batch_;
  std::vector<BytesView> jobs_; // of the message in hand, and what the store recalls of each
  std::vector<Recollection> recollections_;
  JobParser parser_;
  Digester digester_;

  std::deque<Parsed> parsed_; // a deque: deliveries point into it while it grows
  std::size_t parsed_count_ = 0;
  std::vector<Delivery> deliveries_;
  std::vector<std::optional<ReplyTo>> reply_to_;
  std::vector<Recalled> recalled_; // longer than what is recalled: results keep their memory
  std::size_t recalled_count_ = 0;
  std::vector<Mismatched> mismatched_;
  std::vector<SenderId> unsupported_;
  std::size_t resent_ = 0;
};

} // namespace onced::worker
