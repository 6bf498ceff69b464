#pragma once

#include <cstdint>
#include <mutex>

namespace onced {

// Where randomness comes from: ids and jitter. Passed in, so that a seed repeats a run.
class Random {
public:
  virtual ~Random() = default;
  // 64 uniformly random bits. May be called from any thread.
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

// The operating system's generator; fit for ids that must not meet.
class SystemRandom final : public Random {
public:
  [[nodiscard]] std::uint64_t next() override;
};

// The same numbers for the same seed (SplitMix64). For tests and the lab, not for ids that must not meet.
class SeededRandom final : public Random {
public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t next() override;

private:
  std::mutex mutex_;
  std::uint64_t state_;
};

} // namespace onced
