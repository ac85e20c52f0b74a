// mlp_step: one step of a transformer's MLP block (norm, product, gate, product, residual) with another
// number of tokens in every step, as when requests come and go. The same call site runs eagerly, as an
// executable for each number, captured or explicit, as one executable that is updated, and as one that is rebound.
// All must give the same bits: exit 1 otherwise.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "../common/options.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cgrt/base/status_macros.h"
#include "cgrt/base/text_file.h"
#include "cgrt/device/device.h"
#include "cgrt/record/origin.h"
#include "cgrt/record/record.h"
#include "cgrt/simulator/simulator.h"
#include "measure.h"
#include "report.h"

namespace {

// Larger ones overflow no number, but memory: 8 GB of weights are enough.
constexpr std::int64_t kMaxTokens = 1 << 14, kMaxHidden = 1 << 14, kMaxIntermediate = 1 << 16, kMaxSteps = 100'000;
// On the simulator, where products are loops on the host.
constexpr std::uint64_t kMaxSimulated = 1 << 26;

struct Options {
  std::vector<std::int64_t> tokens;                      // empty: the default
  std::int64_t hidden = 0, intermediate = 0, steps = 0;  // 0: the default
  std::string json, commit = "unknown", command;
};

CLI::Validator multiple_of_8(std::int64_t max) {
  const auto check = [max](const std::string& text) -> std::string {
    std::int64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= 8 && value <= max && value % 8 == 0) return "";
    return absl::StrCat(text, " is not a multiple of 8 from 8 to ", max);
  };
  return CLI::Validator(check, "");
}

std::optional<int> parse_options(int argc, char** argv, Options& options) {
  CLI::App app(
      "Measures a step of an MLP block whose number of tokens changes. Without a GPU it runs on the simulator.",
      "mlp_step");
  app.add_option("--tokens", options.tokens,
                 "Of the steps, in turn; by default 1,3,16,7,64,24,5,48, on the simulator 1,3,16,7,24")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, kMaxTokens));
  app.add_option("--hidden", options.hidden, "A multiple of 8; by default 4096, on the simulator 64")
      ->check(multiple_of_8(kMaxHidden));
  app.add_option("--intermediate", options.intermediate, "A multiple of 8; by default 14336, on the simulator 128")
      ->check(multiple_of_8(kMaxIntermediate));
  app.add_option("--steps", options.steps, "Of a pass; by default 64, on the simulator 5")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps));
  app.add_option("--json", options.json, "Write the figures to this file, as a cgrt-record-1")
      ->check(cgrt::file_name_error);
  app.add_option("--commit", options.commit, "The commit that is measured, for the record")->capture_default_str();
  options.command = cgrt::record::command_line("mlp_step", argc, argv);
  return parse(app, argc, argv);
}

Workload workload_of(const Options& options, bool is_simulated) {
  Workload workload{.tokens = {1, 3, 16, 7, 64, 24, 5, 48}};
  if (is_simulated) workload = {.shape = {.hidden = 64, .intermediate = 128}, .tokens = {1, 3, 16, 7, 24}, .steps = 5};
  if (!options.tokens.empty()) workload.tokens.assign(options.tokens.begin(), options.tokens.end());
  if (options.hidden != 0) workload.shape.hidden = static_cast<std::uint64_t>(options.hidden);
  if (options.intermediate != 0) workload.shape.intermediate = static_cast<std::uint64_t>(options.intermediate);
  if (options.steps != 0) workload.steps = static_cast<int>(options.steps);
  workload.shape.max_tokens = *std::max_element(workload.tokens.begin(), workload.tokens.end());
  return workload;
}

absl::Status run(cgrt::DeviceRef device, const Workload& workload, const Options& options) {
  CGRT_ASSIGN_OR_RETURN(const double error, check_small(device));
  std::printf("On a small shape the largest difference from the same in double is %.2g.\n", error);
  std::printf("hidden %d, intermediate %d, bfloat16; passes of %d steps, tokens",
              static_cast<int>(workload.shape.hidden), static_cast<int>(workload.shape.intermediate), workload.steps);
  for (const std::uint64_t tokens : workload.tokens) std::printf(" %d", static_cast<int>(tokens));
  std::puts(" in turn");
  CGRT_ASSIGN_OR_RETURN(const std::vector<WayResult> results, measure(device, workload));
  std::fputs(to_table(results).c_str(), stdout);
  std::puts("In every line all steps gave the bits of the eager ones.");
  std::fputs(best(results).c_str(), stdout);
  if (options.json.empty()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const cgrt::record::Record record,
                        to_record(device, workload, results, options.command, options.commit));
  return cgrt::write_text_file(options.json, cgrt::record::to_json(record));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (const auto exit_code = parse_options(argc, argv, options)) return *exit_code;
  const auto simulator = cgrt::Simulator::if_no_device();
  const Workload workload = workload_of(options, simulator != nullptr);
  const MlpShape& shape = workload.shape;
  if (simulator != nullptr && shape.hidden * shape.intermediate * shape.max_tokens > kMaxSimulated) {
    std::fprintf(stderr,
                 "mlp_step: %llu x %llu x %llu tokens is too large for the simulator, where the product of the "
                 "three may be up to %llu.\n",
                 static_cast<unsigned long long>(shape.hidden), static_cast<unsigned long long>(shape.intermediate),
                 static_cast<unsigned long long>(shape.max_tokens), static_cast<unsigned long long>(kMaxSimulated));
    return 2;
  }
  const absl::Status status = run(cgrt::DeviceRef(0), workload, options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "mlp_step: %s\n", status.ToString().c_str());
  return 1;
}
