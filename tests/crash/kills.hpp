#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "crash/dice.hpp"

// How a process can be killed: at a point that the program declares ("worker.after-commit"), or by kill -9 from
// outside.
namespace onced::crash {

inline constexpr std::string_view worker_kill = "worker kill -9";
inline constexpr std::string_view sender_kill = "sender kill -9";

[[nodiscard]] inline bool is_point(std::string_view kill) {
  return kill.find('.') != std::string_view::npos;
}
[[nodiscard]] inline bool is_of_worker(std::string_view kill) {
  return kill.starts_with("worker");
}
// In a redrive or purge.
[[nodiscard]] inline bool is_of_change(std::string_view kill) {
  return kill.ends_with("-change");
}

// The names of kill points in the help of `serve` and of `send`. Throws where there are none.
[[nodiscard]] std::vector<std::string> points_in(const std::string &help);

// Deals every kind of kill before it deals one again.
class Deck {
public:
  Deck(std::vector<std::string> kills, std::uint64_t seed) : all_(std::move(kills)), dice_(seed) {}

  [[nodiscard]] std::string deal();
  // One that did not come about: it is dealt again next.
  void put_back(const std::string &kill) { left_.push_back(kill); }
  [[nodiscard]] const std::vector<std::string> &all() const { return all_; }

private:
  std::vector<std::string> all_;
  std::vector<std::string> left_;
  Dice dice_;
};

} // namespace onced::crash
