#include "dead_letters.hpp"

#include "onced/ids.hpp"

namespace onced::tools {
namespace {

constexpr const char *query_list = "dead-letters list";
constexpr const char *query_show = "dead-letters show";

// Prints one page and returns the id after which the next begins; nothing when this was the last.
Result<std::optional<Json>> print_page(QuerySession &session, const Json &arguments, MonotonicTime deadline,
                                       std::uint64_t &left, Output &output) {
  const auto answer = session.ask(query_list, arguments, deadline);
  if (!answer) return tl::unexpected(answer.error());
  const Json rows = answer->value("rows", Json::array());
  for (const Json &row : rows) {
    if (left == 0) return std::nullopt;
    output.line(for_people(row));
    --left;
  }
  const auto next = answer->find("next");
  if (next != answer->end()) return next->is_null() ? std::nullopt : std::optional<Json>(*next);
  return rows.empty() ? std::nullopt : std::optional<Json>(rows.back().at("id"));
}

} // namespace

ExitCode run_dead_letters_list(const DeadLettersListOptions &options, Output &output) {
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  std::uint64_t left = options.limit.value_or(UINT64_MAX);
  Json arguments = Json::object();
  if (!options.reason.empty()) arguments["reason"] = options.reason;
  if (!options.type.empty()) arguments["type"] = options.type;
  QuerySession session(options.target);
  while (left != 0 && !output.failed()) {
    const auto next = print_page(session, arguments, deadline, left, output);
    if (!next) return finish(output, report(next.error()));
    if (!*next) break;
    arguments["after"] = **next;
    if (const auto flushed = output.flush(); !flushed) return report(flushed.error()); // a page at a time
  }
  return finish(output, ExitCode::ok);
}

ExitCode run_dead_letters_show(const DeadLettersShowOptions &options, Output &output) {
  const auto bytes = from_hex(options.id);
  const auto id = bytes ? DeadLetterId::from(*bytes) : std::nullopt;
  if (!id) {
    return report({ErrorCode::usage, "'" + options.id + "'", "not the id of a dead letter",
                   "give the 32 hexadecimal characters that onced dead-letters list prints"});
  }
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  const auto answer = run_query(options.target, query_show, {{"id", to_hex(id->view())}}, deadline);
  if (!answer) return report(answer.error());
  if (!answer->value("found", false)) {
    output.line({{"id", to_hex(id->view())}, {"found", false}});
    return finish(output, ExitCode::no);
  }
  output.line(with_job(for_people(*answer), *answer));
  return finish(output, ExitCode::ok);
}

} // namespace onced::tools
