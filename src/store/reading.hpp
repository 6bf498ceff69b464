#pragma once

#include <optional>
#include <vector>

#include "engine/engine.hpp"
#include "onced/store.hpp"

// What is read of a store without changing it. Errors of all: `corrupt`, naming the damaged row, and
// `store_unavailable`.
namespace onced::store {

[[nodiscard]] Result<std::optional<OperationRow>> read_operation(const engine::Engine &engine, const Key &key);
[[nodiscard]] Result<Counts> count_rows(const engine::Engine &engine);
[[nodiscard]] Result<std::optional<DeadLetter>> read_letter(const engine::Engine &engine, const DeadLetterId &id);
// Up to `rows` dead letters that the filter wants, of at most `scanned_max` that are looked at.
[[nodiscard]] Result<DeadLetterPage> find_letters(const engine::Engine &engine, std::size_t rows,
                                                  const std::optional<DeadLetterId> &after,
                                                  const DeadLetterFilter &filter, std::size_t scanned_max);
[[nodiscard]] Result<std::vector<AuditRow>> read_audit(const engine::Engine &engine, std::size_t rows,
                                                       std::uint64_t after);

} // namespace onced::store
