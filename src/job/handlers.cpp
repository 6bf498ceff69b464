#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.hpp"
#include "job/relayed_job.hpp"
#include "onced/handler.hpp"
#include "onced/limits.hpp"

namespace onced {
namespace {

HandlerResult call(const InlineHandler &handler, const Job &job) {
  try {
    return handler({job.operation_id, job.type, job.traceparent, job.payload});
  } catch (const std::exception &exception) {
    return Failed{std::string("the handler threw: ") + exception.what()};
  } catch (...) {
    return Failed{"the handler threw something that is no std::exception"};
  }
}

// A detail is text for replies and dead letters, whatever the handler put in it.
std::string presentable(std::string detail) {
  if (detail.size() <= limits::detail_bytes_max && utf8::valid(detail)) return detail;
  return utf8::repaired(detail, limits::detail_bytes_max);
}

// Cause and remedy.
using Wrong = std::optional<std::pair<std::string, std::string>>;

Wrong wrong_time(std::string_view name, std::chrono::milliseconds time, std::chrono::milliseconds least) {
  if (time >= least && time <= limits::handler_time_max) return {};
  return {{"its " + std::string(name) + " is " + std::to_string(time.count()) + " ms",
           "give " + std::to_string(least.count()) + " ms to 24 hours"}};
}

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

// What execve would cut short, or take for something else.
Wrong wrong_command(const HandlerCommand *command) {
  if (command == nullptr) return {};
  if (command->arguments.empty() || command->arguments.front().empty()) {
    return {{"a command of it names no program", "name a program"}};
  }
  if (std::any_of(command->arguments.begin(), command->arguments.end(), has_nul)) {
    return {{"an argument of its command has a NUL", "write it without"}};
  }
  for (const auto &[name, value] : command->environment) {
    if (name.empty()) return {{"a variable of its environment has no name", "name it"}};
    if (has_nul(name) || has_nul(value)) {
      return {{"a variable of its environment has a NUL", "write its name and its value without"}};
    }
    if (name.find('=') != std::string::npos) {
      return {{"the name of a variable of its environment, '" + name + "', has a '='", "name it without"}};
    }
  }
  return {};
}

template <class Handler> bool is_missing(const Handler &handler) {
  const auto *function = std::get_if<0>(&handler);
  return function != nullptr && !*function;
}

Wrong wrong_effect(const QueuedType &type) {
  if (type.owner.size() > limits::audit_by_bytes_max || !utf8::valid(type.owner)) {
    return {{"its owner is not at most " + std::to_string(limits::audit_by_bytes_max) + " bytes of UTF-8",
             "name who decides about an unknown effect"}};
  }
  if (type.policy == EffectPolicy::query && is_missing(type.reconcile)) {
    return {{"its policy is to query, and it has no reconcile", "give one, or another policy"}};
  }
  return {};
}

Wrong what_is_wrong_with(const QueuedType &type) {
  if (type.max_receive_count == 0) {
    return {{"its max_receive_count is 0", "let its jobs be handed over at least once"}};
  }
  if (type.concurrency == 0 || type.concurrency > limits::handler_concurrency_max) {
    return {{"its concurrency is " + std::to_string(type.concurrency),
             "give 1 to " + std::to_string(limits::handler_concurrency_max)}};
  }
  if (auto wrong = wrong_command(std::get_if<HandlerCommand>(&type.handler))) return wrong;
  if (auto wrong = wrong_command(std::get_if<HandlerCommand>(&type.reconcile))) return wrong;
  if (auto wrong = wrong_effect(type)) return wrong;
  using std::chrono::milliseconds;
  if (auto wrong = wrong_time("visibility timeout", type.visibility_timeout, milliseconds(10))) return wrong;
  if (auto wrong = wrong_time("deadline", type.deadline, milliseconds(1))) return wrong;
  if (auto wrong = wrong_time("grace", type.grace, milliseconds(0))) return wrong;
  if (auto wrong = wrong_time("backoff", type.backoff, milliseconds(1))) return wrong;
  return wrong_time("longest backoff", type.backoff_max, type.backoff);
}

} // namespace

HandlerResult in_canonical_form(Done done, JobParser &parser) {
  const auto canonical = parser.canonical(done.result);
  if (!canonical) {
    return Failed{"the result has no canonical form: " + std::string(name_of(canonical.error()))};
  }
  if (canonical->size() > limits::result_bytes_max) {
    return Failed{"the result has " + std::to_string(canonical->size()) + " bytes, more than " +
                  std::to_string(limits::result_bytes_max)};
  }
  done.result.assign(*canonical);
  if (auto defect = defect_of(done.messages, parser)) return Failed{std::move(*defect)};
  return done;
}

Result<void> Handlers::check_type(std::string_view type) const {
  if (type.empty() || type.size() > limits::type_bytes_max) {
    return tl::unexpected(Error{ErrorCode::usage, "type \"" + utf8::repaired(type, limits::type_bytes_max) + "\"",
                                "has " + std::to_string(type.size()) + " bytes",
                                "name it with 1 to " + std::to_string(limits::type_bytes_max) + " bytes"});
  }
  if (inline_.find(type) != inline_.end() || queued_.find(type) != queued_.end()) {
    return tl::unexpected(Error{ErrorCode::usage, "type \"" + std::string(type) + "\"", "has a handler already",
                                "register each type once, as inline or as queued"});
  }
  return {};
}

Result<void> Handlers::add_inline(std::string type, InlineHandler handler) {
  if (auto checked = check_type(type); !checked) return checked;
  inline_.emplace(std::move(type), std::move(handler));
  return {};
}

Result<void> Handlers::add_queued(QueuedType type) {
  if (auto checked = check_type(type.type); !checked) return checked;
  if (const auto wrong = what_is_wrong_with(type)) {
    return tl::unexpected(Error{ErrorCode::usage, "type \"" + type.type + "\"", wrong->first, wrong->second});
  }
  std::string name = type.type;
  queued_.emplace(std::move(name), std::move(type));
  return {};
}

const QueuedType *Handlers::queued(std::string_view type) const {
  const auto found = queued_.find(type);
  return found != queued_.end() ? &found->second : nullptr;
}

HandlerResult Handlers::run(const Job &job, JobParser &parser) const {
  const auto found = inline_.find(job.type);
  if (found == inline_.end()) return Invalid{presentable("unknown type \"" + job.type + "\"")};
  HandlerResult result = call(found->second, job);
  if (auto *done = std::get_if<Done>(&result)) return in_canonical_form(std::move(*done), parser);
  if (auto *invalid = std::get_if<Invalid>(&result)) invalid->detail = presentable(std::move(invalid->detail));
  if (auto *failed = std::get_if<Failed>(&result)) failed->detail = presentable(std::move(failed->detail));
  return result;
}

Handlers built_in_handlers() {
  Handlers handlers;
  static_cast<void>(handlers.add_inline("sum", sum_handler)); // an empty registry takes any name
  return handlers;
}

} // namespace onced
