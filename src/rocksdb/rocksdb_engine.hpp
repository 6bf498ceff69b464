#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "onced/clock.hpp"
#include "onced/store.hpp"

namespace onced::rocks {

// Opens the embedded engine: a RocksDB database in the data directory, held against its durable mark. `clock` and what
// the options point to must outlive it. Errors: those of Store::open.
[[nodiscard]] Result<std::unique_ptr<engine::Engine>> open_engine(const StoreOptions &options, Clock &clock);

} // namespace onced::rocks
