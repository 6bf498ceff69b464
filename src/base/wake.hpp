#pragma once

#include "base/descriptor.hpp"

namespace onced {

// Lets any thread interrupt the poll of the thread that owns the sockets.
class Wake {
public:
  // Throws std::system_error when the process is out of descriptors.
  Wake();
  // Any thread.
  void ring();
  // The polling thread.
  void clear();
  [[nodiscard]] int descriptor() const { return event_.number(); }

private:
  Descriptor event_;
};

} // namespace onced
