#pragma once

#include "onced/digest.hpp"
#include "onced/job.hpp"
#include "onced/store.hpp"
#include "store/cache/byte_cache.hpp"
#include "store/verdict.hpp"

namespace onced::store {

// Jobs that were committed or asked for lately, in two ways. By the very bytes of a delivery: the same bytes are the
// same key and digest, so who finds them there need not parse them. By key, for deliveries whose bytes differ or are
// too long: a hash and a compare, and no look-up in RocksDB. It holds only what is on stable storage (page_cache: in
// the page cache), and what it does not hold may be there all the same: it never says "absent". Rows do not change, so
// nothing in it goes stale; whoever makes them change must forget them here. Bounded by the bytes it is given. Any
// thread.
class CommittedCache {
public:
  explicit CommittedCache(std::size_t bytes) : by_bytes_(bytes - bytes / 4), by_key_(bytes / 4) {}

  // As Store::recall.
  void recall(std::span<const BytesView> jobs, std::span<Recollection> recollections);
  // True: the key's row is committed, and `row` is it.
  [[nodiscard]] bool find(const Key &key, KeyRow &row);

  // The job was delivered in these bytes, which have this tag. False: they are too long, with the result, to be kept.
  bool keep_bytes(BytesView job_bytes, const Tag &tag, BytesView result);
  // A row too long for a slot is not kept.
  void keep(const Key &key, const Digest &digest, BytesView result);

private:
  ByteCache by_bytes_;
  ByteCache by_key_;
};

} // namespace onced::store
