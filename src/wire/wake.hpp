#pragma once

#include "store/descriptor.hpp"

namespace onced::wire {

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
  store::Descriptor event_;
};

} // namespace onced::wire
