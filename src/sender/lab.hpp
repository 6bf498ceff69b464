#pragma once

#include <optional>
#include <vector>

#include "onced/random.hpp"
#include "onced/sender.hpp"
#include "wire/messages.hpp"

namespace onced::sender {

// The lab's knobs at work on outgoing messages. One thread.
class Lab {
  struct Token {}; // of `of` alone

public:
  // Nothing where every knob is unset.
  [[nodiscard]] static std::optional<Lab> of(const SenderLab &knobs);

  // Drops and reorders jobs of one message. Returns how many were dropped.
  std::size_t disturb(std::vector<wire::BatchEntry> &entries);

  Lab(Token, const SenderLab &knobs) : knobs_(knobs), random_(knobs.seed) {}

private:
  SenderLab knobs_;
  SeededRandom random_;
};

} // namespace onced::sender
