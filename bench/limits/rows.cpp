#include "rows.hpp"

#include <algorithm>
#include <stdexcept>

#include "onced/digest.hpp"
#include "onced/handler.hpp"
#include "onced/job.hpp"
#include "store/rows/records.hpp"
#include "store/verdict.hpp"

namespace onced::bench::limits {
namespace {

class RowMaker {
public:
  NewRow make(BytesView bytes) {
    if (!parser_.parse(bytes, job_)) throw std::runtime_error("a delivery is no job");
    const auto verdict = store::verdict_of_handler(job_, handlers_, parser_);
    if (verdict.bury) throw std::runtime_error("a handler refused a delivery");
    NewRow row;
    assign_key(job_, key_);
    row.key = key_.bytes;
    // A time of today's length; a worker would write the two at which it happened.
    store::encode_operation(store::operation_record(Phase::committed, job_, digester_.intent(job_.type, job_.payload),
                                                    verdict.settlement.result, now_, now_, Durability::fsync),
                            row.value);
    return row;
  }

private:
  JobParser parser_;
  Digester digester_;
  Handlers handlers_ = built_in_handlers();
  WallTime now_ = SystemClock().wall();
  Job job_;
  Key key_;
};

} // namespace

std::vector<std::vector<NewRow>> rows_by_batch(const Traffic &traffic) {
  std::vector<std::vector<NewRow>> batches;
  if (traffic.stored == 0) return batches;
  const Workload &workload = traffic.measured;
  RowMaker maker;
  std::vector<bool> seen(workload.jobs.size(), false);
  std::size_t delivery = 0;
  for (const auto &message : workload.messages) {
    std::vector<NewRow> rows;
    for (const std::size_t end = delivery + message.deliveries; delivery < end; ++delivery) {
      const std::size_t job = workload.arrivals[delivery];
      if (seen[job]) continue;
      seen[job] = true;
      rows.push_back(maker.make(workload.jobs[job]));
    }
    if (!rows.empty()) batches.push_back(std::move(rows));
  }
  return batches;
}

std::uint64_t bytes_of(const std::vector<std::vector<NewRow>> &batches) {
  std::uint64_t bytes = 0;
  for (const auto &rows : batches) {
    for (const NewRow &row : rows)
      bytes += row.key.size() + row.value.size();
  }
  return bytes;
}

} // namespace onced::bench::limits
