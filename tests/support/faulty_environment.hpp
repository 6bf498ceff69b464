#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "rocksdb/environment.hpp"

namespace onced::testing {

// The calls that can be made to fail.
enum class FaultAt : std::uint8_t { log_append, log_sync, table_append, table_sync };

// What a failed call says.
enum class FaultKind : std::uint8_t { io_error, try_again, corruption };

// Makes calls of the file system fail, or syncs of the log wait. From any thread.
class Faults {
public:
  // What the calls say that fail from now on; before: an I/O error.
  void speak(FaultKind kind) { kind_ = kind; }
  // From the Nth call from now on (1: the next), every call of this kind fails, until `clear`.
  void fail_from(FaultAt at, std::uint64_t nth) { left_[index(at)] = nth - 1; }
  void clear() {
    for (auto &left : left_)
      left = never;
  }
  // Until it is released, no sync of the log goes on.
  void hold_log_syncs() { held_ = true; }
  void release_log_syncs() {
    held_ = false;
    held_.notify_all();
  }
  void wait_while_held() const { held_.wait(true); }
  [[nodiscard]] rocksdb::IOStatus error() const {
    switch (kind_) {
    case FaultKind::try_again:
      return rocksdb::IOStatus::IOError("injected: Resource temporarily unavailable");
    case FaultKind::corruption:
      return rocksdb::IOStatus::Corruption("injected: a damaged block");
    case FaultKind::io_error:
      break;
    }
    return rocksdb::IOStatus::IOError("injected: Input/output error");
  }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  [[nodiscard]] std::uint64_t calls(FaultAt at) const { return calls_[index(at)]; }

  // Whether this call fails.
  bool strike(FaultAt at) {
    ++calls_[index(at)];
    auto &left = left_[index(at)];
    std::uint64_t seen = left;
    while (seen != 0 && seen != never && !left.compare_exchange_weak(seen, seen - 1)) {
    }
    if (seen != 0) return false;
    ++failures_;
    return true;
  }

private:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  static std::size_t index(FaultAt at) { return static_cast<std::size_t>(at); }

  std::array<std::atomic<std::uint64_t>, 4> left_{never, never, never, never};
  std::array<std::atomic<std::uint64_t>, 4> calls_{};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<bool> held_{false};
  std::atomic<FaultKind> kind_{FaultKind::io_error};
};

class FaultyFile final : public rocksdb::FSWritableFileOwnerWrapper {
public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile> file, bool is_log, std::shared_ptr<Faults> faults)
      : FSWritableFileOwnerWrapper(std::move(file)), is_log_(is_log), faults_(std::move(faults)) {}

  using FSWritableFileOwnerWrapper::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice &data, const rocksdb::IOOptions &options,
                           rocksdb::IODebugContext *context) override {
    if (strikes_append()) return faults_->error();
    return FSWritableFileOwnerWrapper::Append(data, options, context);
  }
  rocksdb::IOStatus Append(const rocksdb::Slice &data, const rocksdb::IOOptions &options,
                           const rocksdb::DataVerificationInfo &verification,
                           rocksdb::IODebugContext *context) override {
    if (strikes_append()) return faults_->error();
    return FSWritableFileOwnerWrapper::Append(data, options, verification, context);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions &options, rocksdb::IODebugContext *context) override {
    if (strikes_sync()) return faults_->error();
    return FSWritableFileOwnerWrapper::Sync(options, context);
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions &options, rocksdb::IODebugContext *context) override {
    if (strikes_sync()) return faults_->error();
    return FSWritableFileOwnerWrapper::Fsync(options, context);
  }

private:
  bool strikes_append() { return faults_->strike(is_log_ ? FaultAt::log_append : FaultAt::table_append); }
  bool strikes_sync() {
    const bool strikes = faults_->strike(is_log_ ? FaultAt::log_sync : FaultAt::table_sync);
    if (is_log_) faults_->wait_while_held();
    return strikes;
  }
  bool is_log_;
  std::shared_ptr<Faults> faults_;
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
public:
  FaultyFileSystem(std::shared_ptr<rocksdb::FileSystem> base, std::shared_ptr<Faults> faults)
      : FileSystemWrapper(std::move(base)), faults_(std::move(faults)) {}

  [[nodiscard]] const char *Name() const override { return "onced::testing::FaultyFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string &name, const rocksdb::FileOptions &options,
                                    std::unique_ptr<rocksdb::FSWritableFile> *file,
                                    rocksdb::IODebugContext *context) override {
    auto status = FileSystemWrapper::NewWritableFile(name, options, file, context);
    const std::string_view text = name;
    if (!status.ok() || (!text.ends_with(".log") && !text.ends_with(".sst"))) return status;
    *file = std::make_unique<FaultyFile>(std::move(*file), text.ends_with(".log"), faults_);
    return status;
  }

private:
  std::shared_ptr<Faults> faults_;
};

[[nodiscard]] inline std::shared_ptr<StorageEnvironment> faulty_environment(const std::shared_ptr<Faults> &faults) {
  auto files = std::make_shared<FaultyFileSystem>(rocksdb::FileSystem::Default(), faults);
  return std::make_shared<StorageEnvironment>(rocksdb::NewCompositeEnv(files));
}

} // namespace onced::testing
