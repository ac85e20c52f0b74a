// update_arguments: a graph whose kernels all get another buffer at every step, by all ways that there are. The call
// site is the same in all of them but the third.
//
//   update_arguments

#include <cgrt/cgrt.h>
#include <cgrt/simulator/simulator.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../common/options.h"
#include "chain.h"

void add_one_on_host(cgrt::HostGrid, float* x, int count) {
  for (int i = 0; i < count; ++i) x[i] += 1;
}
template <>
inline constexpr auto cgrt::host_body<add_one> = cgrt::HostBody(add_one_on_host, {.registers = 10});

constexpr cgrt::LaunchConfig kConfig{.grid = kGrid, .block = kBlock};

absl::Status chain(cgrt::LaunchTarget target, float* x) {
  for (int i = 0; i < kKernels; ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::launch(target, kConfig, cgrt::make_kernel<add_one>(), x, kCount));
  }
  return absl::OkStatus();
}

struct Buffers {
  std::vector<cgrt::DeviceBuffer> all;
  float* at(int step) const { return all[static_cast<std::size_t>(step % kBuffers)].as<float>(); }

  static absl::StatusOr<Buffers> create(cgrt::DeviceRef device) {
    Buffers buffers;
    for (int i = 0; i < kBuffers; ++i) {
      CGRT_ASSIGN_OR_RETURN(cgrt::DeviceBuffer buffer, cgrt::DeviceBuffer::create(device, kCount * sizeof(float)));
      buffers.all.push_back(std::move(buffer));
    }
    return buffers;
  }
};

// Runs all steps; `launch` launches the one with so many before it. Checks what is in the buffers then.
template <class Launch>
absl::Status measure(cgrt::StreamRef stream, const Buffers& buffers, const char* way, bool is_simulated,
                     const Launch& launch) {
  for (int i = 0; i < kBuffers; ++i) CGRT_RETURN_IF_ERROR(cgrt::fill32(stream, buffers.at(i), 0, kCount));
  StepTimes times;
  for (int step = 0; step < kSteps; ++step) {
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    const auto begin = std::chrono::steady_clock::now();
    CGRT_RETURN_IF_ERROR(launch(step));
    const double launched = microseconds_since(begin);
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    if (step < kWarmUpSteps) continue;
    times.launched.push_back(launched);
    times.done.push_back(microseconds_since(begin));
  }
  std::vector<float> found(kCount);
  for (int i = 0; i < kBuffers; ++i) {
    CGRT_RETURN_IF_ERROR(cgrt::copy(stream, found.data(), buffers.at(i), kCount * sizeof(float)));
    CGRT_RETURN_IF_ERROR(stream.synchronize());
    for (const float value : found) {
      if (value == float{kKernels} * (kSteps / kBuffers)) continue;
      return absl::InternalError(std::string(way) + ": buffer " + std::to_string(i) + " has " + std::to_string(value) +
                                 ", not " + std::to_string(kKernels * (kSteps / kBuffers)) + ".");
    }
  }
  if (is_simulated) {
    std::printf("%-36s simulated\n", way);
  } else {
    print(way, times);
  }
  return absl::OkStatus();
}

absl::Status run(cgrt::DeviceRef device, bool is_simulated) {
  CGRT_ASSIGN_OR_RETURN(cgrt::Stream owner, cgrt::Stream::create(device));
  const cgrt::StreamRef stream = owner.ref();
  CGRT_ASSIGN_OR_RETURN(const Buffers buffers, Buffers::create(device));
  const auto capture = [&](int step) {
    return cgrt::capture(stream, [&](cgrt::LaunchTarget target) { return chain(target, buffers.at(step)); });
  };
  std::printf("%d kernels, another buffer at every step:\n", kKernels);

  CGRT_RETURN_IF_ERROR(
      measure(stream, buffers, "eager", is_simulated, [&](int step) { return chain(stream, buffers.at(step)); }));

  CGRT_ASSIGN_OR_RETURN(cgrt::Graph graph, capture(0));
  CGRT_ASSIGN_OR_RETURN(cgrt::GraphExec exec, cgrt::instantiate(graph));
  CGRT_RETURN_IF_ERROR(
      measure(stream, buffers, "capture again, update, launch", is_simulated, [&](int step) -> absl::Status {
        CGRT_ASSIGN_OR_RETURN(const cgrt::Graph next, capture(step));
        CGRT_RETURN_IF_ERROR(exec.update(next));
        return exec.launch(stream);
      }));

  CGRT_ASSIGN_OR_RETURN(exec, cgrt::instantiate(graph));
  CGRT_ASSIGN_OR_RETURN(const std::vector<cgrt::NodeInfo> nodes, cgrt::list_nodes(graph));
  CGRT_RETURN_IF_ERROR(
      measure(stream, buffers, "set the parameters of each, launch", is_simulated, [&](int step) -> absl::Status {
        for (const cgrt::NodeInfo& node : nodes) {
          CGRT_RETURN_IF_ERROR(exec.set_params(cgrt::KernelNode(node.node.get()), kConfig, cgrt::make_kernel<add_one>(),
                                               buffers.at(step), kCount));
        }
        return exec.launch(stream);
      }));

  CGRT_ASSIGN_OR_RETURN(exec, cgrt::instantiate_rebindable(graph));
  CGRT_RETURN_IF_ERROR(measure(stream, buffers, "rebind the call site, launch", is_simulated, [&](int step) {
    CGRT_RETURN_IF_ERROR(exec.rebind([&](cgrt::LaunchTarget target) { return chain(target, buffers.at(step)); }));
    return exec.launch(stream);
  }));

  CGRT_ASSIGN_OR_RETURN(cgrt::Graph again, capture(0));
  CGRT_ASSIGN_OR_RETURN(exec, cgrt::instantiate_rebindable(again));
  return measure(stream, buffers, "rebind the buffer, launch", is_simulated, [&](int step) -> absl::Status {
    float* const old = buffers.at(step == 0 ? 0 : step - 1);
    CGRT_RETURN_IF_ERROR(exec.rebind_buffer(old, kCount * sizeof(float), buffers.at(step)).status());
    return exec.launch(stream);
  });
}

int main(int argc, char** argv) {
  const char* const about = "Gives all kernels of a graph another buffer at every step, by all ways that there are.";
  if (const auto exit_code = parse_no_options("update_arguments", about, argc, argv)) return *exit_code;

  const auto simulator = cgrt::Simulator::if_no_device();
  const absl::Status status = run(cgrt::DeviceRef(0), simulator != nullptr);
  if (status.ok()) return 0;
  std::fprintf(stderr, "update_arguments: %s\n", status.ToString().c_str());
  return 1;
}
