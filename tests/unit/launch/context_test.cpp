// Contexts that are used, and those that must not be touched.
#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

bool is_active(int device) {
  unsigned flags = 0;
  int active = -1;
  REQUIRE(driver::api().DevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS);
  return active != 0;
}

TEST_CASE("a null context is refused by name", "[context]") {
  Simulator simulator;
  CUcontext none = nullptr;

  for (const absl::Status& status :
       {Stream::create(none).status(), Event::create(none).status(), Graph::create(none).status(),
        DeviceBuffer::create(none, 64).status(), ContextRef(none).device().status(),
        occupancy(scale_kernel(), none, Dim3(64), 0).status()}) {
    CHECK_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "The CUcontext is null"));
  }
  CHECK_THAT(Stream::create(DeviceRef(-1)).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "Device -1 does not exist"));
}

TEST_CASE("a launch in a context that is not the primary one does not make that", "[context]") {
  Simulator simulator;
  CUcontext own = nullptr;
  REQUIRE(driver::api().DevicePrimaryCtxRetain(&own, 0) == CUDA_SUCCESS);
  REQUIRE(driver::api().DevicePrimaryCtxRelease(0) == CUDA_SUCCESS);  // whoever has it, has not retained it
  const Stream stream = *Stream::create(own);
  const DeviceBuffer x = *DeviceBuffer::create(own, 256);
  driver::Instrument instrument;

  CHECK_OK(launch(stream, LaunchConfig{}, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1));
  CHECK_OK(launch(stream, LaunchConfig{}, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1));

  CHECK(instrument.count("cuDevicePrimaryCtxRetain") == 0);
  CHECK_FALSE(is_active(0));
}

TEST_CASE("a device that does not exist is refused with how many there are", "[context]") {
  for (const int count : {1, 2}) {
    Simulator simulator({.device_count = count});

    CHECK_THAT(Stream::create(DeviceRef(2)).status(),
               StatusIs(absl::StatusCode::kInvalidArgument, "Device 2 does not exist: this process sees " +
                                                                std::string(count == 1 ? "1 device:" : "2 devices:")));
  }
}

TEST_CASE("a refused launch speaks of its own device and leaves the others alone", "[context]") {
  Simulator simulator({.device_count = 2});
  const Stream stream = *Stream::create(DeviceRef(1));
  const DeviceBuffer x = *DeviceBuffer::create(DeviceRef(1), 256);
  const auto refused = [&](const LaunchConfig& config) {
    return launch(stream, config, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1);
  };

  CHECK_THAT(refused({.grid = 32, .block = 64, .attributes = {.cluster = {16}}}),
             StatusIs(absl::StatusCode::kResourceExhausted, "A cluster of 16 blocks exceeds the largest, 8"));
  CHECK_THAT(refused({.grid = 1000000, .block = 64, .attributes = {.cooperative = true}}),
             StatusIs(absl::StatusCode::kResourceExhausted, "needs all of its 1000000 blocks at once"));
  CHECK_THAT(refused({.grid = 3, .block = 64, .attributes = {.cluster = {2}}}),
             StatusIs(absl::StatusCode::kInvalidArgument, "The grid is not a multiple of the cluster (2, 1, 1)"));
  CHECK(cuda_result(refused({.grid = 3, .block = 64, .attributes = {.cluster = {2}}})) ==
        CUDA_ERROR_INVALID_CLUSTER_SIZE);

  CHECK(is_active(1));
  CHECK_FALSE(is_active(0));
}

TEST_CASE("dependencies that are not the graph's are named, not the node's parameters", "[graph]") {
  Simulator simulator;
  Graph graph = *Graph::create(DeviceRef(0)), other = *Graph::create(DeviceRef(0));
  const DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 256);
  const auto add = [&](Graph& to, Dependencies before) {
    return to.add_kernel(before, LaunchConfig{}, scale_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1);
  };
  KernelNode ours = *add(graph, {}), theirs = *add(other, {});
  const auto foreign = after(theirs), second_foreign = after(theirs);
  const auto twice = after(ours, ours);
  const std::array<Dependency, 2> mixed = {Dependency(ours), Dependency(theirs)};

  CHECK_THAT(add(graph, foreign).status(),
             StatusIs(absl::StatusCode::kInvalidArgument,
                      "Kernel \"cgrt::testing::scale\": Dependency 1 of 1 is not a node of this graph"));
  CHECK_THAT(add(graph, mixed).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "Dependency 2 of 2 is not a node of this graph"));
  CHECK_THAT(add(graph, twice).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "Dependencies 1 and 2 are the same node"));
  CHECK_THAT(graph.add_empty(second_foreign).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "is not a node of this graph"));
  CHECK_THAT(graph.add_fill(foreign, {x.data(), 0, 4, 4}).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "Memset: Dependency 1 of 1"));
  const absl::Status status = add(graph, foreign).status();
  CHECK(std::string(status.message()).find("grid") == std::string::npos);
}

TEST_CASE("dim3 is taken for a grid and a block", "[launch]") {
  struct Like {  // CUDA's dim3, without its header
    unsigned x = 1, y = 1, z = 1;
  };
  const LaunchConfig config{.grid = Like{4, 2}, .block = Like{64}};

  CHECK(config.grid == Dim3(4, 2, 1));
  CHECK(config.block == Dim3(64));
}

}  // namespace
}  // namespace cgrt::testing
