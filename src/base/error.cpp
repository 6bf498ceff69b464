#include "onced/error.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/check.hpp"

namespace onced {

std::string describe(const Error &error) {
  std::string text = error.concerns + ": " + error.cause;
  if (!error.remedy.empty()) text += "; " + error.remedy;
  return text;
}

std::string_view name_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::usage:
    return "usage";
  case ErrorCode::configuration:
    return "configuration";
  case ErrorCode::not_found:
    return "not_found";
  case ErrorCode::locked:
    return "locked";
  case ErrorCode::endpoint:
    return "endpoint";
  case ErrorCode::newer_format:
    return "newer_format";
  case ErrorCode::corrupt:
    return "corrupt";
  case ErrorCode::loss_suspected:
    return "loss_suspected";
  case ErrorCode::store_unavailable:
    return "store_unavailable";
  case ErrorCode::timed_out:
    return "timed_out";
  case ErrorCode::unsupported_protocol:
    return "unsupported_protocol";
  case ErrorCode::out_of_resources:
    return "out_of_resources";
  case ErrorCode::internal:
    return "internal";
  }
  return "internal";
}

void check_failed(const char *condition, const char *file, int line) noexcept {
  std::fprintf(stderr, "onced: invariant broken: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

} // namespace onced
