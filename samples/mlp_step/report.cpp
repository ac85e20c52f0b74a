#include "report.h"

#include <algorithm>
#include <utility>

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

using Time = double PassTimes::*;

std::vector<double> times_of(const std::vector<PassTimes>& passes, Time time) {
  std::vector<double> times;
  for (const PassTimes& pass : passes) times.push_back(pass.*time);
  return times;
}

std::vector<double> ratios_of(const std::vector<PassTimes>& baseline, const std::vector<PassTimes>& passes, Time time) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < passes.size(); ++i) ratios.push_back(baseline[i].*time / passes[i].*time);
  return ratios;
}

Row row_of(const char* what, const WayResult& result, const Workload& workload, const std::vector<double>& times) {
  return {.name = absl::StrCat(what, "_", to_string(result.way)),
          .params = {{"hidden", static_cast<std::int64_t>(workload.shape.hidden)},
                     {"intermediate", static_cast<std::int64_t>(workload.shape.intermediate)},
                     {"executables", result.executables},
                     {"updated", result.counts.updated},
                     {"instantiated", result.counts.instantiated}},
          .unit = "us",
          .median = median(times),
          .p95 = quantile(times, 0.95),
          .samples = static_cast<std::int64_t>(times.size())};
}

Row compared(Row row, const char* name, const std::vector<PassTimes>& baseline, const std::vector<PassTimes>& passes,
             Time time) {
  if (baseline.empty()) return row;
  const std::vector<double> ratios = ratios_of(baseline, passes, time);
  row.baseline = name;
  row.baseline_median = median(times_of(baseline, time));
  row.speedup = median(ratios);
  row.spread = spread(ratios);
  return row;
}

}  // namespace

std::string to_table(const std::vector<WayResult>& results) {
  constexpr char kLine[] = "%-9s %10s %10s %15s %9s %11s %13s %12s %8s %13s\n";
  const auto text = [](double value, int digits) {
    return cgrt::is_simulated() ? "simulated" : absl::StrFormat("%.*f", digits, value);
  };
  std::string table = absl::StrFormat(kLine, "way", "host us", "step us", "back to back us", "vs eager", "vs captured",
                                      "new batch us", "executables", "updated", "instantiated");
  const auto ratio = [&](const std::vector<PassTimes>& baseline, const WayResult& result) {
    return baseline.empty() ? "-" : text(median(ratios_of(baseline, result.passes, &PassTimes::step)), 2);
  };
  for (const WayResult& result : results) {
    absl::StrAppendFormat(
        &table, kLine, to_string(result.way), text(median(times_of(result.passes, &PassTimes::host)), 1),
        text(median(times_of(result.passes, &PassTimes::step)), 1),
        text(median(times_of(result.passes, &PassTimes::back_to_back)), 1), ratio(result.eager_passes, result),
        ratio(result.captured_passes, result), result.new_batch.empty() ? "-" : text(median(result.new_batch), 1),
        absl::StrCat(result.executables), absl::StrCat(result.counts.updated),
        absl::StrCat(result.counts.instantiated));
  }
  for (const WayResult& result : results) {
    for (const auto& [refusal, count] : result.counts.refusals) {
      absl::StrAppendFormat(&table, "%s, %d times %s\n", to_string(result.way), count, refusal);
    }
  }
  absl::StrAppend(
      &table,
      "Of a step: host, until the call returns; step, until the host knows that it is done; back to back, on "
      "the device\nwhen nobody waits; vs eager and vs captured, of `step`; new batch, `step` of a number of tokens "
      "that "
      "comes for the\nfirst time. Of a pass: executables updated, or rebound, and instantiated.\n");
  return table;
}

std::string best(const std::vector<WayResult>& results) {
  if (cgrt::is_simulated()) return "Which way was best is a matter of time: simulated.\n";
  const auto step = [](const WayResult& result) { return median(times_of(result.passes, &PassTimes::step)); };
  const auto new_batch = [](const WayResult& result) { return median(result.new_batch); };
  const auto shortest = [](auto from, auto to, auto time) {
    return to_string(std::min_element(from, to, [&](const auto& a, const auto& b) { return time(a) < time(b); })->way);
  };
  const std::string steps = absl::StrFormat("Shortest steps: %s.", shortest(results.begin(), results.end(), step));
  if (results.front().new_batch.empty()) return steps + "\n";
  return absl::StrFormat("%s Of graphs, shortest steps of a batch that is new: %s.\n", steps,
                         shortest(results.begin() + 1, results.end(), new_batch));
}

absl::StatusOr<Record> to_record(cgrt::DeviceRef device, const Workload& workload,
                                 const std::vector<WayResult>& results, std::string command, std::string commit) {
  Record record{
      .program = "mlp_step",
      .command = std::move(command),
      .commit = std::move(commit),
      .measures = {"runtime/cgrt/driver", "runtime/cgrt/exec", "runtime/cgrt/graph", "runtime/cgrt/launch",
                   "runtime/cgrt/stream", "runtime/cgrt/target", "kernels/cgrt_kernels/cublaslt",
                   "kernels/cgrt_kernels/elementwise", "kernels/cgrt_kernels/norm", "samples/mlp_step/main.cpp",
                   "samples/mlp_step/measure.cpp", "samples/mlp_step/measure.h", "samples/mlp_step/mlp.cpp",
                   "samples/mlp_step/mlp.h", "samples/mlp_step/runner.cpp", "samples/mlp_step/runner.h"}};
  CGRT_RETURN_IF_ERROR(describe_machine(record, device));
  for (const WayResult& result : results) {
    for (const auto& [what, time] : {std::pair("host", &PassTimes::host), std::pair("step", &PassTimes::step),
                                     std::pair("back_to_back", &PassTimes::back_to_back)}) {
      const Row row = row_of(what, result, workload, times_of(result.passes, time));
      record.rows.push_back(compared(row, "eager", result.eager_passes, result.passes, time));
      if (result.captured_passes.empty()) continue;
      record.rows.push_back(compared(row, "captured", result.captured_passes, result.passes, time));
      record.rows.back().name += "_vs_captured";
    }
    if (!result.new_batch.empty()) record.rows.push_back(row_of("new_batch", result, workload, result.new_batch));
  }
  return record;
}
