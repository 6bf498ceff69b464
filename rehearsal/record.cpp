#include "rehearsal/record.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/utf8.hpp"

#include "base/descriptor.hpp"
#include "base/directory_kind.hpp"
#include "rehearsal/evidence.hpp"
#include "rehearsal/files.hpp"
#include "rehearsal/limits.hpp"
#include "rehearsal/page.hpp"
#include "rehearsal/record_rules.hpp"
#include "rehearsal/scenarios.hpp"
#include "rehearsal/time.hpp"

namespace onced::rehearsal {
namespace {

std::string shown(const Json &value) {
  return value.is_structured() && value.size() > 3 ? "…" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The build that wrote a record of another version, as far as it says so.
std::string build_in(const Json &record) {
  const Json observed = record.value("observed", Json());
  const Json build = observed.is_object() ? observed.value("build", Json()) : Json();
  if (!build.is_object()) return "which it does not name";
  return "version " + shown(build.value("version", Json())) + ", commit " + shown(build.value("commit", Json()));
}

Result<void> write_file(const std::filesystem::path &path, const std::string &content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (file) return {};
  return tl::unexpected(Error{ErrorCode::store_unavailable, path.string(), "it cannot be written",
                              "look at the disk and its free space"});
}

// A file that is not there yet, durable. A record may come from a stranger: no link in its directory is followed.
Result<void> write_new_file(const std::filesystem::path &path, const std::string &content) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.is_open()) return tl::unexpected(system_error(path, "make it"));
  for (std::size_t at = 0; at < content.size();) {
    const ssize_t written = ::write(file.number(), content.data() + at, content.size() - at);
    if (written < 0 && errno != EINTR) return tl::unexpected(system_error(path, "write it"));
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  if (::fsync(file.number()) != 0) return tl::unexpected(system_error(path, "sync it"));
  return {};
}

bool is_one_line(const std::string &text) {
  return utf8::valid(text) &&
         std::none_of(text.begin(), text.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; });
}

// Whether a review can be written into this record.
Result<void> hold_review(const Review &review, const Json &record) {
  const auto refuse = [](const std::string &concerns, const std::string &cause, const std::string &remedy) {
    return tl::unexpected(Error{ErrorCode::usage, concerns, cause, remedy});
  };
  if (review.by.empty() || review.by.size() > reviewer_bytes_max || !is_one_line(review.by))
    return refuse("--by", "no name of 1 to 255 bytes on one line", "give the reviewer's name");
  if (review.decision != decision_accepted && review.decision != decision_rejected)
    return refuse("--decision", "neither accepted nor rejected", "give one of them");
  if (review.note.size() > review_note_bytes_max || !is_one_line(review.note))
    return refuse("--note", "no text of at most 4,096 bytes on one line", "shorten it");
  const bool agrees = review.decision == decision_accepted && record.at("facts").at("verdict") == "passed";
  if (review.note.empty() && !agrees)
    return refuse("--note", "it is missing, and the decision is not that a passed record is accepted", "say why");
  if (record.at("reviews").size() >= reviews_max)
    return refuse("--review", "the record has " + std::to_string(reviews_max) + " reviews", "rehearse again");
  return {};
}

// The depth is that of a record, whatever is compared with it.
void compare(const Json &before, const Json &now, const std::string &path, // NOLINT(misc-no-recursion)
             std::vector<std::string> &differences) {
  if (before == now) return;
  if (before.is_object() && now.is_object()) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const auto &[name, value] : before.items())
      compare(value, now.value(name, Json()), prefix + name, differences);
    for (const auto &[name, value] : now.items()) {
      if (!before.contains(name)) compare(Json(), value, prefix + name, differences);
    }
    return;
  }
  if (before.is_array() && now.is_array() && before.size() == now.size()) {
    for (std::size_t at = 0; at < before.size(); ++at)
      compare(before[at], now[at], path + "[" + std::to_string(at) + "]", differences);
    return;
  }
  differences.push_back(path + ": " + shown(before) + ", now " + shown(now));
}

} // namespace

Result<void> write_record(const std::filesystem::path &directory, const Json &record, const Plan &plan) {
  const std::string text = text_of(record);
  if (text.size() > record_bytes_max) {
    return tl::unexpected(Error{ErrorCode::usage, "record.json",
                                "it would have " + std::to_string(text.size()) + " bytes, and " +
                                    std::to_string(record_bytes_max) + " are read",
                                "give the plan fewer jobs or copies"});
  }
  const Json written = parse_json(text); // bytes that are no UTF-8 have been replaced
  const std::map<std::string, std::string> files{{"record.json", text},
                                                 {"record.html", render_html(written)},
                                                 {"evidence.csv", csv_of(evidence_of(written))},
                                                 {plan.file, plan.text},
                                                 {plan.seeds.file, plan.seeds.text}};
  for (const auto &[name, content] : files) {
    if (auto done = write_file(directory / name, content); !done) return done;
  }
  return {};
}

Result<Json> add_review(const std::filesystem::path &directory, const Review &review, Clock &clock) {
  const Descriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.number() >= 0 && ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    return tl::unexpected(
        Error{ErrorCode::locked, directory.string(), "another process reviews it", "wait for its end"});
  }
  auto record = read_record(directory);
  if (!record) return record;
  const auto problems = verify_record(directory);
  if (!problems) return tl::unexpected(problems.error());
  if (!problems->empty()) {
    return tl::unexpected(Error{ErrorCode::corrupt, directory.string(),
                                "it does not fit together, and was not reviewed: " + problems->front(),
                                "see onced rehearse --verify; rehearse again"});
  }
  if (auto held = hold_review(review, *record); !held) return tl::unexpected(held.error());
  Json added{{"by", review.by},
             {"at", iso_time(clock.wall())},
             {"decision", review.decision},
             {"note", review.note},
             {"sha256", hex_sha256(text_of(*record))}};
  (*record)["reviews"].push_back(added);
  // Both are durable beside what they replace before either replaces it, so that a full disk leaves the record as it
  // was.
  for (const auto &[name, content] :
       {std::pair<std::string, std::string>("record.html", render_html(*record)), {"record.json", text_of(*record)}}) {
    if (auto done = write_new_file(directory / (name + ".new"), content); !done) return tl::unexpected(done.error());
  }
  for (const std::string name : {"record.html", "record.json"}) {
    std::error_code error;
    std::filesystem::rename(directory / (name + ".new"), directory / name, error);
    if (error) {
      return tl::unexpected(Error{ErrorCode::store_unavailable, (directory / name).string(), error.message(),
                                  "look at the directory's rights and free space"});
    }
  }
  if (auto synced = sync_directory(directory); !synced) return tl::unexpected(synced.error());
  return added;
}

Result<Json> read_record(const std::filesystem::path &directory) {
  const std::filesystem::path path = directory / "record.json";
  if (auto expected = expect_kind(DirectoryKind::record, directory); !expected) {
    return tl::unexpected(expected.error());
  }
  const auto text = read_file(path, record_bytes_max);
  if (!text) return tl::unexpected(text.error());
  Json record = parse_json(*text);
  if (record.is_discarded()) {
    return tl::unexpected(Error{ErrorCode::corrupt, path.string(),
                                "it is no JSON, nests too deep, or holds more values than a record may",
                                "rehearse again"});
  }
  if (!record.is_object() || record.value("format", Json()) != "onced rehearsal") {
    return tl::unexpected(Error{ErrorCode::corrupt, path.string(), "it is no record", "rehearse again"});
  }
  if (record.value("version", Json()) != record_version) {
    return tl::unexpected(Error{ErrorCode::newer_format, path.string(),
                                "its form is version " + shown(record.value("version", Json())) +
                                    ", and this onced reads version " + std::to_string(record_version),
                                "verify it with the onced that wrote it, " + build_in(record) +
                                    ", or rehearse its plan.toml again with this one"});
  }
  return record;
}

Result<Plan> read_held_plan(const std::filesystem::path &directory, const Json &record) {
  try {
    const Json &facts = record.at("facts");
    const std::string file = facts.at("plan").at("file");
    auto plan = read_plan(directory / std::filesystem::path(file).filename(), scenario_names());
    if (!plan) return plan;
    const bool is_held = hex_sha256(plan->text) == facts.at("plan").at("sha256") &&
                         hex_sha256(plan->seeds.text) == facts.at("seeds").at("sha256");
    if (is_held) return plan;
    return tl::unexpected(Error{ErrorCode::corrupt, (directory / file).string(),
                                "its SHA-256, or that of its seeds, is not that of the record",
                                "see onced rehearse --verify"});
  } catch (const Json::exception &error) {
    return tl::unexpected(Error{ErrorCode::corrupt, directory.string(), error.what(), "see onced rehearse --verify"});
  }
}

Result<std::vector<std::string>> verify_record(const std::filesystem::path &directory) {
  const auto record = read_record(directory);
  if (!record) return tl::unexpected(record.error());
  auto problems = problems_of_form(*record);
  return problems.empty() ? problems_of_rules(directory, *record) : problems;
}

Result<std::string> sha256_of_record(const std::filesystem::path &directory) {
  const auto text = read_file(directory / "record.json", record_bytes_max);
  if (!text) return tl::unexpected(text.error());
  return hex_sha256(*text);
}

std::vector<std::string> compare_facts(const Json &before, const Json &now) {
  std::vector<std::string> differences;
  compare(before.at("facts"), now.at("facts"), "", differences);
  return differences;
}

} // namespace onced::rehearsal
