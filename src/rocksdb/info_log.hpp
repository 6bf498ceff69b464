#pragma once

#include <cstdarg>
#include <filesystem>
#include <mutex>
#include <string>

#include <rocksdb/env.h>

#include "base/descriptor.hpp"

namespace onced::rocks {

// RocksDB's warnings, in a file that stays small. A line that cannot be written is dropped: RocksDB's own logger, on a
// disk that fails, ends the process by an assertion, which Debian's build has. Any thread.
class InfoLog final : public rocksdb::Logger {
public:
  // Appends to the file, which is emptied first where it has grown large. Without a path nothing is written.
  explicit InfoLog(const std::filesystem::path &path);

  using Logger::Logv;
  void Logv(const char *format, va_list arguments) override;

  // Which file was damaged, and how, where a warning has said so: an error of RocksDB does not always name it. Empty:
  // none has.
  [[nodiscard]] std::string damage() const;

private:
  Descriptor file_;
  mutable std::mutex mutex_; // guards the next
  std::string damage_;
};

} // namespace onced::rocks
