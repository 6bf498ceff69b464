// The place that chooses the engine of a store.
#include "onced/store.hpp"
#include "rocksdb/rocksdb_engine.hpp"
#include "store/opening.hpp"

namespace onced {

Result<std::unique_ptr<Store>> Store::open(const StoreOptions &options, Clock &clock, Random &random) {
  auto engine = rocks::open_engine(options, clock);
  if (!engine) return tl::unexpected(engine.error());
  return store::open_over(std::move(*engine), options, clock, random);
}

} // namespace onced
