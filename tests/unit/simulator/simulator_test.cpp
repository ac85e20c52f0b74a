#include "cgrt/simulator/simulator.h"

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/driver/api.h"
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

TEST_CASE("what graphs kept is let go before their simulator is gone", "[simulator]") {
  const auto kept = std::make_shared<int>(0);
  {
    Simulator simulator;
    Stream stream = *Stream::create(kDevice);
    DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
    Graph graph = *Graph::create(kDevice);
    REQUIRE_OK(graph.keep(kept));
    REQUIRE_OK(graph.add_fill({}, {x.data(), 0, 4, 1}).status());
    GraphExec exec = *instantiate(graph);
    REQUIRE_OK(exec.launch(stream.ref()));
    graph = Graph();
    exec = GraphExec();
    CHECK(kept.use_count() == 2);  // by the launch that nobody has waited for
  }

  CHECK(kept.use_count() == 1);
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

TEST_CASE("memory that is freed while a held stream may use it is not given away", "[simulator]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  {
    DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
    simulator.hold(stream.ref().get());
    REQUIRE_OK(fill32(stream.ref(), x.data(), 1, 1));
  }
  simulator.release(stream.ref().get());
  CHECK_OK(stream.ref().synchronize());  // under asan this would be a use after free
}

TEST_CASE("a kernel's attributes are those of the kernel, whichever file asks", "[simulator]") {
  Simulator simulator;
  const KernelRef kernel = scale_kernel();
  const driver::KernelIdentity same{"scale", kernel.identity()->symbol, nullptr, nullptr, {}, nullptr, nullptr, 0};
  const KernelRef other(&same);

  REQUIRE_OK(set_max_shared_bytes(kernel, kDevice, 100 << 10));

  CHECK(kernel == other);
  CUkernel handle = nullptr;
  REQUIRE(driver::resolve(same, &handle) == CUDA_SUCCESS);
  int bytes = 0;
  REQUIRE(driver::api().KernelGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, handle, 0) ==
          CUDA_SUCCESS);
  CHECK(bytes == 100 << 10);
}

TEST_CASE("each device has a legacy default stream of its own", "[simulator]") {
  Simulator simulator({.device_count = 2});
  Stream stream = *Stream::create(DeviceRef(0), {.kind = StreamKind::kBlocking});
  DeviceBuffer x = *DeviceBuffer::create(DeviceRef(0), 4);
  simulator.hold(stream.ref().get());
  REQUIRE_OK(fill32(stream.ref(), x.data(), 1, 1));

  ScopedContext second = *ScopedContext::enter(*ContextRef(DeviceRef(1)).get());
  CHECK(*StreamRef::legacy_default().completion() == Completion::kDone);
  simulator.release(stream.ref().get());
}

TEST_CASE("what is unsupported is said to the thread that asked, and to no later one", "[simulator]") {
  Simulator simulator;
  std::thread([] {
    DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
    Stream stream = *Stream::create(kDevice);
    CHECK_FALSE(launch(stream.ref(), kConfig, bodiless_kernel(), x.as<float>()).ok());
  }).join();

  const char* text = nullptr;
  REQUIRE(driver::api().GetErrorString(CUDA_ERROR_NOT_SUPPORTED, &text) == CUDA_SUCCESS);
  CHECK(std::string(text).find("bodiless") == std::string::npos);
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
