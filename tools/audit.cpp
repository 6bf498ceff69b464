#include "audit.hpp"

#include "query.hpp"

namespace onced::tools {

ExitCode run_audit(const AuditOptions &options, Output &output) {
  QueryTarget target;
  target.data = options.data;
  std::uint64_t after = options.after;
  std::uint64_t left = options.limit.value_or(UINT64_MAX);
  while (left != 0 && !output.failed()) {
    const MonotonicTime deadline = std::chrono::steady_clock::now() + options.deadline;
    const auto answer = run_query(target, "audit", {{"after", after}}, deadline);
    if (!answer) return report(answer.error());
    const Json rows = answer->value("rows", Json::array());
    if (rows.empty()) break;
    for (const Json &row : rows) {
      if (left == 0) break;
      output.line(for_people(row));
      --left;
    }
    after = rows.back().value("number", after);
  }
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return ExitCode::ok;
}

} // namespace onced::tools
