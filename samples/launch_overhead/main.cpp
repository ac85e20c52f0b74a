// launch_overhead: from which chain length and kernel size on a graph pays, and by how much.
//
// The same chain of kernels is launched eagerly, as a captured graph, as a graph built node by node,
// and with programmatic edges; only the LaunchTarget differs. All must give the same bits: exit 1
// otherwise.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>

#include "cgrt/base/status_macros.h"
#include "cgrt/device/device.h"
#include "cgrt/inspect/record.h"
#include "cgrt/inspect/text_file.h"
#include "cgrt/simulator/simulator.h"
#include "measure.h"
#include "report.h"

namespace {

struct Options {
  bool quick = false;
  std::string csv, json, graphs, commit = "unknown", command;
};

absl::Status run(cgrt::DeviceRef device, const Options& options) {
  CGRT_ASSIGN_OR_RETURN(const std::vector<Point> points, measure(device, choose_sweep(options.quick)));
  std::fputs(to_table(points).c_str(), stdout);
  std::puts("In every line all modes gave the same bits.");
  std::fputs(break_even(points).c_str(), stdout);

  CGRT_ASSIGN_OR_RETURN(const cgrt::inspect::Record record, to_record(points, device, options.command, options.commit));
  if (!options.csv.empty()) {
    CGRT_RETURN_IF_ERROR(cgrt::inspect::write_text_file(options.csv, cgrt::inspect::to_csv(record)));
  }
  if (!options.json.empty()) {
    CGRT_RETURN_IF_ERROR(cgrt::inspect::write_text_file(options.json, cgrt::inspect::to_json(record)));
  }
  return options.graphs.empty() ? absl::OkStatus() : write_graphs(device, options.graphs);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures chains of kernels, eager against graph mode. Without a GPU it runs on the simulator.",
               "launch_overhead");
  app.add_flag("--quick", options.quick, "Fewer lengths, sizes and samples");
  app.add_option("--csv", options.csv, "Write the figures to this file, comma-separated");
  app.add_option("--json", options.json, "Write the figures to this file, as a cgrt-record-1");
  app.add_option("--graphs", options.graphs, "Write a short chain's graphs, for graphdump, into this folder");
  app.add_option("--commit", options.commit, "The commit that is measured, for the record")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.command = "launch_overhead";
  for (int i = 1; i < argc; ++i) options.command += std::string(" ") + argv[i];

  std::optional<cgrt::Simulator> simulator;
  if (const absl::StatusOr<int> devices = cgrt::device_count(); absl::IsUnavailable(devices.status())) {
    std::printf("No GPU here: running on the simulator; no figure below is a GPU time. (%s)\n",
                std::string(devices.status().message()).c_str());
    std::fflush(stdout);  // it stands before everything, also before what goes to stderr
    simulator.emplace();
  }
  const absl::Status status = run(cgrt::DeviceRef(0), options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "launch_overhead: %s\n", status.ToString().c_str());
  return 1;
}
