#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ledger.hpp"
#include "sender/redelivery.hpp"

namespace simulation {

// What is allowed to one sender's state machine, known without its timers: only between which two times each job may
// and must be due. A step is all that the sender does at one event; the calls throw `Broken` where it breaks a rule.
class SenderModel {
public:
  using Time = onced::MonotonicTime;
  using Effect = onced::Redelivery::ReplyEffect;

  explicit SenderModel(const onced::RedeliveryOptions &options) : options_(options) {}

  // The state machine is new, and holds nothing.
  void begin_life();

  [[nodiscard]] bool has_room(std::size_t bytes) const {
    return open_ < options_.jobs_max && open_bytes_ + bytes <= options_.bytes_max && bytes <= options_.window_bytes_max;
  }
  void on_held(const Job &job);
  // Returns whether the boot is another than the one before.
  bool on_greeting(std::uint32_t boot, Time now);
  // What the state machine gave when it was asked for so much.
  void check_due(std::span<const onced::Redelivery::DueJob> jobs, std::size_t jobs_max, std::size_t bytes_max,
                 Time now) const;
  // What goes out, as the network sees it.
  void on_sent(const onced::Redelivery::DueJob &sent, const Job &job, Time now);
  [[nodiscard]] std::uint32_t attempts(onced::Sequence sequence) const {
    return held_[onced::number_of(sequence) - 1].attempts;
  }
  // What the state machine made of a reply, with the tag and the outcome that came.
  void on_reply(onced::Sequence sequence, const onced::Tag &tag, onced::Outcome outcome, Effect effect, Time now);

  // The end of a step. `pipe_full`: not all that was due could be sent.
  void end_step(const onced::Redelivery &machine, bool pipe_full, Time now);

private:
  // One job of this life, in the place where it is last known to be.
  struct Held {
    enum class Place : std::uint8_t { absent, due, flying, waiting, settled } place = Place::absent;
    std::uint32_t attempts = 0;
    std::uint32_t attempts_before_boot = 0;
    std::size_t bytes = 0;
    onced::Tag tag;
    Time earliest; // not due before, where it flies or waits
    Time latest;   // due from then on

    [[nodiscard]] bool open() const { return place != Place::absent && place != Place::settled; }
    [[nodiscard]] bool surely(Place there, Time now) const { return place == there && now < earliest; }
    [[nodiscard]] bool perhaps(Place there, Time now) const { return place == there && now < latest; }
  };
  using Place = Held::Place;

  // Between which figures the jobs in the window, and those that wait, are.
  struct Bounds {
    std::size_t flying_least = 0;
    std::size_t flying_most = 0;
    std::size_t flying_bytes_least = 0;
    std::size_t flying_bytes_most = 0;
    std::size_t waiting_least = 0;
    std::size_t waiting_most = 0;
  };

  [[nodiscard]] Held *find(onced::Sequence sequence);
  [[nodiscard]] Effect expected(const Held *held, const onced::Tag &tag, onced::Outcome outcome) const;
  [[nodiscard]] Time::duration longest_backoff(const Held &held) const;
  void wait(Held &held, onced::Outcome outcome, Time now);
  void count_send(Time now);
  [[nodiscard]] Bounds bounds(Time now) const;
  void check_counters(const onced::Redelivery::Counters &counters, const Bounds &bounds) const;
  void check_nothing_held_back(const Bounds &bounds, Time now) const;
  void check_wake(std::optional<Time> wake, Time now) const;

  onced::RedeliveryOptions options_;
  std::vector<Held> held_; // by sequence, from 1
  std::size_t open_ = 0;
  std::size_t open_bytes_ = 0;
  std::optional<std::uint32_t> boot_;
  std::uint64_t resends_ = 0;
  std::uint64_t ignored_ = 0;

  // Of this step.
  bool boot_is_new_ = false;
  bool has_sent_ = false;

  // Of this interval of half a timeout, within which no place of the window is taken twice unless it was freed.
  Time interval_end_;
  std::uint64_t interval_sends_ = 0;
  std::uint64_t interval_sends_max_ = 0;
};

} // namespace simulation
