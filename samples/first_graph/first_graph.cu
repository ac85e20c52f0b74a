// first_graph: one call site that launches at once, is captured into a graph, builds a graph by hand, and gives a
// finished executable other arguments; the graphs are run, and the captured one is written to a file that graphdump
// reads.
//
//   first_graph [FILE]      FILE: first_graph.cgrt.json unless given

#include <cgrt/base/text_file.h>
#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <cstdio>
#include <string>
#include <vector>

#include "../common/options.h"

__global__ void scale(float* out, const float* in, float factor, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = factor * in[i];
}

// The same for machines without a GPU: the simulator calls it in place of the kernel.
void scale_on_host(cgrt::HostGrid, float* out, const float* in, float factor, int count) {
  for (int i = 0; i < count; ++i) out[i] = factor * in[i];
}
template <>
inline constexpr auto cgrt::host_body<scale> = cgrt::HostBody(scale_on_host, {.registers = 16});

constexpr int kCount = 1 << 20;
constexpr std::size_t kBytes = kCount * sizeof(float);

// Reads `y` back, says what was found, and poisons it for the next check.
absl::Status check(cgrt::StreamRef stream, float* y, const char* what) {
  std::vector<float> found(kCount);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream, found.data(), y, kBytes));
  CGRT_RETURN_IF_ERROR(cgrt::fill32(stream, y, 0xFFFFFFFF, kCount));
  CGRT_RETURN_IF_ERROR(stream.synchronize());
  for (int i = 0; i < kCount; ++i) {
    if (found[i] == 6.0f * static_cast<float>(i % 1000)) continue;
    return absl::InternalError(std::string(what) + ": element " + std::to_string(i) + " is " +
                               std::to_string(found[i]) + ", not " + std::to_string(6 * (i % 1000)) + ".");
  }
  std::printf("%s: y = 6 * x in all %d elements\n", what, kCount);
  return absl::OkStatus();
}

absl::Status run(cgrt::DeviceRef device, const std::string& file) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream stream, cgrt::Stream::create(device));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer x_buffer, cgrt::DeviceBuffer::create(device, kBytes));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer y_buffer, cgrt::DeviceBuffer::create(device, kBytes));
  CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer z_buffer, cgrt::DeviceBuffer::create(device, kBytes));
  float* x = x_buffer.as<float>();
  float* y = y_buffer.as<float>();
  std::vector<float> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i % 1000);
  CGRT_RETURN_IF_ERROR(cgrt::copy(stream.ref(), x, host.data(), kBytes));

  // One call site for every target: what runs, and with which arguments, stands here alone.
  const cgrt::Kernel kernel = cgrt::make_kernel<scale>();
  const auto step = [&](cgrt::LaunchTarget target) -> absl::Status {
    CGRT_ASSIGN_OR_RETURN(cgrt::LaunchConfig config, cgrt::suggest_config(kernel, target, kCount));  // occupancy
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, config, kernel, y, x, 2.0f, kCount));
    return cgrt::launch(target, config, kernel, y, y, 3.0f, kCount);
  };

  CGRT_RETURN_IF_ERROR(step(stream.ref()));  // eager
  CGRT_RETURN_IF_ERROR(check(stream.ref(), y, "eager"));
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph captured, cgrt::capture(stream.ref(), step));  // captured
  CGRT_ASSIGN_OR_RETURN(cgrt::Graph built, cgrt::Graph::create(device));
  CGRT_RETURN_IF_ERROR(step(built.cursor()));  // explicit

  for (const cgrt::Graph* graph : {&captured, &built}) {
    CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(*graph));
    CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
    for (;;) {  // completion
      CGRT_ASSIGN_OR_RETURN(const bool done, stream.ref().is_complete());
      if (done) break;
      // The host is free here.
    }
    CGRT_RETURN_IF_ERROR(check(stream.ref(), y, graph == &captured ? "captured graph" : "explicit graph"));
  }

  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate_rebindable(built));
  y = z_buffer.as<float>();                 // what the call site uses from here on
  CGRT_RETURN_IF_ERROR(exec.rebind(step));  // rebound: the same nodes, other arguments
  CGRT_RETURN_IF_ERROR(exec.launch(stream.ref()));
  CGRT_RETURN_IF_ERROR(check(stream.ref(), y, "rebound graph"));

  CGRT_ASSIGN_OR_RETURN(cgrt::ir::GraphIr ir, cgrt::snapshot(captured));
  CGRT_RETURN_IF_ERROR(cgrt::inspect::write_file(file, ir));
  std::printf("wrote %s: graphdump show %s\n", file.c_str(), file.c_str());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  std::string file = "first_graph.cgrt.json";
  const char* const about =
      "Runs a kernel eagerly, captured, as a graph built by hand and rebound, and writes the graph.";
  if (const auto exit_code = parse_file("first_graph", about, argc, argv, file, cgrt::file_name_error))
    return *exit_code;

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0), file);
  if (status.ok()) return 0;
  std::fprintf(stderr, "first_graph: %s\n", status.ToString().c_str());
  return 1;
}
