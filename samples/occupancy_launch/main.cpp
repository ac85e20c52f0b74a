// occupancy_launch: the launch configuration that suggest_config chooses against fixed ones, for a
// kernel that memory bounds and whose shared memory grows with the block. The same kernel runs in a
// graph of kNodes nodes with each; all must give the bits that the host computes: exit 1 otherwise.

#include <cgrt/base/text_file.h>
#include <cgrt/cgrt.h>
#include <cgrt/record/origin.h>
#include <cgrt/record/record.h>
#include <cgrt/simulator/simulator.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"
#include "absl/strings/str_cat.h"
#include "report.h"
#include "smooth.h"

namespace {

constexpr int kNodes = 50;

struct Arrays {
  cgrt::DeviceBuffer in, out;
  std::vector<float> expected;
  int count() const { return static_cast<int>(expected.size()); }
};

absl::StatusOr<Arrays> make_arrays(cgrt::DeviceRef device, cgrt::StreamRef stream) {
  const int count = cgrt::is_simulated() ? 1 << 16 : 1 << 25;  // 128 MiB each: more than a cache holds
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer in, cgrt::DeviceBuffer::create(device, bytes));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer out, cgrt::DeviceBuffer::create(device, bytes));
  std::vector<float> host(static_cast<std::size_t>(count)), expected(host.size());
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i * 2654435761u % 1000003) / 1000.0f;
  for (std::size_t i = 0; i < host.size(); ++i) {
    expected[i] = smoothed(host[i > 0 ? i - 1 : 0], host[i], host[std::min(i + 1, host.size() - 1)]);
  }
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, in.data(), host.data(), bytes));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  return Arrays{std::move(in), std::move(out), std::move(expected)};
}

// The suggested configuration first, then what stands against it.
absl::StatusOr<std::vector<Run>> choose_runs(cgrt::DeviceRef device, int count) {
  const auto kernel = smooth_kernel();
  const auto threads = static_cast<std::uint64_t>(count / kPerThread);
  constexpr std::uint32_t kLargestBlock = 1024;
  // Above 48 KiB a kernel must be allowed its shared memory, before anybody is asked about it.
  CGRT_RETURN_IF_ERROR(
      cgrt::set_max_shared_bytes(kernel, device, static_cast<std::uint32_t>(shared_bytes_of_block(kLargestBlock))));
  std::vector<Run> runs;
  const auto add = [&](std::string name, cgrt::LaunchConfig config) -> absl::Status {
    config.shared_bytes = static_cast<std::uint32_t>(shared_bytes_of_block(static_cast<int>(config.block.x)));
    CGRT_ASSIGN_OR_RETURN(cgrt::Occupancy found, cgrt::occupancy(kernel, device, config.block, config.shared_bytes));
    runs.push_back({std::move(name), config, found});
    return absl::OkStatus();
  };
  CGRT_ASSIGN_OR_RETURN(cgrt::LaunchConfig suggested,
                        cgrt::suggest_config(kernel, device, threads, shared_bytes_of_block));
  CGRT_RETURN_IF_ERROR(add("suggested", suggested));
  CGRT_ASSIGN_OR_RETURN(cgrt::LaunchConfig blind, cgrt::suggest_config(kernel, device, threads));
  CGRT_RETURN_IF_ERROR(add("suggested_without_shared", blind));  // what is chosen when nobody says what a block needs
  for (std::uint32_t block = 32; block <= kLargestBlock; block *= 2) {
    const auto grid = static_cast<std::uint32_t>((threads + block - 1) / block);
    CGRT_RETURN_IF_ERROR(add("fixed", {.grid = grid, .block = block}));
  }
  return runs;
}

absl::Status print_limits(cgrt::DeviceRef device, const Run& run) {
  const auto kernel = smooth_kernel();
  const int blocks = run.occupancy.blocks_per_sm;
  CGRT_ASSIGN_OR_RETURN(const std::size_t available,
                        cgrt::available_shared_bytes(kernel, device, run.config.block, blocks));
  CGRT_ASSIGN_OR_RETURN(const int cluster,
                        cgrt::max_cluster_size(kernel, device, run.config.block, run.config.shared_bytes));
  CGRT_ASSIGN_OR_RETURN(const int cooperative,
                        cgrt::max_cooperative_blocks(kernel, device, run.config.block, run.config.shared_bytes));
  std::printf("Suggested: blocks of %u threads with %u bytes of shared memory.\n", run.config.block.x,
              run.config.shared_bytes);
  std::printf("  shared memory of a block while %d fit a multiprocessor: %zu bytes\n", blocks, available);
  std::printf("  blocks of a cluster, at most: %d\n  blocks of a cooperative launch, at most: %d\n", cluster,
              cooperative);
  return absl::OkStatus();
}

absl::StatusOr<cgrt::GraphExec> build(cgrt::DeviceRef device, const Run& run, const Arrays& arrays) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(device));
  cgrt::Cursor cursor = graph.cursor();
  for (int node = 0; node < kNodes; ++node) {
    CGRT_RETURN_IF_ERROR(cgrt::launch(cursor, run.config, smooth_kernel(), arrays.out.as<float>(),
                                      arrays.in.as<float>(), arrays.count()));
  }
  return cgrt::instantiate(graph);
}

absl::Status check(cgrt::StreamRef stream, cgrt::GraphExec& exec, const Run& run, const Arrays& arrays) {
  std::vector<float> found(arrays.expected.size());
  CGRT_RETURN_IF_ERROR(cgrt::fill32(stream, arrays.out.data(), 0xFFFFFFFFu, found.size()));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, found.data(), arrays.out.data(), found.size() * sizeof(float)));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  const auto at = std::mismatch(found.begin(), found.end(), arrays.expected.begin());
  if (at.first == found.end()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("Blocks of ", run.config.block.x, ": element ", at.first - found.begin(),
                                          " is ", *at.first, ", not ", *at.second, "."));
}

// Microseconds of one node, between two events around the graph. The simulator has none to tell.
absl::StatusOr<double> time_node(cgrt::StreamRef stream, cgrt::GraphExec& exec, const cgrt::Event& start,
                                 const cgrt::Event& end) {
  CGRT_RETURN_IF_ERROR(stream.record(start.ref()));
  CGRT_RETURN_IF_ERROR(exec.launch(stream));
  CGRT_RETURN_IF_ERROR(stream.record(end.ref()));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  if (cgrt::is_simulated()) return 1;
  CGRT_ASSIGN_OR_RETURN(const absl::Duration elapsed, cgrt::elapsed_time(start.ref(), end.ref()));
  return absl::ToDoubleMicroseconds(elapsed) / kNodes;
}

// Each configuration alternates with the suggested one, so that a drift of the machine meets both.
absl::Status measure(cgrt::DeviceRef device, cgrt::StreamRef stream, const Arrays& arrays, std::vector<Run>& runs) {
  const int pairs = cgrt::is_simulated() ? 1 : 15;
  CGRT_ASSIGN_OR_RETURN(const cgrt::Event start, cgrt::Event::create(device, cgrt::EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(const cgrt::Event end, cgrt::Event::create(device, cgrt::EventTiming::kEnabled));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec suggested, build(device, runs.front(), arrays));
  for (Run& run : runs) {
    CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, build(device, run, arrays));
    CGRT_RETURN_IF_ERROR(check(stream, exec, run, arrays));
    for (int pair = 0; pair < pairs; ++pair) {
      CGRT_ASSIGN_OR_RETURN(const double baseline, time_node(stream, suggested, start, end));
      CGRT_ASSIGN_OR_RETURN(const double own, time_node(stream, exec, start, end));
      run.baseline_times.push_back(baseline);
      run.times.push_back(own);
      run.ratios.push_back(baseline / own);
    }
  }
  return absl::OkStatus();
}

struct Options {
  std::string json, commit = "unknown", command;
};

absl::Status run(cgrt::DeviceRef device, const Options& options) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(const Arrays arrays, make_arrays(device, stream.ref()));
  CGRT_ASSIGN_OR_RETURN(std::vector<Run> runs, choose_runs(device, arrays.count()));
  CGRT_RETURN_IF_ERROR(print_limits(device, runs.front()));
  CGRT_RETURN_IF_ERROR(measure(device, stream.ref(), arrays, runs));
  std::fputs(to_table(runs).c_str(), stdout);
  std::puts("In every line the bits are those of the host.");
  std::fputs(best(runs).c_str(), stdout);
  if (options.json.empty()) return absl::OkStatus();
  CGRT_ASSIGN_OR_RETURN(const cgrt::record::Record record, to_record(device, runs, options.command, options.commit));
  return cgrt::write_text_file(options.json, cgrt::record::to_json(record));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs a kernel with suggested and with fixed configurations. Without a GPU it runs on the simulator.",
               "occupancy_launch");
  app.add_option("--json", options.json, "Write the figures to this file, as a cgrt-record-1")
      ->check(cgrt::file_name_error);
  app.add_option("--commit", options.commit, "The commit that is measured, for the record")->capture_default_str();
  if (const auto exit_code = parse(app, argc, argv)) return *exit_code;
  options.command = cgrt::record::command_line("occupancy_launch", argc, argv);

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0), options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "occupancy_launch: %s\n", status.ToString().c_str());
  return 1;
}
