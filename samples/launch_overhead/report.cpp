#include "report.h"

#include <algorithm>

#include "../common/machine.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cgrt/base/status_macros.h"

namespace {

constexpr double kWorthwhile = 1.10;
constexpr std::int64_t kJudgedNodes = 1000;

std::string time_text(double microseconds) { return absl::StrFormat("%.*f", microseconds < 10 ? 3 : 1, microseconds); }

cgrt::record::Row row_of(const char* what, const Point& point, Mode mode, const Spread& spread) {
  cgrt::record::Row row;
  row.name = absl::StrCat(what, "_", to_string(mode));
  row.params = {{"nodes", point.nodes}, {"bytes", point.bytes}};
  row.unit = "us";
  row.median = spread.median;
  row.p95 = spread.p95;
  row.samples = spread.count;
  return row;
}

// What ran, where there are no times.
std::string list_of(const std::vector<Point>& points) {
  std::string list;
  for (const Point& point : points) {
    absl::StrAppend(&list, point.nodes, point.nodes == 1 ? " kernel" : " kernels", " of ", point.bytes / 1024, " KiB:");
    for (const ModeResult& mode : point.modes) absl::StrAppend(&list, " ", to_string(mode.mode));
    list += '\n';
  }
  return list;
}

}  // namespace

std::string to_table(const std::vector<Point>& points) {
  if (cgrt::is_simulated()) return list_of(points);
  constexpr char kLine[] = "%6s %6s  %-12s %10s %10s %10s %10s %10s %9s %9s %6s\n";
  std::string table = absl::StrFormat(kLine, "nodes", "KiB", "mode", "chain us", "p95", "per node", "host us",
                                      "cold us", "vs eager", "spread", "count");
  for (const Point& point : points) {
    const std::string nodes = absl::StrCat(point.nodes), kib = absl::StrCat(point.bytes / 1024);
    if (!point.skipped.empty()) absl::StrAppendFormat(&table, "%6s %6s  skipped: %s\n", nodes, kib, point.skipped);
    for (const ModeResult& mode : point.modes) {
      const bool graph = mode.mode != Mode::kEager;
      const auto ratio = [&](double value) { return graph ? absl::StrFormat("%.2f", value) : "-"; };
      absl::StrAppendFormat(&table, kLine, nodes, kib, to_string(mode.mode), time_text(mode.chain.median),
                            time_text(mode.chain.p95), time_text(mode.chain.median / static_cast<double>(point.nodes)),
                            time_text(mode.launch.median), graph ? time_text(mode.cold.median) : "-",
                            ratio(mode.speedup), ratio(mode.ratio_spread), absl::StrCat(mode.chain.count));
    }
  }
  return table;
}

std::string break_even(const std::vector<Point>& points) {
  if (cgrt::is_simulated()) {
    return "From which kernel size on graph mode no longer pays is a matter of time: simulated.\n";
  }
  std::int64_t nodes = 0;
  for (const Point& point : points) {
    if (point.nodes <= kJudgedNodes) nodes = std::max(nodes, point.nodes);
  }
  std::int64_t largest = 0, pays_no_more = 0;  // bytes; points come in ascending order of them
  for (const Point& point : points) {
    if (point.nodes != nodes || !point.skipped.empty()) continue;
    largest = point.bytes;
    const bool pays = std::any_of(point.modes.begin(), point.modes.end(), [](const ModeResult& mode) {
      return mode.mode == Mode::kCaptured && mode.speedup >= kWorthwhile;
    });
    if (pays) pays_no_more = 0;
    if (!pays && pays_no_more == 0) pays_no_more = point.bytes;
  }
  if (pays_no_more == 0) {
    return absl::StrFormat(
        "At %d kernels graph mode pays at every size measured, up to %d KiB per kernel (at least 10 %% faster than "
        "eager).\n",
        nodes, largest / 1024);
  }
  return absl::StrFormat(
      "From about %d KiB per kernel on, graph mode no longer pays (less than 10 %% faster than eager; chains of %d "
      "kernels).\n",
      pays_no_more / 1024, nodes);
}

absl::StatusOr<cgrt::record::Record> to_record(const std::vector<Point>& points, cgrt::DeviceRef device,
                                               std::string command, std::string commit) {
  cgrt::record::Record record;
  record.program = "launch_overhead";
  record.command = std::move(command);
  record.commit = std::move(commit);
  record.measures = {"runtime/cgrt/driver",
                     "runtime/cgrt/exec",
                     "runtime/cgrt/graph",
                     "runtime/cgrt/launch",
                     "runtime/cgrt/stream",
                     "runtime/cgrt/target",
                     "kernels/cgrt_kernels/elementwise",
                     "samples/launch_overhead/chain.cpp",
                     "samples/launch_overhead/measure.cpp"};
  CGRT_RETURN_IF_ERROR(describe_machine(record, device));
  for (const Point& point : points) {
    for (const ModeResult& mode : point.modes) {
      const bool graph = mode.mode != Mode::kEager;
      cgrt::record::Row chain = row_of("chain", point, mode.mode, mode.chain);
      if (graph) {
        chain.baseline = "eager";
        chain.baseline_median = mode.eager_median;
        chain.speedup = mode.speedup;
        chain.spread = mode.ratio_spread;
      }
      record.rows.push_back(std::move(chain));
      record.rows.push_back(row_of("launch", point, mode.mode, mode.launch));
      if (graph) record.rows.push_back(row_of("cold", point, mode.mode, mode.cold));
    }
  }
  return record;
}
