#include "damage/examination.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "store/rows/records.hpp"
#include "support/store_harness.hpp"

namespace onced::testing {
namespace {

// Collects what is found in one store: the worst verdict, with the text that came with it first.
class Examination {
public:
  Examination(const std::filesystem::path &directory, std::span<const Acknowledged> jobs, Opening opening)
      : jobs_(jobs), harness_(directory) {
    harness_.options.read_only = opening == Opening::read_only;
    harness_.options.block_cache_bytes = 1024UL * 1024;
    for (const Acknowledged &job : jobs_)
      batch_.add(job.job);
  }

  [[nodiscard]] Finding run() {
    if (const auto opened = harness_.try_open(); !opened) {
      note_error(opened.error(), Verdict::refused);
      return finding_;
    }
    for (std::size_t at = 0; at < jobs_.size(); ++at) {
      if (jobs_[at].outcome == Outcome::stored) {
        look_up(jobs_[at], batch_.view()[at]);
      } else {
        look_up_dead_letter(jobs_[at], batch_.view()[at]);
      }
    }
    scan();
    if (!harness_.options.read_only) deliver_again();
    return finding_;
  }

private:
  void note(Verdict verdict, const std::string &text) {
    if (verdict > finding_.verdict) finding_ = {verdict, text};
  }

  void note_error(const Error &error, Verdict verdict) {
    const Finding found = finding_of(error, harness_.options.directory, verdict);
    note(found.verdict, found.text);
  }

  void look_up(const Acknowledged &job, const Delivery &delivery) {
    const auto row = harness_.store->get(*delivery.key);
    const std::string &name = delivery.job->operation_id;
    if (!row) return note_error(row.error(), Verdict::said_corruption);
    if (!*row) return note(Verdict::silent_loss, "there is no row of " + name);
    const OperationRow &found = **row;
    const bool is_right = found.digest == delivery.digest && found.result == integer_result(job.sum) &&
                          found.operation_id == name && found.type == "sum" && found.phase == Phase::committed &&
                          found.committed_at == harness_.clock.now && found.issued_at == delivery.issued_at;
    if (!is_right) note(Verdict::wrong, "the row of " + name + " is another one");
  }

  void look_up_dead_letter(const Acknowledged &job, const Delivery &delivery) {
    const DeadLetterId id = delivery.job == nullptr
                                ? store::dead_letter_id(delivery.bytes, digester_)
                                : store::dead_letter_id(*delivery.key, delivery.digest, job.outcome, digester_);
    const auto letter = harness_.store->dead_letter(id);
    if (!letter) return note_error(letter.error(), Verdict::said_corruption);
    if (!*letter) return note(Verdict::silent_loss, "there is no dead letter " + to_hex(id.view()));
    const DeadLetter &found = **letter;
    const bool is_right = found.reason == job.outcome && found.bytes == job.job && found.deliveries == 1 &&
                          found.first_at == harness_.clock.now && found.sender == delivery.sender;
    if (!is_right) note(Verdict::wrong, "the dead letter " + to_hex(id.view()) + " is another one");
  }

  // A scan must not leave out what a look-up finds.
  void scan() {
    const auto counts = harness_.store->count();
    if (!counts) return note_error(counts.error(), Verdict::said_corruption);
    const auto results = static_cast<std::uint64_t>(
        std::count_if(jobs_.begin(), jobs_.end(), [](const auto &job) { return job.outcome == Outcome::stored; }));
    const std::uint64_t letters = jobs_.size() - results;
    const std::string text = "a scan counts " + std::to_string(counts->results) + " results and " +
                             std::to_string(counts->dead_letters) + " dead letters";
    if (counts->results < results || counts->dead_letters < letters) note(Verdict::silent_loss, text);
    if (counts->results > results || counts->dead_letters > letters) note(Verdict::wrong, text);
    const auto listed = harness_.store->dead_letters(jobs_.size(), std::nullopt);
    if (!listed) return note_error(listed.error(), Verdict::said_corruption);
    if (listed->size() < letters) note(Verdict::silent_loss, "a dead letter is not listed");
  }

  // The point of it all: no job takes effect a second time. Where its row cannot be read it is busy.
  void deliver_again() {
    const auto settled = harness_.store->commit(batch_.view(), harness_.handlers);
    if (!settled) return note_error(settled.error(), Verdict::said_corruption);
    for (std::size_t at = 0; at < jobs_.size(); ++at) {
      const Settlement &settlement = (*settled)[at];
      const bool was_stored = jobs_[at].outcome == Outcome::stored;
      const Outcome expected = was_stored ? Outcome::duplicate : jobs_[at].outcome;
      if (settlement.outcome == Outcome::stored) {
        note(Verdict::silent_loss, "job " + std::to_string(at) + " took effect again");
      } else if (settlement.outcome == Outcome::busy) {
        note(Verdict::said_corruption, "job " + std::to_string(at) + " is busy");
      } else if (settlement.outcome != expected || (was_stored && settlement.result != integer_result(jobs_[at].sum))) {
        note(Verdict::wrong, "job " + std::to_string(at) + " is answered otherwise than at first");
      }
    }
  }

  std::span<const Acknowledged> jobs_;
  StoreHarness harness_;
  Batch batch_;
  Digester digester_;
  Finding finding_;
};

} // namespace

Finding finding_of(const Error &error, const std::filesystem::path &directory, Verdict verdict) {
  const bool is_whole =
      error.concerns.find(directory.string()) != std::string::npos && !error.cause.empty() && !error.remedy.empty();
  return {is_whole ? verdict : Verdict::bad_error, std::string(name_of(error.code)) + ": " + describe(error)};
}

Finding examine(const std::filesystem::path &directory, std::span<const Acknowledged> jobs, Opening opening) {
  return Examination(directory, jobs, opening).run();
}

} // namespace onced::testing
