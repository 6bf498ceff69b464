// Writes what the corpora begin with: the test vectors, and one value of each kind by our own encoders. After a change
// of a format: run it into a new folder, and merge that into the corpus (tests/fuzz/run --help).
// Usage: seeds FOLDER
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "onced/ids.hpp"
#include "rocksdb/sum_rows.hpp"
#include "store/rows/records.hpp"
#include "support/store_harness.hpp"
#include "unit/wire/samples.hpp"

#include "sender/outbox.cpp" // NOLINT(bugprone-suspicious-include): as the target `records`

namespace onced::fuzz {
namespace {

using messagepack::Writer;

// Names its files by their number.
class Corpus {
public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(BytesView bytes) {
    std::ofstream file(folder_ / std::to_string(++count_), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

private:
  std::filesystem::path folder_;
  std::size_t count_ = 0;
};

void write_jobs(Corpus corpus) {
  std::ifstream file(ONCED_TESTS_DIR "/vectors/jobs.json");
  const auto vectors = nlohmann::json::parse(file);
  for (const char *kind : {"accepted", "refused"}) {
    for (const auto &vector : vectors.at(kind))
      corpus.add(from_hex(vector.at("job_hex").get<std::string>()).value());
  }
}

void write_envelopes(Corpus corpus) {
  corpus.add(testing::sample_batch());
  for (const auto &job : testing::sample_jobs())
    corpus.add(job);
  for (const auto &[name, message] : testing::sample_peer_messages())
    corpus.add(message);
  for (const auto &[name, message] : testing::sample_worker_messages())
    corpus.add(message);
  Bytes later; // of version 2
  Writer(later).array(3).positive(2).binary(testing::sample_sender().view()).nil();
  corpus.add(later);
}

// Scripts: a job is added, a greeting comes, it is sent, and then a frame.
void write_replies(Corpus corpus) {
  const Bytes sent("\x00\x0A\x00\x14\x04\x01\x01\xFF", 8);
  corpus.add(sent + Bytes("\x02\x0A\x01\xFF\x04\x02\x01\xFF", 8)); // times out, then another boot
  for (char outcome = 0; outcome < 8; ++outcome)
    corpus.add(sent + Bytes("\x03\x01\x01\x01\x00", 5) + outcome + Bytes("\x01\x06\x00\x02\x00\x04\x01", 7) + outcome);
  Digester digester;
  wire::RepliesEncoder encoder(testing::sample_boot(), Durability::fsync);
  const auto tag = digester.tag(Bytes(10, 'j'));
  encoder.add({.sequence = Sequence{1}, .tag = tag, .outcome = Outcome::stored, .result = "\x06", .detail = {}});
  for (const Bytes &frame : {encoder.take().at(0), wire::encode_greeting(testing::sample_boot(), Durability::fsync)})
    corpus.add(sent + '\x05' + '\0' + static_cast<char>(frame.size()) + frame);
}

void write_records(Corpus corpus) {
  const WallTime time{std::chrono::microseconds{1'764'500'000'000'000}};
  Bytes out;
  for (const std::string_view effect_key : {"", "event"}) {
    store::encode_operation({.phase = Phase::committed,
                             .digest = {},
                             .result = "\x06",
                             .operation_id = "demo-1",
                             .type = "sum",
                             .effect_key = effect_key,
                             .issued_at = time,
                             .committed_at = time,
                             .worker_build = "0.1.0+8d3f1c20ab47",
                             .durability = Durability::fsync},
                            out);
    corpus.add(out);
  }
  DeadLetter letter;
  letter.bytes = "no job";
  letter.detail = "malformed";
  store::encode_dead_letter(letter, out);
  corpus.add(out);
  letter.reason = Outcome::conflict;
  letter.stored_digest = letter.offered_digest = Digest{};
  store::encode_dead_letter(letter, out);
  corpus.add(out);
  letter.errors = {"first", "second"};
  letter.effect_unknown = true;
  store::encode_dead_letter(letter, out);
  corpus.add(out);
  store::QueueRow queued;
  queued.state = store::QueueState::calling;
  queued.bytes = "job";
  queued.operation_id = "demo-5";
  queued.type = "resize";
  queued.token = {.boot = 3, .count = 17};
  queued.errors = {"exit 75"};
  store::encode_queued(queued, out);
  corpus.add(out);
  letter.relay_key = store::relay_key("next", key_of_operation("sum", "demo-1").bytes, 3);
  store::encode_dead_letter(letter, out);
  corpus.add(out);
  corpus.add(letter.relay_key);
  store::encode_relayed({.job = "job", .created_at = time, .redrives = 1}, out);
  corpus.add(out);
  corpus.add("\x9B\x02\x05\x02\x03\x01\x0A\x04\x01\x01\x07\x07"); // sums of format 2
  engine::Counters sums;
  sums[engine::Counter::results] = 300;
  sums[engine::Counter::dead_letters] = -2;
  rocks::encode_sums(sums, out);
  corpus.add(out);
  AuditRow row;
  row.action = "redrive";
  row.by = row.why = "kim";
  store::encode_audit(row, out);
  corpus.add(out);
  corpus.add(messagepack::encode_number(1));
  sender::encode({.sequence = Sequence{1}, .tag = Digester().tag("job"), .issued_at = time, .job = "job"}, out);
  corpus.add(out);
  corpus.add(store::audit_name(7));
}

void write_queries(Corpus corpus) {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  testing::StoreHarness harness;
  harness.open();
  const Bytes bytes("no job"); // a dead letter of the store that the target `query` asks
  static_cast<void>(harness.commit(std::vector<Bytes>{bytes}));
  const std::string id = to_hex(harness.dead_letters().at(0).id.view());
  for (const Fields &fields :
       {Fields{{"query", "get"}, {"operation_id", "demo-1"}, {"type", "sum"}},
        Fields{{"query", "get"}, {"effect_key", "event"}}, Fields{{"query", "count"}}, Fields{{"query", "stats"}},
        Fields{{"query", "audit"}}, Fields{{"query", "dead-letters list"}},
        Fields{{"query", "dead-letters list"}, {"reason", "conflict"}, {"type", "sum"}, {"after", id}},
        Fields{{"query", "dead-letters show"}, {"id", id}},
        Fields{{"query", "dead-letters redrive"}, {"id", id}, {"by", "kim"}, {"why", "INC-7"}},
        Fields{{"query", "dead-letters purge"}, {"id", id}, {"by", "kim"}, {"why", "INC-7"}},
        Fields{{"query", "pending list"}}, Fields{{"query", "pending list"}, {"type", "pay"}, {"after", id}},
        Fields{{"query", "pending show"}, {"operation_id", "held"}, {"type", "pay"}},
        Fields{{"query", "pending resolve"},
               {"operation_id", "held"},
               {"type", "pay"},
               {"effect", "absent"},
               {"by", "kim"},
               {"why", "INC-7"}}}) {
    Bytes out;
    Writer writer(out);
    writer.map(fields.size());
    for (const auto &[name, value] : fields)
      writer.string(name).string(value);
    corpus.add(out);
  }
  Bytes numbers;
  Writer(numbers).map(3).string("query").string("audit").string("rows").positive(2).string("after").positive(1);
  corpus.add(numbers);
  Bytes held;
  Writer(held).map(2).string("query").string("pending list").string("held").boolean(true);
  corpus.add(held);
  Bytes applied;
  Writer(applied).map(7).string("query").string("pending resolve").string("operation_id").string("held");
  Writer(applied).string("type").string("pay").string("effect").string("applied").string("result").binary("\x07");
  Writer(applied).string("by").string("kim").string("why").string("INC-7");
  corpus.add(applied);
  Bytes answer;
  Writer(answer).map(3).string("first_at_us").positive(1'764'500'000'000'000).string("sender").string("");
  Writer(answer).string("bytes").binary(std::string_view("\0\xFF", 2));
  corpus.add(answer);
}

void write_lines(Corpus corpus) {
  const std::string how("\xFF\x10", 2); // long lines, short pieces
  corpus.add(how + R"({"operation_id":"demo-1","numbers":[1,-2,3.5,1e300,0.1],"type":"sum","traceparent":null})" +
             '\n');
  corpus.add(how + "[9007199254740993,18446744073709551615,-9223372036854775808]\n18446744073709551616\n1e999\n\n-0.0");
  corpus.add(how + "{\"a\":[true,false,{\"\\u00e9\":\"\\ud83d\\ude00\"}]}\nnot-json\n{\"a\":1,\"a\":2}\n");
  corpus.add(how + std::string(17, '[') + std::string(17, ']'));
  corpus.add(std::string("\0\x01", 2) + "a line of more than seventeen bytes\n[1]\n[2]");
}

void write_all(const std::filesystem::path &folder) {
  write_envelopes(Corpus(folder / "envelope"));
  write_jobs(Corpus(folder / "job"));
  write_lines(Corpus(folder / "json_lines"));
  write_queries(Corpus(folder / "query"));
  write_records(Corpus(folder / "records"));
  write_replies(Corpus(folder / "replies"));
}

} // namespace
} // namespace onced::fuzz

int main(int argc, char **argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs("Usage: seeds FOLDER\nWrites FOLDER/TARGET/N: what the corpora of tests/fuzz begin with.\n", stderr);
    return 64;
  }
  try {
    onced::fuzz::write_all(argv[1]);
    return 0;
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "seeds: %s\n", exception.what());
    return 1;
  }
}
