#include "verify.hpp"

#include "query.hpp"

namespace onced::tools {

ExitCode run_verify(const VerifyOptions &options, Output &output) {
  QueryTarget target;
  target.data = options.data;
  target.deadline = options.deadline;
  auto answer = run_query(target, "verify", Json::object(), std::chrono::steady_clock::now() + options.deadline);
  if (!answer) return report(answer.error());
  for (const Json &problem : answer->value("first_problems", Json::array()))
    output.line(for_people(problem));
  answer->erase("first_problems");
  output.line(for_people(*answer));
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return answer->value("problems", std::uint64_t{1}) == 0 ? ExitCode::ok : ExitCode::data;
}

} // namespace onced::tools
