#include "pending.hpp"

#include "base/json_reader.hpp"

namespace onced::tools {
namespace {

ExitCode report_damaged(std::uint64_t rows) {
  return report({ErrorCode::corrupt, "the queue", std::to_string(rows) + " of its rows are damaged, and not listed",
                 "onced verify names them; restore the data directory from a copy"});
}

Result<Json> resolution(const PendingResolveOptions &options) {
  auto request = key_of(options.job);
  if (!request) return request;
  if (options.applied.has_value() == options.absent) {
    return tl::unexpected(Error{ErrorCode::usage, "--applied, --absent",
                                options.absent ? "both are given" : "none is given", "say which of the two it is"});
  }
  if (auto checked = check_audited(options.by, options.why); !checked) return tl::unexpected(checked.error());
  request->update({{"effect", options.absent ? "absent" : "applied"}, {"by", options.by}, {"why", options.why}});
  if (options.absent) return request;
  Bytes result;
  if (const auto read = messagepack_of_json(*options.applied, result); !read) {
    return tl::unexpected(Error{ErrorCode::usage, "--applied", read.error(), "give the result as one JSON value"});
  }
  (*request)["result"] = Json::binary({result.begin(), result.end()});
  return request;
}

} // namespace

ExitCode run_pending_list(const PendingListOptions &options, Output &output) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  std::uint64_t left = options.limit.value_or(UINT64_MAX);
  std::uint64_t damaged = 0;
  Json arguments{{"held", options.held_only}};
  if (!options.type.empty()) arguments["type"] = options.type;
  QuerySession session(options.target);
  while (left != 0 && !output.failed()) {
    const auto answer = session.ask("pending list", arguments, deadline);
    if (!answer) return finish(output, report(answer.error()));
    for (const Json &row : answer->value("rows", Json::array())) {
      if (left == 0) break;
      output.line(for_people(row));
      --left;
    }
    damaged += answer->value("damaged", std::uint64_t{0});
    const auto next = answer->find("next");
    if (next == answer->end() || next->is_null()) break;
    arguments["after"] = *next;
    if (const auto flushed = output.flush(); !flushed) return report(flushed.error()); // a page at a time
  }
  return finish(output, damaged == 0 ? ExitCode::ok : report_damaged(damaged));
}

ExitCode run_pending_show(const PendingShowOptions &options, Output &output) {
  auto key = key_of(options.job);
  if (!key) return report(key.error());
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  const auto answer = run_query(options.target, "pending show", *key, deadline);
  if (!answer) return report(answer.error());
  if (!answer->value("found", false)) {
    (*key)["found"] = false;
    output.line(*key);
    return finish(output, ExitCode::no);
  }
  output.line(with_job(for_people(*answer), *answer));
  return finish(output, ExitCode::ok);
}

ExitCode run_pending_resolve(const PendingResolveOptions &options, Output &output) {
  const auto request = resolution(options);
  if (!request) return report(request.error());
  ChangeSession session(options.data);
  const auto answer = session.ask("pending resolve", *request, std::chrono::steady_clock::now() + options.deadline);
  const bool not_held = !answer && answer.error().code == ErrorCode::not_found && session.has_answered();
  if (!answer && !not_held) return report(answer.error());
  Json line = *key_of(options.job);
  line["outcome"] = not_held ? Json(name_of(ErrorCode::not_found)) : answer->at("outcome");
  line["resolved"] = !not_held;
  if (not_held) {
    line["detail"] = session.was_repeated()
                         ? "the request was made twice, and the first may have done it: see onced audit"
                         : answer.error().cause;
  }
  output.line(line);
  return finish(output, not_held ? ExitCode::no : ExitCode::ok);
}

} // namespace onced::tools
