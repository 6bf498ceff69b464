#pragma once

#include "engine/engine.hpp"
#include "onced/store.hpp"
#include "store/allowance.hpp"
#include "store/cache/committed_cache.hpp"
#include "store/room.hpp"
#include "store/suspects/suspects.hpp"
#include "store/write_gate.hpp"

namespace onced::store {

// What all parts of an open store share. Any thread.
struct StoreContext {
  StoreContext(const StoreOptions &of, Clock &time, engine::Engine &rows)
      : options(of), clock(time), engine(rows), gate(rows, of.read_only),
        letter_room({.rows = of.dead_letters_max, .bytes = of.dead_letter_bytes_max}),
        letter_allowance(of.dead_letter_bytes_a_second, time),
        queue_room({.rows = of.queue_jobs_max, .bytes = of.queue_bytes_max}),
        relay_room({.rows = of.relay_jobs_max, .bytes = of.relay_bytes_max}),
        cache(of.read_only ? 0 : of.committed_cache_bytes) {}

  void arrive(KillPoint point) const {
    if (options.kill_switch != nullptr) options.kill_switch->arrive(point);
  }
  // How a commit is to be safe that makes no promise of its own.
  [[nodiscard]] engine::Sync sync() const {
    return options.durability == Durability::fsync ? engine::Sync::stable : engine::Sync::page_cache;
  }

  const StoreOptions options;
  Clock &clock;
  engine::Engine &engine;
  WriteGate gate;
  RowRoom letter_room;
  Allowance letter_allowance;
  RowRoom queue_room;
  RowRoom relay_room;
  CommittedCache cache;
  Suspects suspects;
};

} // namespace onced::store
