#include "sender/lab.hpp"

#include <cstddef>
#include <utility>

#include "onced/limits.hpp"

namespace onced::sender {

std::optional<Lab> Lab::of(const SenderLab &knobs) {
  if (!knobs.shuffle && knobs.loss_share <= 0 && !knobs.lose_first_replies) return std::nullopt;
  return std::optional<Lab>(std::in_place, Lab::Token{}, knobs);
}

std::size_t Lab::disturb(std::vector<wire::BatchEntry> &entries) {
  // 53 bits of a draw are a double from 0 to below 1.
  const auto is_lost = [&](const wire::BatchEntry &) {
    return static_cast<double>(random_.next() >> 11U) * 0x1p-53 < knobs_.loss_share;
  };
  const std::size_t lost = knobs_.loss_share > 0 ? std::erase_if(entries, is_lost) : 0;
  // Fisher and Yates.
  for (std::size_t left = knobs_.shuffle ? entries.size() : 0; left > 1; --left)
    std::swap(entries[left - 1], entries[random_.next() % left]);
  return lost;
}

bool Lab::loses_reply(Sequence sequence) {
  if (!knobs_.lose_first_replies || answered_once_.erase(sequence) > 0) return false;
  return answered_once_.size() < limits::sender_jobs_max && answered_once_.insert(sequence).second;
}

} // namespace onced::sender
