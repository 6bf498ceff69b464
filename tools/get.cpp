#include "get.hpp"

#include "onced/limits.hpp"

namespace onced::tools {
namespace {

Result<void> check(const GetOptions &options) {
  const std::size_t bytes_max = options.by_effect_key ? limits::effect_key_bytes_max : limits::operation_id_bytes_max;
  if (options.id.empty() || options.id.size() > bytes_max) {
    return tl::unexpected(Error{ErrorCode::usage, options.by_effect_key ? "the effect key" : "OPERATION_ID",
                                "not 1 to " + std::to_string(bytes_max) + " bytes long", "see onced get --help"});
  }
  if (options.type.empty() || options.type.size() > limits::type_bytes_max) {
    return tl::unexpected(Error{ErrorCode::usage, "--type",
                                "not 1 to " + std::to_string(limits::type_bytes_max) + " bytes long",
                                "see onced get --help"});
  }
  return {};
}

Json key_of(const GetOptions &options) {
  if (options.by_effect_key) return {{"effect_key", options.id}};
  return {{"type", options.type}, {"operation_id", options.id}};
}

} // namespace

ExitCode run_get(const GetOptions &options, Output &output) {
  if (const auto checked = check(options); !checked) return report(checked.error());
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  const auto answer = run_query(options.target, "get", key_of(options), deadline);
  if (!answer) return report(answer.error());
  const bool found = answer->value("found", false);
  if (found) {
    output.line(for_people(*answer));
  } else {
    output.line({{options.by_effect_key ? "effect_key" : "operation_id", options.id}, {"found", false}});
  }
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return found ? ExitCode::ok : ExitCode::no;
}

} // namespace onced::tools
