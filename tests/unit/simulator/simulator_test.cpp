#include "cgrt/simulator/simulator.h"

#include <set>
#include <vector>

#include "cgrt/cgrt.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);
constexpr LaunchConfig kConfig{.grid = 1, .block = 32};

float first_float(const DeviceBuffer& buffer) { return *buffer.as<float>(); }  // simulated memory is host memory

TEST_CASE("replay in random legal orders shows a missing edge", "[simulator]") {
  std::set<float> with_edge, without_edge;

  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (bool edge : {false, true}) {
      Simulator simulator({.seed = seed});
      Stream stream = *Stream::create(kDevice);
      DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
      Graph graph = *Graph::create(kDevice);
      MemsetNode one = *graph.add_fill({}, {x.data(), 0x3f800000u, 4, 1});
      KernelNode doubled =
          *graph.add_kernel(after(one), kConfig, scale_kernel(), x.as<float>(), x.as<float>(), 2.0f, 1);
      std::vector<Dependency> waits{one};
      if (edge) waits.push_back(doubled);
      REQUIRE_OK(graph.add_kernel(waits, kConfig, shift_kernel(), x.as<float>(), x.as<float>(), 1.0f, 1));
      GraphExec exec = *instantiate(graph);
      REQUIRE_OK(exec.launch(stream.ref()));
      REQUIRE_OK(stream.ref().synchronize());
      (edge ? with_edge : without_edge).insert(first_float(x));
    }
  }

  CHECK(with_edge == std::set<float>{3.0f});
  CHECK(without_edge == std::set<float>{3.0f, 4.0f});
}

TEST_CASE("work runs only when somebody waits, so a missing wait shows", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);

  REQUIRE_OK(fill32(stream.ref(), x.data(), 0x3f800000u, 1));
  CHECK(first_float(x) != 1.0f);
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(first_float(x) == 1.0f);
}

TEST_CASE("polling gets there in the end", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
  for (int i = 0; i < 5; ++i) REQUIRE_OK(fill32(stream.ref(), x.data(), 0, 1));

  CHECK(*stream.ref().completion() == Completion::kPending);
  int polls = 1;
  while (!*stream.ref().is_complete()) REQUIRE(++polls < 100);
  CHECK(polls > 1);
}

TEST_CASE("a kernel without a host body builds into graphs, and its replay is refused by name", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
  Graph graph = *Graph::create(kDevice);
  REQUIRE_OK(launch(graph.cursor(), kConfig, bodiless_kernel(), x.as<float>()));
  GraphExec exec = *instantiate(graph);

  CHECK_THAT(exec.launch(stream.ref()), StatusIs(absl::StatusCode::kUnimplemented, "cgrt::testing::bodiless"));
  CHECK_THAT(launch(stream.ref(), kConfig, bodiless_kernel(), x.as<float>()),
             StatusIs(absl::StatusCode::kUnimplemented, "cgrt::testing::bodiless"));
}

TEST_CASE("waiting for a held stream is an error, not a deadlock, and loses nothing", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
  simulator.hold(stream.ref().get());
  REQUIRE_OK(fill32(stream.ref(), x.data(), 0x3f800000u, 1));

  CHECK(cuda_result(stream.ref().synchronize()) == CUDA_ERROR_LAUNCH_TIMEOUT);
  simulator.release(stream.ref().get());
  CHECK_OK(stream.ref().synchronize());

  CHECK(first_float(x) == 1.0f);
}

TEST_CASE("a copy into pageable memory has arrived when it returns", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
  float host = 0;

  REQUIRE_OK(fill32(stream.ref(), x.data(), 0x3f800000u, 1));
  REQUIRE_OK(copy(stream.ref(), &host, x.data(), 4));

  CHECK(host == 1.0f);
}

TEST_CASE("sizes whose bytes do not fit 64 bits are refused", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 256);

  CHECK_THAT(PinnedBuffer::create(kDevice, SIZE_MAX).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK_THAT(fill32(stream.ref(), x.data(), 0, std::size_t{1} << 62), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_CASE("handles that are left behind are counted by kind", "[simulator]") {
  Simulator simulator;
  CHECK(simulator.live_handles() == 0);
  {
    Stream stream = *Stream::create(kDevice);
    Event a = *Event::create(kDevice);
    Event b = *Event::create(kDevice);
    CHECK(simulator.live_handles_text() == "1 stream, 2 events");
  }
  CHECK(simulator.live_handles() == 0);
}

}  // namespace
}  // namespace cgrt::testing
