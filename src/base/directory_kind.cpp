#include "base/directory_kind.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <rocksdb/db.h>

namespace onced {
namespace {

bool is_record(const std::filesystem::path &directory) {
  std::error_code error;
  return std::filesystem::exists(directory / "record.json", error);
}

Error wrong_kind(DirectoryKind kind, const std::filesystem::path &directory) {
  Error error{.code = ErrorCode::usage, .concerns = directory.string(), .cause = {}, .remedy = {}};
  switch (kind) {
  case DirectoryKind::worker:
    error.cause = "is the data directory of a worker";
    error.remedy = "use it with --data; give an outbox a directory of its own";
    break;
  case DirectoryKind::outbox:
    error.cause = "is the outbox of a sender";
    error.remedy = "to go on with the jobs in it: onced send --resume --outbox " + directory.string() +
                   "; give a worker another --data";
    break;
  case DirectoryKind::record:
    error.cause = "is the record of a rehearsal";
    error.remedy = "to look at it: onced rehearse --verify " + directory.string() + "; give another directory";
    break;
  case DirectoryKind::none:
    error.cause = "is neither the data directory of a worker nor an outbox nor a record";
    error.remedy = "check the path";
    break;
  }
  return error;
}

} // namespace

// The families tell a worker's database from an outbox, whatever else was lost. A worker makes `operations` before
// `meta`, so a database that was left half made is never taken for an outbox.
DirectoryKind kind_of_directory(const std::filesystem::path &directory) {
  if (is_record(directory)) return DirectoryKind::record;
  std::error_code error;
  if (std::filesystem::exists(directory / "db" / "CURRENT", error)) {
    std::vector<std::string> families;
    const auto status = rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), (directory / "db").string(), &families);
    const auto has = [&](const char *family) {
      return status.ok() && std::find(families.begin(), families.end(), family) != families.end();
    };
    if (has("operations")) return DirectoryKind::worker;
    if (has("meta")) return DirectoryKind::outbox;
  }
  if (std::filesystem::exists(directory / store_mark_name, error)) return DirectoryKind::worker;
  return std::filesystem::exists(directory / outbox_mark_name, error) ? DirectoryKind::outbox : DirectoryKind::none;
}

Result<void> expect_kind(DirectoryKind expected, const std::filesystem::path &directory) {
  const DirectoryKind kind = kind_of_directory(directory);
  if (kind == expected || kind == DirectoryKind::none) return {};
  return tl::unexpected(wrong_kind(kind, directory));
}

Result<void> expect_no_record(const std::filesystem::path &directory) {
  if (!is_record(directory)) return {};
  return tl::unexpected(wrong_kind(DirectoryKind::record, directory));
}

} // namespace onced
