// Any bytes as a query, on a store with a few rows of each kind, and as an answer. Verifies that every request gets an
// answer that our own command can read, that what only reads changes nothing and answers the same again, and that any
// answer can be printed. Not: the right to change something (the gateway's), sockets.
#include "query.hpp"
#include "admin/queries.hpp"
#include "fuzz.hpp"
#include "onced/limits.hpp"
#include "store/job_queue.hpp"
#include "support/store_harness.hpp"

namespace onced::fuzz {
namespace {

class Queries : testing::StoreHarness {
public:
  Queries() {
    options.block_cache_bytes = std::size_t{1} << 20U;
    options.audit_rows_max = 16;
    require(handlers.add_queued({.type = "pay", .external = true, .owner = "treasury"}).has_value(), "a type is added");
    open();
    fill();
  }

  void ask(BytesView request);

private:
  void fill();
  void end_lease(std::string_view operation_id, store::QueueVerdict verdict);
  void ask_to_change(BytesView request, bool changes);

  std::optional<Error> failure_;
  std::uint64_t leases_ = 0;
};

// One row of each kind; what a change has removed comes back.
void Queries::fill() {
  const testing::JobFields effect{.operation_id = "demo-3", .numbers = {1}, .type = {}, .effect_key = "event"};
  const testing::JobFields unknown{.operation_id = "demo-4", .numbers = {1}, .type = "unheard-of", .effect_key = {}};
  static_cast<void>(commit(std::vector<Bytes>{
      testing::job_bytes("demo-1", {1, 2, 3}), testing::job_bytes("demo-1", {9}), testing::job_bytes(effect),
      testing::job_bytes(unknown), testing::job_bytes("demo-5", {INT64_MAX, 1}), Bytes("no job")}));
  for (const char *id : {"held", "waiting", "failed"})
    static_cast<void>(commit_one(testing::job_bytes({.operation_id = id, .numbers = {1}, .type = "pay"})));
  end_lease("held", store::QueueVerdict::unknown);
  end_lease("failed", store::QueueVerdict::refused);
}

// Where the job waits: one that is held, failed or committed stays so.
void Queries::end_lease(std::string_view operation_id, store::QueueVerdict verdict) {
  const Key key = key_of_operation("pay", operation_id);
  const FencingToken token{.boot = boot_count_of(store->boot()), .count = ++leases_};
  const auto received = store->queue().begin_receive(key.bytes, token, *handlers.queued("pay"));
  require(received.has_value(), "a job is received, or not");
  if (received->answer != store::Received::Answer::job) return;
  require(store->queue().settle(key.bytes, token, {.verdict = verdict, .error = "no answer"}).has_value(),
          "a lease ends");
}

bool is_same_counts(const Counts &left, const Counts &right) {
  return left.results == right.results && left.dead_letters == right.dead_letters && left.pending == right.pending;
}

// The answer, which is never anything but a map that our own command can read.
Json read_answer(BytesView answer) {
  require(answer.size() <= limits::answer_bytes_max, "an answer fits a frame");
  auto value = json_of_messagepack(answer, Binaries::kept);
  require(value && value->is_object(), "an answer is a map that our own command can read");
  return std::move(*value);
}

void Queries::ask(BytesView request) {
  const admin::Query *query = admin::find_query(admin::query_name(request));
  const bool changes = query != nullptr && query->changes();
  const Counts before = counts();
  const Bytes answer = admin::answer_query(*store, request, admin::Asker::directory);
  const Json read = read_answer(answer);
  require(!read_answer(admin::answer_query(*store, request, admin::Asker::network)).contains("sender_id"),
          "the network is told no sender's id");
  require(!changes || read.contains("error"), "what changes something is no query");
  require(admin::answer_query(*store, request, admin::Asker::directory) == answer,
          "a query asked again is answered the same");
  require(is_same_counts(counts(), before), "a query changes nothing");
  static_cast<void>(read_answer(admin::answer_refused(admin::query_name(request))));
  ask_to_change(request, changes);
}

void Queries::ask_to_change(BytesView request, bool changes) {
  const Counts before = counts();
  const Json answer = read_answer(admin::answer_change(*store, handlers, request, failure_));
  require(!failure_, "no request makes the store unavailable");
  if (answer.contains("error")) return require(is_same_counts(counts(), before), "a refused change changes nothing");
  require(changes, "only a change is carried out as one");
  fill();
}

void print_answer(BytesView bytes) {
  const auto answer = json_of_messagepack(bytes, Binaries::kept);
  if (!answer || !answer->is_object()) return;
  const std::string line = dump(tools::for_people(*answer));
  require(Json::accept(line) && line.find('\n') == std::string::npos, "an answer is printed as one line of JSON");
}

// Opened once, as that takes longer than any input may.
Queries &queries() {
  static Queries queries;
  return queries;
}

} // namespace
} // namespace onced::fuzz

extern "C" int LLVMFuzzerInitialize(int * /*argc*/, char *** /*argv*/) {
  static_cast<void>(onced::fuzz::queries());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace onced::fuzz;
  const onced::BytesView bytes = view_of(data, size);
  queries().ask(bytes);
  print_answer(bytes);
  return 0;
}
