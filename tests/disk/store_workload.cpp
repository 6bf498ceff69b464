#include <cerrno>
#include <stdexcept>

#include "disk/store_model.hpp"
#include "disk/workloads.hpp"
#include "rocksdb/rocksdb_engine.hpp"
#include "store/rows/records.hpp"
#include "support/store_harness.hpp"

namespace fs = std::filesystem;

namespace onced::testing {
namespace {

const Operator someone{.by = "kim", .why = "to see it through"};

[[noreturn]] void complain(const std::string &text) {
  throw std::runtime_error(text);
}

// Every offer of the workload by its bytes, to give dead letters their names.
std::map<Bytes, std::string> names_of_offers() {
  std::map<Bytes, std::string> names;
  for (const Action &action : store_actions()) {
    for (const Offer &offer : action.offers)
      names[offer.bytes()] = offer.name();
  }
  return names;
}

// A store of the workload: it does actions, and shows its rows in the model's form.
class Player {
public:
  Player(const fs::path &directory, Durability durability) : harness_(directory) {
    harness_.options.durability = durability;
    if (!late_handlers_.add_inline(late_type, sum_handler)) complain("the late type is taken");
  }

  StoreOptions &options() { return harness_.options; }
  void close() { harness_.close(); }
  [[nodiscard]] bool is_open() const { return harness_.store != nullptr; }
  Result<void> open() { return harness_.try_open(); }

  Result<std::vector<Answer>> perform(const Action &action) {
    switch (action.kind) {
    case Action::Kind::open:
      if (auto opened = open(); !opened) return tl::unexpected(opened.error());
      return {};
    case Action::Kind::commit:
      return commit(action);
    case Action::Kind::redrive:
      return redrive(action);
    case Action::Kind::purge:
      if (auto purged = harness_.store->purge(letter_of(action), someone); !purged) {
        return tl::unexpected(purged.error());
      }
      return {};
    }
    return {};
  }

  [[nodiscard]] Rows rows() {
    Rows rows;
    for (const Action &action : store_actions()) {
      for (const Offer &offer : action.offers) {
        if (offer.operation_id.empty()) continue;
        const auto sum = harness_.row(offer.operation_id);
        const auto row = sum ? sum : harness_.row(offer.operation_id, late_type);
        if (row) rows.results[offer.operation_id] = row->result;
      }
    }
    const auto names = names_of_offers();
    for (const DeadLetter &letter : harness_.dead_letters()) {
      const auto name = names.find(letter.bytes);
      if (name == names.end()) complain("a dead letter that nobody sent");
      rows.letters[{letter.reason, name->second}] = {.deliveries = letter.deliveries, .redrives = letter.redrives};
    }
    const auto audit = harness_.store->audit(1'000, 0);
    if (!audit) complain(describe(audit.error()));
    rows.changes = audit->size();
    const Counts counts = harness_.counts();
    if (counts.results != rows.results.size()) complain("there are rows of keys that nobody sent");
    if (counts.dead_letters != rows.letters.size()) complain("there are dead letters of one name");
    return rows;
  }

private:
  Result<std::vector<Answer>> commit(const Action &action) {
    Batch batch;
    for (const Offer &offer : action.offers)
      batch.add(offer.bytes());
    auto settled = harness_.store->commit(batch.view(), harness_.handlers);
    if (!settled) return tl::unexpected(settled.error());
    std::vector<Answer> answers;
    answers.reserve(settled->size());
    for (Settlement &settlement : *settled)
      answers.push_back({.outcome = settlement.outcome, .result = std::move(settlement.result)});
    return answers;
  }

  Result<std::vector<Answer>> redrive(const Action &action) {
    auto redriven = harness_.store->redrive(letter_of(action), late_handlers_, someone);
    if (!redriven) return tl::unexpected(redriven.error());
    return std::vector<Answer>{
        {.outcome = redriven->settlement.outcome, .result = std::move(redriven->settlement.result)}};
  }

  DeadLetterId letter_of(const Action &action) {
    const Bytes bytes = action.offers[0].bytes();
    for (const DeadLetter &letter : harness_.dead_letters()) {
      if (letter.reason == action.reason && letter.bytes == bytes) return letter.id;
    }
    complain("a dead letter is not there: " + action.offers[0].name());
  }

  StoreHarness harness_;
  Handlers late_handlers_ = built_in_handlers();
};

std::string describe(const std::vector<Answer> &answers) {
  std::string text;
  for (const Answer &answer : answers)
    text += " " + std::string(traits_of(answer.outcome).name) + "=" + to_hex(answer.result);
  return text;
}

void expect(const std::vector<Answer> &got, const std::vector<Answer> &wanted, const std::string &when) {
  if (got != wanted) complain(when + ": answered" + describe(got) + ", and not" + describe(wanted));
}

// The rows after so many actions.
Rows rows_after(std::uint64_t actions) {
  Rows rows;
  for (std::uint64_t at = 0; at < actions; ++at)
    apply(store_actions()[at], rows);
  return rows;
}

// What is found is what there was after all actions that were told, or after one more that was asked; each is one
// transaction. The number of actions that it is.
std::uint64_t find_rows(const Rows &found, const TrialOptions &options, Notebook &notebook) {
  for (std::uint64_t actions = notebook.asked; actions >= notebook.told; --actions) {
    if (found == rows_after(actions)) return actions;
    if (actions == 0) break;
  }
  for (std::uint64_t actions = notebook.told; options.may_lose && actions > 0; --actions) {
    notebook.lost = notebook.told - (actions - 1);
    if (found == rows_after(actions - 1)) return actions - 1;
  }
  complain("found " + found.describe() + "\n  told " + rows_after(notebook.told).describe() + "\n  asked " +
           rows_after(notebook.asked).describe());
}

// The counters that the store keeps of its rows, against the rows. The store is closed.
void check_counters(const fs::path &directory, const Rows &rows) {
  StoreOptions options;
  options.directory = directory;
  options.read_only = true;
  ManualClock clock;
  const auto engine = rocks::open_engine(options, clock);
  if (!engine) complain(describe(engine.error()));
  const auto sums = (*engine)->view()->counters();
  if (!sums) complain(describe(sums.error()));
  const auto results = static_cast<std::uint64_t>((*sums)[engine::Counter::results]);
  const auto letters = static_cast<std::uint64_t>((*sums)[engine::Counter::dead_letters]);
  if (results != rows.results.size() || letters != rows.letters.size()) {
    complain("the counters say " + std::to_string(results) + " results and " + std::to_string(letters) +
             " dead letters, the rows are " + rows.describe());
  }
}

void must(bool condition, const std::string &complaint) {
  if (!condition) complain(complaint);
}

// A failed action: it names the disk, and the store takes nothing more, until it is opened again on a disk that is
// well.
void meet_failure(Player &player, SimulatedDisk &disk, const Error &error, const TrialOptions &options,
                  Notebook &notebook) {
  must(notebook.disk.struck, "failed before the disk did: " + describe(error));
  must(error.code == ErrorCode::store_unavailable, "the wrong error: " + describe(error));
  const Action more{.kind = Action::Kind::commit, .offers = {{"more", {1}}}};
  for (int again = 0; again < 2 && player.is_open(); ++again) {
    const auto refused = player.perform(more);
    must(!refused && refused.error().code == ErrorCode::store_unavailable, "committed after a failure");
    disk.heal();
  }
  player.close();
  disk.heal();
  const auto opened = player.open();
  must(opened.has_value(),
       "the disk is well, and the store does not open: " + (opened ? std::string() : describe(opened.error())));
  find_rows(player.rows(), options, notebook);
  player.close();
}

void play_store(SimulatedDisk &disk, const fs::path &directory, Part part, const TrialOptions &options,
                Notebook &notebook) {
  Player player(directory, options.durability);
  player.options().environment = disk.environment();
  const auto lock = DirectoryLock::take(directory, DirectoryLock::Mode::exclusive);
  if (!lock) {
    must(notebook.disk.struck, describe(lock.error()));
    return;
  }
  Rows rows = rows_after(part.first);
  for (std::uint64_t at = part.first; at < part.end; ++at) {
    const Action &action = store_actions()[at];
    notebook.asked = at + 1;
    const auto answers = player.perform(action);
    if (!answers) return meet_failure(player, disk, answers.error(), options, notebook);
    expect(*answers, apply(action, rows), "action " + std::to_string(notebook.asked));
    notebook.told = notebook.asked;
    disk.await_quiet();
  }
  player.close();
}

void check_store(const fs::path &directory, const std::shared_ptr<StorageEnvironment> &environment,
                 const TrialOptions &options, Notebook &notebook) {
  const auto lock = DirectoryLock::take(directory, DirectoryLock::Mode::exclusive);
  must(lock.has_value(), "no lock");
  Player player(directory, Durability::fsync);
  player.options().environment = environment;
  const auto opened = player.open();
  if (!opened && options.plan.garbage && opened.error().code == ErrorCode::corrupt) {
    notebook.refused = true;
    return;
  }
  must(opened.has_value(), opened ? std::string() : "it does not open: " + describe(opened.error()));
  Rows rows = player.rows();
  std::uint64_t actions = find_rows(rows, options, notebook);
  if (actions < store_actions().size()) {
    const auto answers = player.perform(store_actions()[actions]);
    must(answers.has_value(), "it fails on a disk that is well");
    expect(*answers, apply(store_actions()[actions++], rows), "the next action");
    const Rows found = player.rows();
    must(found == rows, "the next action left " + found.describe());
  }
  notebook.asked = notebook.told = actions;
  player.close();
  if (!environment) check_counters(directory, rows);
}

} // namespace

const Workload &store_workload() {
  static const Workload workload{
      .name = "store", .parts = parts_of_store_actions(), .play = &play_store, .check = &check_store};
  return workload;
}

} // namespace onced::testing
