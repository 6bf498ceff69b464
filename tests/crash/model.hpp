#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crash/job.hpp"
#include "crash/scan.hpp"

// What must be on disk and may be said, from what was given to the processes and what they have said. It knows the
// promises and nothing of how they are kept.
namespace onced::crash {

enum class Harm : std::uint8_t {
  loss,                  // what was acknowledged, seen or taken is not there any more
  double_effect,         // an effect came about twice, or a stored one has changed
  false_acknowledgement, // an outcome that cannot be true
  stray,                 // a row, dead letter or job that nobody has a reason for
};
[[nodiscard]] std::string_view name_of(Harm harm);

struct Finding {
  Harm harm = Harm::loss;
  std::string text;
};

using SenderNumber = std::size_t;

// One line of `send`.
struct Told {
  std::string operation_id;
  std::string outcome;
  std::string result; // as JSON
};

class Model {
public:
  // --- What senders are given, and say ---------------------------------------------------------------------------
  // A sender is about to read a job so many times. It must not hold one of this operation id.
  void offered(SenderNumber sender, const Job &job, std::size_t copies);
  void told(SenderNumber sender, const Told &line);
  // A sender has ended, having settled all that it had or not, and left these operation ids in its outbox. Returns the
  // jobs of its input that it had not taken yet.
  std::vector<Job> sender_ended(SenderNumber sender, bool finished, const std::vector<std::string> &left);
  [[nodiscard]] bool holds(SenderNumber sender, const std::string &operation_id) const;
  [[nodiscard]] std::size_t held(SenderNumber sender) const;

  // --- Bytes that are no job -------------------------------------------------------------------------------------
  void poison_offered(const Bytes &bytes);
  void poison_told(const Bytes &bytes, const std::string &outcome);

  // --- Dead letters and their changes. None may be changed while a sender holds its job. -------------------------
  // A good job whose message was refused: it is a dead letter, and stored by a redrive only.
  void parked(const Job &job);
  // Dead letters that must be there and that no sender may bring back; those that a redrive would store are first.
  [[nodiscard]] std::vector<Bytes> changeable() const;
  void change_asked(const Bytes &id, bool is_purge);
  // `outcome` as the command prints it; none: it did not come to tell. `asked_twice`: it may have been done before.
  void change_told(const Bytes &id, const std::string &outcome, bool removed, bool asked_twice);

  // --- What is on disk -------------------------------------------------------------------------------------------
  // With no worker running.
  void compare(const Scan &found);
  // Nothing runs any more, and `compare` was just called: what is not there and not held comes no more.
  void at_rest();

  [[nodiscard]] std::vector<Finding> take_findings();

  // Jobs to be delivered again, or under whose keys others are.
  [[nodiscard]] const std::vector<Job> &known() const { return known_; }
  [[nodiscard]] std::size_t keys() const { return effects_.size(); }
  [[nodiscard]] std::size_t rows_seen() const { return rows_seen_; }
  [[nodiscard]] std::size_t letters_seen() const { return letters_there_.size(); }
  [[nodiscard]] std::size_t acknowledged_keys() const;
  [[nodiscard]] const std::map<std::string, std::uint64_t> &outcomes() const { return outcomes_; }

private:
  struct Intent {
    Job job;
    std::set<std::string> operation_ids;
  };
  struct Effect {
    std::map<Bytes, Intent> intents; // by digest
    std::optional<Bytes> winner;     // the digest that was committed, once known
    std::set<Bytes> losers;
    bool must_be_there = false;
    bool was_there_at_rest = false;
    bool stored_told = false;
    Bytes value; // as it was seen first; empty: not yet
  };
  enum class LetterState : std::uint8_t { possible, kept, gone };
  struct ExpectedLetter {
    Reason reason = Reason::invalid;
    Bytes key;    // empty: the bytes are no job
    Bytes digest; // likewise
    Bytes bytes;  // of those that are no job
    std::optional<Job> parked;
    bool being_purged = false;
    LetterState state = LetterState::possible;
  };
  struct Held {
    Job job;
    std::size_t copies = 0;
    std::size_t told = 0; // by the run that holds it
    bool fresh = false;   // of that run's input
  };
  using Desk = std::map<std::string, Held>; // by operation id

  void blame(Harm harm, const std::string &text) { findings_.push_back({harm, text}); }
  void remember_intent(const Job &job);
  ExpectedLetter &expect_letter(const Job &job, Reason reason);
  void letter_told(const Job &job, Reason reason);
  void told_success(const Job &job, const Told &line);
  void told_refusal(const Job &job, const Told &line);
  void committed(const Job &job, const std::string &how);
  void account(const std::string &operation_id, const Held &held, std::size_t left, bool finished, bool input_taken);
  void compare_row(const Bytes &key, const Row &row);
  void compare_letter(const Bytes &id, const Letter &letter, const Scan &found);
  void compare_parked(const Bytes &id, ExpectedLetter &expected, const Scan &found);
  void find_missing(const Scan &found);
  [[nodiscard]] std::set<Bytes> letters_held() const;

  std::map<Bytes, Effect> effects_;
  std::map<Bytes, ExpectedLetter> letters_;
  std::set<Bytes> letters_there_; // by the latest scan
  std::map<SenderNumber, Desk> desks_;
  std::vector<Job> known_;
  std::set<std::string> known_ids_;
  std::size_t rows_seen_ = 0;
  std::map<std::string, std::uint64_t> outcomes_;
  std::vector<Finding> findings_;
};

} // namespace onced::crash
