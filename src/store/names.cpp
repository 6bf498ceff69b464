#include "onced/store.hpp"

namespace onced {

std::string_view name_of(Durability durability) {
  return durability == Durability::fsync ? "fsync" : "page-cache";
}

std::optional<Durability> durability_of(std::string_view name) {
  for (const Durability durability : {Durability::fsync, Durability::page_cache}) {
    if (name == name_of(durability)) return durability;
  }
  return std::nullopt;
}

std::string_view name_of(Phase phase) {
  switch (phase) {
  case Phase::committed:
    return "committed";
  case Phase::pending:
    return "pending";
  case Phase::failed:
    return "failed";
  }
  return "unknown";
}

} // namespace onced
