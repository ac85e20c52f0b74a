// What the tests of traps share: a chain of small kernels in a graph that was built or captured.
#pragma once

#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {

inline constexpr DeviceRef kDevice(0);
inline constexpr LaunchConfig kPlain{.grid = {4, 4}, .block = 64};

inline LaunchConfig with(LaunchAttributes attributes) {
  return {.grid = {4, 4}, .block = 64, .attributes = attributes};
}

class TrapsTest {
 protected:
  absl::Status step(LaunchTarget target, const LaunchConfig& config = kPlain) {
    return launch(target, config, scale_kernel(), x, x, 2.0f, 1);
  }
  // A chain of kernels with these attributes.
  absl::Status steps(LaunchTarget target, const std::vector<LaunchAttributes>& nodes) {
    for (const LaunchAttributes& attributes : nodes) CGRT_RETURN_IF_ERROR(step(target, with(attributes)));
    return absl::OkStatus();
  }
  Graph built(const std::vector<LaunchAttributes>& nodes) {
    Graph graph = *Graph::create(kDevice);
    Cursor cursor = graph.cursor();
    REQUIRE_OK(steps(cursor, nodes));
    return graph;
  }
  Graph captured(const std::vector<LaunchAttributes>& nodes) {
    return *capture(stream.ref(), [&](StreamRef s) { return steps(s, nodes); });
  }
  UpdateRefusal update(const Graph& from, const Graph& to) { return instantiate(from)->try_update(to)->refusal; }

  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  Stream other = *Stream::create(kDevice);
  Event event = *Event::create(kDevice);
  DeviceBuffer buffer = *DeviceBuffer::create(kDevice, 4);
  float* x = buffer.as<float>();
};

}  // namespace cgrt::testing
