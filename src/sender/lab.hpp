#pragma once

#include <optional>
#include <set>
#include <vector>

#include "onced/ids.hpp"
#include "onced/random.hpp"
#include "onced/sender.hpp"
#include "wire/messages.hpp"

namespace onced::sender {

// The lab's knobs at work on outgoing messages, and on replies. One thread.
class Lab {
  struct Token {}; // of `of` alone

public:
  // Nothing where every knob is unset.
  [[nodiscard]] static std::optional<Lab> of(const SenderLab &knobs);

  // Drops and reorders jobs of one message. Returns how many were dropped.
  std::size_t disturb(std::vector<wire::BatchEntry> &entries);
  // Whether this reply is one to throw away.
  [[nodiscard]] bool loses_reply(Sequence sequence);

  Lab(Token, const SenderLab &knobs) : knobs_(knobs), random_(knobs.seed) {}

private:
  SenderLab knobs_;
  SeededRandom random_;
  std::set<Sequence> answered_once_; // at most limits::sender_jobs_max; beyond it no reply is lost
};

} // namespace onced::sender
