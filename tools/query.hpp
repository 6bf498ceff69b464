#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_value.hpp"
#include "onced/clock.hpp"
#include "onced/error.hpp"
#include "onced/handler.hpp"
#include "onced/random.hpp"
#include "onced/store.hpp"

namespace onced::tools {

// Where a query is answered: by exactly one of the two.
struct QueryTarget {
  std::optional<std::filesystem::path> data; // the data directory, whether a worker runs on it or not
  std::optional<std::string> replies;        // the replies endpoint of a worker
  std::chrono::milliseconds deadline{10'000};
};

// Asks read-only queries of one target. On a database that no worker holds it keeps it open between them, so that a
// long list is one opening, and no worker can start meanwhile. One thread.
class QuerySession {
public:
  explicit QuerySession(const QueryTarget &target) : target_(target) {}

  // Asks one query of docs/protocol.md. In the answer, binaries are binaries. Errors: `usage` (no target, or both),
  // `timed_out`, those of the store and of the wire, and what the worker answered.
  [[nodiscard]] Result<Json> ask(std::string_view name, const Json &arguments, MonotonicTime deadline);

private:
  [[nodiscard]] Result<Bytes> ask_data(BytesView request, MonotonicTime deadline);
  [[nodiscard]] Result<bool> hold();

  QueryTarget target_;
  SystemClock clock_;
  SystemRandom random_;
  std::optional<DirectoryLock> lock_;
  std::unique_ptr<Store> store_; // goes before its lock
};

// A session of one query.
[[nodiscard]] Result<Json> run_query(const QueryTarget &target, std::string_view name, const Json &arguments,
                                     MonotonicTime deadline);

// Reads and changes a data directory: through the worker that runs on it or, while there is none, on the database
// itself, which it then holds until it is gone. One thread.
class ChangeSession {
public:
  explicit ChangeSession(std::filesystem::path data) : data_(std::move(data)) {}

  // Asks one query or change of docs/protocol.md and waits until `deadline`. Errors: `not_found` (no database, or what
  // the change is about), those of the store and of the wire, and what the worker answered.
  [[nodiscard]] Result<Json> ask(std::string_view name, const Json &arguments, MonotonicTime deadline);

  // There was an answer, to this request or an earlier one, so the directory is one.
  [[nodiscard]] bool has_answered() const { return answered_; }

  // The answer is to a request that was made again, since the first was not answered; it may have been carried out.
  [[nodiscard]] bool was_repeated() const { return repeated_; }

private:
  [[nodiscard]] Result<bool> hold();
  [[nodiscard]] Bytes answer(std::string_view name, BytesView request);

  std::filesystem::path data_;
  SystemClock clock_;
  SystemRandom random_;
  Handlers handlers_ = built_in_handlers();
  bool repeated_ = false;
  bool answered_ = false;
  std::optional<DirectoryLock> lock_;
  std::unique_ptr<Store> store_; // goes before its lock
};

// Whether a change may be made on this word: who makes it (--by), and why (--why). Errors: `usage`, naming the option.
[[nodiscard]] Result<void> check_audited(const std::string &by, const std::string &why);

// The answer as it is printed: times "…_at_us" as ISO 8601 UTC under "…_at", unknown ones null; binaries, at any
// depth, in hexadecimal; empty ids null.
[[nodiscard]] Json for_people(const Json &row);

// The line with the job that the answer's `bytes` are, under `job`; without where they are none that JSON can say.
[[nodiscard]] Json with_job(Json line, const Json &answer);

// "2026-01-31T12:00:00.000000Z" of microseconds since 1970; null for 0, and the number itself outside years 1 to 9999.
[[nodiscard]] Json iso_time(std::int64_t microseconds);

} // namespace onced::tools
