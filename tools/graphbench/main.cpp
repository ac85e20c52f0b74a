// graphbench: what cgrt's operations cost, beside the bare driver calls that do the same.

#include <cuda.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cases.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/device/device.h"
#include "cgrt/record/origin.h"
#include "cgrt/record/record.h"
#include "cgrt/simulator/simulator.h"

namespace graphbench {
namespace {

using cgrt::record::Record;
using cgrt::record::Row;

// 77 is what ctest and automake take for "skipped".
enum ExitStatus { kOk = 0, kLimitBroken = 1, kError = 2, kSkipped = 77 };

struct Options {
  std::vector<int> nodes = {1, 10, 100, 1000, 10000};
  int pairs = 31;
  std::vector<std::string> only;
  std::string json_file, csv_file, commit;
  bool is_check = false;
  bool is_simulated = false;
};

struct Measurement {
  const Case* one;
  int nodes;
};

std::vector<Measurement> selected(const Options& options) {
  std::vector<Measurement> measurements;
  for (const Case& one : all_cases()) {
    const bool is_wanted =
        options.only.empty() || std::find(options.only.begin(), options.only.end(), one.name) != options.only.end();
    if (!is_wanted) continue;
    if (!one.by_nodes) measurements.push_back({&one, 1});
    for (const int nodes : options.nodes) {
      if (one.by_nodes) measurements.push_back({&one, nodes});
    }
  }
  return measurements;
}

std::string label(const Row& row) {
  std::string text = row.name;
  for (const auto& [name, value] : row.params) absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

struct Results {
  Record record;
  std::vector<Verdict> verdicts;  // of its rows
};

absl::StatusOr<Results> run(const Options& options, const std::string& command) {
  Results results;
  results.record.program = "graphbench";
  results.record.command = command;
  results.record.commit = options.commit;
  // Files and not tools/graphbench: the records lie in there.
  results.record.measures = {"runtime/cgrt/base",
                             "runtime/cgrt/device",
                             "runtime/cgrt/driver",
                             "runtime/cgrt/exec",
                             "runtime/cgrt/graph",
                             "runtime/cgrt/launch",
                             "runtime/cgrt/stream",
                             "runtime/cgrt/target",
                             "kernels/cgrt_kernels/elementwise",
                             "tools/graphbench/bench_kernels.cu",
                             "tools/graphbench/cases.cpp",
                             "tools/graphbench/loop.cpp",
                             "tools/graphbench/measure.cpp",
                             "tools/graphbench/own.cpp",
                             "tools/graphbench/own_chain.cpp",
                             "tools/graphbench/raw.cpp",
                             "tools/graphbench/raw_calls.cpp",
                             "tools/graphbench/raw_patch.cu",
                             "tools/graphbench/raw_rebound.cpp",
                             "tools/graphbench/rebound.cpp",
                             "tools/graphbench/setup.cpp"};
  CGRT_ASSIGN_OR_RETURN(std::string device, cgrt::DeviceRef(0).name());
  cgrt::record::describe_machine(results.record, std::move(device), CUDA_VERSION, cgrt::is_simulated());
  CGRT_ASSIGN_OR_RETURN(const Setup setup, Setup::create());

  const std::vector<Measurement> measurements = selected(options);
  const Sampling sampling = options.is_simulated ? Sampling::kOnce : Sampling::kFull;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const auto [one, nodes] = measurements[i];
    std::fprintf(stderr, "[%zu/%zu] %s%s ...", i + 1, measurements.size(), one->name,
                 one->by_nodes ? absl::StrCat(" nodes=", nodes).c_str() : "");
    std::fflush(stderr);
    absl::StatusOr<Outcome> outcome = run_case(*one, setup, nodes, options.pairs, sampling);
    if (!outcome.ok()) {
      std::fprintf(stderr, " failed\n");
      return std::move(outcome).status();
    }
    const Row& row = outcome->row;
    if (options.is_simulated) {
      std::fprintf(stderr, " %s\n", row.baseline.empty() ? "ran; its baseline needs a driver" : "ran");
    } else {
      std::fprintf(stderr, " %.4g %s, baseline %.4g\n", row.median, row.unit.c_str(), row.baseline_median);
    }
    results.record.rows.push_back(row);
    results.verdicts.push_back(outcome->verdict);
  }
  return results;
}

int report(const Options& options, const Results& results) {
  cgrt::record::TableColumn verdicts{"verdict"};
  for (const Verdict& verdict : results.verdicts) verdicts.cells.push_back(verdict.text);
  std::fputs(cgrt::record::to_table(results.record, verdicts).c_str(), stdout);

  absl::Status written;
  if (!options.json_file.empty()) {
    written.Update(cgrt::write_text_file(options.json_file, cgrt::record::to_json(results.record)));
  }
  if (!options.csv_file.empty()) {
    written.Update(cgrt::write_text_file(options.csv_file, cgrt::record::to_csv(results.record)));
  }
  if (!written.ok()) {
    std::fprintf(stderr, "graphbench: %s\n", std::string(written.message()).c_str());
    return kError;
  }
  if (!options.is_check) return kOk;
  int status = kOk;
  for (std::size_t i = 0; i < results.verdicts.size(); ++i) {
    if (results.verdicts[i].judgement != Judgement::kBroken) continue;
    std::fprintf(stderr, "graphbench: %s: %s\n", label(results.record.rows[i]).c_str(),
                 results.verdicts[i].text.c_str());
    status = kLimitBroken;
  }
  return status;
}

int measure_and_report(const Options& options, const std::string& command) {
  std::unique_ptr<cgrt::Simulator> simulator;
  if (options.is_simulated) simulator = std::make_unique<cgrt::Simulator>();
  const absl::StatusOr<int> devices = cgrt::device_count();
  if (absl::IsUnavailable(devices.status()) || (devices.ok() && *devices == 0)) {
    const std::string reason = devices.ok() ? "there is no CUDA device." : std::string(devices.status().message());
    std::fprintf(stderr, "skipped: %s\n", reason.c_str());
    return kSkipped;
  }
  const absl::StatusOr<Results> results = run(options, command);
  if (!results.ok()) {
    std::fprintf(stderr, "graphbench: %s\n", std::string(results.status().message()).c_str());
    return kError;
  }
  return report(options, *results);
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Measures cgrt's operations beside bare driver calls that do the same, taking turns in one loop.\n"
      "Exits 0; 1 when --check finds a limit broken; 2 on errors; 77 when there is no CUDA device.",
      "graphbench");
  std::vector<std::string> names;
  for (const Case& one : all_cases()) names.emplace_back(one.name);

  Options options;
  CLI::Option* nodes = app.add_option("--nodes", options.nodes, "Lengths of the chains of kernels")
                           ->delimiter(',')
                           ->check(CLI::Range(1, 100000))
                           ->capture_default_str();
  app.add_option("--pairs", options.pairs, "Samples of each side")->check(CLI::Range(15, 10001))->capture_default_str();
  app.add_option("--only", options.only, "Measure this row alone; may be repeated")->check(CLI::IsMember(names));
  app.add_option("--json", options.json_file, "Write the record to this file")->check(cgrt::file_name_error);
  app.add_option("--csv", options.csv_file, "Write the rows to this file")->check(cgrt::file_name_error);
  app.add_option("--commit", options.commit, "The commit that is measured, for the record");
  app.add_flag("--check", options.is_check, "Fail when a row breaks its limit")->disable_flag_override();
  app.add_flag("--simulate", options.is_simulated,
               "Run every operation once or twice on the simulator; gives no figures")
      ->disable_flag_override();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kError;  // 0 for --help
  }
  // Enough to run every line; the simulator is not made for size.
  if (options.is_simulated && nodes->count() == 0) options.nodes = {1, 10};

  return measure_and_report(options, cgrt::record::command_line("graphbench", argc, argv));
}

}  // namespace
}  // namespace graphbench

int main(int argc, char** argv) {
  try {
    return graphbench::parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "graphbench: %s\n", error.what());
    return graphbench::kError;
  }
}
