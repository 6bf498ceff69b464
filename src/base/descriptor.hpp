#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "onced/error.hpp"

namespace onced {

// An open file descriptor, closed at the end.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }

private:
  int number_ = -1;
};

// The errno of the last call as an Error about `path`; `doing` names the call's purpose.
[[nodiscard]] Error system_error(const std::filesystem::path &path, const std::string &doing);

// Makes a name that was created in `directory` durable.
[[nodiscard]] Result<void> sync_directory(const std::filesystem::path &directory);

} // namespace onced
