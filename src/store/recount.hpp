#pragma once

#include "engine/engine.hpp"

namespace onced::store {

// What the sums must say, by scanning every row. A damaged row counts, without the bytes of its job: it is told of when
// it is read. Errors: `store_unavailable`, `corrupt`.
[[nodiscard]] Result<engine::Counters> count_by_scan(const engine::Engine &engine);

// The greatest boot under which a queued job was leased; 0: none was. Errors: `store_unavailable`, `corrupt`.
[[nodiscard]] Result<std::uint64_t> greatest_boot_by_scan(const engine::Engine &engine);

} // namespace onced::store
