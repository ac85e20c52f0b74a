// Mistakes that other libraries were found to make, where no row of the behaviour suite shows them.
#include <memory>

#include "cgrt/cgrt.h"
#include "cgrt/driver/instrument.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"
#include "support/test_kernels.h"

namespace cgrt::testing {
namespace {

constexpr DeviceRef kDevice(0);

TEST_CASE("two kernels of one signature have suggestions of their own", "[traps]") {
  Simulator simulator;

  const LaunchConfig scale = *suggest_config(scale_kernel(), kDevice, 4096);
  const LaunchConfig bounded = *suggest_config(bounded_kernel(), kDevice, 4096);

  CHECK(bounded.block == Dim3(64));
  CHECK(scale.block.x > 64);
  CHECK(suggest_config(scale_kernel(), kDevice, 4096)->block == scale.block);
}

TEST_CASE("a failed call is made once, however its error is returned", "[traps]") {
  int calls = 0;
  const auto fails = [&] { return ++calls, absl::InternalError("no"); };
  const auto returns = [&]() -> absl::Status {
    CGRT_RETURN_IF_ERROR(fails());
    return absl::OkStatus();
  };

  CHECK_THAT(returns(), StatusIs(absl::StatusCode::kInternal, "no"));
  CHECK(calls == 1);
}

TEST_CASE("an error is never \"not complete\"", "[traps]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  Event event = *Event::create(kDevice);
  driver::Instrument instrument;

  instrument.fail_entry("cuStreamQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  instrument.fail_entry("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);

  CHECK_THAT(stream.ref().is_complete().status(), StatusIs(absl::StatusCode::kInternal, "sticky"));
  CHECK_THAT(event.ref().is_complete().status(), StatusIs(absl::StatusCode::kInternal, "sticky"));
}

TEST_CASE("the values of a node are copied when it is added", "[traps]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  DeviceBuffer x = *DeviceBuffer::create(kDevice, 4);
  Graph graph = *Graph::create(kDevice);
  {
    auto factor = std::make_unique<float>(3.0f);
    Cursor cursor = graph.cursor();
    REQUIRE_OK(fill32(cursor, x.data(), 0x3f800000u, 1));
    REQUIRE_OK(launch(cursor, LaunchConfig{}, scale_kernel(), x.as<float>(), x.as<float>(), *factor, 1));
    *factor = 100.0f;
  }
  GraphExec exec = *instantiate(graph);

  REQUIRE_OK(exec.launch(stream.ref()));
  REQUIRE_OK(stream.ref().synchronize());

  CHECK(*x.as<float>() == 3.0f);
}

TEST_CASE("what a failed capture leaves behind is nothing", "[traps]") {
  Simulator simulator;
  Stream stream = *Stream::create(kDevice);
  const std::size_t before = simulator.live_handles();

  CHECK_FALSE(capture(stream.ref(), [&](StreamRef s) -> absl::Status {
                CGRT_RETURN_IF_ERROR(launch_host(s, [] {}));
                return absl::AbortedError("enough");
              }).ok());

  collect_released();
  CHECK(simulator.live_handles() == before);
}

}  // namespace
}  // namespace cgrt::testing
