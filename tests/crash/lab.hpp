#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crash/model.hpp"
#include "crash/tally.hpp"
#include "support/worker_process.hpp"

namespace onced::crash {

using testing::Arguments;
using testing::Process;
using testing::operator+; // of Arguments

// A sender that reads something other than jobs of the model: bytes that are no job.
struct Poison {
  Bytes bytes;
  bool wants_reply = true;
  std::unique_ptr<Process> process;
};

// A worker, senders with outboxes and the model of them, on one directory. What the processes say goes to the model at
// once. Whatever takes too long is thrown.
class Lab {
public:
  static constexpr std::size_t senders = 2;

  // `wrapper`: runs the command and becomes it.
  Lab(const std::filesystem::path &directory, std::vector<std::string> wrapper, Tally &tally);

  // --- The worker ------------------------------------------------------------------------------------------------
  void start_worker(const Arguments &more);
  [[nodiscard]] bool worker_runs() { return worker_.process().is_running(); }
  void kill_worker();
  // By us or at a point; false: it runs. Throws where it has ended in another way.
  [[nodiscard]] bool worker_was_killed();
  // SIGTERM, and waits.
  void drain_worker();
  [[nodiscard]] const std::filesystem::path &data() const { return worker_.data(); }
  [[nodiscard]] const std::string &jobs_endpoint() const { return worker_.jobs(); }

  // --- Senders ---------------------------------------------------------------------------------------------------
  // With these jobs and those that an earlier run of it had not taken; without any it goes on with its outbox.
  void start_sender(SenderNumber number, const std::vector<Job> &jobs, std::size_t copies, const std::string &input,
                    const Arguments &more);
  [[nodiscard]] std::vector<Job> take_not_taken(SenderNumber number);
  [[nodiscard]] bool sender_runs(SenderNumber number);
  [[nodiscard]] bool any_sender_runs();
  // Reads so many of its lines, or all that there are.
  void read_lines(SenderNumber number, std::size_t lines);
  // kill -9.
  void kill_sender(SenderNumber number);
  // Reads what it has said and what it has left. True: it was killed.
  bool sender_ended(SenderNumber number);
  [[nodiscard]] bool was_started(SenderNumber number) const { return senders_.at(number).process != nullptr; }

  void send_poison(const Bytes &bytes, bool wants_reply);
  // Waits until it has settled; or kills it.
  void poison_ended(bool killed);

  // --- Anything --------------------------------------------------------------------------------------------------
  [[nodiscard]] std::unique_ptr<Process> run(const Arguments &arguments, const std::string &input = {}) const;
  // Reads the database, with the worker dead, and holds it against the model.
  void compare();
  // Notes how much memory the processes have used.
  void watch_memory();
  // What runs and what it has said on stderr, for people.
  [[nodiscard]] std::string state();
  // Whether recoveries of senders that end from here on are to be counted.
  void count_recoveries(bool counted) { recoveries_counted_ = counted; }

  [[nodiscard]] Model &model() { return model_; }
  [[nodiscard]] Tally &tally() { return tally_; }

private:
  struct Sender {
    std::filesystem::path outbox;
    std::unique_ptr<Process> process;
    std::vector<Job> not_taken;
  };

  bool read_line(SenderNumber number);
  void read_stats(const testing::Line &line);

  std::vector<std::string> wrapper_;
  testing::WorkerProcess worker_;
  std::array<Sender, senders> senders_;
  std::optional<Poison> poison_;
  Model model_;
  Tally &tally_;
  bool worker_was_started_ = false;
  bool recoveries_counted_ = false;
};

} // namespace onced::crash
