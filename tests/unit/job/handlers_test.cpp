#include "onced/handler.hpp"

#include <stdexcept>
#include <string>

#include "base/utf8.hpp"
#include "onced/limits.hpp"
#include "unit/job/support.hpp"

using namespace onced;
using namespace onced::testing;

namespace {

Job job_of_type(std::string type) {
  return {.operation_id = "demo-1", .type = std::move(type), .effect_key = {}, .traceparent = "tp", .payload = "\x80"};
}

// What comes out where the only handler does `behaviour`.
HandlerResult run(const InlineHandler &behaviour) {
  Handlers handlers;
  REQUIRE(handlers.add_inline("test", behaviour));
  JobParser parser;
  return handlers.run(job_of_type("test"), parser);
}

std::string failure(const HandlerResult &result) {
  REQUIRE(std::holds_alternative<Failed>(result));
  return std::get<Failed>(result).detail;
}

} // namespace

TEST_CASE("a handler sees the job's id and type and trace context and payload") {
  const HandlerResult result = run([](const HandlerCall &call) {
    Bytes seen;
    messagepack::Writer(seen)
        .array(4)
        .string(call.operation_id)
        .string(call.type)
        .string(call.traceparent)
        .binary(call.payload);
    return Done{seen};
  });
  CHECK(to_hex(std::get<Done>(result).result) == "94"
                                                 "a664656d6f2d31"
                                                 "a474657374"
                                                 "a27470"
                                                 "c40180");
}

TEST_CASE("a result is put in canonical form") {
  const HandlerResult result = run([](const HandlerCall &) { return Done{hex("82a162cb3ff0000000000000a161cd0005")}; });
  CHECK(to_hex(std::get<Done>(result).result) == "82a16105a16201");
}

TEST_CASE("a result without a canonical form fails") {
  CHECK(failure(run([](const HandlerCall &) { return Done{hex("cb7ff8000000000000")}; })) ==
        "the result has no canonical form: not_finite");
  CHECK(failure(run([](const HandlerCall &) { return Done{}; })) == "the result has no canonical form: malformed");
  CHECK(failure(run([](const HandlerCall &) { return Done{hex("0101")}; })) ==
        "the result has no canonical form: trailing_bytes");
}

TEST_CASE("a result at the limit is kept and one byte more fails") {
  const auto of_size = [](std::size_t size) {
    return [size](const HandlerCall &) { return Done{text(Bytes(size - 3, 'x'))}; };
  };
  CHECK(std::get<Done>(run(of_size(limits::result_bytes_max))).result.size() == limits::result_bytes_max);
  CHECK(failure(run(of_size(limits::result_bytes_max + 1))) == "the result has 65537 bytes, more than 65536");
}

TEST_CASE("an exception that leaves a handler fails the job") {
  CHECK(failure(run([](const HandlerCall &) -> HandlerResult { throw std::runtime_error("no luck"); })) ==
        "the handler threw: no luck");
  CHECK(failure(run([](const HandlerCall &) -> HandlerResult { throw 42; })) ==
        "the handler threw something that is no std::exception");
}

TEST_CASE("a handler without a function fails the job") {
  CHECK(failure(run(InlineHandler())).starts_with("the handler threw: "));
}

TEST_CASE("details are cut to their limit between code points and made UTF-8") {
  const std::string accents = [] {
    std::string made = "x";
    while (made.size() <= limits::detail_bytes_max) {
      made += "\xC3\xA9";
    }
    return made;
  }();
  const std::string cut = failure(run([&](const HandlerCall &) { return Failed{accents}; }));
  CHECK(cut.size() == limits::detail_bytes_max - 1);
  CHECK(utf8::valid(cut));
  const HandlerResult invalid = run([](const HandlerCall &) { return Invalid{"bad \xFF byte"}; });
  CHECK(std::get<Invalid>(invalid).detail == "bad \xEF\xBF\xBD byte");
  CHECK(failure(run([](const HandlerCall &) -> HandlerResult {
          throw std::runtime_error(std::string(5000, 'y'));
        })).size() == limits::detail_bytes_max);
}

TEST_CASE("an unknown type is invalid and named") {
  JobParser parser;
  const HandlerResult result = built_in_handlers().run(job_of_type("product"), parser);
  CHECK(std::get<Invalid>(result).detail == "unknown type \"product\"");
}

TEST_CASE("sum is built in") {
  JobParser parser;
  Job job;
  REQUIRE(parser.parse(map_of({{"operation_id", text("demo-1")}, {"numbers", hex("93010203")}}), job));
  const HandlerResult result = built_in_handlers().run(job, parser);
  CHECK(to_hex(std::get<Done>(result).result) == "06");
}

TEST_CASE("a type can be registered once and must have 1 to 64 bytes") {
  const auto nothing = [](const HandlerCall &) { return Done{hex("c0")}; };
  Handlers handlers = built_in_handlers();
  REQUIRE_FALSE(handlers.add_inline("sum", nothing).has_value());
  CHECK(handlers.add_inline("sum", nothing).error().code == ErrorCode::usage);
  CHECK(describe(handlers.add_inline("sum", nothing).error()) ==
        "type \"sum\": has a handler already; register each type once, as inline or as queued");
  for (const std::string &bad : {std::string(), std::string(65, 't')}) {
    const auto refused = handlers.add_inline(bad, nothing);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::usage);
  }
  CHECK(handlers.add_inline(std::string(64, 't'), nothing).has_value());
}

TEST_CASE("a type is either inline or queued and what is said of a queued one is in its range") {
  const auto nothing = [](const HandlerCall &) { return Done{hex("c0")}; };
  Handlers handlers = built_in_handlers();
  CHECK(handlers.add_queued({.type = "slow"}).has_value());
  CHECK(handlers.add_queued({.type = "pay", .external = true, .owner = std::string(255, 'o'), .max_receive_count = 1})
            .has_value());
  CHECK(handlers.add_queued({.type = "slow"}).error().code == ErrorCode::usage);
  CHECK(handlers.add_queued({.type = "sum"}).error().code == ErrorCode::usage);
  CHECK(handlers.add_inline("slow", nothing).error().code == ErrorCode::usage);
  CHECK(handlers.add_queued({.type = ""}).error().code == ErrorCode::usage);
  CHECK(handlers.add_queued({.type = std::string(65, 't')}).error().code == ErrorCode::usage);
  CHECK(handlers.add_queued({.type = "never", .max_receive_count = 0}).error().code == ErrorCode::usage);
  CHECK(handlers.add_queued({.type = "long", .owner = std::string(256, 'o')}).error().code == ErrorCode::usage);
  CHECK(handlers.add_queued({.type = "bytes", .owner = "\xFF"}).error().code == ErrorCode::usage);

  const std::string nul(1, '\0');
  for (const HandlerCommand &command : std::vector<HandlerCommand>{{{}, {}},
                                                                   {{""}, {}},
                                                                   {{"/bin/echo", "a" + nul + "b"}, {}},
                                                                   {{"/bin/echo" + nul}, {}},
                                                                   {{"/bin/echo"}, {{"", "x"}}},
                                                                   {{"/bin/echo"}, {{"A=B", "x"}}},
                                                                   {{"/bin/echo"}, {{"A" + nul, "x"}}},
                                                                   {{"/bin/echo"}, {{"A", "x" + nul}}}}) {
    const auto refused = handlers.add_queued({.type = "command", .handler = command});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::usage);
    CHECK(handlers
              .add_queued({.type = "command",
                           .handler = HandlerCommand{{"/bin/echo"}, {}},
                           .external = true,
                           .policy = EffectPolicy::query,
                           .reconcile = command})
              .error()
              .code == ErrorCode::usage);
  }

  REQUIRE(handlers.queued("slow") != nullptr);
  CHECK(!handlers.queued("slow")->external);
  CHECK(handlers.queued("slow")->max_receive_count == limits::max_receive_count);
  CHECK(handlers.queued("pay")->external);
  CHECK(handlers.queued("pay")->owner == std::string(255, 'o'));
  CHECK(handlers.queued("sum") == nullptr);
  CHECK(handlers.queued("never") == nullptr);
  CHECK(handlers.queued_types().size() == 2);
  JobParser parser;
  CHECK(std::holds_alternative<Invalid>(handlers.run(job_of_type("slow"), parser))); // it is not run in a batch
}
