#include <stdexcept>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "batches.hpp"
#include "rows.hpp"

namespace onced::bench::limits {
namespace {

class AppendedFile {
public:
  explicit AppendedFile(const std::filesystem::path &path)
      : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), path.string());
  }
  ~AppendedFile() { ::close(descriptor_); }
  AppendedFile(const AppendedFile &) = delete;
  AppendedFile &operator=(const AppendedFile &) = delete;

  void append(BytesView bytes) const {
    if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) fail();
    if (::fdatasync(descriptor_) != 0) fail();
  }

private:
  [[noreturn]] static void fail() { throw std::system_error(errno, std::generic_category(), "append"); }
  int descriptor_;
};

std::vector<Bytes> packed(const std::vector<std::vector<NewRow>> &batches) {
  std::vector<Bytes> records;
  records.reserve(batches.size());
  for (const auto &rows : batches) {
    Bytes &record = records.emplace_back();
    for (const NewRow &row : rows)
      record.append(row.key).append(row.value);
  }
  return records;
}

} // namespace

Measured measure_append(const Setting &setting) {
  const auto batches = rows_by_batch(setting.traffic);
  const auto records = packed(batches);
  const auto path = setting.directory / "appended";
  const AppendedFile file(path);
  Measured measured = time_batches(records.size(), setting.threads,
                                   [&] { return BatchWork([&](std::size_t batch) { file.append(records[batch]); }); });
  measured.row_bytes = bytes_of(batches);
  if (std::filesystem::file_size(path) != *measured.row_bytes) {
    throw std::runtime_error("the file has " + std::to_string(std::filesystem::file_size(path)) + " bytes, not " +
                             std::to_string(*measured.row_bytes));
  }
  return measured;
}

} // namespace onced::bench::limits
