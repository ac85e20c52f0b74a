// mlp_step: one step of a transformer's MLP block (norm, product, gate, product, residual) with another
// number of tokens in every step, as when requests come and go. The same call site runs eagerly, as an
// executable for each number, captured or explicit, and as one executable that is updated. All must give the
// same bits: exit 1 otherwise.

#include <CLI/CLI.hpp>
#include <algorithm>
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
  Workload workload{.tokens = {1, 3, 16, 7, 64, 24, 5, 48}};
  std::string json, commit = "unknown", command;
};

absl::Status run(cgrt::DeviceRef device, const Options& options) {
  CGRT_ASSIGN_OR_RETURN(const double error, check_small(device));
  std::printf("On a small shape the largest difference from the same in double is %.2g.\n", error);
  const Workload& workload = options.workload;
  std::printf("hidden %d, intermediate %d, bfloat16; passes of %d steps, tokens",
              static_cast<int>(workload.shape.hidden), static_cast<int>(workload.shape.intermediate), workload.steps);
  for (const std::uint64_t tokens : workload.tokens) std::printf(" %d", static_cast<int>(tokens));
  std::puts(" in turn");
  CGRT_ASSIGN_OR_RETURN(const std::vector<WayResult> results, measure(device, workload));
  std::fputs(to_table(results).c_str(), stdout);
  std::puts("In every line all steps gave the bits of the eager ones.");
  std::fputs(best(results).c_str(), stdout);
  if (options.json.empty()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const cgrt::inspect::Record record,
                        to_record(device, workload, results, options.command, options.commit));
  return cgrt::inspect::write_text_file(options.json, cgrt::inspect::to_json(record));
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<cgrt::Simulator> simulator;
  const absl::StatusOr<int> devices = cgrt::device_count();
  if (absl::IsUnavailable(devices.status())) simulator.emplace();

  Options options;
  Workload& workload = options.workload;
  if (simulator.has_value()) {  // where products are sums in a loop on the host
    workload = {.shape = {.hidden = 64, .intermediate = 128}, .tokens = {1, 3, 16, 7, 24}, .steps = 5};
  }
  CLI::App app(
      "Measures a step of an MLP block whose number of tokens changes. Without a GPU it runs on the simulator.",
      "mlp_step");
  app.add_option("--tokens", workload.tokens, "Of the steps, in turn: 1,3,16")->delimiter(',')->capture_default_str();
  app.add_option("--hidden", workload.shape.hidden, "A multiple of 8")->capture_default_str();
  app.add_option("--intermediate", workload.shape.intermediate, "A multiple of 8")->capture_default_str();
  app.add_option("--steps", workload.steps, "Of a pass")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--json", options.json, "Write the figures to this file, as a cgrt-record-1");
  app.add_option("--commit", options.commit, "The commit that is measured, for the record")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  workload.shape.most_tokens = *std::max_element(workload.tokens.begin(), workload.tokens.end());
  options.command = "mlp_step";
  for (int i = 1; i < argc; ++i) options.command += std::string(" ") + argv[i];

  if (simulator.has_value()) {
    std::printf("No GPU here: running on the simulator; no figure below is a GPU time. (%s)\n",
                std::string(devices.status().message()).c_str());
    std::fflush(stdout);  // it stands before everything, also before what goes to stderr
  }
  const absl::Status status = run(cgrt::DeviceRef(0), options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "mlp_step: %s\n", status.ToString().c_str());
  return 1;
}
