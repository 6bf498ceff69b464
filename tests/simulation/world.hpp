#pragma once

#include <cstdint>
#include <deque>

#include "context.hpp"
#include "sender_node.hpp"
#include "worker_model.hpp"

namespace simulation {

// One seed's senders, network and worker, from the first submission to the last settlement.
class World {
public:
  World(std::uint64_t seed, const RunOptions &options);

  // Throws `Broken`.
  void run();

  [[nodiscard]] const Tally &tally() const { return context_.tally; }
  // Two runs of a seed that went the same way have the same.
  [[nodiscard]] std::uint64_t fingerprint() const { return context_.fingerprint; }

private:
  void draw_jobs();
  void schedule_faults();
  void schedule_some(std::size_t count, EventKind kind);
  [[nodiscard]] bool done() const;
  void check_bounds(std::uint64_t calm_steps) const;
  void step();
  void dispatch(const Event &event);
  void trace(const Event &event) const;
  void forge(const Event &event);

  Context context_;
  WorkerModel worker_;
  std::deque<SenderNode> senders_;
  std::size_t unsubmitted_;
};

} // namespace simulation
