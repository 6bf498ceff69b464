#include "wire/query.hpp"

#include <map>
#include <optional>

#include <zmq.hpp>

#include "base/check.hpp"
#include "base/messagepack.hpp"
#include "base/utf8.hpp"
#include "onced/limits.hpp"
#include "store/job_queue.hpp"
#include "wire/control_endpoint.hpp"
#include "wire/messages.hpp"
#include "wire/sockets.hpp"

namespace onced::wire {
namespace {

using messagepack::TokenReader;
using messagepack::Writer;

constexpr std::size_t request_tokens_max = 16;

constexpr std::string_view query_redrive = "dead-letters redrive";
constexpr std::string_view query_purge = "dead-letters purge";
constexpr std::string_view query_resolve = "pending resolve";
constexpr std::string_view query_audit = "audit";
constexpr std::string_view query_verify = "verify";

Error request_error(const std::string &concerns, const std::string &cause) {
  return {.code = ErrorCode::usage, .concerns = concerns, .cause = cause, .remedy = "see docs/protocol.md, Queries"};
}

// A request: names and values that are strings, and a few of another kind.
struct Request {
  std::map<std::string, std::string, std::less<>> texts;
  std::optional<std::uint64_t> rows;
  std::optional<std::uint64_t> after_number; // of the audit
  std::optional<Bytes> result;               // of a resolution
  bool held_only = false;                    // of queued jobs

  [[nodiscard]] const std::string *text(std::string_view name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? nullptr : &found->second;
  }
};

std::optional<Request> read_request(BytesView bytes) {
  std::vector<messagepack::Token> tokens;
  if (!messagepack::tokenize(bytes, tokens, request_tokens_max)) return std::nullopt;
  TokenReader reader(tokens);
  Request request;
  for (std::uint64_t left = reader.map(); left > 0 && reader.ok(); --left) {
    const std::string name(reader.string());
    const messagepack::Token *value = reader.peek();
    if (name == "rows") {
      request.rows = reader.positive();
    } else if (name == "result") {
      request.result = reader.binary();
    } else if (name == "held") {
      request.held_only = reader.boolean();
    } else if (name == "after" && value != nullptr && value->kind == messagepack::Kind::positive) {
      request.after_number = reader.positive();
    } else {
      request.texts[name] = std::string(reader.string());
    }
  }
  if (!reader.at_end()) return std::nullopt;
  return request;
}

std::uint64_t microseconds_of(WallTime time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

Writer &write_text(Writer &writer, std::string_view name, std::string_view text) {
  writer.string(name);
  return text.empty() ? writer.nil() : writer.string(text);
}

Writer &write_digest(Writer &writer, std::string_view name, const std::optional<Digest> &digest) {
  writer.string(name);
  return digest ? writer.string(to_hex(digest->view())) : writer.nil();
}

// 3 pairs.
Writer &write_ids(Writer &writer, std::string_view operation_id, std::string_view type, std::string_view effect_key) {
  write_text(writer, "operation_id", operation_id);
  write_text(writer, "type", type);
  return write_text(writer, "effect_key", effect_key);
}

// Adds a pair to a map of fewer than 2^16 pairs.
void add_pair(Bytes &map, std::string_view name, std::string_view value) {
  constexpr unsigned fixmap = 0x80;
  const auto head = static_cast<unsigned char>(map.front());
  const bool is_fixmap = (head & 0xF0U) == fixmap;
  std::size_t pairs = head & 0x0FU;
  if (!is_fixmap) pairs = (std::size_t{static_cast<unsigned char>(map[1])} << 8U) | static_cast<unsigned char>(map[2]);
  ONCED_CHECK(is_fixmap || head == 0xDEU);
  Bytes out;
  Writer(out).map(pairs + 1).raw(BytesView(map).substr(is_fixmap ? 1 : 3)).string(name).string(value);
  map = std::move(out);
}

// --- One key ------------------------------------------------------------------------------------------------------

Result<Key> requested_key(const Request &request) {
  const std::string &query = request.texts.at("query");
  const std::string *effect_key = request.text("effect_key");
  const std::string *operation_id = request.text("operation_id");
  const std::string *type = request.text("type");
  if (effect_key != nullptr && !effect_key->empty() && effect_key->size() <= limits::effect_key_bytes_max) {
    return key_of_effect(*effect_key);
  }
  if (operation_id == nullptr || operation_id->empty() || operation_id->size() > limits::operation_id_bytes_max) {
    return tl::unexpected(request_error(query, "it needs an operation id or an effect key of 1 to 255 bytes"));
  }
  const std::string_view asked_type = type != nullptr ? std::string_view(*type) : std::string_view("sum");
  if (asked_type.empty() || asked_type.size() > limits::type_bytes_max) {
    return tl::unexpected(request_error(query, "a type has 1 to 64 bytes"));
  }
  return key_of_operation(asked_type, *operation_id);
}

Bytes answer_absent() {
  Bytes out;
  Writer(out).map(1).string("found").boolean(false);
  return out;
}

Bytes encode_row(const OperationRow &row) {
  Bytes out;
  Writer writer(out);
  writer.map(11).string("found").boolean(true);
  writer.string("operation_id").string(row.operation_id).string("type").string(row.type);
  write_text(writer, "effect_key", row.effect_key);
  writer.string("phase").string(name_of(row.phase)).string("result");
  row.result.empty() ? writer.nil() : writer.raw(row.result);
  write_digest(writer, "digest", row.digest);
  writer.string("issued_at_us").positive(microseconds_of(row.issued_at));
  writer.string("committed_at_us").positive(microseconds_of(row.committed_at));
  writer.string("worker_build").string(row.worker_build);
  writer.string("durability").string(name_of(row.durability));
  return out;
}

Result<Bytes> answer_get(const Store &store, const Request &request) {
  const auto key = requested_key(request);
  if (!key) return tl::unexpected(key.error());
  const auto row = store.get(*key);
  if (!row) return tl::unexpected(row.error());
  return row->has_value() ? encode_row(**row) : answer_absent();
}

// --- count --------------------------------------------------------------------------------------------------------

Result<Bytes> answer_count(const Store &store) {
  const auto counts = store.count();
  if (!counts) return tl::unexpected(counts.error());
  Bytes out;
  Writer(out)
      .map(4)
      .string("results")
      .positive(counts->results)
      .string("dead_letters")
      .positive(counts->dead_letters)
      .string("pending")
      .positive(counts->pending)
      .string("relayed")
      .positive(counts->relayed);
  return out;
}

// --- dead letters -------------------------------------------------------------------------------------------------

void write_errors(Writer &writer, const std::vector<std::string> &errors) {
  writer.string("errors").array(errors.size());
  for (const std::string &error : errors)
    writer.string(error);
}

// Who sent it, `sender_pairs` of them: by its handle, and who may enter the directory is told the id too.
std::size_t sender_pairs(Asker asker) {
  return asker == Asker::directory ? 3 : 2;
}
void write_sender(Writer &writer, const SenderId &sender, Sequence sequence, Asker asker) {
  write_text(writer, "sender", handle_of(sender));
  if (asker == Asker::directory) {
    write_text(writer, "sender_id", sender == SenderId{} ? std::string() : to_hex(sender.view()));
  }
  writer.string("sequence").positive(number_of(sequence));
}

// A whole message may hold the id of its sender, which is not for the network.
bool may_show_bytes(const DeadLetter &letter, Asker asker) {
  const bool is_message = letter.detail == message_malformed || letter.detail == message_multipart;
  return asker == Asker::directory || !letter.operation_id.empty() || !is_message;
}

// What is told of a dead letter in a list and beside its bytes: 9 pairs.
void write_summary(Writer &writer, const DeadLetter &letter) {
  writer.string("id").string(to_hex(letter.id.view())).string("reason").string(traits_of(letter.reason).name);
  write_text(writer, "detail", letter.detail);
  write_ids(writer, letter.operation_id, letter.type, letter.effect_key);
  writer.string("deliveries").positive(letter.deliveries);
  writer.string("first_at_us").positive(microseconds_of(letter.first_at));
  writer.string("last_at_us").positive(microseconds_of(letter.last_at));
}

Result<DeadLetterId> requested_id(const Request &request, std::string_view name) {
  const std::string *hex = request.text(name);
  const auto bytes = hex != nullptr ? from_hex(*hex) : std::nullopt;
  const auto id = bytes ? DeadLetterId::from(*bytes) : std::nullopt;
  if (!id)
    return tl::unexpected(request_error(std::string(name), "an id of a dead letter has 32 hexadecimal characters"));
  return *id;
}

Result<DeadLetterFilter> requested_filter(const Request &request) {
  DeadLetterFilter filter;
  if (const std::string *type = request.text("type")) filter.type = *type;
  const std::string *reason = request.text("reason");
  if (reason == nullptr) return filter;
  for (const OutcomeTraits &traits : outcome_table) {
    if (traits.name == *reason && traits.final && !traits.success) filter.reason = traits.outcome;
  }
  if (!filter.reason) return tl::unexpected(request_error("reason", "it is conflict, invalid, failed or expired"));
  return filter;
}

std::uint64_t requested_rows(const Request &request) {
  return std::min<std::uint64_t>(request.rows.value_or(limits::rows_per_answer_max), limits::rows_per_answer_max);
}

Result<Bytes> answer_list(const Store &store, const Request &request) {
  std::optional<DeadLetterId> after;
  if (request.text("after") != nullptr || request.after_number) {
    const auto id = requested_id(request, "after");
    if (!id) return tl::unexpected(id.error());
    after = *id;
  }
  const auto filter = requested_filter(request);
  if (!filter) return tl::unexpected(filter.error());
  const auto page = store.find_dead_letters(requested_rows(request), after, *filter);
  if (!page) return tl::unexpected(page.error());
  Bytes out;
  Writer writer(out);
  // A filtered page may be empty before the end; of any other the last row is where it goes on.
  const bool filtered = filter->reason || !filter->type.empty();
  writer.map(filtered ? 2 : 1).string("rows").array(page->letters.size());
  for (const DeadLetter &letter : page->letters) {
    writer.map(letter.effect_unknown ? 10 : 9);
    write_summary(writer, letter);
    if (letter.effect_unknown) writer.string("effect_unknown").boolean(true);
  }
  if (!filtered) return out;
  writer.string("next");
  page->next ? writer.string(to_hex(page->next->view())) : writer.nil();
  return out;
}

Result<Bytes> answer_show(const Store &store, const Request &request, Asker asker) {
  const auto id = requested_id(request, "id");
  if (!id) return tl::unexpected(id.error());
  const auto letter = store.dead_letter(*id);
  if (!letter) return tl::unexpected(letter.error());
  if (!letter->has_value()) return answer_absent();
  const DeadLetter &row = **letter;
  Bytes out;
  Writer writer(out);
  writer.map(19 + sender_pairs(asker)).string("found").boolean(true);
  write_summary(writer, row);
  writer.string("bytes");
  may_show_bytes(row, asker) ? writer.binary(row.bytes) : writer.nil();
  write_sender(writer, row.sender, row.sequence, asker);
  writer.string("issued_at_us").positive(microseconds_of(row.issued_at));
  writer.string("receives").positive(row.receives).string("redrives").positive(row.redrives);
  write_digest(writer, "stored_digest", row.stored_digest);
  write_digest(writer, "offered_digest", row.offered_digest);
  write_errors(writer, row.errors);
  writer.string("effect_unknown").boolean(row.effect_unknown);
  writer.string("relayed").boolean(!row.relay_key.empty());
  return out;
}

// --- queued jobs --------------------------------------------------------------------------------------------------

// What is told of a queued job in a list: 13 pairs with its last error, and 12 without.
void write_queued(Writer &writer, BytesView key, const store::QueueRow &row) {
  write_ids(writer, row.operation_id, row.type, row.effect_key);
  writer.string("idempotency_key").string(idempotency_key_of(key));
  writer.string("state").string(name_of(row.state));
  write_text(writer, "owner", row.owner);
  writer.string("effect_unknown").boolean(row.effect_unknown);
  writer.string("receives").positive(row.receives).string("receives_total").positive(row.receives_total);
  writer.string("redrives").positive(row.redrives);
  writer.string("accepted_at_us").positive(microseconds_of(row.accepted_at));
  writer.string("changed_at_us").positive(microseconds_of(row.changed_at));
}

Result<Bytes> answer_pending_list(const Store &store, const Request &request) {
  const std::string *hex = request.text("after");
  const auto after = hex != nullptr ? from_hex(*hex) : std::optional<Bytes>(Bytes());
  if (!after || request.after_number) return tl::unexpected(request_error("after", "it is a key in hexadecimal"));
  const std::string *type = request.text("type");
  const auto page = store.queue().find_queued(
      *after, requested_rows(request),
      {.held_only = request.held_only, .type = type != nullptr ? std::string_view(*type) : std::string_view()});
  if (!page) return tl::unexpected(page.error());
  Bytes out;
  Writer writer(out);
  writer.map(3).string("rows").array(page->entries.size());
  for (const store::QueueEntry &entry : page->entries) {
    writer.map(13);
    write_queued(writer, entry.key, entry.row);
    write_text(writer, "error", entry.row.errors.empty() ? std::string_view() : entry.row.errors.back());
  }
  writer.string("next");
  page->next ? writer.string(to_hex(*page->next)) : writer.nil();
  writer.string("damaged").positive(page->damaged);
  return out;
}

Result<Bytes> answer_pending_show(const Store &store, const Request &request, Asker asker) {
  const auto key = requested_key(request);
  if (!key) return tl::unexpected(key.error());
  const auto found = store.queue().find(key->bytes);
  if (!found) return tl::unexpected(found.error());
  if (!found->has_value()) return answer_absent();
  const store::QueueRow &row = **found;
  Bytes out;
  Writer writer(out);
  writer.map(17 + sender_pairs(asker)).string("found").boolean(true);
  write_queued(writer, key->bytes, row);
  write_errors(writer, row.errors);
  write_text(writer, "token", row.token == FencingToken{} ? std::string() : text_of(row.token));
  writer.string("bytes").binary(row.bytes);
  write_sender(writer, row.sender, row.sequence, asker);
  writer.string("issued_at_us").positive(microseconds_of(row.issued_at));
  return out;
}

// --- changes ------------------------------------------------------------------------------------------------------

Operator requested_operator(const Request &request) {
  const std::string *by = request.text("by");
  const std::string *why = request.text("why");
  return {.by = by != nullptr ? *by : std::string(), .why = why != nullptr ? *why : std::string()};
}

Result<Bytes> answer_redrive(Store &store, const Handlers &handlers, const Request &request) {
  const auto id = requested_id(request, "id");
  if (!id) return tl::unexpected(id.error());
  const auto redriven = store.redrive(*id, handlers, requested_operator(request));
  if (!redriven) return tl::unexpected(redriven.error());
  const Settlement &settlement = redriven->settlement;
  Bytes out;
  Writer writer(out);
  writer.map(5).string("id").string(to_hex(id->view()));
  writer.string("outcome").string(traits_of(settlement.outcome).name);
  write_text(writer, "detail", settlement.detail);
  writer.string("removed").boolean(redriven->removed);
  writer.string("now_id");
  redriven->removed ? writer.nil() : writer.string(to_hex(redriven->id.view()));
  return out;
}

Result<Bytes> answer_purge(Store &store, const Request &request) {
  const auto id = requested_id(request, "id");
  if (!id) return tl::unexpected(id.error());
  const auto purged = store.purge(*id, requested_operator(request));
  if (!purged) return tl::unexpected(purged.error());
  Bytes out;
  Writer(out).map(2).string("id").string(to_hex(id->view())).string("removed").boolean(true);
  return out;
}

// What the owner of a held job says of its effect: the result in canonical form, or nothing where it is absent.
Result<std::optional<Bytes>> requested_effect(const Request &request) {
  const std::string *effect = request.text("effect");
  const bool applied = effect != nullptr && *effect == "applied";
  const bool absent = effect != nullptr && *effect == "absent";
  if ((!applied && !absent) || applied != request.result.has_value()) {
    return tl::unexpected(request_error("effect", "it is applied, with a result, or absent, without one"));
  }
  if (absent) return std::optional<Bytes>();
  JobParser parser;
  HandlerResult result = in_canonical_form(Done{*request.result}, parser);
  if (const auto *failed = std::get_if<Failed>(&result)) {
    return tl::unexpected(request_error("result", failed->detail));
  }
  return std::optional<Bytes>(std::move(std::get<Done>(result).result));
}

Result<Bytes> answer_resolve(Store &store, const Request &request) {
  const auto key = requested_key(request);
  if (!key) return tl::unexpected(key.error());
  const auto result = requested_effect(request);
  if (!result) return tl::unexpected(result.error());
  const auto resolved = store.resolve(*key, *result, requested_operator(request));
  if (!resolved) return tl::unexpected(resolved.error());
  const Outcome outcome = result->has_value() ? Outcome::stored : Outcome::accepted;
  Bytes out;
  Writer(out).map(2).string("outcome").string(traits_of(outcome).name).string("resolved").boolean(true);
  return out;
}

// Whose change it was: a dead letter's, by its id, or that of a queued job, by what its key is made of.
void write_subject(Writer &writer, const AuditRow &row) {
  writer.string("id");
  row.dead_letter == DeadLetterId{} ? writer.nil() : writer.string(to_hex(row.dead_letter.view()));
  const KeyParts parts = parts_of_key(row.key).value_or(KeyParts{});
  write_ids(writer, parts.operation_id, parts.type, parts.effect_key);
}

Result<Bytes> answer_audit(const Store &store, const Request &request) {
  const auto rows = store.audit(requested_rows(request), request.after_number.value_or(0));
  if (!rows) return tl::unexpected(rows.error());
  Bytes out;
  Writer writer(out);
  writer.map(1).string("rows").array(rows->size());
  for (const AuditRow &row : *rows) {
    writer.map(10).string("number").positive(row.number).string("changed_at_us").positive(microseconds_of(row.at));
    writer.string("action").string(row.action);
    write_subject(writer, row);
    write_text(writer, "outcome", row.outcome);
    writer.string("by").string(row.by).string("why").string(row.why);
  }
  return out;
}

// --- verify -------------------------------------------------------------------------------------------------------

Result<Bytes> answer_verify(const Store &store) {
  const auto found = store.verify();
  if (!found) return tl::unexpected(found.error());
  Bytes out;
  Writer writer(out);
  writer.map(10).string("tables").positive(found->tables).string("table_bytes").positive(found->table_bytes);
  writer.string("operations").positive(found->operations).string("dead_letters").positive(found->dead_letters);
  writer.string("queued").positive(found->queued).string("relayed").positive(found->relayed);
  writer.string("audit_rows").positive(found->audit_rows).string("counters").positive(found->counters);
  writer.string("problems").positive(found->problems);
  writer.string("first_problems").array(found->first_problems.size());
  for (const Problem &problem : found->first_problems) {
    writer.map(3).string("where").string(problem.where).string("key");
    problem.key.empty() ? writer.nil() : writer.binary(problem.key);
    writer.string("what").string(problem.what);
  }
  return out;
}

// --- Which query --------------------------------------------------------------------------------------------------

Result<Request> named_request(BytesView bytes, std::string &name) {
  auto request = read_request(bytes);
  const std::string *query = request ? request->text("query") : nullptr;
  if (query == nullptr)
    return tl::unexpected(request_error("request", "it is no map of names and strings with a query"));
  name = *query;
  return std::move(*request);
}

Result<Bytes> change(Store &store, const Handlers &handlers, BytesView bytes) {
  std::string name;
  const auto request = named_request(bytes, name);
  if (!request) return tl::unexpected(request.error());
  if (name == query_redrive) return answer_redrive(store, handlers, *request);
  if (name == query_purge) return answer_purge(store, *request);
  if (name == query_resolve) return answer_resolve(store, *request);
  return tl::unexpected(request_error(name, "there is no such change"));
}

Result<Bytes> dispatch(const Store &store, BytesView bytes, Asker asker) {
  std::string asked;
  const auto request = named_request(bytes, asked);
  if (!request) return tl::unexpected(request.error());
  const std::string *name = &asked;
  if (*name == "get") return answer_get(store, *request);
  if (*name == "count") return answer_count(store);
  if (*name == "dead-letters list") return answer_list(store, *request);
  if (*name == "dead-letters show") return answer_show(store, *request, asker);
  if (*name == "pending list") return answer_pending_list(store, *request);
  if (*name == "pending show") return answer_pending_show(store, *request, asker);
  if (*name == query_audit) return answer_audit(store, *request);
  if (*name == query_verify) return answer_verify(store);
  if (*name == "stats") {
    return tl::unexpected(Error{.code = ErrorCode::not_found,
                                .concerns = "stats",
                                .cause = "no worker runs, and it is a running worker that counts",
                                .remedy = "start one; onced count counts the rows there are"});
  }
  return tl::unexpected(request_error(*name, "there is no such query"));
}

// --- Asking -------------------------------------------------------------------------------------------------------

Error no_answer(const std::string &endpoint) {
  return {.code = ErrorCode::timed_out,
          .concerns = endpoint,
          .cause = "no answer in time",
          .remedy = "check that a worker runs there, or give it longer with --deadline"};
}

Error too_long(const std::string &endpoint) {
  return {.code = ErrorCode::usage,
          .concerns = endpoint,
          .cause = "the request is longer than the " + std::to_string(limits::query_bytes_max) +
                   " bytes that a worker reads",
          .remedy = "make it shorter, or stop the worker: on the database itself it may have any length"};
}

// Waits for one of `events` on the socket. False when the deadline passes first.
bool wait_for(zmq::socket_t &socket, short events, MonotonicTime deadline) {
  zmq::pollitem_t item{.socket = socket.handle(), .fd = 0, .events = events, .revents = 0};
  do {
    try {
      if (zmq::poll(&item, 1, left_until(deadline)) > 0) return true;
    } catch (const zmq::error_t &error) {
      if (error.num() != EINTR) throw;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

Result<Bytes> exchange(zmq::socket_t &socket, const std::string &endpoint, BytesView request, MonotonicTime deadline) {
  // One question, one answer: nobody else needs to find this peer again, so any id will do.
  const Bytes question = encode_query(SenderId{}, request);
  if (question.size() > limits::query_bytes_max) return tl::unexpected(too_long(endpoint));
  if (!wait_for(socket, ZMQ_POLLOUT, deadline)) return tl::unexpected(no_answer(endpoint));
  socket.send(zmq::buffer(question), zmq::send_flags::dontwait);

  WorkerMessageDecoder decoder;
  WorkerMessage message;
  zmq::message_t frame;
  while (wait_for(socket, ZMQ_POLLIN, deadline)) {
    if (!socket.recv(frame, zmq::recv_flags::dontwait)) continue;
    switch (decoder.decode(frame.to_string_view(), message)) {
    case WorkerFraming::answer:
      return Bytes(message.answer);
    case WorkerFraming::unsupported:
      return tl::unexpected(Error{.code = ErrorCode::unsupported_protocol,
                                  .concerns = endpoint,
                                  .cause = "the worker does not speak our protocol version",
                                  .remedy = "use the command of the worker's release"});
    default:
      break; // not for us
    }
  }
  return tl::unexpected(no_answer(endpoint));
}

} // namespace

Bytes answer_error(const Error &error) {
  Bytes out;
  Writer(out)
      .map(1)
      .string("error")
      .map(4)
      .string("code")
      .string(name_of(error.code))
      .string("concerns")
      .string(utf8::repaired(error.concerns, limits::detail_bytes_max)) // it may be what a stranger has sent
      .string("cause")
      .string(error.cause)
      .string("remedy")
      .string(error.remedy);
  return out;
}

std::string query_name(BytesView request) {
  const auto read = read_request(request);
  const std::string *name = read ? read->text("query") : nullptr;
  return name == nullptr ? std::string() : *name;
}

QueryKind kind_of_query(std::string_view name) {
  if (name == query_redrive || name == query_purge || name == query_resolve) return QueryKind::changes;
  return name == query_audit || name == query_verify ? QueryKind::reads_privately : QueryKind::reads;
}

bool is_scan(std::string_view name) {
  return name == "count" || name == query_verify || name == query_audit || name == "dead-letters list" ||
         name == "pending list";
}

Bytes answer_too_many() {
  return answer_error({.code = ErrorCode::timed_out,
                       .concerns = "query",
                       .cause = "too many queries are waiting, or too many bytes of answers were not read",
                       .remedy = "read the answers to the queries before, then ask again"});
}

Bytes answer_refused(std::string_view name) {
  return answer_error({.code = ErrorCode::usage,
                       .concerns = std::string(name),
                       .cause = "it is not answered over the network",
                       .remedy = "ask on the worker's machine, with --data and its data directory"});
}

Bytes answer_change(Store &store, const Handlers &handlers, BytesView request, std::optional<Error> &failure) {
  auto answer = change(store, handlers, request);
  if (answer) return std::move(*answer);
  if (answer.error().code == ErrorCode::store_unavailable) failure = answer.error();
  return answer_error(answer.error());
}

Bytes answer_query(const Store &store, BytesView request, Asker asker) {
  auto answer = dispatch(store, request, asker);
  if (!answer) return answer_error(answer.error());
  if (!store.reads_durable()) add_pair(*answer, "durable", "unknown");
  return std::move(*answer);
}

Result<Bytes> ask(const std::string &endpoint, BytesView request, MonotonicTime deadline) {
  zmq::context_t context;
  auto socket = connect_replies(context, endpoint);
  if (!socket) return tl::unexpected(socket.error());
  return exchange(*socket, endpoint, request, deadline);
}

Result<Bytes> ask_directory(const std::filesystem::path &directory, BytesView request, MonotonicTime deadline) {
  const auto control = ControlEndpoint::in(directory);
  if (!control) return tl::unexpected(control.error());
  zmq::context_t context;
  auto socket = connect_replies(context, control->endpoint());
  if (!socket) return tl::unexpected(socket.error());
  return exchange(*socket, (directory / "control.sock").string(), request, deadline);
}

} // namespace onced::wire
