#pragma once

#include <memory>
#include <utility>

#include <rocksdb/env.h>

namespace onced {

// The file system under a store. Fault tests wrap the operating system's and pass the wrapper in StoreOptions.
class StorageEnvironment {
public:
  explicit StorageEnvironment(std::unique_ptr<rocksdb::Env> env) : env_(std::move(env)) {}

  [[nodiscard]] rocksdb::Env *env() const { return env_.get(); }

private:
  std::unique_ptr<rocksdb::Env> env_;
};

} // namespace onced
