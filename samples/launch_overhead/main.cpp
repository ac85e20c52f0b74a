// launch_overhead: from which chain length and kernel size on a graph pays, and by how much.
//
// The same chain of kernels is launched eagerly, as a captured graph, as a graph built node by node,
// and with programmatic edges; only the LaunchTarget differs. All must give the same bits: exit 1
// otherwise.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "../common/options.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/device/device.h"
#include "cgrt/record/origin.h"
#include "cgrt/record/record.h"
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

  CGRT_ASSIGN_OR_RETURN(const cgrt::record::Record record, to_record(points, device, options.command, options.commit));
  if (!options.csv.empty()) {
    CGRT_RETURN_IF_ERROR(cgrt::write_text_file(options.csv, cgrt::record::to_csv(record)));
  }
  if (!options.json.empty()) {
    CGRT_RETURN_IF_ERROR(cgrt::write_text_file(options.json, cgrt::record::to_json(record)));
  }
  return options.graphs.empty() ? absl::OkStatus() : write_graphs(device, options.graphs);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures chains of kernels, eager against graph mode. Without a GPU it runs on the simulator.",
               "launch_overhead");
  app.add_flag("--quick", options.quick, "Fewer lengths, sizes and samples")->disable_flag_override();
  app.add_option("--csv", options.csv, "Write the figures to this file, comma-separated")->check(cgrt::file_name_error);
  app.add_option("--json", options.json, "Write the figures to this file, as a cgrt-record-1")
      ->check(cgrt::file_name_error);
  app.add_option("--graphs", options.graphs, "Write a short chain's graphs, for graphdump, into this folder")
      ->check(CLI::ExistingDirectory);
  app.add_option("--commit", options.commit, "The commit that is measured, for the record")->capture_default_str();
  if (const auto exit_code = parse(app, argc, argv)) return *exit_code;
  options.command = cgrt::record::command_line("launch_overhead", argc, argv);

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0), options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "launch_overhead: %s\n", status.ToString().c_str());
  return 1;
}
