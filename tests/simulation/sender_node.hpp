#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "context.hpp"
#include "sender_model.hpp"

namespace simulation {

// A sender as `onced::Sender` is one, around the state machine under test: with an outbox that survives its crashes, or
// in memory and without crashes, as its promise ends there. Mutations of the sender are planted here.
class SenderNode {
public:
  SenderNode(Context &context, std::uint8_t id, bool durable);

  [[nodiscard]] std::size_t id() const { return id_; }

  // Takes the job over as soon as it is up and has room; until then its producer holds it.
  void offer(std::size_t job);
  void on_connect();
  void on_greeting(const Event &event);
  void on_reply(const Event &event);
  void on_tell(const Event &event);
  void on_crash();
  void on_start(const Event &event);
  void on_wake();
  [[nodiscard]] std::optional<onced::MonotonicTime> wake_at() const;

  // Nothing is left to be sent or told.
  [[nodiscard]] bool idle() const { return machine_ && offered_.empty() && custody_ == 0; }
  [[nodiscard]] std::uint64_t sequences() const { return jobs_.size(); }

private:
  void begin_life();
  void say_hello();
  void step();
  void submit_offered();
  [[nodiscard]] bool has_room_for(const Job &job) const;
  void restore_from_outbox();
  void send_due();
  void hand_over(onced::Redelivery::DueJob due);
  void check_record(const onced::Settled &settled, const onced::Redelivery::Reply &reply) const;
  void on_settled(std::size_t job, const Event &reply);
  [[nodiscard]] onced::RedeliveryOptions machine_options() const;
  void release(std::uint64_t number);

  static constexpr std::uint8_t no_job = 255;

  Context &context_;
  std::uint8_t id_;
  bool durable_;
  SenderModel model_;

  // Of this life.
  std::uint32_t life_ = 0;
  std::optional<onced::Redelivery> machine_;
  onced::MonotonicTime last_hello_;
  onced::MonotonicTime next_hello_;
  bool greeted_ = false;
  bool pipe_full_ = false;
  std::uint64_t read_up_to_ = 0; // sequences of the outbox that are in the state machine
  std::optional<onced::MonotonicTime> machine_wake_;
  std::optional<std::uint32_t> first_boot_; // for a mutation

  std::deque<std::size_t> offered_; // by producers

  // The outbox, or the memory of a sender that does not crash; by sequence, from 1.
  std::vector<std::uint8_t> jobs_; // in Context::jobs
  std::vector<bool> kept_;         // submitted, and not yet told and removed
  std::size_t custody_ = 0;        // of kept_
};

} // namespace simulation
