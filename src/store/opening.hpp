#pragma once

#include "onced/random.hpp"
#include "store/operator_changes.hpp"

namespace onced::store {

// What an opening for writing finds and begins.
struct Opened {
  BootId boot;
  AuditRange audit;
};

// Begins a boot: takes over what an older format left, mends what an accepted loss left, counts what there is into the
// context's rooms, and counts the handlers that have ended the process before.
[[nodiscard]] Result<Opened> begin_boot(StoreContext &context, Random &random);

} // namespace onced::store
