#pragma once

#include <rocksdb/listener.h>

namespace onced::rocks {

// RocksDB would go on by itself when a full disk has room again, in the middle of a log of which a write has failed.
class NeverRecover : public rocksdb::EventListener {
public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status, bool *auto_recovery) override {
    *auto_recovery = false;
  }
};

} // namespace onced::rocks
