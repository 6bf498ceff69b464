// The sender's side: a script of greetings, sends, waits and frames, honest and hostile, on some jobs in flight. A
// model beside it, a list of jobs, says what each reply may do: only one with the sequence and the tag of an unsettled
// job that was sent settles it. Verifies that, the counters, and that `next_due` neither sleeps through a due job nor
// spins. Not: how long a job waits (tests/unit/delivery), sockets, the outbox.
#include <algorithm>
#include <limits>
#include <map>

#include "fuzz.hpp"
#include "onced/digest.hpp"
#include "sender/redelivery.hpp"
#include "wire/messages.hpp"

namespace onced::fuzz {
namespace {

using std::chrono::milliseconds;

// So small that a few jobs reach every limit.
RedeliveryOptions small_options() {
  RedeliveryOptions options;
  options.jobs_max = 8;
  options.bytes_max = 1024;
  options.window_jobs_max = 3;
  options.window_bytes_max = 300;
  return options;
}

constexpr WallTime issued_at{std::chrono::microseconds{0x10}}; // a horizon of one byte may lie on either side
constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

struct ModelJob {
  Bytes bytes;
  Tag tag;
  std::uint32_t attempts = 0;
};

class Rehearsal {
public:
  explicit Rehearsal(BytesView script) : script_(script) {}

  void run();

private:
  void add();
  void send();
  void wait();
  void reply();
  void read(BytesView frame);
  void apply(const wire::Reply &reply, Durability durability);
  void check_settled(const ModelJob &job, const Redelivery::Reply &reply, const Settled &settled) const;
  void check_counters() const;
  BootId boot();
  Tag tag_for(std::uint64_t sequence);

  Script script_;
  SeededRandom random_{1};
  RedeliveryOptions options_ = small_options();
  Redelivery redelivery_{options_, random_};
  Digester digester_;
  wire::WorkerMessageDecoder decoder_;
  wire::WorkerMessage message_;
  MonotonicTime now_{};
  bool greeted_ = false;
  std::optional<WallTime> horizon_; // that the last greeting named
  std::uint64_t last_sequence_ = 0;
  std::uint64_t resends_ = 0;
  std::uint64_t ignored_ = 0;
  std::map<std::uint64_t, ModelJob> jobs_; // unsettled
};

void Rehearsal::run() {
  while (!script_.at_end()) {
    switch (script_.byte() % 6) {
    case 0:
      add();
      break;
    case 1:
      send();
      break;
    case 2:
      wait();
      break;
    case 3:
      reply();
      break;
    case 4:
      read(wire::encode_greeting(boot(), Durability::fsync));
      break;
    default: {
      const std::size_t high = script_.byte();
      read(script_.bytes(high << 8U | script_.byte()));
      break;
    }
    }
    check_counters();
  }
}

void Rehearsal::add() {
  const Bytes job(script_.byte(), 'j');
  std::size_t bytes = job.size();
  for (const auto &[sequence, other] : jobs_)
    bytes += other.bytes.size();
  const bool fits = jobs_.size() < options_.jobs_max && bytes <= options_.bytes_max;
  require(redelivery_.has_room(job.size()) == fits, "there is room within the limits and no further");
  if (!fits) return;
  const Tag tag = digester_.tag(job);
  const std::uint64_t sequence = number_of(redelivery_.add(job, tag, issued_at));
  require(sequence == ++last_sequence_, "sequences count from 1");
  jobs_.emplace(sequence, ModelJob{job, tag});
}

// Hands over some of what is due.
void Rehearsal::send() {
  const auto next_due = redelivery_.next_due(now_);
  auto due = redelivery_.due(now_, all, all);
  require(due.empty() || next_due == now_, "nothing is due before next_due");
  require(due.empty() || greeted_, "nothing is due before the first greeting");
  if (due.empty()) require(redelivery_.next_due(now_) != now_, "where nothing is due, next_due is later");
  for (std::size_t at = 0; at < due.size(); ++at) {
    const auto found = jobs_.find(number_of(due[at].sequence));
    require(found != jobs_.end(), "only an unsettled job is due");
    const ModelJob &job = found->second;
    require(due[at].tag == job.tag && due[at].job == job.bytes, "a job is sent with its own tag and bytes");
    require(due[at].attempt == job.attempts + 1, "attempts count sends");
    require(at == 0 || due[at - 1].sequence < due[at].sequence, "the oldest job goes first");
  }
  due.resize(std::min<std::size_t>(due.size(), script_.byte()));
  for (const Redelivery::DueJob &sent : due) {
    if (++jobs_.at(number_of(sent.sequence)).attempts > 1) ++resends_;
  }
  redelivery_.sent(due, now_);
}

void Rehearsal::wait() {
  const unsigned exponent = script_.byte() % 20;
  now_ += milliseconds(1U << exponent);
}

BootId Rehearsal::boot() {
  BootId boot;
  boot.bytes.fill(script_.byte());
  return boot;
}

// The right tag, that of another job, or one that the script makes up.
Tag Rehearsal::tag_for(std::uint64_t sequence) {
  const std::uint8_t choice = script_.byte();
  const auto found = jobs_.find(choice < 128 ? sequence : choice - 127U);
  if (choice < 250 && found != jobs_.end()) return found->second.tag;
  Tag tag;
  tag.bytes.fill(script_.byte());
  return tag;
}

// A well-formed frame of one or more replies.
void Rehearsal::reply() {
  wire::RepliesEncoder encoder(boot(), Durability::page_cache);
  for (unsigned count = 1 + script_.byte() % 4U; count > 0; --count) {
    wire::Reply reply;
    reply.sequence = Sequence{script_.byte() % 16U};
    reply.tag = tag_for(number_of(reply.sequence));
    reply.outcome = outcome_table[script_.byte() % outcome_table.size()].outcome;
    reply.result = script_.bytes(script_.byte());
    reply.detail = script_.bytes(script_.byte());
    encoder.add(reply);
  }
  for (const Bytes &frame : encoder.take())
    read(frame);
}

// As the sender does, `durability` being the message's.
void Rehearsal::read(BytesView frame) {
  switch (decoder_.decode(frame, message_)) {
  case wire::WorkerFraming::greeting:
    greeted_ = true;
    horizon_ = message_.greeting.horizon;
    return redelivery_.on_greeting(message_.greeting.boot, now_, horizon_);
  case wire::WorkerFraming::replies:
    for (const wire::Reply &reply : message_.replies.replies)
      apply(reply, message_.replies.durability);
    return;
  default:
    return;
  }
}

void Rehearsal::apply(const wire::Reply &wire_reply, Durability durability) {
  const Redelivery::Reply reply{.sequence = wire_reply.sequence,
                                .tag = wire_reply.tag,
                                .outcome = wire_reply.outcome,
                                .result = wire_reply.result,
                                .detail = wire_reply.detail,
                                .durability = durability};
  const auto result = redelivery_.on_reply(reply, now_);
  const auto found = jobs_.find(number_of(reply.sequence));
  const bool fits = found != jobs_.end() && found->second.tag == reply.tag && found->second.attempts > 0 &&
                    (reply.outcome != Outcome::expired || (horizon_ && issued_at < *horizon_));
  using Effect = Redelivery::ReplyEffect;
  const Effect expected = !fits ? Effect::ignored : traits_of(reply.outcome).final ? Effect::settled : Effect::waiting;
  require(result.effect == expected, "only a fitting final reply settles a job, and only a fitting one delays it");
  require(result.settled.has_value() == (expected == Effect::settled), "what is settled is handed out");
  if (expected == Effect::ignored) ++ignored_;
  if (expected != Effect::settled) return;
  check_settled(found->second, reply, *result.settled);
  jobs_.erase(found);
}

void Rehearsal::check_settled(const ModelJob &job, const Redelivery::Reply &reply, const Settled &settled) const {
  require(settled.sequence == reply.sequence && settled.outcome == reply.outcome, "a job settles as the reply says");
  require(settled.result == reply.result && settled.detail == reply.detail, "a reply's result and detail are kept");
  require(settled.durability == reply.durability, "a reply's durability is kept");
  require(settled.job == job.bytes && settled.attempts == job.attempts, "what settles is the job that was sent");
}

void Rehearsal::check_counters() const {
  std::size_t bytes = 0;
  for (const auto &[sequence, job] : jobs_)
    bytes += job.bytes.size();
  const auto counters = redelivery_.counters();
  require(counters.unsettled == jobs_.size() && counters.bytes == bytes, "the unsettled jobs are counted");
  require(counters.in_flight <= options_.window_jobs_max, "the window bounds the jobs in flight");
  require(counters.in_flight_bytes <= options_.window_bytes_max, "the window bounds the bytes in flight");
  require(counters.in_flight > 0 || counters.in_flight_bytes == 0, "an empty window holds no bytes");
  require(counters.in_flight + counters.waiting <= counters.unsettled, "only unsettled jobs are in flight or waiting");
  require(counters.resends == resends_, "resends are counted");
  require(counters.ignored_replies == ignored_, "ignored replies are counted");
}

} // namespace
} // namespace onced::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace onced::fuzz;
  Rehearsal(view_of(data, size)).run();
  return 0;
}
