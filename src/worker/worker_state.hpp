#pragma once

#include "store/store_keeper.hpp"
#include "wire/messages.hpp"

namespace onced::worker {

// How a worker is whose store is so, while it does not drain.
[[nodiscard]] inline wire::WorkerState worker_state_of(const store::StoreKeeper::State &state) {
  if (state.available) return wire::WorkerState::ok;
  if (state.opening) return wire::WorkerState::opening;
  return state.full ? wire::WorkerState::full : wire::WorkerState::unavailable;
}

} // namespace onced::worker
