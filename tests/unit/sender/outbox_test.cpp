// Verifies the outbox on a real file system, and on one that fails on demand: what it keeps, in what order, with how
// many log syncs, and what it refuses. Does not verify that a sync reaches the disk, nor the sender that uses it
// (sender_outbox_test.cpp).
#include "sender/outbox.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/messagepack.hpp"
#include "base/scratch_directory.hpp"
#include "onced/digest.hpp"
#include "support/faulty_environment.hpp"
#include "support/file_content.hpp"
#include "support/raw_database.hpp"

namespace onced::testing {
namespace {

using sender::Outbox;
using sender::OutboxJob;

constexpr std::size_t any = 1'000'000'000;

SenderId id_of(std::uint8_t fill) {
  SenderId id;
  id.bytes.fill(fill);
  return id;
}

OutboxJob job_number(std::uint64_t number) {
  const WallTime issued_at{std::chrono::microseconds{1'700'000'000'000'000 + static_cast<std::int64_t>(number)}};
  Bytes job = "job " + std::to_string(number);
  return {Sequence{number}, Digester().tag(job), issued_at, std::move(job)};
}

std::vector<OutboxJob> jobs_from_to(std::uint64_t first, std::uint64_t last) {
  std::vector<OutboxJob> jobs;
  for (std::uint64_t number = first; number <= last; ++number)
    jobs.push_back(job_number(number));
  return jobs;
}

struct OutboxScene {
  ScratchDirectory temp;
  std::filesystem::path directory = temp.path() / "outbox";
  std::shared_ptr<Faults> faults = std::make_shared<Faults>();
  std::unique_ptr<Outbox> outbox;

  Result<void> try_open() {
    auto opened = Outbox::open(directory, id_of(7), faulty_environment(faults));
    if (!opened) return tl::unexpected(opened.error());
    outbox = std::move(*opened);
    return {};
  }
  void open() {
    outbox.reset();
    const auto opened = try_open();
    if (!opened) throw std::runtime_error(describe(opened.error()));
  }
  void append(std::uint64_t first, std::uint64_t last) {
    const auto appended = outbox->append(jobs_from_to(first, last), Sequence{last});
    if (!appended) throw std::runtime_error(describe(appended.error()));
  }
  void remove(std::vector<Sequence> sequences) {
    const auto removed = outbox->remove(sequences);
    if (!removed) throw std::runtime_error(describe(removed.error()));
  }
  Outbox::Read read(std::uint64_t after = 0, std::size_t jobs = any, std::size_t bytes = any) {
    auto read = outbox->read_after(Sequence{after}, jobs, bytes);
    if (!read) throw std::runtime_error(describe(read.error()));
    return std::move(*read);
  }
  // The sequences that are there, separated by spaces.
  std::string sequences() {
    std::string text;
    for (const OutboxJob &job : read().jobs)
      text.append(text.empty() ? "" : " ").append(std::to_string(number_of(job.sequence)));
    return text;
  }
  ErrorCode code_of_opening() {
    outbox.reset();
    const auto opened = try_open();
    REQUIRE(!opened.has_value());
    return opened.error().code;
  }
};

TEST_CASE("a job comes back from the outbox as it was kept") {
  OutboxScene scene;
  scene.open();
  scene.append(1, 2);
  scene.open();
  const auto read = scene.read();
  REQUIRE(read.jobs.size() == 2);
  CHECK(read.at_end);
  CHECK(read.jobs[1].sequence == Sequence{2});
  CHECK(read.jobs[1].tag == job_number(2).tag);
  CHECK(read.jobs[1].issued_at == job_number(2).issued_at);
  CHECK(read.jobs[1].job == "job 2");
}

TEST_CASE("jobs are read in the order of their sequences across every byte of the number") {
  OutboxScene scene;
  scene.open();
  const std::vector<std::uint64_t> numbers{1, 255, 256, 65'535, 65'536, 1ULL << 40U, 1ULL << 63U};
  for (const std::uint64_t number : numbers)
    scene.append(number, number);
  CHECK(scene.sequences() == "1 255 256 65535 65536 1099511627776 9223372036854775808");
  CHECK(scene.read(256).jobs.front().sequence == Sequence{65'535});
}

TEST_CASE("a read keeps within its jobs and bytes and says whether it came to the end") {
  OutboxScene scene;
  scene.open();
  scene.append(1, 9); // of five bytes each
  CHECK(scene.read(0, 4).jobs.size() == 4);
  CHECK(!scene.read(0, 4).at_end);
  CHECK(scene.read(0, any, 14).jobs.size() == 2);
  CHECK(scene.read(0, any, 4).jobs.empty());
  CHECK(!scene.read(0, any, 4).at_end);
  CHECK(scene.read(5, 4).jobs.size() == 4);
  CHECK(scene.read(5, 4).at_end);
  CHECK(scene.read(9).at_end);
}

TEST_CASE("removed jobs are gone and the others are counted when the outbox is opened again") {
  OutboxScene scene;
  scene.open();
  scene.append(1, 9);
  scene.remove({Sequence{1}, Sequence{5}, Sequence{9}});
  CHECK(scene.sequences() == "2 3 4 6 7 8");
  scene.open();
  CHECK(scene.sequences() == "2 3 4 6 7 8");
  CHECK(scene.outbox->found().jobs == 6);
  CHECK(scene.outbox->found().bytes == 30);
}

TEST_CASE("the last sequence outlives the jobs that had it") {
  OutboxScene scene;
  scene.open();
  CHECK(scene.outbox->found().last_sequence == Sequence{0});
  scene.append(1, 3);
  scene.remove({Sequence{1}, Sequence{2}, Sequence{3}});
  scene.open();
  CHECK(scene.outbox->found().jobs == 0);
  CHECK(scene.outbox->found().last_sequence == Sequence{3});
  REQUIRE(scene.outbox->append({}, Sequence{8}).has_value()); // used up without a job
  scene.open();
  CHECK(scene.outbox->found().last_sequence == Sequence{8});
}

TEST_CASE("the sender id stays with the outbox") {
  OutboxScene scene;
  scene.open();
  CHECK(scene.outbox->id() == id_of(7));
  scene.outbox.reset();
  const auto again = Outbox::open(scene.directory, id_of(9));
  REQUIRE(again.has_value());
  CHECK((*again)->id() == id_of(7));
}

TEST_CASE("one log sync keeps many jobs and a removal waits for none") {
  OutboxScene scene;
  scene.open();
  const auto syncs = [&] { return scene.faults->calls(FaultAt::log_sync); };
  const auto before = syncs();
  scene.append(1, 1000);
  CHECK(syncs() == before + 1);
  scene.append(1001, 1001);
  CHECK(syncs() == before + 2);
  scene.remove({Sequence{1}, Sequence{2}});
  CHECK(syncs() == before + 2);
}

TEST_CASE("the second opener of an outbox is refused and told who has it") {
  OutboxScene scene;
  scene.open();
  const auto second = Outbox::open(scene.directory, id_of(1));
  REQUIRE(!second.has_value());
  CHECK(second.error().code == ErrorCode::locked);
  CHECK(describe(second.error()) == scene.directory.string() + ": the directory is held by process " +
                                        std::to_string(::getpid()) +
                                        "; stop that process first, or use another directory");
  scene.open(); // free again once it is closed
}

TEST_CASE("a log with a torn tail opens with the jobs before it") {
  OutboxScene scene;
  scene.open();
  scene.append(1, 1);
  const std::string mark = content_of(scene.directory / "outbox.mark"); // a write that is torn is not marked
  scene.append(2, 2);
  const auto copy = scene.temp.path() / "copy"; // as kill -9 leaves it: closing would flush nothing, but write a lot
  std::filesystem::copy(scene.directory, copy, std::filesystem::copy_options::recursive);
  scene.outbox.reset();
  std::filesystem::path log;
  for (const auto &file : std::filesystem::directory_iterator(copy / "db")) {
    if (file.path().extension() == ".log" && (log.empty() || file.path() > log)) log = file.path();
  }
  REQUIRE(!log.empty());
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 3);
  std::ofstream(copy / "outbox.mark", std::ios::binary | std::ios::trunc) << mark;
  scene.directory = copy;
  scene.open();
  CHECK(scene.sequences() == "1");
  CHECK(scene.outbox->found().last_sequence == Sequence{1}); // that of the torn write goes with its job
}

TEST_CASE("after a failed sync every write fails and the next opening finds each job or not") {
  OutboxScene scene;
  scene.open();
  scene.append(1, 2);
  scene.faults->fail_from(FaultAt::log_sync, 1);
  const auto failed = scene.outbox->append(jobs_from_to(3, 4), Sequence{4});
  REQUIRE(!failed.has_value());
  CHECK(failed.error().code == ErrorCode::store_unavailable);
  scene.faults->clear();
  CHECK(!scene.outbox->append(jobs_from_to(5, 5), Sequence{5}).has_value());
  CHECK(!scene.outbox->remove(std::vector<Sequence>{Sequence{1}}).has_value());
  scene.open();
  const std::string found = scene.sequences();
  CHECK((found == "1 2" || found == "1 2 3 4")); // of one write all or nothing
  // Whatever was found, its sequences are not used again.
  CHECK(number_of(scene.outbox->found().last_sequence) == scene.outbox->found().jobs);
  scene.append(5, 5);
  scene.open();
  CHECK(scene.read(4).jobs.size() == 1);
}

TEST_CASE("an outbox that cannot write its log refuses the job") {
  OutboxScene scene;
  scene.open();
  scene.faults->fail_from(FaultAt::log_append, 1);
  const auto failed = scene.outbox->append(jobs_from_to(1, 1), Sequence{1});
  REQUIRE(!failed.has_value());
  CHECK(failed.error().code == ErrorCode::store_unavailable);
  CHECK(failed.error().remedy.find("start again with this outbox") != std::string::npos);
}

TEST_CASE("the rows of an outbox are what its document says") {
  OutboxScene scene;
  scene.open();
  scene.append(258, 258);
  scene.outbox.reset();
  const RawDatabase raw(scene.directory);
  const auto jobs = raw.rows("default");
  REQUIRE(jobs.size() == 1);
  CHECK(to_hex(jobs.begin()->first) == "0000000000000102");
  // [1, bin 8, 1'700'000'000'000'258, bin "job 258"]
  CHECK(to_hex(jobs.begin()->second) == "9401c408cb3f6e3716c711bbcf00060a24181e4102c4076a6f6220323538");
  const auto meta = raw.rows("meta");
  REQUIRE(meta.size() == 5);
  CHECK(to_hex(meta.at("boots")) == "01");
  CHECK(meta.at("identity").size() == 16);
  CHECK(to_hex(meta.at("format")) == "02");
  CHECK(to_hex(meta.at("sender_id")) == "07070707070707070707070707070707");
  CHECK(to_hex(meta.at("last_sequence")) == "cd0102");
}

// Opens an outbox after one row was changed behind its back.
ErrorCode code_after(const std::string &family, const Bytes &key, const std::optional<Bytes> &value) {
  OutboxScene scene;
  scene.open();
  scene.append(1, 3);
  scene.outbox.reset();
  {
    RawDatabase raw(scene.directory);
    value ? raw.put(family, key, *value) : raw.erase(family, key);
  }
  return scene.code_of_opening();
}

TEST_CASE("an outbox of a newer format is refused") {
  CHECK(code_after("meta", "format", Bytes("\x03")) == ErrorCode::newer_format);
}

TEST_CASE("damaged rows refuse the opening") {
  const Bytes first("\0\0\0\0\0\0\0\1", 8);
  CHECK(code_after("meta", "format", Bytes("\xC0")) == ErrorCode::corrupt);
  CHECK(code_after("meta", "sender_id", Bytes("short")) == ErrorCode::corrupt);
  CHECK(code_after("meta", "last_sequence", std::nullopt) == ErrorCode::corrupt);
  CHECK(code_after("meta", "last_sequence", Bytes("\x02")) == ErrorCode::corrupt); // below a job that is there
  CHECK(code_after("default", first, Bytes("\x91\x01")) == ErrorCode::corrupt);
  CHECK(code_after("default", first, Bytes()) == ErrorCode::corrupt);
  CHECK(code_after("default", Bytes("key"), Bytes()) == ErrorCode::corrupt);
}

TEST_CASE("a job with the tag of other bytes refuses the opening") {
  const Bytes first("\0\0\0\0\0\0\0\1", 8);
  const auto row_with = [](const Tag &tag) {
    Bytes row;
    messagepack::Writer(row).array(4).positive(1).binary(tag.view()).positive(1).binary("job 1");
    return row;
  };
  CHECK(code_after("default", first, row_with(Digester().tag("job 2"))) == ErrorCode::corrupt);
  OutboxScene scene; // the same row with its own tag is read
  scene.open();
  scene.append(1, 1);
  scene.outbox.reset();
  RawDatabase(scene.directory).put("default", first, row_with(Digester().tag("job 1")));
  scene.open();
  CHECK(scene.sequences() == "1");
}

TEST_CASE("an outbox that was deleted or replaced under its sender keeps nothing more") {
  const auto misfortunes = {
      +[](const std::filesystem::path &outbox) { std::filesystem::remove_all(outbox); },
      +[](const std::filesystem::path &outbox) { std::filesystem::remove_all(outbox / "db"); },
      +[](const std::filesystem::path &outbox) { std::filesystem::remove(outbox / "onced.lock"); },
      +[](const std::filesystem::path &outbox) {
        std::filesystem::rename(outbox, outbox.string() + ".moved");
        std::filesystem::copy(outbox.string() + ".moved", outbox, std::filesystem::copy_options::recursive);
      },
  };
  for (const auto befall : misfortunes) {
    OutboxScene scene;
    scene.open();
    scene.append(1, 2);
    befall(scene.directory);
    const auto appended = scene.outbox->append(jobs_from_to(3, 4), Sequence{4});
    REQUIRE(!appended.has_value());
    CHECK(appended.error().code == ErrorCode::store_unavailable);
    const std::vector<Sequence> settled{Sequence{1}};
    const auto removed = scene.outbox->remove(settled);
    REQUIRE(!removed.has_value());
    CHECK(removed.error().code == ErrorCode::store_unavailable);
  }
}

TEST_CASE("the data directory of a worker is no outbox") {
  OutboxScene scene;
  std::filesystem::create_directories(scene.directory);
  std::ofstream(scene.directory / "durable.mark") << "x";
  CHECK(scene.code_of_opening() == ErrorCode::usage);
}

} // namespace
} // namespace onced::testing
