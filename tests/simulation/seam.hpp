#pragma once

#include <memory>

#include "context.hpp"
#include "engine/engine.hpp"

namespace simulation {

// Between the store's logic and its engine: look-ups that come before another unit's commit, and mutations. It outlives
// the engines that go through it.
struct Seam {
  Context &context;

  // Mutation: locks say what the rows were before the commit of which nobody knows whether it was written.
  bool locks_are_stale = false;
  std::unique_ptr<onced::engine::View> before_unknown;
};

[[nodiscard]] std::unique_ptr<onced::engine::Engine> through_seam(std::unique_ptr<onced::engine::Engine> engine,
                                                                  Seam &seam);

} // namespace simulation
