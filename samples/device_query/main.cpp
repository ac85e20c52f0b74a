// device_query: what cgrt sees on this machine, and what graphs can do on each device. The second is
// found by doing it: a small graph is built, instantiated, launched and its result looked at.

#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>
#include <cuda.h>

#include <cstdio>
#include <string>

#include "../common/options.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "count_up.h"

namespace {

constexpr cgrt::LaunchConfig kOneWarp{.grid = 1, .block = 32};

std::string version_text(int version) { return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10); }

void print(const char* what, const std::string& answer) { std::printf("  %-34s %s\n", what, answer.c_str()); }

absl::Status print_attributes(cgrt::DeviceRef device) {
  struct Line {
    CUdevice_attribute attribute;
    const char* what;
    const char* unit;  // null: yes or no
  };
  constexpr Line kLines[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "compute capability, major", ""},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "compute capability, minor", ""},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "multiprocessors", ""},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, "threads of a multiprocessor", ""},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, "shared memory of a block, opt-in", " bytes"},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "second-level cache", " bytes"},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, "cooperative launch", nullptr},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, "stream priorities", nullptr},
  };
  for (const Line& line : kLines) {
    CGRT_ASSIGN_OR_RETURN(const int value, device.attribute(line.attribute));
    print(line.what, line.unit == nullptr ? (value != 0 ? "yes" : "no") : std::to_string(value) + line.unit);
  }
  const absl::StatusOr<int> cluster = cgrt::max_cluster_size(count_up_kernel(), device, kOneWarp.block, 0);
  print("blocks of a cluster, at most",
        cluster.ok() ? std::to_string(*cluster) : std::string(cluster.status().message()));
  return absl::OkStatus();
}

// What `build` puts into a graph runs once and must leave `expected` in the counter (kDataLoss when
// not); any other error says what this device, this driver or the simulator lacks.
absl::Status try_graph(cgrt::DeviceRef device, int expected,
                       absl::FunctionRef<absl::Status(cgrt::Cursor&, int* counter)> build) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::PinnedBuffer buffer, cgrt::PinnedBuffer::create(device, sizeof(int)));
  int* const counter = buffer.as<int>();
  *counter = 0;
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, cgrt::Graph::create(device));
  cgrt::Cursor cursor = graph.cursor();
  CGRT_RETURN_IF_ERROR(build(cursor, counter));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(stream.ref().synchronize());
  if (*counter == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("The counter is %d, not %d.", *counter, expected));
}

absl::Status one_node(cgrt::Cursor& cursor, int* counter) {
  return cgrt::launch(cursor, kOneWarp, count_up_kernel(), counter);
}

absl::Status programmatic_edge(cgrt::Cursor& cursor, int* counter) {
  CGRT_RETURN_IF_ERROR(one_node(cursor, counter));
  return cgrt::launch(cursor.programmatic(), kOneWarp, count_up_kernel(), counter);
}

absl::Status host_node(cgrt::Cursor& cursor, int* counter) {
  CGRT_RETURN_IF_ERROR(one_node(cursor, counter));
  return cgrt::launch_host(cursor, [counter] { *counter += 10; });
}

absl::Status cluster_launch(cgrt::Cursor& cursor, int* counter) {
  const cgrt::LaunchConfig config{.grid = 2, .block = 32, .attributes = {.cluster = {2}}};
  return cgrt::launch(cursor, config, count_up_kernel(), counter);
}

absl::Status cooperative_launch(cgrt::Cursor& cursor, int* counter) {
  const cgrt::LaunchConfig config{.grid = 2, .block = 32, .attributes = {.cooperative = true}};
  return cgrt::launch(cursor, config, count_up_kernel(), counter);
}

// Fails only when a graph ran and its result is wrong: that a device cannot do something is an answer.
absl::Status print_graphs(cgrt::DeviceRef device) {
  struct Trial {
    const char* what;
    int expected;
    absl::Status (*build)(cgrt::Cursor& cursor, int* counter);
  };
  constexpr Trial kTrials[] = {
      {"graph of one node", 1, one_node},
      {"graph with a programmatic edge", 2, programmatic_edge},
      {"graph with a host node", 11, host_node},
      {"graph with a cluster launch", 1, cluster_launch},
      {"graph with a cooperative launch", 1, cooperative_launch},
  };
  for (const Trial& trial : kTrials) {
    const absl::Status status = try_graph(device, trial.expected, trial.build);
    print(trial.what, status.ok() ? "yes" : "no: " + std::string(status.message()));
    if (absl::IsDataLoss(status)) return status;
  }
  return absl::OkStatus();
}

absl::Status run() {
  CGRT_ASSIGN_OR_RETURN(const int driver, cgrt::driver_version());
  CGRT_ASSIGN_OR_RETURN(const int devices, cgrt::device_count());
  std::printf("CUDA of the driver: %s\nCUDA toolkit this was built with: %s\nsimulated: %s\ndevices: %d\n",
              version_text(driver).c_str(), version_text(CUDA_VERSION).c_str(), cgrt::is_simulated() ? "yes" : "no",
              devices);
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    const cgrt::DeviceRef device(ordinal);
    CGRT_ASSIGN_OR_RETURN(const std::string name, device.name());
    std::printf("\ndevice %d: %s\n", ordinal, name.c_str());
    CGRT_RETURN_IF_ERROR(print_attributes(device));
    CGRT_RETURN_IF_ERROR(print_graphs(device));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const about =
      "Says what cgrt sees on this machine and what graphs can do on each device. Without a GPU those are the answers "
      "of the simulator.";
  if (const auto exit_code = parse_no_options("device_query", about, argc, argv)) return *exit_code;

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "device_query: %s\n", status.ToString().c_str());
  return 1;
}
