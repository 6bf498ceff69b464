#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "context.hpp"
#include "handler_runs.hpp"
#include "runner/leases.hpp"
#include "store_node.hpp"

namespace simulation {

// The queued jobs of the worker as its executors and its time keeper handle them, around the leases under test. Jobs of
// even keys are run by commands, which are processes that hold the lock of their job and may outlive the worker, the
// others by functions. Mutations of the queue are planted here.
class QueueModel {
public:
  QueueModel(Context &context, StoreNode &store) : context_(context), store_(store), runs_(context.plan.leases) {}

  // The process starts, with this boot count.
  void begin_life(std::uint32_t boot);
  void on_crash();
  void on_reopen(); // of the store
  [[nodiscard]] std::uint32_t life() const { return life_; }

  // The job of this key was accepted.
  void add_new(std::size_t key);
  void on_wake();
  [[nodiscard]] std::optional<onced::MonotonicTime> wake_at() const;
  void on_heartbeat(const Event &event);
  void on_handler_end(const Event &event);

  // A write waits for the store to be opened.
  void hold(const Event &event) { held_.push_back(event); }
  void before_write(const Event &event);
  // The unit of the store. False: the row does not allow it. Nothing: the store has failed.
  [[nodiscard]] std::optional<bool> write(const Event &event);
  // What follows from it. Returns what is answered to the job's sender.
  std::optional<Verdict> on_written(const Event &event, bool is_written);
  // The store failed.
  void on_unknown(const Event &event);

private:
  void walk();
  void refill();
  void take_due();
  void take_due_of(std::string_view type);
  void begin_write(EventKind kind, std::size_t key, const onced::FencingToken &token, Ending ending = Ending::done);
  void start_or_give_back(const Event &received);
  void start(const Event &received);
  void schedule_heartbeat(Event beat);
  [[nodiscard]] Ending drawn_ending(const Event &handler_end);
  void add(std::size_t key, std::string_view type, std::uint32_t receives, const onced::FencingToken &token);
  [[nodiscard]] std::optional<bool> write_receive(const Event &event);
  [[nodiscard]] std::optional<bool> write_give_back(const Event &event);
  [[nodiscard]] std::optional<bool> write_settlement(const Event &event);
  std::optional<Verdict> on_settled(const Event &event, bool is_written);
  [[nodiscard]] std::size_t key_of(const Event &event) const { return context_.jobs[event.job].key; }

  Context &context_;
  StoreNode &store_;
  HandlerRuns runs_;

  // Of this life of the process; none while there is none.
  std::uint32_t life_ = 1;
  std::optional<onced::runner::Leases> leases_;
  std::vector<Event> held_;
};

} // namespace simulation
