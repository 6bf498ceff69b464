#pragma once

#include <cstdint>
#include <mutex>

namespace onced {

// Where randomness comes from: ids and jitter. A caller passes a generator in, so that a seed repeats a run. The
// caller owns the generator, which must outlive every object that it was passed to.
class Random {
public:
  virtual ~Random() = default;
  // Returns 64 uniformly random bits. Any thread may call it.
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

// The generator of the operating system (getrandom). Use it for ids that must never meet. It has no state.
// `next` throws std::system_error if the system has no generator.
class SystemRandom final : public Random {
public:
  [[nodiscard]] std::uint64_t next() override;
};

// Returns the same numbers for the same seed (SplitMix64). Use it in tests and in the lab, never for ids that must not
// meet. Several threads may share one: each number goes to one of them, and `next` does not fail.
class SeededRandom final : public Random {
public:
  // Any seed is good, 0 too.
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t next() override;

private:
  std::mutex mutex_;
  std::uint64_t state_;
};

} // namespace onced
