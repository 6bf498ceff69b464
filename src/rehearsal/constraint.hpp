#pragma once

#include <string>

#include "onced/digest.hpp"

namespace onced::rehearsal {

// What makes an effect happen once, in words for a reviewer.
struct Constraint {
  std::string key;
  std::string digest;
  std::string transaction;
};

[[nodiscard]] inline Constraint constraint() {
  return {.key = "a tag, then the effect key where the job has one, else type and operation id, each length-prefixed; "
                 "compared byte by byte",
          .digest = "SHA-256 over the version of the canonical form (" + std::to_string(canonical_form_version) +
                    "), type and canonical payload, length-prefixed; not over ids, attempts, times or trace context",
          .transaction = "RocksDB TransactionDB: lock the key, read it for update, put the row only where it is "
                         "absent, commit with a synced log; the reply follows the commit"};
}

} // namespace onced::rehearsal
