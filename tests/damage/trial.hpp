#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/scratch_directory.hpp"
#include "damage/examination.hpp"
#include "damage/prepared_store.hpp"

namespace onced::testing {

// What is done to one file of a copy of the prepared store.
struct Damage {
  enum class Kind : std::uint8_t { none, flip, cut, removal, zero, swap, copy };
  Kind kind = Kind::none;
  std::filesystem::path file; // below the data directory
  std::uintmax_t at = 0;      // the byte that is flipped, the length that is left, or where the zeros begin
  std::uint8_t bits = 0;      // those that are flipped
  std::uintmax_t bytes = 0;   // that are zeroed
  // What it is exchanged with, or replaced by: a file or a folder below the data directory, or elsewhere.
  std::filesystem::path other = {};
  Opening opening = Opening::writable;
};
[[nodiscard]] std::string describe(const Damage &damage);

// A prepared directory, and how a damaged copy of it is examined.
class Trial {
public:
  using Prepare = std::function<void(const std::filesystem::path &)>;
  using Examine = std::function<Finding(const std::filesystem::path &, Opening)>;

  // A store with what it has acknowledged.
  explicit Trial(Shape shape);
  Trial(const Prepare &prepare, Examine examine);

  [[nodiscard]] const std::filesystem::path &original() const { return directory_.path(); }

  // Does each damage to a fresh copy and examines that, in a process of its own that is replaced when it dies; one
  // finding a damage, in order. Each takes at most `patience`.
  [[nodiscard]] std::vector<Finding> run(const std::vector<Damage> &damages) const;

private:
  [[nodiscard]] std::vector<Finding> run_until_death(std::span<const Damage> damages) const;
  [[nodiscard]] int examine_all(std::span<const Damage> damages, const std::filesystem::path &scratch,
                                const Descriptor &output) const;

  ScratchDirectory directory_;
  Examine examine_;
};

} // namespace onced::testing
