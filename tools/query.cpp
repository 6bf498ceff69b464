#include "query.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "admin/queries.hpp"
#include "onced/ids.hpp"
#include "onced/limits.hpp"
#include "wire/query.hpp"

namespace onced::tools {
namespace {

using std::chrono::milliseconds;

// A worker may be starting or stopping: its lock and its socket are looked at again after these.
constexpr milliseconds pause_between_looks{50};
constexpr milliseconds first_patience{2000};

Bytes bytes_of(const Json::binary_t &binary) {
  return {binary.begin(), binary.end()};
}

Bytes request_of(std::string_view name, const Json &arguments) {
  Json request{{"query", name}};
  request.update(arguments);
  Bytes bytes;
  Json::to_msgpack(request, bytes);
  return bytes;
}

ErrorCode code_named(std::string_view name) {
  for (int number = 0; number <= static_cast<int>(ErrorCode::internal); ++number) {
    const auto code = static_cast<ErrorCode>(number);
    if (name_of(code) == name) return code;
  }
  return ErrorCode::internal;
}

std::string text_in(const Json &object, const char *name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

Result<Json> decode(BytesView answer) {
  auto value = json_of_messagepack(answer, Binaries::kept);
  if (!value || !value->is_object()) {
    return tl::unexpected(
        Error{ErrorCode::internal, "the answer", "it is no MessagePack map", "use a command of the worker's version"});
  }
  const auto error = value->find("error");
  if (error == value->end()) return std::move(*value);
  return tl::unexpected(Error{code_named(text_in(*error, "code")), text_in(*error, "concerns"),
                              text_in(*error, "cause"), text_in(*error, "remedy")});
}

// Either the lock is free, and the database is ours, so that `ask_itself` answers, or a worker holds it, for which it
// gives nothing. It may change hands while we ask, so we look again; ever later, as an answer to `count` takes as long
// as the scan. `repeated` is set when the worker is asked again.
template <class AskItself>
Result<Bytes> ask_data(const std::filesystem::path &directory, BytesView request, MonotonicTime deadline,
                       AskItself ask_itself, bool &repeated) {
  milliseconds patience = first_patience;
  for (;; repeated = true) {
    Result<std::optional<Bytes>> own = ask_itself();
    if (!own) return tl::unexpected(own.error());
    if (*own) return std::move(**own);
    const MonotonicTime until = std::min(deadline, std::chrono::steady_clock::now() + patience);
    auto answer = wire::ask_directory(directory, request, until);
    if (answer) return answer;
    const ErrorCode code = answer.error().code;
    if (code != ErrorCode::timed_out && code != ErrorCode::not_found) return answer;
    if (std::chrono::steady_clock::now() >= deadline) {
      return tl::unexpected(Error{ErrorCode::timed_out, directory.string(),
                                  "its worker did not answer before the deadline", "try again, or raise --deadline"});
    }
    if (code == ErrorCode::timed_out) patience *= 2;
    std::this_thread::sleep_for(pause_between_looks);
  }
}

} // namespace

Result<Json> ChangeSession::ask(std::string_view name, const Json &arguments, MonotonicTime deadline) {
  const Bytes request = request_of(name, arguments);
  const auto ask_itself = [&]() -> Result<std::optional<Bytes>> {
    const auto held = hold();
    if (!held) return tl::unexpected(held.error());
    if (!*held) return std::nullopt;
    return answer(name, request);
  };
  repeated_ = false;
  const auto bytes = ask_data(data_, request, deadline, ask_itself, repeated_);
  if (!bytes) return tl::unexpected(bytes.error());
  answered_ = true;
  return decode(*bytes);
}

// True: the database is ours. False: a worker holds it.
Result<bool> ChangeSession::hold() {
  if (store_) return true;
  {
    // First as a reader would: the lock of a worker is made, with its directory, where there is none.
    const auto looked = DirectoryLock::take(data_, DirectoryLock::Mode::shared);
    if (!looked && looked.error().code == ErrorCode::locked) return false;
    if (!looked) return tl::unexpected(looked.error());
  }
  auto lock = DirectoryLock::take(data_, DirectoryLock::Mode::exclusive);
  if (!lock && lock.error().code == ErrorCode::locked) return false;
  if (!lock) return tl::unexpected(lock.error());
  lock_.emplace(std::move(*lock));
  StoreOptions options;
  options.directory = lock_->directory();
  options.lock = &*lock_;
  options.create = false;
  auto store = Store::open(options, clock_, random_);
  if (!store) {
    lock_.reset();
    return tl::unexpected(store.error());
  }
  store_ = std::move(*store);
  return true;
}

Bytes ChangeSession::answer(std::string_view name, BytesView request) {
  const admin::Query *query = admin::find_query(name);
  if (query == nullptr || !query->changes()) return admin::answer_query(*store_, request, admin::Asker::directory);
  std::optional<Error> failure; // it ends the command, as its answer says what it is
  return admin::answer_change(*store_, handlers_, request, failure);
}

// True: the database is ours to read. False: a worker holds it.
Result<bool> QuerySession::hold() {
  if (store_) return true;
  auto lock = DirectoryLock::take(*target_.data, DirectoryLock::Mode::shared);
  if (!lock && lock.error().code == ErrorCode::locked) return false;
  if (!lock) return tl::unexpected(lock.error());
  StoreOptions options;
  options.directory = lock->directory();
  options.read_only = true;
  auto store = Store::open(options, clock_, random_);
  if (!store) return tl::unexpected(store.error());
  lock_.emplace(std::move(*lock));
  store_ = std::move(*store);
  return true;
}

Result<Bytes> QuerySession::ask_data(BytesView request, MonotonicTime deadline) {
  const auto ask_itself = [&]() -> Result<std::optional<Bytes>> {
    const auto held = hold();
    if (!held) return tl::unexpected(held.error());
    if (!*held) return std::nullopt;
    return admin::answer_query(*store_, request, admin::Asker::directory);
  };
  bool repeated = false;
  return tools::ask_data(*target_.data, request, deadline, ask_itself, repeated);
}

Result<Json> QuerySession::ask(std::string_view name, const Json &arguments, MonotonicTime deadline) {
  if (target_.data.has_value() == target_.replies.has_value()) {
    return tl::unexpected(Error{ErrorCode::usage, "--data, --replies",
                                target_.data ? "both are given" : "none is given", "give exactly one of them"});
  }
  if (std::chrono::steady_clock::now() >= deadline) {
    return tl::unexpected(Error{ErrorCode::timed_out, target_.data ? target_.data->string() : *target_.replies,
                                "the deadline has passed", "raise --deadline"});
  }
  const Bytes request = request_of(name, arguments);
  const auto answer = target_.data ? ask_data(request, deadline) : wire::ask(*target_.replies, request, deadline);
  if (!answer) return tl::unexpected(answer.error());
  return decode(*answer);
}

Result<Json> run_query(const QueryTarget &target, std::string_view name, const Json &arguments,
                       MonotonicTime deadline) {
  return QuerySession(target).ask(name, arguments, deadline);
}

Json iso_time(std::int64_t microseconds) {
  if (microseconds == 0) return nullptr;
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(microseconds)};
  constexpr std::int64_t year_one = -62'135'596'800'000'000;
  constexpr std::int64_t year_ten_thousand = 253'402'300'800'000'000;
  if (microseconds < year_one || microseconds >= year_ten_thousand) return microseconds;
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

namespace {

// Bytes in hexadecimal, at any depth.
Json printable(const Json &value) {
  if (value.is_binary()) return to_hex(bytes_of(value.get_binary()));
  if (!value.is_structured()) return value;
  Json out = value;
  for (auto &member : out)
    member = printable(member);
  return out;
}

} // namespace

Result<void> check_audited(const std::string &by, const std::string &why) {
  const auto check = [](const char *option, const std::string &text, std::size_t bytes_max) -> Result<void> {
    if (!text.empty() && text.size() <= bytes_max) return {};
    return tl::unexpected(Error{ErrorCode::usage, option,
                                text.empty() ? "it is missing" : "it has " + std::to_string(text.size()) + " bytes",
                                "say who makes the change with --by (1 to 255 bytes) and why with --why (1 to 1024): "
                                "the audit keeps both"});
  };
  if (auto checked = check("--by", by, limits::audit_by_bytes_max); !checked) return checked;
  return check("--why", why, limits::audit_why_bytes_max);
}

Json for_people(const Json &row) {
  static constexpr std::array<std::string_view, 3> ids{"operation_id", "type", "effect_key"};
  static constexpr std::string_view time_suffix = "_at_us";
  Json out = Json::object();
  for (const auto &[name, value] : row.items()) {
    const bool is_time = name.size() > time_suffix.size() &&
                         name.compare(name.size() - time_suffix.size(), std::string::npos, time_suffix) == 0;
    if (is_time && value.is_number_integer()) {
      out[name.substr(0, name.size() - 3)] = iso_time(value.get<std::int64_t>());
    } else if (value.is_string() && value.get_ref<const std::string &>().empty() &&
               std::find(ids.begin(), ids.end(), name) != ids.end()) {
      out[name] = nullptr;
    } else {
      out[name] = printable(value);
    }
  }
  return out;
}

Json with_job(Json line, const Json &answer) {
  const auto bytes = answer.find("bytes");
  if (bytes == answer.end() || !bytes->is_binary()) return line;
  if (auto job = json_of_messagepack(bytes_of(bytes->get_binary()), Binaries::refused)) line["job"] = std::move(*job);
  return line;
}

} // namespace onced::tools
