#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "onced/bytes.hpp"
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

// The same open file under a number that no standard stream has. Not open where that cannot be, with errno set.
[[nodiscard]] Descriptor raised(int file);

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};
// Neither end has the number of a standard stream. The error is an errno.
[[nodiscard]] tl::expected<Pipe, int> make_pipe();

// Waits as long as the other end makes it. False with errno set.
[[nodiscard]] bool write_all(const Descriptor &file, BytesView content);

// The errno of the last call as an Error about `path`; `doing` names the call's purpose.
[[nodiscard]] Error system_error(const std::filesystem::path &path, const std::string &doing);

// Makes a name that was created in `directory` durable.
[[nodiscard]] Result<void> sync_directory(const std::filesystem::path &directory);

} // namespace onced
