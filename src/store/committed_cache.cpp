#include "store/committed_cache.hpp"

#include <algorithm>

namespace onced::store {

bool CommittedCache::recall(BytesView job_bytes, Bytes &result) {
  return by_bytes_.find(job_bytes, [&](BytesView value) { result.assign(value); });
}

bool CommittedCache::find(const Key &key, KeyRow &row) {
  return by_key_.find(key.bytes, [&](BytesView value) {
    row.state = KeyRow::State::present;
    row.phase = Phase::committed;
    std::copy_n(value.begin(), row.digest.bytes.size(), row.digest.bytes.begin());
    row.result.assign(value.substr(row.digest.bytes.size()));
  });
}

bool CommittedCache::keep_bytes(BytesView job_bytes, BytesView result) {
  if (job_bytes.size() + result.size() > ByteCache::text_bytes_max) return false;
  by_bytes_.keep(job_bytes, result);
  return true;
}

void CommittedCache::keep(const Key &key, const Digest &digest, BytesView result) {
  by_key_.keep(key.bytes, digest.view(), result);
}

} // namespace onced::store
