#include "store/cache/committed_cache.hpp"

#include <algorithm>

namespace onced::store {

void CommittedCache::recall(std::span<const BytesView> jobs, std::span<Recollection> recollections) {
  for (std::size_t at = 0; at < jobs.size(); ++at)
    recollections[at].committed = false;
  by_bytes_.find_all(jobs, [&](std::size_t at, BytesView value) {
    Recollection &recollection = recollections[at];
    recollection.committed = true;
    std::copy_n(value.begin(), Tag::size, recollection.tag.bytes.begin());
    recollection.result.assign(value.substr(Tag::size));
  });
}

bool CommittedCache::find(const Key &key, KeyRow &row) {
  return by_key_.find(key.bytes, [&](BytesView value) {
    row.state = KeyRow::State::present;
    row.phase = Phase::committed;
    std::copy_n(value.begin(), row.digest.bytes.size(), row.digest.bytes.begin());
    row.result.assign(value.substr(row.digest.bytes.size()));
  });
}

bool CommittedCache::keep_bytes(BytesView job_bytes, const Tag &tag, BytesView result) {
  if (job_bytes.size() + Tag::size + result.size() > ByteCache::text_bytes_max) return false;
  by_bytes_.keep(job_bytes, tag.view(), result);
  return true;
}

void CommittedCache::keep(const Key &key, const Digest &digest, BytesView result) {
  by_key_.keep(key.bytes, digest.view(), result);
}

} // namespace onced::store
