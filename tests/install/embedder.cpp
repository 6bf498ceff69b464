// Verifies that a program can be built on an installed onced: it adds a handler of its own, commits one job, and reads
// the row back. Does not verify the worker or the sender. Exits with the number of the step that failed.
#include <cstdio>
#include <string>

#include <onced/digest.hpp>
#include <onced/handler.hpp>
#include <onced/job.hpp>
#include <onced/store.hpp>
#include <onced/version.hpp>

namespace {

int fail(int step, const onced::Error &error) {
  std::fprintf(stderr, "%s\n", onced::describe(error).c_str());
  return step;
}

// Commits {"operation_id": "a", "type": "echo"} with the result "hi", and reads the row back.
int run(const std::string &directory) {
  onced::Handlers handlers;
  auto added = handlers.add_inline(
      "echo", [](const onced::HandlerCall &) -> onced::HandlerResult { return onced::Done{"\xA2hi"}; });
  if (!added) return fail(1, added.error());

  const onced::Bytes bytes = "\x82\xACoperation_id\xA1"
                             "a\xA4type\xA4"
                             "echo";
  onced::JobParser parser;
  onced::Job job;
  if (!parser.parse(bytes, job)) return 2;
  onced::Key key;
  onced::assign_key(job, key);

  auto lock = onced::DirectoryLock::take(directory, onced::DirectoryLock::Mode::exclusive);
  if (!lock) return fail(3, lock.error());
  onced::SystemClock clock;
  onced::SystemRandom random;
  onced::StoreOptions options;
  options.directory = directory;
  auto store = onced::Store::open(options, clock, random);
  if (!store) return fail(4, store.error());

  onced::Delivery delivery;
  delivery.bytes = bytes;
  delivery.tag = onced::Digester().tag(bytes);
  delivery.job = &job;
  delivery.key = &key;
  delivery.digest = onced::Digester().intent(job.type, job.payload);
  auto settled = (*store)->commit({&delivery, 1}, handlers);
  if (!settled) return fail(5, settled.error());
  if (settled->size() != 1 || settled->front().outcome != onced::Outcome::stored) return 6;

  auto row = (*store)->get(onced::key_of_operation("echo", "a"));
  if (!row) return fail(7, row.error());
  return *row && (*row)->result == "\xA2hi" && onced::version().number == ONCED_EXPECTED_VERSION ? 0 : 8;
}

} // namespace

int main(int argc, char **argv) {
  return argc == 2 ? run(argv[1]) : 64;
}
