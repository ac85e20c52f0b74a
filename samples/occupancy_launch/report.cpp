#include "report.h"

#include <algorithm>

#include "../common/machine.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/record/statistics.h"

namespace {

using cgrt::record::median;
using cgrt::record::quantile;
using cgrt::record::Record;
using cgrt::record::Row;
using cgrt::record::spread;

}  // namespace

std::string to_table(const std::vector<Run>& runs) {
  constexpr char kLine[] = "%-24s %5s %7s %7s %7s %6s  %-13s %9s\n";
  std::string table = absl::StrFormat(kLine, "name", "block", "grid", "per SM", "warps", "ratio", "limiter", "us/node");
  for (const Run& run : runs) {
    const cgrt::Occupancy& found = run.occupancy;
    absl::StrAppendFormat(&table, kLine, run.name, absl::StrCat(run.config.block.x), absl::StrCat(run.config.grid.x),
                          absl::StrCat(found.blocks_per_sm), absl::StrCat(found.active_warps, "/", found.max_warps),
                          absl::StrFormat("%.2f", found.ratio), to_string(found.limiter),
                          cgrt::is_simulated() ? "simulated" : absl::StrFormat("%.2f", median(run.times)));
  }
  return table;
}

std::string best(const std::vector<Run>& runs) {
  if (cgrt::is_simulated()) return "Which was best is a matter of time: simulated.\n";
  const Run& fastest = *std::max_element(
      runs.begin(), runs.end(), [](const Run& a, const Run& b) { return median(a.ratios) < median(b.ratios); });
  return absl::StrFormat("Best: %s, blocks of %d threads: %.2f times as fast as the suggested configuration.\n",
                         fastest.name, fastest.config.block.x, median(fastest.ratios));
}

absl::StatusOr<cgrt::record::Record> to_record(cgrt::DeviceRef device, const std::vector<Run>& runs,
                                               std::string command, std::string commit) {
  Record record{.program = "occupancy_launch",
                .command = std::move(command),
                .commit = std::move(commit),
                .measures = {"runtime/cgrt/exec", "runtime/cgrt/launch", "samples/occupancy_launch/main.cpp",
                             "samples/occupancy_launch/smooth.cu", "samples/occupancy_launch/smooth.h"}};
  CGRT_RETURN_IF_ERROR(describe_machine(record, device));
  for (const Run& run : runs) {
    Row row{.name = run.name,
            .params = {{"block", run.config.block.x},
                       {"grid", run.config.grid.x},
                       {"blocks_per_sm", run.occupancy.blocks_per_sm},
                       {"active_warps", run.occupancy.active_warps}},
            .unit = "us/node",
            .median = median(run.times),
            .p95 = quantile(run.times, 0.95),
            .samples = static_cast<std::int64_t>(run.times.size())};
    if (&run != &runs.front()) {
      row.baseline = "suggested";
      row.baseline_median = median(run.baseline_times);
      row.speedup = median(run.ratios);
      row.spread = spread(run.ratios);
    }
    record.rows.push_back(std::move(row));
  }
  return record;
}
