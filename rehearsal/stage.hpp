#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rehearsal/child.hpp"
#include "rehearsal/disk.hpp"
#include "rehearsal/json.hpp"
#include "rehearsal/plan.hpp"

namespace onced::rehearsal {

// What all scenarios of a run share.
struct Setting {
  const Plan &plan;
  std::string command; // onced itself
  std::uint64_t seed = 1;
  bool fast = false;
  std::string mounts_obstacle; // why nothing can be mounted; empty: it can
  Patience patience;

  [[nodiscard]] std::chrono::milliseconds visibility_timeout() const;
  [[nodiscard]] bool is_foreign() const { return !plan.worker.command.empty(); }
};

struct EffectCounts {
  std::uint64_t results = 0;
  std::uint64_t dead_letters = 0;
};

// A process that was killed while it worked.
struct Kill {
  const Child *child = nullptr;
  std::string point;
};

// A line by which someone else's worker says that it has come to the step of the plan's `kill_when`.
struct Mark {
  std::string operation_id;
  WallTime at;
  std::string line = {}; // as it was printed
};

// Something that befell the worker.
struct Moment {
  WallTime at;
  std::string what; // of the timeline in docs/rehearsal-record.md
  std::string detail;
};

// A dead letter that was settled anew.
struct Redriven {
  std::string operation_id;
  std::string outcome;
  std::string log; // the line that the command printed
};

using Words = std::vector<std::string>;

// What the provider of the handlers is among the processes of a scenario.
inline constexpr std::string_view provider_role = "provider";

// The worker that the messages of the other are sent on to, likewise.
inline constexpr std::string_view next_worker_role = "next worker";

// How the jobs of a type are handled: the plan's handler or another command, with more keys of its table in the
// worker's configuration.
struct HandlerSetting {
  std::string type = {}; // empty: that of the seeds
  Words command = {};    // empty: the plan's
  std::vector<std::pair<std::string, Json>> keys;
};
[[nodiscard]] Words operator+(Words left, const Words &right);

// Where one scenario is played: a directory of its own, a worker that may be started again on the same data and
// endpoints, and senders. All calls throw as Patience does where something does not come to pass in time. One thread.
class Stage {
public:
  // `sockets`: a directory with a short path.
  Stage(const Setting &setting, const ScenarioPlan &scenario, std::filesystem::path directory,
        std::filesystem::path sockets);
  ~Stage();
  Stage(const Stage &) = delete;
  Stage &operator=(const Stage &) = delete;

  [[nodiscard]] const Setting &setting() const { return setting_; }
  [[nodiscard]] const ScenarioPlan &scenario() const { return scenario_; }
  [[nodiscard]] const std::vector<std::string> &seeds() const { return setting_.plan.seeds.lines; }

  // The worker's data are on such a disk from here on, and are kept in `data()` as it is left. Before the first worker.
  // Throw StageUnavailable.
  const SmallDisk &use_small_disk();
  CuttableDisk &use_cuttable_disk();
  // Cuts the power of that disk, whose worker is dead, and puts it on again.
  void cut_power(CuttableDisk &disk);
  // Keeps what is on the disk, and lets go of it. Its worker has ended.
  void leave_disk();

  // Starts the worker, after the one before it has ended. Of onced: until it says that it is ready.
  void start_worker(const Words &more = {});
  // The same, with the worker made to die as it comes to a step so often: for onced a kill point, for someone else's
  // its mark.
  void start_worker_to_be_killed(const std::string &point, std::size_t arrival = 1);
  // Starts onced-crashing in the worker's place, again whenever its handler has ended it, until the sender has ended.
  // Throws StageUnavailable where it is not installed with onced, and StageFailure where it takes more starts than so
  // many.
  void supervise_crashing_worker(Child &sender, unsigned starts_max);
  // SIGTERM, and its end.
  void stop_worker();
  // Waits until the worker was killed at its step.
  void await_kill();

  // Those jobs are queued from here on. Before the worker that is to handle them.
  void use_handler(const HandlerSetting &handler);
  // Starts the plan's provider, with more options: the first at a free port, each after it where that was, with the
  // effects that it had.
  void start_provider(const Words &options = {});
  void stop_provider();
  // Waits until the provider has had so many.
  void await_effects(std::size_t count);
  // Starts the next worker, on data and endpoints of its own, which the other knows as `next`.
  void start_next_worker(const HandlerSetting &handler);
  void stop_next_worker();
  // Waits until it has so many results.
  void await_next_results(std::uint64_t count);
  // Waits until so many jobs are held. Asks the provider about each, with the plan's reconcile command, and says what
  // it answers as their owner does.
  void resolve_held(std::size_t count);
  // Asks the worker what it has counted of its queued jobs.
  void count_handled();
  // kill -9 of the worker, at no step of its own.
  void kill_worker(const std::string &point);

  // Starts `onced send` with these jobs as its input. It sends again as a worker that was started again greets it, and
  // where `more` gives an acknowledgement timeout, after that.
  Child &start_sender(const std::vector<std::string> &jobs, const Words &more = {});
  // The same with bytes that are one job, or none.
  Child &start_raw_sender(const std::string &bytes);
  // `onced send --resume --outbox`, to go on with what is left there.
  Child &resume_sender(const Words &more);
  // Waits for the end of a sender, and keeps the outcomes that it was told.
  void finish(Child &sender);
  // The three in one.
  void send(const std::vector<std::string> &jobs, const Words &more = {}) { finish(start_sender(jobs, more)); }
  // kill -9 of a sender.
  void kill(Child &sender, const std::string &point);
  // Waits until a sender was killed at its own kill point.
  void await_kill(Child &sender, const std::string &point);

  // Sends a job as a message of two frames, which onced refuses whole and keeps. Waits until it is a dead letter.
  void send_in_parts(const std::string &job);
  // Redrives the only dead letter there is, which is of this job.
  void redrive(const std::string &job);

  // Waits until the worker, or the last sender, has told so many events of this name.
  void await_worker_events(std::string_view name, std::size_t count = 1);
  void await_sender_events(std::string_view name, std::size_t count);

  // Whether a transaction of onced has found a key present that its look-up had found absent.
  [[nodiscard]] bool has_found_key_under_lock() const;

  // Kills what still runs.
  void end_all();

  // The rows that there are now, by the count query.
  [[nodiscard]] EffectCounts count();
  // The rows that there are before the first process, likewise. No rows where there is no data directory yet, or where
  // someone else's count query finds nothing to count in an empty one.
  [[nodiscard]] std::uint64_t count_before();
  // The effects in the provider's file.
  [[nodiscard]] std::uint64_t count_at_provider() const;

  // What has been left behind, for the record.
  [[nodiscard]] const std::vector<std::unique_ptr<Child>> &children() const { return children_; }
  [[nodiscard]] const std::vector<Kill> &kills() const { return kills_; }
  [[nodiscard]] std::vector<Mark> marks();
  [[nodiscard]] const std::vector<Json> &told() const { return told_; } // lines of senders, one an outcome
  [[nodiscard]] const std::vector<Redriven> &redriven() const { return redriven_; }
  [[nodiscard]] const std::vector<std::string> &jobs() const { return jobs_; } // every line that was to be sent
  [[nodiscard]] const Json &handled() const { return handled_; }               // null: it was not asked
  [[nodiscard]] const std::vector<Moment> &moments() const { return moments_; }
  [[nodiscard]] const std::filesystem::path &directory() const { return directory_; }
  [[nodiscard]] std::filesystem::path data() const { return (disk_root_.empty() ? directory_ : disk_root_) / "data"; }
  [[nodiscard]] std::filesystem::path effects_file() const { return directory_ / "effects.jsonl"; }
  // The settlements that the worker has refused, as its log tells them.
  [[nodiscard]] std::vector<Json> late() const;
  // How many events the processes could not write, as they tell.
  [[nodiscard]] std::uint64_t events_dropped() const;
  [[nodiscard]] std::filesystem::path worker_events() const { return directory_ / "worker.events.jsonl"; }
  [[nodiscard]] const std::vector<std::filesystem::path> &sender_events() const { return sender_events_; }
  [[nodiscard]] std::string jobs_endpoint() const { return "ipc://" + (sockets_ / "jobs").string(); }
  [[nodiscard]] std::string replies_endpoint() const { return "ipc://" + (sockets_ / "replies").string(); }
  [[nodiscard]] Words count_command() const;

private:
  [[nodiscard]] Words worker_command(const Words &more) const;
  [[nodiscard]] std::string filled(const std::string &word) const;
  [[nodiscard]] Words filled(Words words) const;
  Child &start(const std::string &role, Words command, Child::OnLine on_line = {});
  Child &start_sending(const Words &arguments);
  [[nodiscard]] std::vector<Json> printed_by(const Words &command);
  [[nodiscard]] Json ask(const Words &command);
  [[nodiscard]] std::string table_of(const HandlerSetting &handler) const;
  [[nodiscard]] std::string next_endpoint(const std::string &name) const {
    return "ipc://" + (sockets_ / ("next-" + name)).string();
  }
  void resolve(const Json &held);
  void start_foreign_worker(std::size_t killed_at_mark);
  void on_mark(Child &worker, const std::string &line, std::size_t killed_at_mark);

  const Setting &setting_;
  const ScenarioPlan &scenario_;
  std::filesystem::path directory_;
  std::filesystem::path sockets_;
  std::vector<Kill> kills_;
  std::vector<Json> told_;
  std::vector<Redriven> redriven_;
  std::vector<std::string> jobs_;
  std::vector<std::filesystem::path> sender_events_;
  std::vector<Moment> moments_;
  std::string kill_point_; // of the worker that runs
  std::optional<SmallDisk> small_disk_;
  std::optional<CuttableDisk> cuttable_disk_;
  std::filesystem::path disk_root_; // empty: none is in use
  std::filesystem::path config_;    // of the worker; empty: it has none
  std::string provider_url_;        // empty: none was started
  Json handled_;
  std::uint64_t resolved_ = 0;

  std::mutex mutex_; // guards the next
  std::vector<Mark> marks_;

  std::vector<std::unique_ptr<Child>> children_; // go first: their threads use what is above
  Child *worker_ = nullptr;
  Child *provider_ = nullptr;
  Child *next_worker_ = nullptr;
};

} // namespace onced::rehearsal
