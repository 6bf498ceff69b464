#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "onced/clock.hpp"
#include "onced/random.hpp"
#include "onced/store.hpp"
#include "store/operator_changes.hpp"

namespace onced::store {

// A store over an engine that is open already. `clock`, `random` and what the options point to must outlive it. Errors:
// those of Store::open.
[[nodiscard]] Result<std::unique_ptr<Store>> open_over(std::unique_ptr<engine::Engine> engine,
                                                       const StoreOptions &options, Clock &clock, Random &random);

// What an opening for writing finds and begins.
struct Opened {
  BootId boot;
  AuditRange audit;
};

// Begins a boot: takes over what an older format left, mends what an accepted loss left, counts what there is into the
// context's rooms, and counts the handlers that have ended the process before.
[[nodiscard]] Result<Opened> begin_boot(StoreContext &context, Random &random);

} // namespace onced::store
