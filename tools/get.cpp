#include "get.hpp"

#include "onced/limits.hpp"

namespace onced::tools {
namespace {

Result<void> check(std::string concerns, const std::string &text, std::size_t bytes_max) {
  if (!text.empty() && text.size() <= bytes_max) return {};
  return tl::unexpected(Error{ErrorCode::usage, std::move(concerns),
                              "not 1 to " + std::to_string(bytes_max) + " bytes long", "see onced get --help"});
}

} // namespace

Result<Json> key_of(const JobAddress &address) {
  const auto id = address.by_effect_key ? check("the effect key", address.id, limits::effect_key_bytes_max)
                                        : check("OPERATION_ID", address.id, limits::operation_id_bytes_max);
  if (!id) return tl::unexpected(id.error());
  if (const auto type = check("--type", address.type, limits::type_bytes_max); !type) {
    return tl::unexpected(type.error());
  }
  if (address.by_effect_key) return Json{{"effect_key", address.id}};
  return Json{{"operation_id", address.id}, {"type", address.type}};
}

ExitCode run_get(const GetOptions &options, Output &output) {
  const auto key = key_of(options.job);
  if (!key) return report(key.error());
  const MonotonicTime deadline = std::chrono::steady_clock::now() + options.target.deadline;
  const auto answer = run_query(options.target, "get", *key, deadline);
  if (!answer) return report(answer.error());
  if (answer->value("found", false)) {
    output.line(for_people(*answer));
  } else {
    output.line({{options.job.by_effect_key ? "effect_key" : "operation_id", options.job.id}, {"found", false}});
  }
  if (const auto flushed = output.flush(); !flushed) return report(flushed.error());
  return answer->value("phase", "") == "committed" ? ExitCode::ok : ExitCode::no;
}

} // namespace onced::tools
