#include "damage/trial.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <utility>

#include <unistd.h>

#include "base/child_process.hpp"
#include "support/log_records.hpp"
#include "support/process.hpp"

namespace onced::testing {
namespace {

namespace fs = std::filesystem;

void apply(const Damage &damage, const fs::path &directory) {
  const fs::path path = directory / damage.file;
  switch (damage.kind) {
  case Damage::Kind::none:
    return;
  case Damage::Kind::flip:
    return change_byte(path, damage.at, damage.bits);
  case Damage::Kind::cut:
    return fs::resize_file(path, damage.at);
  case Damage::Kind::removal:
    fs::remove(path);
    return;
  case Damage::Kind::zero:
    return zero_bytes(path, damage.at, damage.bytes);
  case Damage::Kind::swap:
    fs::rename(path, directory / "exchanged");
    fs::rename(directory / damage.other, path);
    fs::rename(directory / "exchanged", directory / damage.other);
    return;
  case Damage::Kind::copy:
    fs::remove_all(path);
    fs::copy(directory / damage.other, path, fs::copy_options::recursive); // an absolute path stays as it is
  }
}

// The verdict as a digit, then the text, which is made one line.
std::string line_of(Finding finding) {
  std::replace(finding.text.begin(), finding.text.end(), '\n', ' ');
  return std::to_string(static_cast<unsigned>(finding.verdict)) + finding.text + '\n';
}

Finding finding_in(const std::string &line) {
  return {static_cast<Verdict>(line.at(0) - '0'), line.substr(1)};
}

} // namespace

std::string describe(const Damage &damage) {
  const std::string where = damage.file.string();
  const std::string how = damage.opening == Opening::read_only ? ", read-only" : "";
  switch (damage.kind) {
  case Damage::Kind::none:
    break;
  case Damage::Kind::flip:
    return where + ", byte " + std::to_string(damage.at) + ", bits " + std::to_string(damage.bits) + how;
  case Damage::Kind::cut:
    return where + " cut to " + std::to_string(damage.at) + " bytes" + how;
  case Damage::Kind::removal:
    return where + " removed" + how;
  case Damage::Kind::zero:
    return where + ", " + std::to_string(damage.bytes) + " zeros from byte " + std::to_string(damage.at) + how;
  case Damage::Kind::swap:
    return where + " and " + damage.other.string() + " exchanged" + how;
  case Damage::Kind::copy:
    return where + " replaced by " + damage.other.string() + how;
  }
  return "no damage" + how;
}

Trial::Trial(Shape shape)
    : Trial([shape](const fs::path &directory) { prepare_store(directory, shape); },
            [jobs = acknowledged_jobs(shape)](const fs::path &directory, Opening opening) {
              return examine(directory, jobs, opening);
            }) {}

Trial::Trial(const Prepare &prepare, Examine examine) : examine_(std::move(examine)) {
  prepare(original());
}

std::vector<Finding> Trial::run(const std::vector<Damage> &damages) const {
  std::vector<Finding> findings;
  findings.reserve(damages.size());
  while (findings.size() < damages.size()) {
    const auto more = run_until_death(std::span(damages).subspan(findings.size()));
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

// The findings up to the first death, with that.
std::vector<Finding> Trial::run_until_death(std::span<const Damage> damages) const {
  const ScratchDirectory directory;
  Pipe pipe = make_pipe().value();
  auto examining =
      ChildProcess::start_copy([&] { return examine_all(damages, directory.path() / "scratch", pipe.writing); });
  pipe.writing = Descriptor();
  ChildOutput output(std::move(pipe.reading));
  std::vector<Finding> findings;
  findings.reserve(damages.size());
  while (const auto line = output.next_line(MonotonicTime::max()))
    findings.push_back(finding_in(*line));
  const ProcessEnd end = examining.value().wait();
  if (findings.size() < damages.size()) findings.push_back({Verdict::crashed, end.text()});
  return findings;
}

// In the copy: a line for each damage. The exit code.
int Trial::examine_all(std::span<const Damage> damages, const fs::path &scratch, const Descriptor &output) const {
  try {
    for (const Damage &damage : damages) {
      ::alarm(static_cast<unsigned>(patience.count())); // what hangs is killed
      fs::remove_all(scratch);
      fs::copy(original(), scratch, fs::copy_options::recursive);
      apply(damage, scratch);
      const std::string line = line_of(examine_(scratch, damage.opening));
      if (!write_all(output, line)) return 1;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "examining what was damaged: %s\n", error.what());
    return 1;
  }
  return 0;
}

} // namespace onced::testing
