#include "count.hpp"

namespace onced::tools {

ExitCode run_count(const CountOptions &options, Output &output) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  const auto answer = run_query(options.target, "count", Json::object(), deadline);
  if (!answer) return report(answer.error());
  output.line(for_people(*answer));
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return ExitCode::ok;
}

} // namespace onced::tools
